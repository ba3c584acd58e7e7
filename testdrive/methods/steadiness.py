"""Steady state after the manner of SNIA's performance test specification, as pages tell of it.

The window is steady if the greatest value less the least is at most ``range_limit`` of the values' mean, and
the least-squares line through them climbs or falls by at most ``slope_limit`` of it from the first to the
last. The engine judges so while a phase runs (docs/job.md, ``steady_state``); :func:`fit_of` does for values
that are found afterwards.

Source: SNIA, Solid State Storage Performance Test Specification 2.0.1, steady state: five rounds, 20 % and 10
%. This is PTS-style, and no claim to comply with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from testdrive.manifest import Phase
from testdrive.methods.drawing import Table
from testdrive.report import units

WINDOW = 5
RANGE_LIMIT = 0.20
SLOPE_LIMIT = 0.10
#: The key of a round's value in the accounting, by what is judged.
_VALUES = {"iops": "iops", "throughput": "throughput_bytes_per_s", "latency": "latency_mean_ns"}


@dataclass(frozen=True)
class Fit:
    """A window's mean, its straight line, and what of both is held against the limits."""

    mean: float
    slope_per_round: float
    #: The line's value at the window's first round.
    intercept: float
    range_share: float
    slope_share: float

    def steady(self, range_limit: float = RANGE_LIMIT, slope_limit: float = SLOPE_LIMIT) -> bool:
        """Whether both shares are within their limits; at a limit they are."""
        return self.range_share <= range_limit and self.slope_share <= slope_limit


def fit_of(values: Sequence[float]) -> Fit | None:
    """The fit of a window. None for fewer than two values or a mean that is not above zero: never steady."""
    if len(values) < 2:
        return None
    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean())
    if not (math.isfinite(mean) and mean > 0):
        return None
    places = np.arange(len(array)) - (len(array) - 1) / 2
    slope = float((places * (array - mean)).sum() / (places**2).sum())
    return Fit(
        mean,
        slope,
        mean + slope * float(places[0]),
        float(np.ptp(array)) / mean,
        abs(slope) * (len(array) - 1) / mean,
    )


@dataclass(frozen=True)
class Steadiness:
    """How a phase came to a steady state, or that it did not.

    Attributes
    ----------
    reached : bool
        Whether the last window was steady.
    measure : str
        ``iops``, ``throughput`` or ``latency``: what was judged.
    rounds : list of float
        Its value in each round, NaN where there was none; IOPS, bytes a second, or ns.
    round_s : float
        The length of a round.
    window_first : int or None
        The index of the last window's first round; None where there was no whole window.
    fit : Fit or None
        Of that window.
    range_limit, slope_limit : float
        What the phase asked for.
    """

    reached: bool
    measure: str
    rounds: list[float]
    round_s: float
    window_first: int | None
    fit: Fit | None
    range_limit: float
    slope_limit: float


def steadiness_of(phase: Phase | None) -> Steadiness | None:
    """What the recording says of a phase that was to end in a steady state; None of any other."""
    found: dict[str, Any] | None = ((phase.accounting if phase else None) or {}).get("steady_state")
    if phase is None or not found:
        return None
    asked: dict[str, Any] = (phase.settings or {}).get("steady_state") or {}
    key = _VALUES[found["measure"]]
    values = [math.nan if each.get(key) is None else float(each[key]) for each in found["rounds"]]
    fit = found.get("fit")
    return Steadiness(
        reached=bool(found["achieved"]),
        measure=found["measure"],
        rounds=values,
        round_s=float(asked.get("round_ns", 0)) / 1e9,
        window_first=found.get("window_first_round"),
        fit=Fit(fit["mean"], fit["slope_per_round"], fit["intercept"], fit["range_share"], fit["slope_share"])
        if fit
        else None,
        range_limit=float(asked.get("range_share", RANGE_LIMIT)),
        slope_limit=float(asked.get("slope_share", SLOPE_LIMIT)),
    )


#: The columns behind a name: the window and what it is judged by. The last two are those of `bounds`.
STEADINESS_HEAD = [
    "steady state",
    "rounds",
    "window's rounds",
    "mean in the window",
    "line climbs or falls (bound)",
    "greatest less least (bound)",
]


def steadiness_table(key: str, found: Sequence[tuple[str, Steadiness | None]]) -> Table:
    """Whether each drive became steady, after how many rounds, and its window's fit beside the bounds."""
    rows = [[name, *_cells(steadiness)] for name, steadiness in found]
    return Table(key, "The steady state before the measurement", ["drive", *STEADINESS_HEAD], rows)


def _cells(steadiness: Steadiness | None) -> list[str]:
    if steadiness is None:
        return ["not recorded"] * len(STEADINESS_HEAD)
    many = len(steadiness.rounds)
    rounds = f"{many:,} of {units.duration(steadiness.round_s * 1e9)}"
    reached = "reached" if steadiness.reached else "not reached"
    fit, first = steadiness.fit, steadiness.window_first
    if fit is None or first is None:
        return [reached, rounds, *["no whole window"] * 4]
    window = f"{first + 1:,} to {many:,}"
    limits = (steadiness.slope_limit, steadiness.range_limit)
    return [reached, rounds, window, measured(steadiness.measure, fit.mean), *bounds(fit, *limits)]


def bounds(fit: Fit, slope_limit: float = SLOPE_LIMIT, range_limit: float = RANGE_LIMIT) -> list[str]:
    """What a window's line climbs, or falls with a minus, and what its values range, each with its limit."""
    percent = round(math.copysign(fit.slope_share, fit.slope_per_round) * 100, 1)
    # Without a minus before zero.
    climbs = f"{percent + 0.0:+.1f} %"
    return [
        f"{climbs} ({slope_limit * 100:g} %)",
        f"{fit.range_share * 100:.1f} % ({range_limit * 100:g} %)",
    ]


def measured(measure: str, value: float) -> str:
    """A value of a measure with its unit."""
    if measure == "latency":
        return units.time(value)
    return units.rate(value) if measure == "throughput" else units.iops(value)
