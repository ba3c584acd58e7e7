"""Reads behind writes: the tail of reads with and without interruption of programs.

Reads come at random times to dies that program for a share r of the time, T each time. One that may not
interrupt meets a program with the chance r and waits for up to all of what is left of it: P(latency > tR +
x) = r (1 - x / T), and so p99 = tR + T (1 - 1 % / r). One that may waits for the interruption only: p99 is
tR + that from r = 1 % on, and at most another tR above it, for a read that is in the way.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from testdrive.job import ReplayPhase
from validation import figures
from validation.checks import Check, Curve, between, near
from validation.drives import GIB, Bench, bare

KEY = "read-tail"
TITLE = "Reads behind writes"
READ_NS, PROGRAM_NS, SUSPEND_NS = 50_000, 2_000_000, 20_000
ALLOWED = 0.03
SUSPENDS = 4
_DIES, _UNIT_BYTES, _READ_BYTES, _SPAN_BYTES = 16, 16_384, 4_096, 8 * GIB
_READS_PER_S = 2_000
#: Of this share the whole distribution is drawn.
_DRAWN_SHARE = 0.10
_Latencies = dict[tuple[float, int], NDArray[np.int64]]


def measure(bench: Bench) -> Curve:
    """Replay reads and writes at each share of time that dies program, without and with interruption."""
    latency_ns: _Latencies = {}
    for share in bench.sizes.program_shares:
        with bench.source(_workload(share, bench.sizes.tail_reads)) as source:
            for suspends in (0, SUSPENDS):
                drive = bare(
                    channels=4,
                    dies_per_channel=4,
                    program_unit_bytes=_UNIT_BYTES,
                    program_ns=PROGRAM_NS,
                    nand_read_ns=READ_NS,
                    suspends=suspends,
                    suspend_ns=SUSPEND_NS,
                    capacity_bytes=_SPAN_BYTES,
                )
                with bench.run(drive, [ReplayPhase(kind="replay", recording=source)]) as run:
                    rows = run.rows()
                latency_ns[share, suspends] = np.sort(rows["latency_ns"][rows["opcode"] == 0])
    p99_ns = {key: percentile(values, 0.99) for key, values in latency_ns.items()}
    checks = [
        check for (share, suspends), value in p99_ns.items() for check in _checks(share, suspends, value)
    ]
    series = {"program share, suspends, p99_ns": [(*key, value) for key, value in p99_ns.items()]}
    return Curve(KEY, TITLE, checks, _figure(latency_ns, p99_ns), series=series)


def percentile(in_order: NDArray[np.int64], share: float) -> int:
    """Return the smallest value that such a share of all do not exceed; nothing is interpolated."""
    return int(in_order[max(0, int(np.ceil(share * len(in_order))) - 1)])


def _workload(share: float, reads: int) -> dict[str, NDArray[np.generic]]:
    """Reads of a page and writes of a programming unit, each at random times."""
    random = np.random.default_rng(5)
    span_ns = reads * 1_000_000_000 // _READS_PER_S
    writes = round(share * _DIES / PROGRAM_NS * span_ns)
    return {
        "time_ns": np.r_[random.integers(0, span_ns, reads), random.integers(0, span_ns, writes)],
        "op": np.r_[np.full(reads, "R"), np.full(writes, "W")],
        "offset_bytes": np.r_[
            random.integers(0, _SPAN_BYTES // _READ_BYTES, reads) * _READ_BYTES,
            random.integers(0, _SPAN_BYTES // _UNIT_BYTES, writes) * _UNIT_BYTES,
        ],
        "length_bytes": np.r_[np.full(reads, _READ_BYTES), np.full(writes, _UNIT_BYTES)],
    }


def expected_p99_ns(share: float) -> float:
    """Return p99 where nothing may be interrupted."""
    return READ_NS + PROGRAM_NS * max(0.0, 1 - 0.01 / share)


def _checks(share: float, suspends: int, p99_ns: int) -> list[Check]:
    what = f"p99, programs {100 * share:g} % of the time"
    if suspends:
        bounds = READ_NS + SUSPEND_NS, 2 * READ_NS + SUSPEND_NS
        return [between(f"{what}, interrupted", p99_ns, bounds[0], bounds[1] + 5, _us)]
    return [near(f"{what}, not interrupted", p99_ns, expected_p99_ns(share), ALLOWED, _us)]


def _us(value: float) -> str:
    return f"{value / 1e3:.0f} us"


def _figure(latency_ns: _Latencies, p99_ns: dict[tuple[float, int], int]) -> Figure:
    figure = figures.new_figure("Reads behind writes, with and without interruption", 4.1)
    left, right = figures.panels(figure, 1, 2)
    shares = np.linspace(0.012, 1.05 * max(share for share, _ in p99_ns), 200)
    line = [expected_p99_ns(share) / 1e3 for share in shares]
    figures.expected_line(left, 100 * shares, line, ALLOWED, "tR + T (1 - 1 % / r)")
    bounds = (READ_NS + SUSPEND_NS) / 1e3, (2 * READ_NS + SUSPEND_NS) / 1e3
    left.fill_between(
        100 * shares,
        *bounds,
        facecolor=figures.ALLOWED,
        edgecolor=figures.EXPECTED,
        label="tR + interruption + tR",
    )
    for index, (suspends, name) in enumerate(((0, "not interrupted"), (SUSPENDS, "interrupted"))):
        at = [(100 * share, value / 1e3) for (share, count), value in p99_ns.items() if count == suspends]
        figures.modelled_points(left, at, index, f"modelled, {name}")
    figures.plain_log(left, "y", [50, 100, 200, 500, 1000, 2000])
    left.set_ylim(40, 4500)
    left.set_xlabel("time that dies program (%)")
    left.set_ylabel("p99 of reads (us)")
    figures.legend(left, loc="center right")
    _distribution(right, latency_ns)
    return figure


def _distribution(panel: Axes, latency_ns: _Latencies) -> None:
    share = min((share for share, _ in latency_ns), key=lambda each: abs(each - _DRAWN_SHARE))
    for index, (suspends, name) in enumerate(((0, "not interrupted"), (SUSPENDS, "interrupted"))):
        values = latency_ns[share, suspends]
        above = 1 - np.arange(len(values)) / len(values)
        # A staircase of thousands of steps looks the same with hundreds.
        at = np.unique(np.r_[np.geomspace(1, len(values), 400).astype(int)])
        panel.plot(
            values[-at] / 1e3,
            100 * above[-at],
            color=figures.colour(index),
            linewidth=2,
            label=f"modelled, {name}",
        )
    wait_ns = np.linspace(0, PROGRAM_NS, 400)[:-1]
    panel.plot(
        (READ_NS + wait_ns) / 1e3,
        100 * share * (1 - wait_ns / PROGRAM_NS),
        color=figures.EXPECTED,
        linestyle="--",
        linewidth=1.1,
        label="r (1 - x / T)",
    )
    figures.plain_log(panel, "y", [0.01, 0.1, 1, 10, 100])
    panel.set_ylim(0.01, 130)
    panel.set_title(f"programs {100 * share:g} % of the time", loc="left", fontsize="medium")
    panel.set_xlabel("latency (us)")
    panel.set_ylabel("reads that take longer (%)")
    figures.legend(panel, loc="upper right")
