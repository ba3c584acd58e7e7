"""Parallelism: random reads at each depth over dies that take exponentially distributed times.

A closed network of D equal servers with exponential service S, which N customers visit at random, serves
X(N) = (D / S) N / (N + D - 1) a second (W. Gordon and G. Newell, 1967). No NAND is like that; it is a
setting of the model so that channels, dies and queues can be held to theory.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from testdrive.job import SyntheticPhase
from validation import figures
from validation.checks import Curve, near
from validation.drives import Bench, bare

KEY = "parallelism"
TITLE = "Parallelism"
CHANNELS, DIES_PER_CHANNEL, SERVICE_NS = 4, 4, 50_000
ALLOWED = 0.01
#: In the middle of a run as many reads are in flight as there are to be; its ends are left out.
_MIDDLE = (0.1, 0.9)


def measure(bench: Bench) -> Curve:
    """Read at each depth."""
    points = [(depth, _read(bench, depth)) for depth in bench.sizes.depths]
    checks = [
        near(f"depth {depth}", iops, expected_iops(depth), ALLOWED, lambda value: f"{value:,.0f} reads/s")
        for depth, iops in points
    ]
    return Curve(KEY, TITLE, checks, _figure(points), series={"depth, iops": points})


def expected_iops(depth: float) -> float:
    """Return what so many customers get from the dies in a second."""
    dies = CHANNELS * DIES_PER_CHANNEL
    return dies / (SERVICE_NS / 1e9) * depth / (depth + dies - 1)


def _read(bench: Bench, depth: int) -> float:
    """Reads a second."""
    drive = bare(
        channels=CHANNELS,
        dies_per_channel=DIES_PER_CHANNEL,
        planes_per_die=1,
        nand_read_ns=SERVICE_NS,
        nand_read_time="exponential",
        # Each depth draws times of its own, or chance would move all points alike.
        seed=depth,
    )
    phase = SyntheticPhase(kind="synthetic", depth=depth, ios=bench.sizes.depth_reads, seed=depth)
    with bench.run(drive, [phase]) as run:
        rows = run.rows()
    ends_s = np.sort(rows["submit_ns"] + rows["latency_ns"]) / 1e9
    begin, end = (int(share * (len(ends_s) - 1)) for share in _MIDDLE)
    return float((end - begin) / (ends_s[end] - ends_s[begin]))


def _figure(points: list[tuple[int, float]]) -> Figure:
    dies = CHANNELS * DIES_PER_CHANNEL
    figure = figures.new_figure(f"Random reads over {dies} dies with exponential service", 3.8)
    [panel] = figures.panels(figure)
    depth = np.geomspace(0.9, 1.15 * max(each for each, _ in points), 200)
    label = f"(D / S) N / (N + D - 1), D = {dies}, S = {SERVICE_NS / 1e3:g} us"
    figures.expected_line(panel, depth, [expected_iops(each) / 1e3 for each in depth], ALLOWED, label)
    figures.modelled_points(panel, [(each, iops / 1e3) for each, iops in points], 0, "modelled")
    panel.axhline(
        dies / SERVICE_NS * 1e6,
        color=figures.EXPECTED,
        linestyle=":",
        linewidth=1.1,
        label="all dies busy: D / S",
    )
    figures.plain_log(panel, "x", [1, 2, 4, 8, 16, 32, 64, 128, 256])
    panel.set_ylim(bottom=0)
    panel.set_xlabel("queue depth N")
    panel.set_ylabel("thousand reads a second")
    figures.legend(panel, loc="lower right")
    return figure
