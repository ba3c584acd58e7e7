"""What the engine tells while it works: one JSON object a line (docs/job.md), as checked models.

Keys that this version does not know are ignored, so that an engine can tell more than the control plane
shows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError


class _Event(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class RoundPosition(_Event):
    """The round of a group that a phase belongs to; rounds count from 0."""

    name: str
    round: int
    rounds_max: int


class PhaseTitle(_Event):
    """A phase that the run will have. What is planned is None where only its end will tell."""

    name: str
    kind: str
    planned_ios: int | None = None
    planned_ns: int | None = None
    rounds: RoundPosition | None = None


class Started(_Event):
    """The drive is open and the recording was made."""

    event: Literal["started"]
    output: Path | None = None
    drive: dict[str, Any] | None = None
    phases: list[PhaseTitle] = Field(default_factory=list)
    #: Phases of the plan that an earlier run of it had completed.
    phases_before: int = 0


class PhaseBegun(_Event):
    """A phase begins. What is planned is None where only its end will tell."""

    event: Literal["phase"]
    index: int
    name: str
    kind: str
    start_ns: int | None = None
    planned_ios: int | None = None
    planned_ns: int | None = None
    rounds: RoundPosition | None = None


class SteadyProgress(_Event):
    """The way of a phase to its steady state: the measure in the last round, and the last window's fit."""

    measure: Literal["iops", "throughput", "latency"]
    rounds: int
    rounds_max: int
    value: float | None = None
    fit: dict[str, float] | None = None
    achieved: bool = False
    window: int | None = None
    round_ns: int | None = None
    range_share_max: float | None = None
    slope_share_max: float | None = None


class Progress(_Event):
    """Where the run stands; the rates and latencies are those of the last interval."""

    event: Literal["progress"]
    phase: int
    elapsed_ns: int
    done_share: float | None = None
    ios: int = 0
    bytes: int = 0
    errors: int = 0
    iops: float | None = None
    throughput_bytes_per_s: float | None = None
    latency_p50_ns: int | None = None
    latency_p99_ns: int | None = None
    latency_max_ns: int | None = None
    in_flight: int | None = None
    lateness_max_ns: int | None = None
    steady_state: SteadyProgress | None = None


class TrackedOver(_Event):
    """What is tracked of a group, at the end of a round: its value, and the last window's fit."""

    phase: str
    measure: Literal["iops", "throughput", "latency"]
    value: float | None = None
    fit: dict[str, float] | None = None
    achieved: bool = False


class RoundOver(RoundPosition):
    """A round of a group is over. None follows once all that is tracked is steady."""

    event: Literal["round"]
    achieved: bool = False
    tracked: list[TrackedOver] = Field(default_factory=list)


class ImportProgress(_Event):
    """Where an import stands."""

    event: Literal["progress"]
    rows: int
    bytes_read: int | None = None
    bytes_total: int | None = None


class CaptureProgress(_Event):
    """Where a capture stands; the rates are those of the last interval, of all devices together."""

    event: Literal["progress"]
    elapsed_ns: int
    done_share: float | None = None
    events_lost: int = 0
    recorded_bytes: int = 0
    ios: int = 0
    bytes: int = 0
    iops: float | None = None
    throughput_bytes_per_s: float | None = None


class ExportProgress(_Event):
    """Where an export stands."""

    event: Literal["progress"]
    rows: int
    rows_total: int


class Warned(_Event):
    """Something makes the figures less valid than they look."""

    event: Literal["warning"]
    code: str
    message: str
    remedy: str | None = None


class Finished(_Event):
    """The recording is closed."""

    event: Literal["finished"]
    status: Literal["complete", "interrupted", "failed"]
    reason: str | None = None
    output: Path | None = None
    counts: dict[str, Any] = Field(default_factory=dict)
    accounting: Any = None


class Dropped(_Event):
    """I/Os that did not get into a trace."""

    what: str
    count: int


class NotCarried(_Event):
    """What a trace does not say of I/Os that stand in it."""

    column: str
    what: str
    ios: int


class Exported(Finished):
    """The trace is written. ``counts`` are those of the I/Os that stand in it."""

    shift_ns: int = 0
    dropped: list[Dropped] = Field(default_factory=list)
    not_carried: list[NotCarried] = Field(default_factory=list)


class ImportedVolume(_Event):
    """A recording that an import made: of one volume, where the trace tells volumes apart."""

    output: Path
    volume: str | None = None
    counts: dict[str, Any] = Field(default_factory=dict)


class Imported(Finished):
    """The recordings are closed. ``output`` is None where there are several; ``counts`` are of all."""

    dropped: list[Dropped] = Field(default_factory=list)
    recordings: list[ImportedVolume] = Field(default_factory=list)


class CapturedDevice(_Event):
    """What was captured of one device."""

    device: str
    output: Path
    status: str
    counts: dict[str, Any] = Field(default_factory=dict)
    dropped: list[Dropped] = Field(default_factory=list)


class Captured(Finished):
    """The recordings are closed. ``counts`` are those of all devices together."""

    events_lost: int = 0
    recordings: list[CapturedDevice] = Field(default_factory=list)


class Failed(_Event):
    """The engine gives up; nothing further follows."""

    event: Literal["error"]
    kind: str
    message: str
    exit_status: int


@dataclass(frozen=True)
class Stopping:
    """A signal was passed on to the engine, which waits for what is in flight. It is of our own making."""


RunEvent = Started | PhaseBegun | Progress | RoundOver | Warned | Finished | Failed
ImportEvent = Started | ImportProgress | Warned | Imported | Failed
ExportEvent = ExportProgress | Warned | Exported | Failed
CaptureEvent = Started | CaptureProgress | Warned | Captured | Failed
Event = RunEvent | ImportProgress | ExportProgress | CaptureProgress | Stopping

RUN_EVENTS: TypeAdapter[RunEvent] = TypeAdapter(Annotated[RunEvent, Field(discriminator="event")])
IMPORT_EVENTS: TypeAdapter[ImportEvent] = TypeAdapter(Annotated[ImportEvent, Field(discriminator="event")])
EXPORT_EVENTS: TypeAdapter[ExportEvent] = TypeAdapter(Annotated[ExportEvent, Field(discriminator="event")])
CAPTURE_EVENTS: TypeAdapter[CaptureEvent] = TypeAdapter(Annotated[CaptureEvent, Field(discriminator="event")])


def parse(line: str, kinds: TypeAdapter[Any]) -> Event | None:
    """Read one line; None for an event of a name that this version does not know.

    Raises
    ------
    ValueError
        The line is not a JSON object with an ``event``, or one of its keys is missing or of the wrong type.
    """
    content = json.loads(line)
    if not isinstance(content, dict) or not isinstance(content.get("event"), str):
        raise ValueError("it has no event")
    try:
        event: Event = kinds.validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "union_tag_invalid":
            return None
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{where}: {first['msg']}") from error
    return event
