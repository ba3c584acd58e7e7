"""testdrive's engine under measurement: jobs of docs/job.md, and what became of them."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import child, places
from benchmarks.errors import BenchmarkError

_NAME = "testdrive-engine"
_PATIENCE_S = 120.0


@dataclass(frozen=True)
class Run:
    """A run: I/Os, the time of its last phase on the engine's own clock, and what the whole process took."""

    ios: int
    phase_s: float
    ended: child.Ended
    warnings: list[str]

    @property
    def iops(self) -> float:
        return self.ios / self.phase_s

    @property
    def cpu_us_per_io(self) -> float:
        return self.ended.cpu_s * 1e6 / self.ios


def find() -> Path:
    """The engine that the command beside this Python uses.

    Raises
    ------
    BenchmarkError
        It is not there.
    """
    path = Path(os.environ.get("TESTDRIVE_ENGINE") or Path(sys.executable).parent / _NAME)
    if not os.access(path, os.X_OK):
        raise BenchmarkError(f"{path} is not there; `make install` builds it")
    return path


def refuse_debug_build(directory: Path) -> None:
    """End before anything is measured with an engine that was built for debugging.

    Raises
    ------
    BenchmarkError
        The engine's own recordings say that it is no release build.
    """
    output = directory / "build.rec"
    synthetic("null:", output, ios=1)
    build = json.loads((output / "manifest.json").read_text())["tool"]["build"]
    places.remove(output)
    if build != "release":
        raise BenchmarkError(f"the engine is a {build} build, whose figures mean nothing; run `make install`")


def synthetic(
    uri: str,
    output: Path,
    *,
    seconds: float | None = None,
    ios: int | None = None,
    read_share: float = 1.0,
    record: bool = True,
) -> Run:
    """4 KiB at random places at queue depth 32, for a time or a number of I/Os."""
    phase: dict[str, Any] = {"kind": "synthetic", "block_bytes": 4096, "depth": 32, "read_share": read_share}
    if seconds is not None:
        phase["duration_ns"] = round(seconds * 1e9)
    if ios is not None:
        phase["ios"] = ios
    return _run(uri, output, phase, record=record)


def replay(
    uri: str,
    output: Path,
    source: Path,
    window_ns: tuple[int, int] | None = None,
    *,
    erase: Path | None = None,
) -> Run:
    """The timed replay of a recording, or of a window of it; `erase` is the file that may be written."""
    phase: dict[str, Any] = {"kind": "replay", "recording": os.fspath(source), "pace": "timed"}
    if window_ns is not None:
        phase["from_ns"], phase["to_ns"] = window_ns
    return _run(uri, output, phase, erase=erase)


def run_phase(uri: str, output: Path, phase: dict[str, Any]) -> Run:
    """Any phase of docs/job.md, on a drive that needs no consent."""
    return _run(uri, output, phase)


def phases_of_writes(
    uri: str, output: Path, ios: tuple[int, ...], *, fill: bool = False, record: bool = True
) -> Run:
    """4 KiB random writes at queue depth 32: so many a phase, behind one another and with a seed each.

    With `fill`, every byte of the drive is written in order before.
    """
    phases: list[dict[str, Any]] = [{"kind": "prepare", "method": "sequential"}] if fill else []
    phases += [
        {
            "kind": "synthetic",
            "block_bytes": 4096,
            "depth": 32,
            "read_share": 0.0,
            "ios": number,
            "seed": seed,
        }
        for seed, number in enumerate(ios, start=1)
    ]
    return _run(uri, output, *phases, record=record)


def drive_counters(recording: Path) -> dict[str, int]:
    """What a modelled drive counted of itself until the end of a run."""
    manifest = json.loads((recording / "manifest.json").read_text())
    after: dict[str, int] = manifest["phases"][-1]["drive_counters"]["after"]
    return after


def import_csv(source: Path, output: Path, columns: str) -> None:
    command: list[str | Path] = [
        find(),
        "import",
        source,
        "-o",
        output,
        "--format",
        "csv",
        "--columns",
        columns,
    ]
    child.run(command, timeout_s=_PATIENCE_S)


def import_trace(source: Path, output: Path, format_name: str | None = None) -> child.Ended:
    """Import a trace; without its name, the engine finds its format out."""
    format_option = ["--format", format_name] if format_name else []
    return child.run([find(), "import", source, "-o", output, *format_option], timeout_s=10 * _PATIENCE_S)


def imported_ios(ended: child.Ended) -> int:
    """How many I/Os an import says it made rows of."""
    ios: int = json.loads(ended.output.splitlines()[-1])["counts"]["ios"]
    return ios


def inspect(recording: Path) -> tuple[dict[str, Any], child.Ended]:
    """`testdrive inspect REC --json`: the summary, and what the command took."""
    command: list[str | Path] = [Path(sys.executable), "-m", "testdrive", "inspect", recording, "--json"]
    ended = child.run(command, timeout_s=10 * _PATIENCE_S)
    summary: dict[str, Any] = json.loads(ended.output)
    return summary, ended


def _run(
    uri: str, output: Path, *phases: dict[str, Any], record: bool = True, erase: Path | None = None
) -> Run:
    job = {
        "version": 1,
        "drive": {"uri": uri, "erase": os.fspath(erase) if erase else None},
        "output": os.fspath(output),
        "record": record,
        "phases": phases,
    }
    ended = child.run([find(), "run"], stdin_text=json.dumps(job), timeout_s=10 * _PATIENCE_S)
    events = [json.loads(line) for line in ended.output.splitlines()]
    # The last progress is told when the phase has ended, and is there with and without a recording.
    progress = [event for event in events if event["event"] == "progress"][-1]
    ios = events[-1]["counts"]["ios"]
    warnings = [event["code"] for event in events if event["event"] == "warning"]
    return Run(ios, progress["elapsed_ns"] / 1e9, ended, warnings)
