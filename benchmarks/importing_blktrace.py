"""Binary blktrace: how fast it is imported, with blkparse beside it on the same files."""

from __future__ import annotations

import functools
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import blktrace_trace, child, engine, places
from benchmarks.errors import BenchmarkError
from benchmarks.section import Section, Table, Target
from benchmarks.sizes import MIB, Sizes
from benchmarks.spread import Spread, alternate

TIMES_BLKPARSE = 10.0
_PATIENCE_S = 600.0
_REAL_TRACES = Path(__file__).resolve().parents[2] / "shared" / "traces"
_IMPORT, _TEXT, _FILE, _NO_TEXT = "testdrive import", "blkparse", "blkparse -o", "blkparse -O"


@dataclass(frozen=True)
class _Trace:
    """A trace to be measured with, and what writes it; that gives the number of events."""

    name: str
    write: Callable[[Path], int]


def measure(sizes: Sizes, scratch: Path, section: Section) -> None:
    """Add the table and the targets to a section."""
    if shutil.which("blkparse") is None:
        section.how.append(
            "Binary blktrace is left out: blkparse is not installed (Debian package blktrace)."
        )
        return
    section.how.append(
        "Binary blktrace: `testdrive-engine import FOLDER -o REC`, from start to end, to a recording on disk."
        " `blkparse` prints what it prints by default, with standard output to /dev/null; `blkparse -o`"
        " prints the same to /dev/null by its own option, which it buffers more; `blkparse -O` merges and"
        " counts, and prints no event. blkparse keeps no I/O and pairs none."
        " All read the same files, one for each of eight CPUs, in turns; what is made up has 70 % reads at"
        " random places with some 40 under way. Real traces are repeated with times and sequences going on,"
        " where they are beside the checkout or in TESTDRIVE_TRACES."
    )
    rows = []
    for trace in _traces(sizes):
        directory = scratch / "blktrace"
        directory.mkdir()
        events = trace.write(directory)
        rows.append(_row(trace.name, events, _samples(directory, events, sizes), section))
        places.remove(directory)
    section.tables += [
        Table(
            "Binary blktrace, million events/s",
            ["", _IMPORT, _TEXT, _FILE, _NO_TEXT],
            [row[0] for row in rows],
        ),
        Table(
            "Binary blktrace, import / blkparse",
            ["", f"/ {_TEXT}", f"/ {_FILE}", f"/ {_NO_TEXT}", "CPU time / blkparse's", "peak memory, MiB"],
            [row[1] for row in rows],
        ),
    ]


def _traces(sizes: Sizes) -> list[_Trace]:
    ios = sizes.traced_ios
    made = [
        _Trace(f"made up, {kind.name}", functools.partial(blktrace_trace.write, kind=kind, ios=ios))
        for kind in (blktrace_trace.ALL, blktrace_trace.FEWEST)
    ]
    folder = Path(os.environ.get("TESTDRIVE_TRACES") or _REAL_TRACES)
    real = []
    for path in sorted(folder.glob("blktrace-*")):
        files = sorted(path.glob("*.blktrace.*"))
        repeated = functools.partial(_repeat, files, 2 * ios)
        real.append(_Trace(f"real, repeated: {path.name.removeprefix('blktrace-')}", repeated))
    return made + real


def _repeat(files: list[Path], events_least: int, directory: Path) -> int:
    return blktrace_trace.repeat(files, directory, events_least)


def _samples(directory: Path, events: int, sizes: Sizes) -> dict[str, list[child.Ended]]:
    contenders = {
        _IMPORT: functools.partial(_import, directory),
        _TEXT: functools.partial(_blkparse, directory, ""),
        _FILE: functools.partial(_blkparse, directory, "-o /dev/null"),
        _NO_TEXT: functools.partial(_blkparse, directory, "-O"),
    }
    counted = _events_counted(directory)
    if counted != events:
        raise BenchmarkError(f"blkparse counts {counted:,} events where {events:,} were written")
    return alternate(contenders, sizes.traced_rounds)


def _import(directory: Path) -> child.Ended:
    recording = directory / "trace.rec"
    ended = engine.import_trace(directory, recording)
    places.remove(recording)
    return ended


def _blkparse(directory: Path, options: str) -> child.Ended:
    # By a shell, since what is measured may write to nothing but /dev/null.
    command = f"exec blkparse {options} -i {blktrace_trace.NAME} > /dev/null"
    return child.run(["sh", "-c", command], timeout_s=_PATIENCE_S, directory=directory)


def _events_counted(directory: Path) -> int:
    """What blkparse's summary says, so that it is sure to read all that the import reads."""
    # The summary stands behind the text of all events.
    command = f"blkparse -i {blktrace_trace.NAME} | tail -n 40"
    said = child.run(["sh", "-c", command], timeout_s=_PATIENCE_S, directory=directory).output
    found = re.search(r"^Events \(.*\): ([\d,.' ]+) entries", said, re.MULTILINE)
    if found is None:
        raise BenchmarkError(f"blkparse says nothing of how many events there are: {said[-500:]}")
    return int(re.sub(r"\D", "", found[1]))


def _row(
    name: str, events: int, samples: dict[str, list[child.Ended]], section: Section
) -> tuple[list[str], list[str]]:
    rates = {
        contender: Spread([events / 1e6 / ended.wall_s for ended in runs])
        for contender, runs in samples.items()
    }
    cpu_s = {contender: Spread([ended.cpu_s for ended in runs]) for contender, runs in samples.items()}
    times = {contender: rates[_IMPORT] / rates[contender] for contender in (_TEXT, _FILE, _NO_TEXT)}
    peak = Spread([ended.rss_peak_bytes for ended in samples[_IMPORT]])
    section.figures[name] = {
        "events": events,
        "million_events_per_s": {contender: rate.json() for contender, rate in rates.items()},
        "cpu_s": {contender: spread.json() for contender, spread in cpu_s.items()},
        "import_per": {contender: ratio.json() for contender, ratio in times.items()},
        "rss_peak_bytes": peak.json(),
    }
    section.targets.append(
        Target(
            f"events/s of importing blktrace, {name}",
            f"at least {TIMES_BLKPARSE:g} times blkparse's",
            times[_TEXT].text(1, " times"),
            times[_TEXT].median >= TIMES_BLKPARSE,
        )
    )
    shown = f"{name}, {events / 1e6:.1f} million"
    return [shown, *(rate.text(2) for rate in rates.values())], [
        shown,
        *(ratio.text(1) for ratio in times.values()),
        (cpu_s[_IMPORT] / cpu_s[_TEXT]).text(3),
        peak.scaled(1 / MIB).text(0),
    ]
