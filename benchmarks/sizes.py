"""How much is measured: everything, a quick look, or the least that still runs every line."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True)
class Sizes:
    """What is measured, and how often: in rounds, so that the machine's moods meet all alike."""

    name: str
    iops_rounds: int
    #: For a time or, so that even a host that stands still has I/Os to divide by, for a number of I/Os.
    iops_seconds: float | None
    iops_ios: int | None
    loop_bytes: int
    replay_rounds: int
    replay_seconds: float
    recorded_ios: tuple[int, ...]
    logged_ios: tuple[int, int]
    inspect_rows: tuple[int, ...]
    inspect_rounds: int
    traced_ios: int
    traced_rounds: int
    capture_rounds: int
    #: As with `iops_seconds`.
    capture_seconds: float | None
    capture_ios: int | None
    csv_rows: int
    piped_rows: tuple[int, ...]
    modelled_rounds: int
    modelled_bytes: int
    modelled_ios: int
    modelled_fill_bytes: int
    modelled_seconds: float
    scratch_bytes: int


def each(seconds: float | None, ios: int | None) -> str:
    """How long each of several runs is, for people."""
    return f"{seconds:g} s each" if seconds is not None else f"{ios or 0:,} I/Os each"


FULL = Sizes(
    name="full",
    iops_rounds=5,
    iops_seconds=2.0,
    iops_ios=None,
    loop_bytes=2 * GIB,
    replay_rounds=3,
    replay_seconds=4.0,
    recorded_ios=(1_000_000, 10_000_000, 50_000_000),
    logged_ios=(1_000_000, 10_000_000),
    inspect_rows=(10_000_000, 100_000_000),
    inspect_rounds=2,
    traced_ios=1_500_000,
    traced_rounds=3,
    capture_rounds=15,
    capture_seconds=2.0,
    capture_ios=None,
    csv_rows=20_000_000,
    piped_rows=(10_000_000, 100_000_000),
    modelled_rounds=3,
    modelled_bytes=64 * GIB,
    modelled_ios=20_000_000,
    modelled_fill_bytes=10**12,
    modelled_seconds=2_000.0,
    scratch_bytes=6 * GIB,
)
QUICK = Sizes(
    name="quick",
    iops_rounds=3,
    iops_seconds=0.5,
    iops_ios=None,
    loop_bytes=256 * MIB,
    replay_rounds=1,
    replay_seconds=1.0,
    recorded_ios=(1_000_000, 5_000_000),
    logged_ios=(100_000, 1_000_000),
    inspect_rows=(1_000_000, 5_000_000),
    inspect_rounds=1,
    traced_ios=200_000,
    traced_rounds=1,
    capture_rounds=5,
    capture_seconds=0.5,
    capture_ios=None,
    csv_rows=5_000_000,
    piped_rows=(5_000_000,),
    modelled_rounds=1,
    modelled_bytes=4 * GIB,
    modelled_ios=3_000_000,
    modelled_fill_bytes=10**11,
    modelled_seconds=200.0,
    scratch_bytes=2 * GIB,
)
SMALLEST = Sizes(
    name="smallest",
    iops_rounds=2,
    iops_seconds=None,
    iops_ios=10_000,
    loop_bytes=16 * MIB,
    replay_rounds=1,
    replay_seconds=0.1,
    recorded_ios=(10_000, 50_000),
    logged_ios=(10_000, 200_000),
    inspect_rows=(20_000,),
    inspect_rounds=1,
    traced_ios=3_000,
    traced_rounds=1,
    capture_rounds=2,
    capture_seconds=None,
    capture_ios=10_000,
    csv_rows=50_000,
    piped_rows=(50_000,),
    modelled_rounds=1,
    modelled_bytes=GIB,
    modelled_ios=100_000,
    modelled_fill_bytes=10**9,
    modelled_seconds=1.0,
    scratch_bytes=GIB // 2,
)
