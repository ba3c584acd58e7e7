"""Background stalls: every so often all dies are busy with housekeeping, and the burst metric has to say so.

A read comes each millisecond. What is found are the bursts of the tool's own summary: their onsets are a
period apart, and each lasts as long as the housekeeping. The metric sees windows of 100 ms, of which the
last one of a burst may count as calm already: so much may the length be short, and a period off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from testdrive.job import ReplayPhase
from testdrive.metrics import summarize
from validation import figures
from validation.checks import Check, Curve, between, near
from validation.drives import MIB, MS, PAGE_BYTES, Bench, S, bare

KEY = "background-stalls"
TITLE = "Background stalls"
WINDOW_S = 0.1
_PERIODS = 4
_READ_NS = 100_000
_PLACES = 60_000


@dataclass(frozen=True)
class _Found:
    """A drive whose stalls have a period and a length, and what the tool says of it."""

    period_s: float
    length_s: float
    bursts_s: list[tuple[float, float]]
    """Onset and end."""
    reads: NDArray[np.float64]
    """The slowest of each window: when it came (s), and how long it took (ms)."""

    @property
    def found_period_s(self) -> float:
        onsets = [onset for onset, _ in self.bursts_s]
        return float(np.mean(np.diff(onsets))) if len(onsets) > 1 else float("nan")

    @property
    def found_length_s(self) -> float:
        return (
            float(np.mean([end - onset for onset, end in self.bursts_s])) if self.bursts_s else float("nan")
        )


def measure(bench: Bench) -> Curve:
    """Read from a drive of each period and length."""
    found = [_read(bench, period_s, length_s) for period_s, length_s in bench.sizes.housekeeping_s]
    checks = [check for each in found for check in _checks(each)]
    series = {
        "period_s, length_s, bursts_s": [(each.period_s, each.length_s, each.bursts_s) for each in found]
    }
    return Curve(KEY, TITLE, checks, _figure(found), series=series)


def _read(bench: Bench, period_s: float, length_s: float) -> _Found:
    drive = bare(
        capacity="64GiB",
        nand_read_ns=_READ_NS,
        housekeeping_period_ns=round(period_s * S),
        housekeeping_ns=round(length_s * S),
    )
    count = round((_PERIODS + 0.5) * period_s * 1000)
    columns = {
        "time_ns": np.arange(count) * MS,
        "op": np.full(count, "R"),
        "offset_bytes": np.arange(count) % _PLACES * MIB,
        "length_bytes": np.full(count, PAGE_BYTES),
    }
    with (
        bench.source(columns) as source,
        bench.run(drive, [ReplayPhase(kind="replay", recording=source)]) as run,
    ):
        summary = summarize(run.recording)
        rows = run.rows()
    bursts = [(burst["onset_ns"] / S, burst["end_ns"] / S) for burst in summary["bursts"]]
    whole = count // 100 * 100
    reads = np.c_[
        rows["submit_ns"][:whole:100] / S, rows["latency_ns"][:whole].reshape(-1, 100).max(axis=1) / MS
    ]
    return _Found(period_s, length_s, bursts, reads)


def _checks(found: _Found) -> list[Check]:
    name = f"{found.length_s:g} s every {found.period_s:g} s"
    return [
        near(f"bursts of {name}", len(found.bursts_s), _PERIODS, 0, lambda value: f"{value:.0f}"),
        near(f"period of {name}", found.found_period_s, found.period_s, WINDOW_S / found.period_s, _seconds),
        between(
            f"length of {name}",
            found.found_length_s,
            found.length_s - WINDOW_S - 1e-9,
            found.length_s + 1e-9,
            _seconds,
        ),
    ]


def _seconds(value: float) -> str:
    return f"{value:.2f} s"


def _figure(found: list[_Found]) -> Figure:
    figure = figures.new_figure(
        "Stalls that were set, and bursts that the tool found", 0.7 + 1.5 * len(found)
    )
    drawn = figures.panels(figure, len(found), 1, sharex=True)
    for panel, each in zip(drawn, found, strict=True):
        _draw(panel, each)
    drawn[-1].set_xlim(0, max(each.reads[-1, 0] for each in found))
    drawn[-1].set_xlabel("time (s)")
    figures.legend(drawn[0], loc="upper right", ncols=3, bbox_to_anchor=(1.0, 1.32))
    return figure


def _draw(panel: Axes, found: _Found) -> None:
    for at in range(1, _PERIODS + 1):
        begin_s = at * found.period_s
        panel.axvspan(
            begin_s,
            begin_s + found.length_s,
            color=figures.ALLOWED,
            zorder=0.5,
            linewidth=0,
            label="stall that was set",
        )
    panel.plot(
        *found.reads.T, color=figures.colour(0), linewidth=1.2, label="slowest read of 100 ms, modelled"
    )
    for onset_s, end_s in found.bursts_s:
        panel.plot(
            [onset_s, end_s],
            [0.3, 0.3],
            color=figures.colour(1),
            linewidth=4,
            solid_capstyle="butt",
            label="burst found",
        )
    figures.plain_log(panel, "y", [0.1, 10, 1000])
    panel.set_ylim(0.05, 10_000)
    panel.set_ylabel("latency (ms)")
    panel.set_title(f"{found.length_s:g} s every {found.period_s:g} s", loc="left", fontsize="medium")
