"""(act-peer) The load of an act_storage configuration by testdrive, fio and act_storage in turns."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import act_original, child, engine, places
from benchmarks.section import Section, Table, Target
from benchmarks.sizes import Sizes
from benchmarks.spread import Spread, alternate
from testdrive.act.load import LARGE_READS, LARGE_WRITES, READS, derive_load
from testdrive.plans import bind, load

#: Rates that fio's whole numbers of I/Os a second can say: 4,250 writes/s make 100 large blocks of each kind.
KEYS = {"read-reqs-per-sec": 8_500, "write-reqs-per-sec": 4_250, "service-threads": 10}
#: act_storage's own: of a microsecond and its powers of two. An edge may lie within a bin of fio's, which is
#: 1/64 of its time wide.
BUCKETS = 36
EVEN, ACT, FIO = "testdrive, evenly spread", "testdrive, in act's phase, pread/pwrite", "fio, pread/pwrite"
ORIGINAL = "act_storage"
RATE_ERROR_MAX = 0.01
_PATIENCE_S = 120.0

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Run:
    """I/Os a second of each stream, and its latencies by powers of two of a microsecond."""

    rates: dict[str, float]
    buckets: dict[str, Ints]


def measure(sizes: Sizes, scratch: Path) -> Section:
    """The same load by all tools in turns, on a loop device over memory."""
    section = Section("act-peer", "The load of an act_storage configuration, beside act_storage and fio", [])
    if not places.can_make_loop_devices():
        section.how.append("It was not measured: loop devices need root.")
        return section
    seconds = max(1, round(sizes.replay_seconds))
    file = places.filled_file(scratch / "act.img", sizes.loop_bytes)
    with places.loop_device(file) as device:
        contenders = {
            EVEN: partial(_testdrive, device, scratch, seconds, ""),
            ACT: partial(_testdrive, device, scratch, seconds, "?engine=sync", "arrivals=act"),
            FIO: partial(_fio, device, scratch, seconds),
        }
        original = act_original.find()
        if original is not None:
            contenders[ORIGINAL] = partial(_original, original, device, scratch, seconds)
        samples = alternate(contenders, sizes.iops_rounds)
    places.remove(file)
    _describe(section, samples, seconds, sizes.iops_rounds)
    section.how.append(
        act_original.NOT_FOUND if original is None else f"{ORIGINAL} is {act_original.version(original)}."
    )
    return section


def asked() -> dict[str, float]:
    """I/Os a second of each stream, by the formulas of act_storage."""
    derived = derive_load(bind(load("act"), KEYS).values)
    return {
        READS: float(derived.reads_per_s),
        LARGE_READS: derived.large_reads_per_s,
        LARGE_WRITES: derived.large_writes_per_s,
    }


def _testdrive(device: Path, scratch: Path, seconds: int, option: str, *settings: str) -> Run:
    """`testdrive run act --config`, as a user runs it."""
    configuration, output = _configuration(device, scratch, seconds), scratch / "act.rec"
    chosen = [part for each in ("slice=1s", "prepare=none", *settings) for part in ("--set", each)]
    # A verdict of fail is a result here, as a pass is.
    command: list[str | Path] = ["sh", "-c", '"$@"; [ $? -le 1 ]', "sh"]
    command += ["env", f"TESTDRIVE_ENGINE={engine.find()}", Path(sys.executable), "-m", "testdrive"]
    command += [
        "run",
        "act",
        "--config",
        configuration,
        "--drive",
        f"{device}{option}",
        "--erase",
        device,
        "--keep",
        "rows",
    ]
    child.run([*command, *chosen, "-o", output, "--json"], timeout_s=_PATIENCE_S + 10 * seconds)
    run = _recorded(output, seconds)
    places.remove(output)
    return run


def _configuration(device: Path, scratch: Path, seconds: int) -> Path:
    """The file that both testdrive and act_storage are given."""
    path = scratch / "act_storage.conf"
    lines = [f"device-names: {device}", f"test-duration-sec: {seconds}", "microsecond-histograms: yes"]
    lines += [f"{key}: {value}" for key, value in KEYS.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def _original(program: Path, device: Path, scratch: Path, seconds: int) -> Run:
    """act_storage itself, of whose log the last report is taken: counts are since the start."""
    log = act_original.run(program, _configuration(device, scratch, seconds), _PATIENCE_S + 10 * seconds)
    counts = act_original.last_report(log, BUCKETS)
    named = {name: counts.get(name, np.zeros(BUCKETS, np.int64)) for name in asked()}
    return Run({name: int(each.sum()) / seconds for name, each in named.items()}, named)


def _recorded(output: Path, seconds: int) -> Run:
    import duckdb

    names = json.loads((output / "manifest.json").read_text())["phases"][-1]["accounting"]["streams"]
    rows = duckdb.execute(
        "SELECT stream, latency_ns FROM read_parquet(?)", [str(output / "ios" / "*.parquet")]
    ).fetchnumpy()
    rates, buckets = {}, {}
    for index, name in enumerate(names):
        latencies_ns = rows["latency_ns"][rows["stream"] == index]
        rates[name] = len(latencies_ns) / seconds
        buckets[name] = _counted(latencies_ns, np.ones(len(latencies_ns), np.int64))
    return Run(rates, buckets)


def _counted(latencies_ns: Ints, counts: Ints) -> Ints:
    """How many are in each bucket: 0 has what is below 1 us, b what is from 2^(b-1) on, but not 2^b us."""
    places_of = np.ceil(np.log2(np.maximum(latencies_ns, 0) // 1_000 + 1)).astype(np.int64)
    return np.bincount(np.clip(places_of, 0, BUCKETS - 1), weights=counts, minlength=BUCKETS).astype(np.int64)


def _fio(device: Path, scratch: Path, seconds: int) -> Run:
    """The same streams as fio's jobs: threads that wait for each I/O, writes with O_DSYNC."""
    rates, report = asked(), scratch / "fio.json"
    command = ["fio", "--output-format=json+", f"--output={report}", "--thread", "--group_reporting=1"]
    command += ["--ioengine=psync", "--direct=1", f"--filename={device}", "--norandommap=1", "--randrepeat=0"]
    command += ["--time_based=1", f"--runtime={seconds}s", "--refill_buffers=1"]
    threads = KEYS["service-threads"]
    small = ["--rw=randread", "--bs=1536", "--blockalign=512", f"--numjobs={threads}"]
    large = ["--bs=128k", "--numjobs=1"]
    command += [f"--name={READS}", *small, f"--rate_iops={round(rates[READS] / threads)}"]
    for name, kind in ((LARGE_READS, ["--rw=randread"]), (LARGE_WRITES, ["--rw=randwrite", "--sync=dsync"])):
        command += [f"--name={name}", "--new_group", *large, *kind, f"--rate_iops={round(rates[name])}"]
    child.run(command, timeout_s=_PATIENCE_S + 10 * seconds, directory=scratch)
    text = report.read_text()
    places.remove(report)
    found: dict[str, Any] = {job["jobname"]: job for job in json.loads(text[text.index("{") :])["jobs"]}
    achieved, buckets = {}, {}
    for name in rates:
        done = found[name]["write" if name == LARGE_WRITES else "read"]
        bins = done["clat_ns"]["bins"]
        achieved[name] = done["total_ios"] / seconds
        buckets[name] = _counted(
            np.array([int(key) for key in bins], np.int64), np.array(list(bins.values()), np.int64)
        )
    return Run(achieved, buckets)


def distance(one: Ints, other: Ints) -> float:
    """The greatest difference of two cumulated shares at any edge of a bucket (Kolmogorov and Smirnov's)."""
    cumulated = [buckets.cumsum() / max(int(buckets.sum()), 1) for buckets in (one, other)]
    return float(np.abs(cumulated[0] - cumulated[1]).max())


def _describe(section: Section, samples: Mapping[str, list[Run]], seconds: int, rounds: int) -> None:
    wanted = asked()
    section.how.append(
        f"{KEYS['read-reqs-per-sec']:,} reads and {KEYS['write-reqs-per-sec']:,} writes a second with"
        f" {KEYS['service-threads']} threads, on one loop device over memory, {seconds} s in {rounds} rounds,"
        " all contenders in turns in each. Latencies are the device's: from the system call on, and with"
        " io_uring from submission on."
    )
    rows = [
        [
            name,
            f"{rate:,.0f}",
            *(Spread([run.rates[name] for run in runs]).text(1) for runs in samples.values()),
        ]
        for name, rate in wanted.items()
    ]
    section.tables.append(Table("I/Os a second", ["stream", "asked", *samples], rows))
    section.tables += [_histogram(name, samples) for name in wanted]
    section.tables.append(_distances(samples, list(wanted)))
    error = max(
        abs(run.rates[name] / rate - 1)
        for runs in (samples[EVEN], samples[ACT])
        for run in runs
        for name, rate in wanted.items()
    )
    section.targets.append(
        Target(
            "rate of every stream", f"within {RATE_ERROR_MAX:.0%}", f"{error:.2%}", error <= RATE_ERROR_MAX
        )
    )
    section.figures.update(
        asked=wanted,
        seconds=seconds,
        rates={
            who: {name: Spread([run.rates[name] for run in runs]).json() for name in wanted}
            for who, runs in samples.items()
        },
        buckets={
            who: {name: [run.buckets[name].tolist() for run in runs] for name in wanted}
            for who, runs in samples.items()
        },
    )


def _distances(samples: Mapping[str, list[Run]], streams: list[str]) -> Table:
    """How far apart the histograms of a round are, and of one program in two rounds."""
    peer = ORIGINAL if ORIGINAL in samples else FIO
    others = [who for who in samples if who != peer]
    rows = [
        [
            name,
            *(_apart(name, samples[who], samples[peer]).text(3) for who in others),
            _apart(name, samples[peer][1:], samples[peer][:-1]).text(3),
        ]
        for name in streams
    ]
    head = ["stream", *(f"{who}, and {peer}" for who in others), f"{peer} and its round before"]
    return Table("Greatest difference of the cumulated shares at an edge", head, rows)


def _apart(name: str, some: list[Run], others: list[Run]) -> Spread:
    pairs = zip(some, others, strict=True)
    return Spread([distance(one.buckets[name], other.buckets[name]) for one, other in pairs])


def _histogram(name: str, samples: Mapping[str, list[Run]]) -> Table:
    """Shares of the I/Os of all rounds together in each bucket that anybody has something in."""
    sums = [np.sum([run.buckets[name] for run in runs], axis=0) for runs in samples.values()]
    # Of what nobody had an I/O of, the first bucket stands.
    held = np.flatnonzero(np.sum(sums, axis=0)) if np.any(sums) else np.zeros(1, np.int64)
    rows = [
        [_span(at), *(f"{each[at] * 100 / max(int(each.sum()), 1):.2f}" for each in sums)]
        for at in range(int(held[0]), int(held[-1]) + 1)
    ]
    return Table(f"Latencies of {name}, % of its I/Os", ["us", *samples], rows)


def _span(bucket: int) -> str:
    return f"{2 ** (bucket - 1):,} to {2**bucket:,}" if bucket else "below 1"
