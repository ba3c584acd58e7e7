"""The manifest of a recording: its model, its reading and its rewriting (docs/recording-format.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from testdrive.durable_json import write_json
from testdrive.errors import RecordingError
from testdrive.regular_files import read_text

FORMAT = "testdrive-recording"
VERSION = 1
MANIFEST_NAME = "manifest.json"

#: Names of the opcodes; the index is the value of the column ``opcode``.
OPCODES: tuple[str, ...] = ("read", "write", "trim", "flush", "write_zeroes")
READ, WRITE, TRIM, FLUSH, WRITE_ZEROES = range(len(OPCODES))


#: What stands for the opcode where a source did not say what each I/O was: no operation of its own.
UNKNOWN = "unknown"


def opcode_name(code: int) -> str:
    """The name of an opcode; one that this version does not know is told by its number."""
    return OPCODES[code] if 0 <= code < len(OPCODES) else f"opcode_{code}"


class _Part(BaseModel):
    """A part of the manifest. Keys unknown to this version are kept, so that rewriting loses nothing."""

    model_config = ConfigDict(extra="allow")


class Tool(_Part):
    """The program that wrote the recording."""

    name: str = "unknown"
    version: str = "unknown"
    build: str = "unknown"


class Writer(_Part):
    """The process that writes or wrote the recording: how a reader tells a crash from a run in progress."""

    pid: int
    start_ticks: int
    boot_id: str


class Drive(_Part):
    """Identity of the drive that the I/Os were issued to."""

    uri: str | None = None
    path: str | None = None
    model: str | None = None
    serial: str | None = None
    firmware: str | None = None
    capacity_bytes: int | None = None
    logical_block_bytes: int | None = None
    physical_block_bytes: int | None = None
    modelled: bool = False
    settings: dict[str, Any] = Field(default_factory=dict)


class Host(_Part):
    """The machine on which the I/Os were issued."""

    hostname: str | None = None
    kernel: str | None = None
    cpu_model: str | None = None
    cpus: int | None = None
    memory_bytes: int | None = None


class Clock(_Part):
    """Where the times come from, and by how many whole seconds an import was shifted."""

    source: str = "unknown"
    shift_ns: int = 0


class DriveCounters(_Part):
    """What the drive counted of itself since it was made; what it does not count is None."""

    host_read_bytes: int | None = None
    host_written_bytes: int | None = None
    trims: int | None = None
    trimmed_bytes: int | None = None
    nand_written_bytes: int | None = None
    moved_pages: int | None = None
    erases: int | None = None
    energy_uj: int | None = None


class PhaseCounters(_Part):
    """The drive's counters just before a phase and just after it."""

    before: DriveCounters
    after: DriveCounters


class Phase(_Part):
    """A part of a run. Metrics are over the phases with ``measured`` true."""

    index: int
    name: str = ""
    kind: str = "unknown"
    measured: bool = True
    start_ns: int = 0
    end_ns: int | None = None
    settings: dict[str, Any] | None = None
    accounting: dict[str, Any] | None = None
    drive_counters: PhaseCounters | None = None


class OpcodeCounts(_Part):
    """What was recorded of one opcode."""

    ios: int = 0
    bytes: int = 0
    errors: int = 0
    length_max_bytes: int = 0


class Counts(_Part):
    """What was recorded in all phases together."""

    ios: int = 0
    bytes: int = 0
    errors: int = 0
    no_completion: int = 0
    span_ns: int = 0
    end_max_bytes: int = 0
    by_opcode: dict[str, OpcodeCounts] = Field(default_factory=dict)


class Dropped(_Part):
    """Events that were lost or could not be used."""

    what: str
    count: int


class Warning_(_Part):  # noqa: N801 - the builtin has the name
    """Something that makes the figures less valid than they look."""

    code: str
    message: str = ""
    remedy: str = ""


class DroppedDriveEvents(_Part):
    """Events of one kind that the drive's log could not keep."""

    kind: str
    events: int
    busy_ns: int = 0
    amount: int = 0
    unit: str = ""


class TelemetrySummary(_Part):
    """What the manifest says of ``telemetry.jsonl``."""

    rows: int = Field(default=0, ge=0)


class DriveEventsSummary(_Part):
    """What the manifest says of ``drive_events.jsonl``."""

    events: int = 0
    dropped: list[DroppedDriveEvents] = Field(default_factory=list)


class LeftOut(_Part):
    """A phase of the plan that was not run, since the drive does not support it."""

    name: str
    reason: str
    settings: dict[str, Any] = Field(default_factory=dict)


class PlanRun(_Part):
    """The plan that a run was asked for with."""

    name: str
    title: str = ""
    question: str = ""
    figures: list[str] = Field(default_factory=list)
    #: Whether it was the plan's short form, for trying it. None, not false, where nothing says so: the engine
    #: compares what is written back here with what it is given when a run is resumed.
    short: bool | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    left_out: list[LeftOut] = Field(default_factory=list)


class Gap(_Part):
    """Where a run ended before its plan did, and was resumed."""

    after_ns: int
    resumed_ns: int
    resumed_at: str = ""
    reason: str | None = None
    set_aside: list[int] = Field(default_factory=list)


class Kept(_Part):
    """What a recording keeps that does not keep every row."""

    interval_ns: int = 1_000_000_000
    slowest_per_second: int = 0
    window_s: int = 0


class Manifest(_Part):
    """``manifest.json`` as docs/recording-format.md defines it."""

    format: Literal["testdrive-recording"]
    version: int
    kind: Literal["capture", "import", "run"]
    status: Literal["running", "complete", "interrupted", "failed"]
    status_reason: str | None = None
    created: str | None = None
    tool: Tool = Field(default_factory=Tool)
    writer: Writer | None = None
    source: dict[str, Any] | None = None
    drive: Drive | None = None
    host: Host | None = None
    clock: Clock = Field(default_factory=Clock)
    phases: list[Phase] = Field(default_factory=list)
    absent_columns: list[str] = Field(default_factory=list)
    counts: Counts = Field(default_factory=Counts)
    dropped: list[Dropped] = Field(default_factory=list)
    warnings: list[Warning_] = Field(default_factory=list)
    drive_events: DriveEventsSummary | None = None
    telemetry: TelemetrySummary | None = None
    plan: PlanRun | None = None
    kept: Kept | None = None
    gaps: list[Gap] = Field(default_factory=list)

    @property
    def measured_phases(self) -> list[Phase]:
        """The phases that metrics are over, in order."""
        return [phase for phase in self.phases if phase.measured]


def read_manifest(directory: Path) -> Manifest:
    """Read and check the manifest of the recording in ``directory``.

    Raises
    ------
    RecordingError
        If there is none, it is not JSON, it is not a recording's, or its version is greater than this one.
    """
    path = directory / MANIFEST_NAME
    try:
        text = read_text(path)
    except FileNotFoundError:
        raise RecordingError(
            path, "is missing, so this is not a recording; give the directory that holds manifest.json"
        ) from None
    except UnicodeDecodeError as error:
        raise RecordingError(
            path, f"is not text ({error}); restore it from a copy, the I/Os cannot be read without it"
        ) from error
    except OSError as error:
        raise RecordingError(
            path, f"cannot be read: {error.strerror}; check what it is and its permissions"
        ) from error
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordingError(path, f"is not JSON ({error}); restore it from a copy") from error
    return _checked(path, content)


def _checked(path: Path, content: Any) -> Manifest:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise RecordingError(
            path,
            f"is not a recording's manifest: format is {found!r}, not {FORMAT!r}; give another path",
        )
    version = content.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise RecordingError(path, f"has no valid version ({version!r}); the recording must be made again")
    if version > VERSION:
        raise RecordingError(
            path, f"has version {version}, newer than the {VERSION} read here; open it with a newer testdrive"
        )
    try:
        return Manifest.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise RecordingError(
            path, f"is damaged: {key}: {first['msg']} (value {first['input']!r}); restore it from a copy"
        ) from error


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Replace the manifest at once, so that a reader sees the old or the new one and never a part of either.

    Raises
    ------
    OSError
        If the directory cannot be written to.
    """
    write_json(directory / MANIFEST_NAME, manifest.model_dump(mode="json"))
