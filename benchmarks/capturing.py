"""(capture) What capturing a device costs it: IOPS and CPU at the highest rate that a loop device reaches."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import engine, fio, places
from benchmarks.errors import BenchmarkError
from benchmarks.section import Section, Table, Target
from benchmarks.sizes import Sizes, each
from benchmarks.spread import Spread, alternate

COST_MAX = 0.03
OFF, ON, AGAIN = "capture off", "capture on", "capture off, once more"
WITHOUT_QUEUE = "capture on, no queue events"
#: What is captured, by name: as it comes, and as it is made cheaper where the queue need not be known.
CAPTURES = {ON: "queue,issue,complete", WITHOUT_QUEUE: "issue,complete"}
#: Of these the depth with the highest rate is measured.
DEPTHS = (8, 32, 64, 128)
_PATIENCE_S = 60.0


@dataclass(frozen=True)
class Run:
    """A run of fio, with what the capture beside it took and saw; zeroes without one."""

    iops: float
    fio_cpu_us_per_io: float
    cpu_share: float = 0.0
    cpu_us_per_io: float = 0.0
    events_lost: int = 0


def measure(sizes: Sizes, scratch: Path) -> Section:
    """Capture on and off in turns, on a loop device over memory."""
    section = Section("capture", "What capturing costs", [])
    if not places.can_make_loop_devices():
        section.how.append("It was not measured: loop devices and capturing need root.")
        return section
    file = places.filled_file(scratch / "capture.img", sizes.loop_bytes)
    with places.loop_device(file) as device:
        depth = _fastest_depth(device, scratch, sizes)
        off = functools.partial(_without, device, scratch, sizes, depth)
        on = {
            name: functools.partial(_with, device, scratch, sizes, depth, events)
            for name, events in CAPTURES.items()
        }
        samples = alternate({OFF: off, **on, AGAIN: off}, sizes.capture_rounds)
    places.remove(file)
    section.how.append(
        "fio reads 4 KiB at random places of a loop device over tmpfs,"
        f" {each(sizes.capture_seconds, sizes.capture_ios)}, in {sizes.capture_rounds} rounds of everything"
        " once, in turns forwards and backwards; at queue depth"
        f" {depth}, the fastest of {', '.join(map(str, DEPTHS))} here. Ratios are taken within a round. The"
        " capture's CPU is that of its own threads while fio ran; what the kernel does for it in the path of"
        " an I/O is in fio's CPU and in the IOPS. Each capture must have seen as many bytes as fio read, and"
        " with queue events, which merging leaves alone, as many I/Os, unless it says that it lost some."
    )
    _describe(samples, depth, section)
    return section


def _fastest_depth(device: Path, scratch: Path, sizes: Sizes) -> int:
    rates = {depth: _fio(device, scratch, sizes, depth).iops for depth in DEPTHS}
    return max(rates, key=rates.__getitem__)


def _fio(device: Path, scratch: Path, sizes: Sizes, depth: int) -> fio.Run:
    return fio.synthetic(device, scratch, seconds=sizes.capture_seconds, ios=sizes.capture_ios, depth=depth)


def _without(device: Path, scratch: Path, sizes: Sizes, depth: int) -> Run:
    run = _fio(device, scratch, sizes, depth)
    return Run(run.iops, run.cpu_us_per_io)


def _with(device: Path, scratch: Path, sizes: Sizes, depth: int, events: str) -> Run:
    output = scratch / "capture.rec"
    try:
        with _capturing(device, output, events) as process:
            before_s = _cpu_seconds(process.pid)
            run = _fio(device, scratch, sizes, depth)
            used_s = _cpu_seconds(process.pid) - before_s
            finished = _stop(process)
    finally:
        places.remove(output)
    seen, lost = finished["counts"], finished["events_lost"]
    if seen["bytes"] != run.ios * fio.BLOCK_BYTES and not lost:
        raise BenchmarkError(f"fio did {run.ios} I/Os and the capture saw {seen['bytes']} bytes, none lost")
    if "queue" in events and seen["ios"] != run.ios and not lost:
        raise BenchmarkError(f"fio did {run.ios} I/Os and the capture saw {seen['ios']}, with nothing lost")
    return Run(run.iops, run.cpu_us_per_io, used_s / run.job_s, used_s * 1e6 / run.ios, lost)


@contextlib.contextmanager
def _capturing(device: Path, output: Path, events: str) -> Iterator[subprocess.Popen[str]]:
    """A capture that has started; whatever happens meanwhile, it does not outlive the `with`."""
    options = ("--events", events, "-o", output)
    command = [os.fspath(part) for part in (engine.find(), "capture", device, *options)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "error":
                raise BenchmarkError(event["message"])
            if event["event"] == "started":
                break
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _stop(process: subprocess.Popen[str]) -> dict[str, Any]:
    """End the capture as a person does; its last word."""
    process.send_signal(signal.SIGINT)
    said, complained = process.communicate(timeout=_PATIENCE_S)
    if process.returncode or not said:
        raise BenchmarkError(f"the capture ended with status {process.returncode}: {complained or said}")
    finished: dict[str, Any] = json.loads(said.splitlines()[-1])
    return finished


def _cpu_seconds(pid: int) -> float:
    """CPU time of a process's threads, to the nanosecond."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def _describe(samples: dict[str, list[Run]], depth: int, section: Section) -> None:
    iops = {name: Spread([run.iops for run in runs]) for name, runs in samples.items()}
    fio_cpu = {name: Spread([run.fio_cpu_us_per_io for run in runs]) for name, runs in samples.items()}
    rows = [[name, iops[name].scaled(1e-3).text(0), fio_cpu[name].text(3)] for name in samples]
    section.tables.append(
        Table(f"At queue depth {depth}", ["", "thousand IOPS", "fio's CPU us for each I/O"], rows)
    )
    costs = {name: _cost(name, samples[name], iops) for name in CAPTURES}
    noise = Spread([1 - value for value in (iops[AGAIN] / iops[OFF]).values])
    facts = [[term, *(costs[name].facts()[term] for name in CAPTURES)] for term in costs[ON].facts()]
    facts.append(["noise: capture off once more, less than off", *[noise.scaled(100).text(1, " %")] * 2])
    section.tables.append(Table("Cost", ["", *CAPTURES], facts))
    for name, cost in costs.items():
        said = f"IOPS lost at the highest rate, {name}"
        reached = cost.iops.median < COST_MAX
        section.targets.append(
            Target(said, f"under {COST_MAX:.0%}", cost.iops.scaled(100).text(1, " %"), reached)
        )
    lost = sum(cost.events_lost for cost in costs.values())
    section.targets.append(Target("events lost", "none", f"{lost:,}", lost == 0))
    section.figures.update(
        depth=depth,
        iops={name: spread.json() for name, spread in iops.items()},
        noise=noise.json(),
        costs={name: cost.json() for name, cost in costs.items()},
    )


@dataclass(frozen=True)
class _Cost:
    """What capturing with some events costs."""

    iops: Spread
    cpu_share: Spread
    cpu_us_per_io: Spread
    events_lost: int

    def facts(self) -> dict[str, str]:
        cpus = os.cpu_count() or 1
        return {
            "IOPS that it costs": self.iops.scaled(100).text(1, " %"),
            "its CPU, of one CPU": self.cpu_share.scaled(100).text(1, " %"),
            f"its CPU, of all {cpus}": self.cpu_share.scaled(100 / cpus).text(1, " %"),
            "its CPU us for each I/O": self.cpu_us_per_io.text(3),
            "events lost in all rounds": f"{self.events_lost:,}",
        }

    def json(self) -> dict[str, object]:
        return {
            "iops_cost": self.iops.json(),
            "cpu_share_of_one": self.cpu_share.json(),
            "cpu_us_per_io": self.cpu_us_per_io.json(),
            "events_lost": self.events_lost,
        }


def _cost(name: str, runs: list[Run], iops: dict[str, Spread]) -> _Cost:
    return _Cost(
        Spread([1 - value for value in (iops[name] / iops[OFF]).values]),
        Spread([run.cpu_share for run in runs]),
        Spread([run.cpu_us_per_io for run in runs]),
        sum(run.events_lost for run in runs),
    )
