"""What metrics are computed from: the passes over a recording that they share."""

from __future__ import annotations

from testdrive.metrics.scans.cells import CELL_NS, Cells
from testdrive.metrics.scans.depths import Depths
from testdrive.metrics.scans.distribution import QUANTILES, Distribution, Distributions
from testdrive.metrics.scans.histograms import HistogramScan
from testdrive.metrics.scans.sample import Sample
from testdrive.metrics.scans.scan import SHARE_THRESHOLDS_NS, Extent, Scan
from testdrive.metrics.scans.windows import Level
from testdrive.recording import Recording

__all__ = [
    "CELL_NS",
    "QUANTILES",
    "SHARE_THRESHOLDS_NS",
    "Cells",
    "Depths",
    "Distribution",
    "Distributions",
    "Extent",
    "HistogramScan",
    "Level",
    "Sample",
    "Scan",
    "scan_of",
]


def scan_of(recording: Recording) -> Scan:
    """The passes over a recording, whether it keeps every row or histograms."""
    return Scan(recording) if recording.manifest.kept is None else HistogramScan(recording)
