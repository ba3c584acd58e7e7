"""The mapping cache: random reads over a span whose mapping may or may not fit into the drive's memory.

64 MiB hold the mapping of 64 GiB, at 4 bytes for each page of 4 KiB. A read whose mapping is there takes one
read of the NAND, any other takes two: so the recorded latencies say how many hits there were. Expected are
the share of the span that the cache covers, and at depth 1 a mean latency of tR * (2 - hits).
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from testdrive.job import SyntheticPhase
from validation import figures
from validation.checks import Check, Curve, near
from validation.drives import GIB, Bench, bare

KEY = "mapping-cache"
TITLE = "Mapping cache"
CACHE_MIB = 64
READ_NS = 50_000
ALLOWED = 0.01
#: One byte of the cache holds the place of this many bytes of the drive.
_COVERS = 1024
_LARGEST_GIB = 256
#: Warming up reads each of the mapping's pages, of 4 MiB of the drive each, so many times on average.
_WARM_UP_READS = 12
_MAPPING_PAGES_PER_GIB = 256


def measure(bench: Bench) -> Curve:
    """Read over each span on a drive of its own."""
    points = [(span_gib, *_read(bench, span_gib)) for span_gib in bench.sizes.mapped_spans_gib]
    checks = [check for point in points for check in _checks(*point)]
    return Curve(KEY, TITLE, checks, _figure(points), series={"span_gib, hits, latency_mean_ns": points})


def hits_expected(span_gib: float) -> float:
    """Return the share of random reads over a span whose mapping is in memory."""
    return min(1.0, CACHE_MIB * _COVERS / 1024 / span_gib)


def _read(bench: Bench, span_gib: int) -> tuple[float, float]:
    """The share of hits, and the mean latency."""
    drive = bare(capacity=f"{_LARGEST_GIB}GiB", mapping_cache=f"{CACHE_MIB}MiB", nand_read_ns=READ_NS)
    warm_up = span_gib * _MAPPING_PAGES_PER_GIB * _WARM_UP_READS
    phases = [
        SyntheticPhase(
            kind="synthetic", depth=1, span_bytes=span_gib * GIB, ios=ios, seed=seed, measured=measured
        )
        for ios, seed, measured in ((warm_up, 1, False), (bench.sizes.mapped_reads, 2, True))
    ]
    with bench.run(drive, phases) as run:
        latency_ns = run.rows()["latency_ns"]
    return float(np.mean(latency_ns < 1.5 * READ_NS)), float(latency_ns.mean())


def _checks(span_gib: int, hits: float, latency_ns: float) -> list[Check]:
    expected = hits_expected(span_gib)
    return [
        near(f"hits over {span_gib} GiB", hits, expected, ALLOWED, lambda share: f"{100 * share:.2f} %"),
        near(
            f"mean latency over {span_gib} GiB",
            latency_ns,
            READ_NS * (2 - expected),
            ALLOWED,
            lambda value: f"{value / 1e3:.2f} us",
        ),
    ]


def _figure(points: list[tuple[int, float, float]]) -> Figure:
    figure = figures.new_figure(f"Random reads with {CACHE_MIB} MiB for the mapping", 3.9)
    left, right = figures.panels(figure, 1, 2)
    span = np.geomspace(14, 1.1 * _LARGEST_GIB, 200)
    hits = np.array([hits_expected(each) for each in span])
    figures.expected_line(left, span, 100 * hits, ALLOWED, "cache / span")
    figures.modelled_points(left, [(span_gib, 100 * share) for span_gib, share, _ in points], 0, "modelled")
    figures.expected_line(right, span, READ_NS * (2 - hits) / 1e3, ALLOWED, "tR (2 - cache / span)")
    figures.modelled_points(right, [(span_gib, mean / 1e3) for span_gib, _, mean in points], 0, "modelled")
    left.set_ylabel("reads whose mapping is in memory (%)")
    left.set_ylim(0, 108)
    right.set_ylabel("mean read latency at depth 1 (us)")
    right.set_ylim(0, 2.1 * READ_NS / 1e3)
    for panel, place in ((left, "lower left"), (right, "lower right")):
        figures.plain_log(panel, "x", [16, 32, 64, 128, 256])
        panel.set_xlabel("span of the reads (GiB)")
        figures.legend(panel, loc=place)
    return figure
