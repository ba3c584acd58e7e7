"""What a drive logged of itself: ``drive_events.jsonl`` of a recording (docs/recording-format.md).

Drives that tell what they are busy with leave one, so far the modelled ones, and so does the user-space
driver where a controller did not answer. Of an NVMe drive that the kernel's driver has, what that did to its
controller is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pydantic import BaseModel, ValidationError

from testdrive.errors import RecordingError
from testdrive.recording import Recording, Span
from testdrive.regular_files import open_text

EVENTS_NAME = "drive_events.jsonl"


class DriveEvent(BaseModel):
    """Something that a drive was busy with, or held up by; ``busy_ns`` leaves short pauses out."""

    kind: str
    start_ns: int
    end_ns: int
    busy_ns: int
    amount: int
    unit: str

    def within(self, start_ns: int, end_ns: int) -> tuple[int, float]:
        """How long of the event lies between two times, and which share of it; an instant is whole."""
        overlap_ns = min(self.end_ns, end_ns) - max(self.start_ns, start_ns)
        if overlap_ns < 0:
            return 0, 0.0
        length_ns = self.end_ns - self.start_ns
        return overlap_ns, overlap_ns / length_ns if length_ns else 1.0


def logged_events(recording: Recording) -> Iterator[DriveEvent]:
    """Every event that the recording has of its drive, in any phase, by the recording's own clock.

    Raises
    ------
    RecordingError
        If the file is not what the format says.
    """
    if recording.manifest.drive_events is None:
        return iter(())
    # What a crash left behind the lines that the manifest knows may be the part of one.
    return islice(_lines(recording.path / EVENTS_NAME), recording.manifest.drive_events.events)


def drive_events(recording: Recording) -> list[DriveEvent]:
    """The drive's events in the measured phases, with times as :meth:`Recording.table` has them.

    An event that reaches beyond a measured phase is cut there, and with it the amount. The drive's log is of
    bounded size, so that all of it fits in memory.

    Raises
    ------
    RecordingError
        If the file is not what the format says.
    """
    spans = recording.measured_spans()
    return [part for event in logged_events(recording) for part in _measured(event, spans)]


def _lines(path: Path) -> Iterator[DriveEvent]:
    try:
        with open_text(path) as file:
            for number, line in enumerate(file, start=1):
                try:
                    yield DriveEvent.model_validate_json(line)
                except ValidationError as error:
                    first = error.errors()[0]
                    key = ".".join(str(part) for part in first["loc"]) or "the line"
                    raise RecordingError(
                        path,
                        f"is damaged in line {number}: {key}: {first['msg']}; restore it from a copy, or "
                        "remove drive_events from the manifest to do without",
                    ) from error
    except OSError as error:
        raise RecordingError(path, f"cannot be read: {error.strerror}; restore it from a copy") from error
    except UnicodeDecodeError as error:
        raise RecordingError(path, f"is not text ({error}); restore it from a copy") from error


def _measured(event: DriveEvent, spans: list[Span]) -> Iterator[DriveEvent]:
    for span in spans:
        if event.end_ns < span.start_ns or event.start_ns > span.end_ns:
            continue
        _, share = event.within(span.start_ns, span.end_ns)
        yield DriveEvent(
            kind=event.kind,
            start_ns=max(event.start_ns, span.start_ns) - span.shift_ns,
            end_ns=min(event.end_ns, span.end_ns) - span.shift_ns,
            busy_ns=round(event.busy_ns * share),
            amount=round(event.amount * share),
            unit=event.unit,
        )
