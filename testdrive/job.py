"""The job: what the control plane asks of the engine (docs/job.md), as checked models.

The defaults are the engine's own, so that a key left out here is left out of the JSON too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt

VERSION: Literal[1] = 1

Opcode = Literal["read", "write", "trim", "flush", "write_zeroes"]
#: What a recording keeps: every I/O's row, or histograms of each second and the slowest I/Os.
Keep = Literal["rows", "slowest"]
Share = Annotated[float, Field(ge=0, le=1)]


class _Part(BaseModel):
    """A part of the job. A key that the contract does not have is refused."""

    model_config = ConfigDict(extra="forbid")


class CompressibleData(_Part):
    """Data for writes, of which a share can be compressed away."""

    compressible_share: Share


class _Phase(_Part):
    """What the phases have in common."""

    name: str | None = None
    measured: bool | None = None
    data: Literal["incompressible", "zero"] | CompressibleData | None = None


class _GeneratedPhase(_Phase):
    """What the phases have in common whose I/Os are generated: the part of the drive that they use."""

    offset_bytes: NonNegativeInt | None = None
    span_bytes: PositiveInt | None = None
    span_share: Share | None = None
    depth: PositiveInt | None = None
    seed: NonNegativeInt | None = None
    refill: bool | None = None


class PreparePhase(_GeneratedPhase):
    """Bring the drive into a defined state."""

    kind: Literal["prepare"]
    method: Literal["purge", "sequential", "random", "format"] = "sequential"
    how: Literal["trim", "format", "sanitize"] | None = None
    logical_block_bytes: PositiveInt | None = None
    block_bytes: PositiveInt | None = None
    fills: PositiveFloat | None = None


class ReplayPhase(_Phase):
    """Issue the I/Os of a recording again."""

    kind: Literal["replay"]
    recording: Path
    events: Literal["queued", "issued"] | None = None
    pace: Literal["timed", "asap", "depth"] | None = None
    speed: PositiveFloat | None = None
    depth: PositiveInt | None = None
    lba: Literal["skip", "wrap", "scale", "scale-excess"] | None = None
    from_ns: NonNegativeInt | None = None
    to_ns: PositiveInt | None = None
    loop: PositiveInt | None = None
    duration_ns: PositiveInt | None = None
    only: list[Opcode] | None = None
    without: list[Opcode] | None = None
    streams: Literal["one", "source"] | None = None
    max_in_flight: PositiveInt | None = None
    max_lag_ns: PositiveInt | None = None


class BlockShare(_Part):
    """A length, and the share of I/Os that have it."""

    bytes: PositiveInt
    share: Share


class BlockRange(_Part):
    """Lengths of records on a drive: each step from the least to the greatest is as likely."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, serialize_by_alias=True)

    from_bytes: PositiveInt = Field(alias="from")
    to_bytes: PositiveInt = Field(alias="to")
    step_bytes: NonNegativeInt | None = Field(default=None, alias="step")


class HotSpot(_Part):
    """A part of the span, and the share of I/Os that go there."""

    span_share: Share
    access_share: Share


class RateArrivals(_Part):
    """Arrivals at a rate: evenly spread, independent of each other, or of threads that all begin at once."""

    process: Literal["constant", "poisson", "act"]
    rate_iops: PositiveFloat


class ChainedArrivals(_Part):
    """Arrivals of a stream whose threads go on a while after their last I/O completed."""

    process: Literal["after_completion"]
    think_ns: NonNegativeInt | None = None


class RecordedArrivals(_Part):
    """Arrivals at the times of a recording."""

    process: Literal["recording"]
    recording: Path


Arrivals = Annotated[RateArrivals | RecordedArrivals, Field(discriminator="process")]
StreamArrivals = Annotated[RateArrivals | ChainedArrivals, Field(discriminator="process")]
Pattern = Literal["random", "sequential", "random_once"]
BlockBytes = PositiveInt | list[BlockShare] | BlockRange


class SteadyState(_Part):
    """When rounds of a phase count as steady, which ends it."""

    measure: Literal["iops", "throughput", "latency"]
    round_ns: PositiveInt
    rounds_max: PositiveInt | None = None
    window: PositiveInt | None = None
    range_share: PositiveFloat | None = None
    slope_share: PositiveFloat | None = None


class Stream(_Part):
    """One of several workloads of a phase: its mix, its lengths and its times."""

    name: str | None = None
    pattern: Pattern | None = None
    read_share: Share | None = None
    trim_share: Share | None = None
    fua: bool | None = None
    block_bytes: BlockBytes | None = None
    alignment_bytes: PositiveInt | None = None
    hot_spots: list[HotSpot] | None = None
    arrivals: StreamArrivals
    threads: PositiveInt | None = None
    max_lag_ns: PositiveInt | None = None


class SyntheticPhase(_GeneratedPhase):
    """Generated I/O."""

    kind: Literal["synthetic"]
    pattern: Pattern | None = None
    read_share: Share | None = None
    trim_share: Share | None = None
    fua: bool | None = None
    block_bytes: BlockBytes | None = None
    alignment_bytes: PositiveInt | None = None
    hot_spots: list[HotSpot] | None = None
    threads: PositiveInt | None = None
    cpus: list[NonNegativeInt] | None = None
    arrivals: Arrivals | None = None
    max_in_flight: PositiveInt | None = None
    max_lag_ns: PositiveInt | None = None
    streams: list[Stream] | None = None
    rate_limit_iops: PositiveFloat | None = None
    rate_limit_bytes_per_s: PositiveFloat | None = None
    on_ns: PositiveInt | None = None
    off_ns: PositiveInt | None = None
    cycles: PositiveInt | None = None
    ios: PositiveInt | None = None
    bytes: PositiveInt | None = None
    duration_ns: PositiveInt | None = None
    drive_fills: PositiveFloat | None = None
    steady_state: SteadyState | None = None
    #: For the control plane alone, and so not a key of the job: whether the phase is left out on a drive that
    #: does not support it (``testdrive.plans.fitting``).
    when_supported: bool = Field(default=False, exclude=True)


SinglePhase = Annotated[PreparePhase | ReplayPhase | SyntheticPhase, Field(discriminator="kind")]
Measure = Literal["iops", "throughput", "latency"]


class Tracked(_Part):
    """A figure of one phase of a round, by which the rounds are judged."""

    phase: str
    measure: Measure


class RoundsPhase(_Part):
    """Phases that are run one after the other in rounds, until what is tracked is steady."""

    kind: Literal["rounds"]
    name: str | None = None
    phases: list[SinglePhase] = Field(min_length=1)
    tracked: list[Tracked] = Field(min_length=1)
    rounds_max: PositiveInt | None = None
    window: PositiveInt | None = None
    range_share: PositiveFloat | None = None
    slope_share: PositiveFloat | None = None


Phase = Annotated[PreparePhase | ReplayPhase | SyntheticPhase | RoundsPhase, Field(discriminator="kind")]


class DriveRequest(_Part):
    """The drive, and the consents to write to it."""

    uri: str
    erase: str | None = None
    erase_signatures: bool = False
    volatile_write_cache: bool | None = None
    power_state: NonNegativeInt | None = None


class Job(_Part):
    """One run of the engine on one drive."""

    version: Literal[1] = VERSION
    drive: DriveRequest
    output: Path
    plan: dict[str, Any] | None = None
    record: bool | None = None
    keep: Keep | None = None
    io_timeout_s: PositiveFloat | None = None
    segment_s: PositiveFloat | None = None
    on_error: Literal["stop", "continue"] | None = None
    save_state: Path | None = None
    resume: bool | None = None
    phases: list[Phase] = Field(min_length=1)

    def to_json_object(self) -> dict[str, Any]:
        """The job as docs/job.md has it, without the keys that are left to the engine."""
        return self.model_dump(mode="json", exclude_none=True)
