"""Series shaped to the rows of the reference table of the metrics' specification.

180 s at 500 I/Os a second, log-normal latencies (sigma 0.3) around the baseline, bursts that begin at the
peak and decay linearly over the recovery time, isolated spikes up to the peak where there are none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SPAN_S, RATE_PER_S, SIGMA = 180, 500, 0.3
BURSTS_S = (60.0, 100.0, 140.0)


@dataclass(frozen=True)
class Drive:
    """A row: what the series is made from, and what has to be found in it."""

    name: str
    baseline_us: float
    peak_us: float
    recovery_s: float | None = None
    bursts_s: tuple[float, ...] = ()
    bump_s: float = 0.0
    level_after_us: float | None = None
    lateness_growth: float = 0.0
    code: str | None = None


DRIVES = [
    Drive("original", 3_000, 190_000, 10.0, BURSTS_S),
    Drive("A", 400, 8_000, code="no_burst"),
    Drive("B", 4_000, 320_000, 15.0, BURSTS_S),
    Drive("C", 2_500, 72_000, code="no_burst"),
    Drive("D", 1_200, 13_000, bump_s=0.4, code="no_burst"),
    Drive("E", 2_000, 72_000, code="no_burst"),
    Drive("F", 10_000, 700_000, 10.0, (60.0,), level_after_us=300_000, code="never_recovered"),
    Drive("G", 200_000, 500_000, lateness_growth=0.1, code="saturated"),
    Drive("G at 4 KiB", 40_000, 400_000, 20.0, (64.0, 104.0, 144.0)),
    Drive("H", 900, 10_000, code="no_burst"),
    Drive("I", 2_000, 60_000, 2.0, BURSTS_S),
]


def series(drive: Drive, seed: int) -> dict[str, np.ndarray]:
    """The columns of a recording of this drive."""
    rng = np.random.default_rng(seed)
    n = SPAN_S * RATE_PER_S
    t_s = np.sort(rng.uniform(0, SPAN_S, n))
    level_us = np.full(n, drive.baseline_us)
    for start_s in drive.bursts_s:
        assert drive.recovery_s is not None
        floor_us = drive.level_after_us or drive.baseline_us
        decay = 1 - (t_s - start_s) / drive.recovery_s
        inside = (decay > 0) & (decay <= 1)
        level_us[inside] = floor_us + (drive.peak_us - floor_us) * decay[inside]
        if drive.level_after_us is not None:
            level_us[t_s >= start_s + drive.recovery_s] = drive.level_after_us
    if drive.bump_s:
        level_us[(t_s >= 100) & (t_s < 100 + drive.bump_s)] = drive.peak_us / 2
    latency_us = level_us * np.exp(rng.normal(0, SIGMA, n) - SIGMA**2 / 2)
    if not drive.bursts_s:
        spikes = rng.choice(n, 20, replace=False)
        latency_us[spikes] = rng.uniform(0.3, 1, 20) * drive.peak_us
    # The table's peak is the largest single latency, so one I/O has it, at the start of the largest burst.
    latency_us = np.minimum(latency_us, drive.peak_us * 0.999)
    first = np.searchsorted(t_s, drive.bursts_s[0]) if drive.bursts_s else rng.integers(n)
    latency_us[first] = drive.peak_us
    intended_ns = (t_s * 1e9).astype(np.int64)
    return {
        "intended_ns": intended_ns,
        "submit_ns": (intended_ns * (1 + drive.lateness_growth)).astype(np.int64),
        "latency_ns": (latency_us * 1000).astype(np.int64),
        "offset_bytes": rng.integers(0, 1 << 20, n) * 4096,
        "length_bytes": np.full(n, 4096),
        "opcode": (rng.random(n) < 0.4).astype(np.int64),
        "stream": rng.integers(0, 4, n),
    }
