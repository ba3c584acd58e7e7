"""Answers that need no simulation, computed here and not in the engine that is held to them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

#: Write amplification of uniform random writes of 4 KiB, greedy collection, as published: over-provisioning
#: to the value, by pages in a superblock.
FINITE_BLOCKS = {
    256: {0.07: 7.60, 0.125: 4.60, 0.28: 2.46},
    64: {0.07: 7.00, 0.125: 4.38, 0.28: 2.40},
}
#: The same with hot and cold pages, 256 pages in a superblock: by the shares of the writes and of the pages
#: that are hot.
HOT_AND_COLD = {
    (0.8, 0.2): {0.07: 7.93, 0.125: 4.95, 0.28: 2.80},
    (0.9, 0.1): {0.07: 8.63, 0.125: 5.58, 0.28: 3.29},
}


def lambert_w(x: float) -> float:
    """W0, the solution w >= -1 of w e^w = x, for x from -1/e on, to the precision of floating point.

    Halley's iteration as in R. Corless et al., On the Lambert W function, 1996; close to -1/e it starts from
    their series in p = sqrt(2 (e x + 1)).

    Raises
    ------
    ValueError
        There is no solution.
    """
    if x < -1 / math.e:
        raise ValueError(f"W0 is not defined at {x}, which is below -1/e")
    p = math.sqrt(max(0.0, 2 * (math.e * x + 1)))
    w = -1 + p - p * p / 3 if x < 0 else math.log1p(x)
    for _ in range(100):
        power = math.exp(w)
        excess = w * power - x
        slope = power * (w + 1) - (w + 2) * excess / (2 * w + 2) if w != -1 else 0.0
        if excess == 0 or slope == 0:
            break
        step = excess / slope
        w -= step
        if abs(step) <= 1e-15 * abs(w):
            break
    return w


def write_amplification(spare: float) -> float:
    """WA = a / (a + W0(-a e^-a)) with a = 1 + spare: uniform random writes, greedy collection, large
    superblocks.
    """
    ratio = 1 + spare
    return ratio / (ratio + lambert_w(-ratio * math.exp(-ratio)))


def behind_the_cliff(
    spare: float, block_pages: int, share: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return write amplification against drive writes since a sequential fill, over so much of the spare
    behind the cliff.

    A superblock that the fill wrote has k of its N pages overwritten after t drive writes: binomial with the
    chance 1 - e^-t. From the cliff at t = spare on, the one with most of them is reclaimed, which frees k
    pages and moves the rest: so N / k is the write amplification. This is the limit of many superblocks, as
    long as none that was written since is worth reclaiming. The distribution is advanced in steps of a tenth
    of an overwritten page a superblock.
    """
    count = np.arange(block_pages + 1)
    log_factorial = np.r_[0.0, np.cumsum(np.log(count[1:]))]
    log_chance = log_factorial[-1] - log_factorial - log_factorial[::-1]
    log_chance += count * math.log(-math.expm1(-spare)) - (block_pages - count) * spare
    superblocks = np.exp(log_chance)
    steps = math.ceil(10 * share * spare * block_pages)
    step = share * spare / steps
    reclaimed = np.empty(steps)
    for at in range(steps):
        overwritten = superblocks * (block_pages - count) * step
        superblocks -= overwritten
        superblocks[1:] += overwritten[:-1]
        reclaimed[at] = _reclaim(superblocks, count, block_pages * step)
    return np.linspace(spare, (1 + share) * spare, steps), reclaimed / step


def _reclaim(superblocks: NDArray[np.float64], count: NDArray[np.int64], pages: float) -> float:
    """Take away those with the most overwritten pages until so many are free; return how many were taken."""
    freed = np.cumsum((superblocks * count)[::-1])
    whole = int(np.searchsorted(freed, pages))
    last = len(count) - 1 - whole
    part = (pages - (freed[whole - 1] if whole else 0.0)) / count[last]
    taken = float(superblocks[last + 1 :].sum() + part)
    superblocks[last + 1 :] = 0
    superblocks[last] -= part
    return taken
