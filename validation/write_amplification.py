"""Write amplification against the share of spare: the closed form, finite superblocks, hot and cold data.

Uniform random writes of 4 KiB on a drive that begins in steady state: a drive's worth to settle, and another
over which the drive's own counters are read. With superblocks of thousands of pages the closed form holds;
for small ones, and for hot and cold data behind one frontier, there are published tables. All may be off by
1 %.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from testdrive.job import HotSpot, SyntheticPhase
from validation import closed_forms, figures
from validation.checks import Check, Curve, near
from validation.drives import PAGE_BYTES, Bench, amplification, bare

KEY = "write-amplification"
TITLE = "Write amplification against spare"
ALLOWED = 0.01
_UNIT_PAGES = 48
_LARGE_SUPERBLOCKS = 600
_HOT_BLOCK_PAGES = 256
#: Hot and cold pages take longer to settle, since cold ones are seldom written.
_HOT_ROUNDS = 5
_LARGE = "large superblocks"
_Points = list[tuple[float, float, float]]


def measure(bench: Bench) -> Curve:
    """Run a drive for each point."""
    large_pages = bench.sizes.superblock_units * _UNIT_PAGES
    large = [
        (spare, _uniform(bench, spare, large_pages, _LARGE_SUPERBLOCKS, _UNIT_PAGES))
        for spare in bench.sizes.spares
    ]
    checks = [
        _near(
            f"uniform, {large_pages:,} pages a superblock",
            spare,
            value,
            closed_forms.write_amplification(spare),
        )
        for spare, value in large
    ]
    drawn = {_LARGE: [(spare, value, closed_forms.write_amplification(spare)) for spare, value in large]}
    for pages, superblocks in bench.sizes.finite_blocks:
        points = [
            (spare, _uniform(bench, spare, pages, superblocks, 1), expected)
            for spare, expected in closed_forms.FINITE_BLOCKS[pages].items()
        ]
        checks += [_near(f"uniform, {pages} pages a superblock", *point) for point in points]
        drawn[f"{pages} pages a superblock"] = points
    for (writes, pages_share), table in (
        closed_forms.HOT_AND_COLD.items() if bench.sizes.hot_superblocks else ()
    ):
        points = [
            (spare, _hot_and_cold(bench, spare, writes, pages_share), expected)
            for spare, expected in table.items()
        ]
        name = f"{100 * writes:g} % of writes to {100 * pages_share:g} % of pages"
        checks += [_near(name, *point) for point in points]
        drawn[name] = points
    return Curve(KEY, TITLE, checks, _figure(drawn), series={"spare, measured, expected": drawn})


def _near(what: str, spare: float, measured: float, expected: float) -> Check:
    return near(f"{what}, {100 * spare:g} % spare", measured, expected, ALLOWED, lambda value: f"{value:.2f}")


def _shape(spare: float, block_pages: int, superblocks: int, unit_pages: int) -> tuple[str, int]:
    """A drive of so many superblocks of so many pages, and how many pages the host has of them."""
    pages = round(block_pages * superblocks / (1 + spare))
    drive = bare(
        capacity_bytes=pages * PAGE_BYTES,
        over_provisioning=spare,
        superblocks=superblocks,
        nand_page_bytes=PAGE_BYTES,
        program_unit_bytes=unit_pages * PAGE_BYTES,
        initial_state="steady",
    )
    return drive, pages


def _uniform(bench: Bench, spare: float, block_pages: int, superblocks: int, unit_pages: int) -> float:
    drive, pages = _shape(spare, block_pages, superblocks, unit_pages)
    return _second_half(bench, drive, pages)


def _hot_and_cold(bench: Bench, spare: float, hot_writes: float, hot_pages: float) -> float:
    drive, pages = _shape(spare, _HOT_BLOCK_PAGES, bench.sizes.hot_superblocks, 1)
    spots = [HotSpot(span_share=hot_pages, access_share=hot_writes)]
    return _second_half(bench, drive, _HOT_ROUNDS * pages, hot_spots=spots)


def _second_half(bench: Bench, drive: str, writes: int, **workload: Any) -> float:
    """Write so much to settle, and as much again: the write amplification of that."""
    phases = [
        SyntheticPhase(kind="synthetic", read_share=0.0, ios=writes, seed=seed, **workload) for seed in (1, 2)
    ]
    with bench.run(drive, phases) as run:
        return amplification(run.phases[1:])


def _figure(drawn: dict[str, _Points]) -> Figure:
    figure = figures.new_figure("Write amplification of random 4 KiB writes", 5.6)
    [panel] = figures.panels(figure)
    spare = np.geomspace(0.06, 0.55, 200)
    closed_form = [closed_forms.write_amplification(each) for each in spare]
    figures.expected_line(
        panel, 100 * spare, closed_form, ALLOWED, "closed form a / (a + W0(-a e^-a)), a = 1 + spare"
    )
    published = [point for name, points in drawn.items() if name != _LARGE for point in points]
    panel.plot(
        [100 * spare for spare, _, _ in published],
        [expected for _, _, expected in published],
        linestyle="none",
        marker="_",
        markersize=15,
        color=figures.EXPECTED,
        label="published table",
    )
    for index, (name, points) in enumerate(drawn.items()):
        figures.modelled_points(panel, [(100 * spare, value) for spare, value, _ in points], index, name)
    figures.plain_log(panel, "x", [7, 10, 12.5, 16, 20, 28, 37, 50])
    panel.set_xlabel("over-provisioning: spare over what the host sees (%)")
    panel.set_ylabel("write amplification: NAND bytes over host bytes")
    panel.set_ylim(bottom=1)
    figures.legend(panel, loc="upper right")
    return figure
