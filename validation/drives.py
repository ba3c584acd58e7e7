"""Modelled drives under validation: their names, runs on them, and what the recordings say."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testdrive.drive_events import DriveEvent, drive_events
from testdrive.engine import import_traces, run_job
from testdrive.job import DriveRequest, Job, Phase
from testdrive.manifest import Phase as RecordedPhase
from testdrive.metrics.write_amplification import counted
from testdrive.recording import Arrays, Recording
from validation.errors import ValidationError
from validation.sizes import Sizes

PAGE_BYTES = 4096
MIB, GIB = 1 << 20, 1 << 30
MS, S = 1_000_000, 1_000_000_000

#: Settings under which nothing costs time but what a curve gives a cost: then its answer has few terms.
BARE: Mapping[str, Any] = {
    **dict.fromkeys(
        (
            "firmware_read_ns",
            "firmware_read_page_ns",
            "firmware_write_ns",
            "firmware_write_page_ns",
            "firmware_metadata_ns",
            "read_pipeline_ns",
            "acknowledge_ns",
            "trim_per_range_ns",
            "trim_per_page_ns",
            "nand_read_spread_ns",
            "erase_ns",
            "suspends",
            "power_limit_mw",
        ),
        0,
    ),
    "host_link": "1000000GB/s",
    "channel": "1000000GB/s",
    "nand_read_time": "fixed",
    "programs_per_host_page": 1,
    "programs_per_moved_page": 1,
    "initial_state": "written",
}


def bare(**settings: Any) -> str:
    """Return the URI of a drive of which only these settings cost anything."""
    return uri("enterprise-mixed", **(dict(BARE) | settings))


def uri(model: str, **settings: Any) -> str:
    """Return the URI of a model with these settings."""
    options = "&".join(f"{key}={value}" for key, value in settings.items())
    return f"sim:{model}?{options}" if options else f"sim:{model}"


@dataclass(frozen=True)
class Run:
    """A recording of a run on a modelled drive, while it is there."""

    recording: Recording

    @property
    def phases(self) -> list[RecordedPhase]:
        return self.recording.manifest.phases

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters that the drive had, by its own account."""
        drive = self.recording.manifest.drive
        return drive.settings if drive else {}

    def events(self, kind: str) -> list[DriveEvent]:
        """What the drive logged of this kind, in order of time."""
        return [event for event in drive_events(self.recording) if event.kind == kind]

    def rows(self) -> Arrays:
        """Every I/O of the measured phases, in order of submission."""
        return self.recording.rows_in_file_order(self.recording.table().order_by("submit_ns"))


def amplification(phases: Iterable[RecordedPhase]) -> float:
    """Return the bytes that the NAND was given over those that the host wrote, as the drive counts them."""
    grown = counted(list(phases))
    return grown["nand_written_bytes"] / grown["host_written_bytes"]


class Bench:
    """Runs jobs in a directory that is emptied as it goes: of large recordings there is one at a time."""

    def __init__(self, sizes: Sizes, scratch: Path) -> None:
        self.sizes = sizes
        self._scratch = scratch

    @contextmanager
    def run(self, drive: str, phases: Sequence[Phase]) -> Iterator[Run]:
        """Run these phases on a drive; what was recorded is there until the end of the `with`.

        Raises
        ------
        ValidationError
            An I/O failed.
        TestdriveError
            The engine is missing, or refused or broke the run off.
        """
        output = self._scratch / "run.rec"
        try:
            run_job(Job(drive=DriveRequest(uri=drive), output=output, phases=list(phases)))
            with Recording.open(output) as recording:
                errors = recording.manifest.counts.errors
                if errors:
                    raise ValidationError(f"{errors} I/Os failed on {drive}, where none may")
                yield Run(recording)
        finally:
            shutil.rmtree(output, ignore_errors=True)

    @contextmanager
    def source(self, columns: Mapping[str, ArrayLike]) -> Iterator[Path]:
        """Make a recording of these I/Os to be replayed, by the same way as any foreign trace: as CSV,
        imported.

        `columns` has `time_ns`, `op` (R, W or T), `offset_bytes` and `length_bytes`, in any order of time.
        """
        text, recording = self._scratch / "source.csv", self._scratch / "source.rec"
        try:
            _write_csv(text, columns)
            import_traces(
                [text], recording, format_name="csv", columns=",".join(f"{key}={key}" for key in columns)
            )
            yield recording
        finally:
            text.unlink(missing_ok=True)
            shutil.rmtree(recording, ignore_errors=True)


def _write_csv(path: Path, columns: Mapping[str, ArrayLike]) -> None:
    import pyarrow as pa
    from pyarrow import csv

    given: dict[str, NDArray[Any]] = {key: np.asarray(values) for key, values in columns.items()}
    order = np.argsort(given["time_ns"], kind="stable")
    csv.write_csv(pa.table({key: values[order] for key, values in given.items()}), path)
