"""The command: which benchmarks, how much, and where the figures go."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from benchmarks import (
    act,
    act_peer,
    capturing,
    documents,
    engine,
    importing,
    inspecting,
    iops,
    machine,
    modelling,
    places,
    recorded_bytes,
    timed_replay,
)
from benchmarks.errors import BenchmarkError
from benchmarks.section import Section
from benchmarks.sizes import FULL, QUICK, SMALLEST, Sizes

BENCHMARKS = {
    "a": iops.measure,
    "b": timed_replay.measure,
    "c": recorded_bytes.measure,
    "d": inspecting.measure,
    "import": importing.measure,
    "capture": capturing.measure,
    "sim": modelling.measure,
    "act": act.measure,
    "act-peer": act_peer.measure,
}
LOAD_MAX = 0.5


def main(arguments: list[str] | None = None) -> int:
    """Run benchmarks; the exit status is 0, or 1 when they could not run."""
    options = _parser().parse_args(arguments)
    _end_in_good_order()
    try:
        return _measure(options)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    every = ",".join(BENCHMARKS)
    parser.add_argument("--only", default=every, help=f"which benchmarks: {every}")
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--quick", dest="sizes", action="store_const", const=QUICK, default=FULL)
    amount.add_argument("--smallest", dest="sizes", action="store_const", const=SMALLEST)
    parser.add_argument("--output", type=Path, default=Path("bench-out"), help="where the JSON goes")
    parser.add_argument("--scratch", type=Path, default=Path("/dev/shm"), help="where recordings and logs go")
    parser.add_argument("--write-docs", action="store_true", help="put the tables into docs/benchmarks.md")
    return parser


def _end_in_good_order() -> None:
    """Turn the signals that end a process at once into an orderly end, which removes what was made."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))


def _measure(options: argparse.Namespace) -> int:
    sizes: Sizes = options.sizes
    letters = options.only.split(",")
    unknown = [letter for letter in letters if letter not in BENCHMARKS]
    if unknown:
        print(
            f"error: there is no benchmark {unknown[0]!r}; choose from {', '.join(BENCHMARKS)}",
            file=sys.stderr,
        )
        return 1
    command = _command(letters, sizes)
    host = machine.look(engine.find())
    print(host.sentence())
    load_average = os.getloadavg()[0]
    if load_average > LOAD_MAX * host.cpus:
        print(f"warning: the load average is {load_average:.1f}; other work makes the figures worse")
    written: dict[str, list[str]] = {}
    with places.scratch(options.scratch, sizes.scratch_bytes) as scratch:
        engine.refuse_debug_build(scratch)
        report: dict[str, Any] = {
            "command": command,
            "sizes": sizes.name,
            "machine": host.json(),
            "load_average_at_start": load_average,
            "sections": {},
        }
        for letter in letters:
            noise = machine.Noise()
            section = BENCHMARKS[letter](sizes, scratch)
            entry, lines = _findings(section, noise, host, command)
            report["sections"][letter] = entry
            written[letter] = lines
            print(f"\n## ({letter}) {section.title}\n", *lines, sep="\n", flush=True)
    options.output.mkdir(parents=True, exist_ok=True)
    figures = options.output / "benchmarks.json"
    figures.write_text(json.dumps(report, indent=1) + "\n")
    print(f"\nfigures: {figures}")
    if options.write_docs:
        documents.write(written)
        print(f"tables: {documents.DOCUMENT}")
    return 0


def _command(letters: list[str], sizes: Sizes) -> str:
    """What to run to measure the same again; where things were put does not matter for that."""
    which = [] if letters == list(BENCHMARKS) else [f"--only {','.join(letters)}"]
    amount = [] if sizes is FULL else [f"--{sizes.name}"]
    return " ".join(["python -m benchmarks", *which, *amount])


def _findings(
    section: Section, noise: machine.Noise, host: machine.Machine, command: str
) -> tuple[dict[str, object], list[str]]:
    """A section for programs and for people, with when and on what it was measured."""
    around = noise.json()
    when = datetime.datetime.now(datetime.UTC)
    facts = (
        f"`{command}`, {when:%Y-%m-%d %H:%M} UTC, {around['elapsed_s']:.0f} s: {host.sentence()}."
        f" Of the CPU time, other programs and kernel threads had {around['others_share']:.1%} meanwhile,"
        f" the hypervisor kept {around['stolen_share']:.1%}."
    )
    entry: dict[str, object] = {
        "title": section.title,
        "measured_at": when.isoformat(timespec="seconds"),
        "noise": around,
        "figures": section.figures,
        "targets": [vars(target) for target in section.targets],
    }
    return entry, [facts, "", *section.lines()]


if __name__ == "__main__":
    sys.exit(main())
