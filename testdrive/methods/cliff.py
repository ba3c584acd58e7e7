"""The write cliff: where a fresh drive's random writes fall, from the level of the start to that of the end.

Of the completions x_k of each whole second k of writing:

- The start is the median of the first ten seconds, or of the first tenth of a run shorter than 100 s.
- The end is the last fifth of the run. It has settled if five equal parts of it are steady as rounds
  are (:mod:`testdrive.methods.steadiness`). Its level is the mean of the last fifth.
- The lower level is that of the end, or where that has not settled the least of its five parts.
- There is a cliff if the lower level is at most two thirds of the start. The drive is halfway down at the
  first second below the geometric mean T of both levels, the middle on a logarithmic axis, that comes after
  one at T or above and from which the drive does not come back: the means of the next fiftieth of the run (at
  least 3 s) and of all that follows are below T too.
- The cliff itself, its edge, comes after the last second before that which reached nine tenths of the start.

So a slow first second and one bad minute are no cliffs. A drive that falls twice has the greater fall for
one, a slow decline the moment at which it has lost a tenth, and a drive that swings between two speeds
afterwards is found as well as one that stays level. A run of less than 25 s has neither a settled level nor a
cliff: its last fifth has no five whole seconds. The lower level counts as 1 IOPS where it is less, so that a
drive that stops altogether has a cliff too.

The definition is this tool's own; the name is the field's for what it finds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testdrive.methods.steadiness import WINDOW, fit_of

START_S = 10
SECONDS_MIN = 5 * WINDOW
#: The logarithm is symmetric: a fall to 1/1.5, as a level is calm within a factor of 1.5 elsewhere.
FALL_MIN = 1.5
HOLD_PARTS = 50
HOLD_S_MIN = 3
EDGE_SHARE = 0.9


@dataclass(frozen=True)
class Levels:
    """What a run of random writes came from and to.

    Attributes
    ----------
    start_iops : float or None
        None of no whole second.
    end_iops : float or None
        Of the last fifth; None of a run too short to have one.
    settled : bool
        Whether the last fifth is steady.
    cliff_s : int or None
        How many whole seconds came before the cliff; None where there is none.
    halfway_s : int or None
        How many came before the drive was halfway down.
    """

    start_iops: float | None
    end_iops: float | None = None
    settled: bool = False
    cliff_s: int | None = None
    halfway_s: int | None = None


def levels_of(iops: NDArray[np.float64]) -> Levels:
    """The levels and the cliff of a run, from its completions in each second."""
    whole = len(iops)
    if not whole:
        return Levels(None)
    start = float(np.median(iops[: min(START_S, max(whole // 10, 1))]))
    if whole < SECONDS_MIN:
        return Levels(start)
    last = iops[whole - whole // 5 :]
    parts = [float(part.mean()) for part in np.array_split(last, WINDOW)]
    end, fit = float(last.mean()), fit_of(parts)
    settled = fit is not None and fit.steady()
    halfway = _halfway_s(iops, start, end if settled else min(parts))
    if halfway is None:
        return Levels(start, end, settled)
    before = np.flatnonzero(iops[:halfway] >= EDGE_SHARE * start)
    return Levels(start, end, settled, int(before[-1]) + 1 if len(before) else halfway, halfway)


def _halfway_s(iops: NDArray[np.float64], start: float, lower: float) -> int | None:
    if start <= 0 or lower * FALL_MIN > start:
        return None
    whole = len(iops)
    threshold = math.sqrt(start * max(lower, 1.0))
    hold = max(round(whole / HOLD_PARTS), HOLD_S_MIN)
    sums = np.concatenate([[0.0], np.cumsum(iops)])
    first = np.arange(whole)
    held = np.minimum(first + hold, whole)
    soon = (sums[held] - sums[first]) / (held - first)
    ever = (sums[whole] - sums[first]) / (whole - first)
    began = np.maximum.accumulate(iops) >= threshold
    found = np.flatnonzero(began & (iops < threshold) & (soon < threshold) & (ever < threshold))
    return int(found[0]) if len(found) else None
