"""fio under measurement: the same work, through its own options."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from benchmarks import child, places

_PATIENCE_S = 120.0
#: Of each I/O of a synthetic job.
BLOCK_BYTES = 4096
#: What testdrive's io_uring path does by itself: registered buffers and file, plain read and write.
TUNED = ["--fixedbufs=1", "--registerfiles=1", "--nonvectored=1"]


@dataclass(frozen=True)
class Run:
    """A run: I/Os, rate and time as fio gives them, and what the whole process took."""

    ios: int
    iops: float
    job_s: float
    log_bytes: int
    ended: child.Ended

    @property
    def cpu_us_per_io(self) -> float:
        return self.ended.cpu_s * 1e6 / self.ios


def synthetic(
    device: Path | None,
    directory: Path,
    *,
    seconds: float | None = None,
    ios: int | None = None,
    depth: int = 32,
    log: bool = False,
    tuned: bool = True,
) -> Run:
    """4 KiB random reads, by default 32 at a time: io_uring on a device, or with None fio's null engine."""
    job = ["--rw=randread", f"--bs={BLOCK_BYTES}", f"--iodepth={depth}", "--norandommap=1"]
    if device is None:
        job += ["--ioengine=null", "--size=1t"]
    else:
        job += [
            "--ioengine=io_uring",
            "--direct=1",
            "--readonly",
            f"--filename={device}",
            *(TUNED if tuned else []),
        ]
    if seconds is not None:
        job += ["--time_based=1", f"--runtime={round(seconds * 1000)}ms"]
    if ios is not None:
        job += [f"--number_ios={ios}"]
    if log:
        job += ["--write_lat_log=io", "--log_avg_msec=0"]
    return _run(job, directory, seconds or 0.0)


def replay(trace: Path, directory: Path, *, null: bool, seconds: float) -> Run:
    """The replay of a trace at its own times. The files that it names are what is read and written."""
    if null:
        # Only at depth 1 does fio's null engine note when it issued, without which fio keeps no time at all.
        path = ["--ioengine=null", "--iodepth=1"]
    else:
        # Registered files and buffers do not go with a trace: fio wants their number beforehand.
        path = ["--ioengine=io_uring", "--iodepth=128", "--direct=1", "--nonvectored=1"]
    return _run([*path, f"--read_iolog={trace}"], directory, seconds)


def _run(job: list[str], directory: Path, seconds: float) -> Run:
    report = directory / "fio.json"
    # A thread and not a process of its own for the job: its memory is then counted once, and all of it.
    common = ["--name=job", "--thread", "--output-format=json", f"--output={report}"]
    command = ["fio", *common, *job]
    ended = child.run(command, timeout_s=_PATIENCE_S + 10 * seconds, directory=directory)
    # Notes of fio stand before the JSON.
    text = report.read_text()
    found = json.loads(text[text.index("{") :])["jobs"][0]
    logs = list(directory.glob("io_*.log"))
    log_bytes = sum(places.allocated_bytes(log) for log in logs)
    for made in [report, *logs]:
        places.remove(made)
    ios = sum(found[kind]["total_ios"] for kind in ("read", "write", "trim"))
    return Run(ios, found["read"]["iops"], found["job_runtime"] / 1000, log_bytes, ended)
