"""The SLC knee: a long sequential write to an empty consumer drive, at first into its cache and then not.

The models are scaled down, which moves the knee by as much and leaves the rates alone. The knee is where two
straight lines meet in the time that it takes to write so much. Sizes and rates behind the knee are the
specification's, the rate before it that of the model's file; the size is also computed from the shares in
the file, which are free of that table: a cache of static + dynamic * (capacity - x) / levels holds x when it
is full.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from testdrive.engine import list_models
from testdrive.job import SyntheticPhase
from validation import figures
from validation.checks import Check, Curve, near
from validation.drives import PAGE_BYTES, Bench, uri

KEY = "slc-knee"
TITLE = "SLC cache"
#: GB that the cache of the whole drive takes, and MB/s behind it: the specification's table of models.
REFERENCE = {
    "consumer-dramless": (160.0, 550.0),
    "consumer-dramless-small-slc": (15.0, 840.0),
    "consumer-highend": (113.0, 1750.0),
    "consumer-qlc": (70.0, 100.0),
}
ALLOWED = 0.05
SIZE_ALLOWED = 0.02
_BLOCK_BYTES = 128 << 10
_BINS = 120


@dataclass(frozen=True)
class _Knee:
    """A run, in bytes of the whole drive and bytes a second."""

    model: str
    knee_bytes: float
    expected_bytes: float
    fast: float
    expected_fast: float
    slow: float
    written: NDArray[np.float64]
    """Edges of the bins."""
    throughput: NDArray[np.float64]


def measure(bench: Bench) -> Curve:
    """Write to each model until well behind its knee."""
    models = {model["name"]: model for model in list_models()}
    knees = [_write(bench, models[name]) for name in bench.sizes.cached_models]
    checks = [check for knee in knees for check in _checks(knee)]
    series = {
        knee.model: {"written": knee.written.tolist(), "rate": knee.throughput.tolist()} for knee in knees
    }
    return Curve(KEY, TITLE, checks, _figure(knees), series=series)


def cache_bytes(parameters: Mapping[str, Any]) -> float:
    """Return what a cache takes on an empty drive, by the parameters in a model's file."""
    capacity, lent = parameters["capacity_bytes"], parameters["slc_dynamic_share"]
    levels = parameters["program_unit_bytes"] / parameters["slc_unit_bytes"]
    fixed = parameters["slc_static_share"] * capacity
    return float((fixed + lent * capacity / levels) / (1 + lent / levels))


def _write(bench: Bench, model: Mapping[str, Any]) -> _Knee:
    name, scale, parameters = model["name"], bench.sizes.cached_model_scale, model["parameters"]
    capacity_bytes = parameters["capacity_bytes"] // (scale * PAGE_BYTES) * PAGE_BYTES
    total_bytes = 2 * REFERENCE[name][0] * 1e9 / scale
    phase = SyntheticPhase(
        kind="synthetic",
        pattern="sequential",
        read_share=0.0,
        block_bytes=_BLOCK_BYTES,
        ios=round(total_bytes / _BLOCK_BYTES),
    )
    with bench.run(uri(name, capacity_bytes=capacity_bytes, initial_state="empty"), [phase]) as run:
        rows = run.rows()
    ends_s = np.sort(rows["submit_ns"] + rows["latency_ns"]) / 1e9
    fast, slow, knee_bytes = _lines(ends_s)
    edges = np.linspace(0, len(ends_s) - 1, _BINS + 1).astype(int)
    return _Knee(
        model=name,
        knee_bytes=knee_bytes * scale,
        expected_bytes=cache_bytes(parameters),
        fast=fast,
        expected_fast=model["figures"]["sequential_write_bytes_per_s"],
        slow=slow,
        written=edges * float(_BLOCK_BYTES * scale),
        throughput=np.diff(edges) * _BLOCK_BYTES / np.diff(ends_s[edges]),
    )


def _lines(ends_s: NDArray[np.float64]) -> tuple[float, float, float]:
    """The rates before and behind the knee, and the bytes at which two lines of these slopes meet."""
    last = len(ends_s) - 1

    def rate(begin: int, end: int) -> float:
        return float((end - begin) * _BLOCK_BYTES / (ends_s[end] - ends_s[begin]))

    # Not from the very first: what the buffer takes at once is faster than any NAND.
    fast, slow = rate(last // 50, last // 5), rate(last * 3 // 4, last)
    return fast, slow, (last * _BLOCK_BYTES / slow - ends_s[last]) / (1 / slow - 1 / fast)


def _checks(knee: _Knee) -> list[Check]:
    size_gb, slow_mb = REFERENCE[knee.model]
    return [
        near(f"{knee.model}: knee, specified", knee.knee_bytes, size_gb * 1e9, ALLOWED, _gb),
        near(f"{knee.model}: knee, from its shares", knee.knee_bytes, knee.expected_bytes, SIZE_ALLOWED, _gb),
        near(f"{knee.model}: before the knee", knee.fast, knee.expected_fast, ALLOWED, _mb_per_s),
        near(f"{knee.model}: behind the knee", knee.slow, slow_mb * 1e6, ALLOWED, _mb_per_s),
    ]


def _gb(value: float) -> str:
    return f"{value / 1e9:.1f} GB"


def _mb_per_s(value: float) -> str:
    return f"{value / 1e6:.0f} MB/s"


def _figure(knees: list[_Knee]) -> Figure:
    rows = (len(knees) + 1) // 2
    figure = figures.new_figure("Sequential writes to an empty drive with an SLC cache", 0.6 + 3.0 * rows)
    drawn = figures.panels(figure, rows, 2)
    for index, (panel, knee) in enumerate(zip(drawn, knees, strict=False)):
        _draw(panel, knee, index)
    for panel in drawn[len(knees) :]:
        panel.remove()
    return figure


def _draw(panel: Axes, knee: _Knee, index: int) -> None:
    size_gb, slow_mb = REFERENCE[knee.model]
    end_gb = knee.written[-1] / 1e9
    panel.stairs(
        knee.throughput / 1e6,
        knee.written / 1e9,
        baseline=None,
        color=figures.colour(index),
        zorder=2.2,
        linewidth=2.4,
        label="modelled",
    )
    for ends, rate in (([0, size_gb], knee.expected_fast / 1e6), ([size_gb, end_gb], slow_mb)):
        figures.expected_line(panel, ends, [rate, rate], ALLOWED, "specified rates")
    panel.axvspan(
        size_gb * (1 - ALLOWED), size_gb * (1 + ALLOWED), color=figures.ALLOWED, linewidth=0, zorder=0.5
    )
    panel.axvline(
        size_gb, color=figures.EXPECTED, linestyle="--", linewidth=1.1, zorder=3, label="specified knee"
    )
    panel.set_title(knee.model, loc="left", fontsize="medium")
    panel.set_ylabel("throughput (MB/s)")
    panel.set_xlabel("written to the whole drive (GB)")
    panel.set_xlim(0, end_gb)
    panel.set_ylim(0, 1.15 * knee.expected_fast / 1e6)
    figures.legend(panel, loc="upper right")
