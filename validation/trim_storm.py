"""Trim storms: n trims of p pages each at once, and what a drive needs until it is done with them.

A trim is work of c + p k. In the firmware it is done at once, and all that comes behind it waits: the read
that comes with the storm ends after n (c + p k), to a thousandth. In the background it is done in slices of
a share of the time, and is over after n (c + p k) / share by the drive's log, to a hundredth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from testdrive.job import ReplayPhase
from validation import figures
from validation.checks import Curve, near
from validation.drives import MIB, MS, PAGE_BYTES, Bench, Run, S, bare

KEY = "trim-storm"
TITLE = "Trim storms"
PAGES = 512
_STORM_NS = S
_READS = 4_000
_READ_NS = 50_000
#: Reads are not of what is trimmed, which would need no NAND.
_READ_OFFSET_BYTES = 1 << 39


@dataclass(frozen=True)
class Way:
    """A way of taking trims, and what they cost there."""

    name: str
    per_range_ns: int
    per_page_ns: int
    share: float
    """Of the processor's time; 1 for at once."""
    allowed: float

    def expected_s(self, trims: float) -> float:
        """Return how long so many take."""
        return trims * (self.per_range_ns + PAGES * self.per_page_ns) / self.share / 1e9


WAYS = (
    Way("firmware, k = 0.7 us, c = 20 us", 20_000, 700, 1.0, 0.001),
    Way("firmware, k = 0.2 us, c = 50 us", 50_000, 200, 1.0, 0.001),
    Way("background, k = 0.2 us, a quarter of the time", 0, 200, 0.25, 0.01),
)


def measure(bench: Bench) -> Curve:
    """Send each storm to a drive of each way."""
    points = [(way, trims, _storm_s(bench, way, trims)) for way in WAYS for trims in bench.sizes.trims]
    checks = [
        near(
            f"{way.name}: {trims:,} trims",
            seconds,
            way.expected_s(trims),
            way.allowed,
            lambda value: f"{value:.4f} s",
        )
        for way, trims, seconds in points
    ]
    series = {"way, trims, s": [(way.name, trims, seconds) for way, trims, seconds in points]}
    return Curve(KEY, TITLE, checks, _figure(points), series=series)


def _storm_s(bench: Bench, way: Way, trims: int) -> float:
    at_once = way.share == 1
    drive = bare(
        trim_mode="firmware" if at_once else "background",
        trim_per_range_ns=way.per_range_ns,
        trim_per_page_ns=way.per_page_ns,
        trim_slice_ns=MS,
        trim_share=min(way.share, 0.9),
        nand_read_ns=_READ_NS,
    )
    # A read each millisecond, half a millisecond off the storm.
    reads_ns = np.arange(_READS) * MS + MS // 2
    columns = {
        "time_ns": np.r_[reads_ns, np.full(trims, _STORM_NS)],
        "op": np.r_[np.full(_READS, "R"), np.full(trims, "T")],
        "offset_bytes": np.r_[
            _READ_OFFSET_BYTES + np.arange(_READS) * MIB, np.arange(trims) * PAGES * PAGE_BYTES
        ],
        "length_bytes": np.r_[np.full(_READS, PAGE_BYTES), np.full(trims, PAGES * PAGE_BYTES)],
    }
    with bench.source(columns) as source:
        replay = ReplayPhase(kind="replay", recording=source, max_in_flight=1 << 14)
        with bench.run(drive, [replay]) as run:
            return _stalled_s(run) if at_once else _logged_s(run)


def _stalled_s(run: Run) -> float:
    """From the storm to the end of the first read behind it, less what a read takes."""
    rows = run.rows()
    reads = rows["opcode"] == 0
    submit_ns, latency_ns = rows["submit_ns"][reads], rows["latency_ns"][reads]
    storm_ns = rows["submit_ns"][rows["opcode"] == 2][0]
    first = int(np.argmax(submit_ns > storm_ns))
    return float(submit_ns[first] + latency_ns[first] - latency_ns.min() - storm_ns) / 1e9


def _logged_s(run: Run) -> float:
    """From the first trim that is served to the end of the last."""
    events = run.events("trim_service")
    return (events[-1].end_ns - events[0].start_ns) / 1e9 if events else float("nan")


def _figure(points: list[tuple[Way, int, float]]) -> Figure:
    figure = figures.new_figure(f"Storms of trims of {PAGES * PAGE_BYTES // MIB} MiB", 4.0)
    [panel] = figures.panels(figure)
    most = 1.05 * max(trims for _, trims, _ in points)
    for index, way in enumerate(WAYS):
        dash = "-" if way.share == 1 else "--"
        name = "n (c + p k)" if way.share == 1 else "n (c + p k) / share"
        panel.plot(
            [0, most], [0, way.expected_s(most)], dash, color=figures.EXPECTED, linewidth=1.1, label=name
        )
        at = [(trims, seconds) for each, trims, seconds in points if each is way]
        figures.modelled_points(panel, at, index, f"modelled, {way.name}")
    panel.set_xlim(0, most)
    panel.set_ylim(bottom=0)
    panel.set_xlabel("trims at once, n")
    panel.set_ylabel("until all of them are done (s)")
    figures.legend(panel, loc="upper left")
    return figure
