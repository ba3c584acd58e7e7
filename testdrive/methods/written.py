"""A phase of random writes on a fresh drive, as the tests of write saturation look at it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import Phase
from testdrive.methods.cliff import Levels, levels_of
from testdrive.methods.drawing import Axis
from testdrive.methods.runs import Run, Seconds
from testdrive.metrics.write_amplification import counted
from testdrive.report import units


def fills_axis(last: float) -> Axis:
    """How often the drive was written over, up to the last of all drives; to one fill where none is known."""
    return Axis("drive fills (bytes written / capacity)", low=0.0, high=last or 1.0)


@dataclass(frozen=True)
class Points:
    """A phase in steps of some seconds; arrays have one entry for each whole step.

    Attributes
    ----------
    ends_s
        When each ends, from the phase's start.
    fills
        How often the drive's capacity was written by then; NaN where it is not known.
    iops
        Mean rate.
    latency_s
        Mean latency, NaN in a step without I/Os.
    """

    ends_s: NDArray[np.float64]
    fills: NDArray[np.float64]
    iops: NDArray[np.float64]
    latency_s: NDArray[np.float64]


@dataclass(frozen=True)
class Written:
    """One phase of one drive's run."""

    run: Run
    phase: Phase

    @cached_property
    def seconds(self) -> Seconds:
        """The phase by its whole seconds."""
        return self.run.seconds(self.phase)

    @cached_property
    def levels(self) -> Levels:
        """From where to where it fell, and when."""
        return levels_of(self.seconds.ios.astype(np.float64))

    @cached_property
    def fills(self) -> NDArray[np.float64]:
        """How often the drive's capacity was written by the end of each second; NaN where it is not known."""
        capacity = self.run.subject.drive.capacity_bytes or math.nan
        return np.asarray(np.cumsum(self.seconds.bytes) / capacity, dtype=np.float64)

    def points(self, step_s: int) -> Points:
        """The phase in steps; what is left of the last one is left out."""
        ends = np.arange(step_s, self.seconds.whole + 1, step_s)
        each = np.arange(len(ends) * step_s) // step_s
        ios = np.bincount(each, self.seconds.ios[: len(each)], len(ends))
        sums = np.bincount(each, self.seconds.sum_ns[: len(each)], len(ends))
        with np.errstate(invalid="ignore", divide="ignore"):
            latency_s = np.where(ios > 0, sums / ios / 1e9, np.nan)
        return Points(ends.astype(np.float64), self.fills[ends - 1], ios / step_s, latency_s)

    def write_amplification(self) -> str:
        """Over the whole phase, by the drive's own counters, in words where there is none."""
        grown = counted([self.phase])
        host, nand = grown.get("host_written_bytes"), grown.get("nand_written_bytes")
        if host is None or nand is None:
            return "not told by the drive"
        return units.number(nand / host) if host else "no writes"
