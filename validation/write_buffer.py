"""The write buffer: a burst of writes that is faster than the NAND.

Writes of 4 KiB come at a fixed rate, a multiple of what the dies program. They are acknowledged at once
until the buffer is full; the first that has to wait ends the burst. That takes B / (in - out). Places come
back a programming unit at a time from each die, which makes it shorter by as much as all dies program at
once: so much is allowed, and 1 % at least.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from testdrive.job import ReplayPhase
from validation import figures
from validation.checks import Check, Curve, near
from validation.drives import MIB, PAGE_BYTES, Bench, bare

KEY = "write-buffer"
TITLE = "Write buffer"
ALLOWED_MIN = 0.01
_DIES, _UNIT_BYTES, _PROGRAM_NS = 16, 16_384, 1_000_000
OUT_BYTES_PER_S = _DIES * _UNIT_BYTES * 1e9 / _PROGRAM_NS
#: Nothing else takes time: a write that need not wait is acknowledged after nanoseconds on the link.
_AT_ONCE_NS = 1_000
_Point = tuple[int, float, float]


def measure(bench: Bench) -> Curve:
    """Send a burst to each buffer at each rate."""
    points: list[_Point] = [
        (buffer_mib, ratio, _burst_s(bench, buffer_mib, ratio))
        for buffer_mib in bench.sizes.buffers_mib
        for ratio in bench.sizes.burst_ratios
    ]
    checks = [_check(*point) for point in points]
    return Curve(KEY, TITLE, checks, _figure(points), series={"buffer_mib, in over out, burst_s": points})


def expected_s(buffer_mib: float, ratio: float) -> float:
    """Return how long a buffer takes what comes in at a multiple of what goes out."""
    return buffer_mib * MIB / (OUT_BYTES_PER_S * (ratio - 1))


def allowed(buffer_mib: float, ratio: float) -> float:
    """Return by how much a burst may be off: what all dies program at once, of what comes in meanwhile."""
    return max(ALLOWED_MIN, _DIES * _UNIT_BYTES / (buffer_mib * MIB) * ratio)


def _burst_s(bench: Bench, buffer_mib: int, ratio: float) -> float:
    drive = bare(
        channels=4,
        dies_per_channel=4,
        program_unit_bytes=_UNIT_BYTES,
        program_ns=_PROGRAM_NS,
        write_buffer=f"{buffer_mib}MiB",
        power_loss_protection="false",
    )
    in_per_s = ratio * OUT_BYTES_PER_S / PAGE_BYTES
    count = int(1.05 * expected_s(buffer_mib, ratio) * in_per_s)
    columns = {
        "time_ns": np.round(np.arange(count) * 1e9 / in_per_s).astype(np.int64),
        "op": np.full(count, "W"),
        "offset_bytes": np.arange(count) * PAGE_BYTES,
        "length_bytes": np.full(count, PAGE_BYTES),
    }
    with (
        bench.source(columns) as source,
        bench.run(drive, [ReplayPhase(kind="replay", recording=source)]) as run,
    ):
        rows = run.rows()
    waited = np.flatnonzero(rows["latency_ns"] > _AT_ONCE_NS)
    # A burst that is never over is longer than any: out of bounds, and said as such.
    end_ns = rows["submit_ns"][waited[0]] if len(waited) else np.inf
    return float(end_ns - rows["submit_ns"][0]) / 1e9


def _check(buffer_mib: int, ratio: float, burst_s: float) -> Check:
    return near(
        f"burst at {ratio:g} times the NAND's rate, {buffer_mib} MiB",
        burst_s,
        expected_s(buffer_mib, ratio),
        allowed(buffer_mib, ratio),
        lambda value: f"{1e3 * value:.2f} ms",
    )


def _figure(points: list[_Point]) -> Figure:
    figure = figures.new_figure("How long a burst of writes lasts", 3.9)
    [panel] = figures.panels(figure)
    ratios = np.geomspace(min(ratio for _, ratio, _ in points) / 1.04, 12, 200)
    for index, buffer_mib in enumerate(sorted({buffer for buffer, _, _ in points})):
        line = np.array([1e3 * expected_s(buffer_mib, ratio) for ratio in ratios])
        off = np.array([allowed(buffer_mib, ratio) for ratio in ratios])
        figures.allowed_area(panel, ratios, line * (1 - off), line * (1 + off), "allowed")
        panel.plot(ratios, line, color=figures.EXPECTED, linewidth=1.1, label="B / (in - out)")
        at = [(ratio, 1e3 * burst_s) for buffer, ratio, burst_s in points if buffer == buffer_mib]
        figures.modelled_points(panel, at, index, f"modelled, B = {buffer_mib} MiB")
    figures.plain_log(panel, "x", [1.25, 1.5, 2, 3, 5, 10])
    figures.plain_log(panel, "y", [1, 3, 10, 30, 100, 300, 1000])
    panel.set_xlabel("rate of the writes over what the NAND programs")
    panel.set_ylabel("until the first write waits (ms)")
    figures.legend(panel, loc="upper right")
    return figure
