"""The write cliff: random writes of 4 KiB to a drive that was filled in order.

Until the spare is used up nothing needs to be moved. Then every superblock that is reclaimed is still as
full as the fill left it, and writes are dearer than they will ever be again; after a dip they settle at the
closed form. The drive's counters are read between phases, which are short until three times the spare is
written and longer from then on. The peak is the mean over a quarter of the spare. It grows with the pages of
a superblock, since chance evens out less in small ones; the specified ones name no size. So it is held to
them at 2,304 pages, where both are met, and to a mean field that is solved here for that size: the dotted
line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from testdrive.job import Phase, PreparePhase, SyntheticPhase
from testdrive.manifest import DriveCounters
from testdrive.manifest import Phase as RecordedPhase
from validation import closed_forms, figures
from validation.checks import Check, Curve, between, near
from validation.drives import PAGE_BYTES, Bench, bare

KEY = "write-cliff"
TITLE = "Write cliff after a sequential fill"
#: Write amplification over the first quarter of the spare behind the cliff, by spare: as specified.
PEAKS = {0.07: 12.0, 0.28: 3.56}
CLIFF_ALLOWED = 0.02
ALLOWED = 0.01
#: The dip has no published depth; it is one where it lies this far below what the drive settles at.
DIP_SHARE = 0.98
_UNIT_PAGES = 48
#: The peak grows with the superblocks, for which the specified ones give no size; this one has both of them.
_SUPERBLOCK_PAGES = 48 * _UNIT_PAGES
#: In shares of the spare: the length of a phase, and where that of phases changes and where the last ends.
_FINE, _COARSE = 0.04, 0.25
_COARSE_FROM, _END = 3.0, 12.0
#: The mean field is drawn over so much of the spare: nearly until what was written since is worth reclaiming.
_FALL = 1.25
#: From here on, in shares of the spare, the drive is settled.
_SETTLED_FROM = 8.0


@dataclass(frozen=True)
class _Cliff:
    """Write amplification by host writes since the fill, in drive writes, of a drive with so much spare."""

    spare: float
    cliff: float
    peak: float
    dip: float
    settled: float
    steps: list[tuple[float, float]]
    """Where each span ends, and the write amplification over it."""


def measure(bench: Bench) -> Curve:
    """Fill and overwrite a drive of each spare."""
    cliffs = [_overwrite(bench, spare) for spare in bench.sizes.cliff_spares]
    checks = [check for cliff in cliffs for check in _checks(cliff)]
    return Curve(
        KEY, TITLE, checks, _figure(cliffs), series={str(cliff.spare): cliff.steps for cliff in cliffs}
    )


def _overwrite(bench: Bench, spare: float) -> _Cliff:
    pages = round(_SUPERBLOCK_PAGES * bench.sizes.cliff_superblocks / (1 + spare))
    drive = bare(
        capacity_bytes=pages * PAGE_BYTES,
        over_provisioning=spare,
        superblocks=bench.sizes.cliff_superblocks,
        nand_page_bytes=PAGE_BYTES,
        program_unit_bytes=_UNIT_PAGES * PAGE_BYTES,
        initial_state="empty",
    )
    fill: list[Phase] = [PreparePhase(kind="prepare")]
    fine = round(_COARSE_FROM / _FINE)
    coarse = round((_END - _COARSE_FROM) / _COARSE)
    lengths = [round(pages * spare * _FINE)] * fine + [round(pages * spare * _COARSE)] * coarse
    writes: list[Phase] = [
        SyntheticPhase(kind="synthetic", read_share=0.0, ios=ios, seed=seed)
        for seed, ios in enumerate(lengths)
    ]
    with bench.run(drive, fill + writes) as run:
        return _analysed(spare, pages, run.phases[1:])


def _analysed(spare: float, pages: int, phases: list[RecordedPhase]) -> _Cliff:
    written = _summed(phases, lambda counters: (counters.host_written_bytes or 0) / PAGE_BYTES / pages)
    moved = _summed(phases, lambda counters: (counters.moved_pages or 0) / pages)
    first = int(np.argmax(moved > 0))
    rates = np.diff(moved[first : first + 3]) / np.diff(written[first : first + 3])
    # The cliff is within the first phase that moved anything: so far before its end as it takes to move
    # that at a rate which follows from those of the next two.
    since = moved[first] / rates[0]
    step = written[first + 1] - written[first]
    cliff = written[first] - moved[first] / (rates[0] + (rates[0] - rates[1]) * (step + since) / 2 / step)
    quarter = spare * _COARSE
    peak = 1 + np.interp(cliff + quarter, written, moved) / quarter
    steps = [
        (float(written[end]), float(1 + (moved[end] - moved[begin]) / (written[end] - written[begin])))
        for begin, end in pairwise(range(len(written)))
    ]
    dip = min(value for end, value in steps if end > cliff + 2 * quarter)
    begin = int(np.argmax(written >= _SETTLED_FROM * spare))
    settled = 1 + (moved[-1] - moved[begin]) / (written[-1] - written[begin])
    return _Cliff(spare, float(cliff), float(peak), dip, float(settled), steps)


def _summed(phases: list[RecordedPhase], count: Callable[[DriveCounters], float]) -> NDArray[np.float64]:
    """What was counted since the fill, at the beginning of the first phase and the end of each."""
    counted = [phase.drive_counters for phase in phases]
    present = [counters for counters in counted if counters is not None]
    assert len(present) == len(phases), "a modelled drive counts"
    values: NDArray[np.float64] = np.array(
        [count(present[0].before), *(count(counters.after) for counters in present)]
    )
    since: NDArray[np.float64] = values - values[0]
    return since


def _checks(cliff: _Cliff) -> list[Check]:
    spare = f"{100 * cliff.spare:g} % spare"
    settled = closed_forms.write_amplification(cliff.spare)
    _, mean_field = closed_forms.behind_the_cliff(cliff.spare, _SUPERBLOCK_PAGES, _COARSE)
    return [
        near(
            f"cliff, {spare}",
            cliff.cliff,
            cliff.spare,
            CLIFF_ALLOWED,
            lambda share: f"{share:.4f} drive writes",
        ),
        near(f"peak, {spare}", cliff.peak, PEAKS[cliff.spare], ALLOWED, _two_digits),
        near(f"peak by mean field, {spare}", cliff.peak, float(np.mean(mean_field)), ALLOWED, _two_digits),
        between(f"dip, {spare}", cliff.dip, float("-inf"), DIP_SHARE * settled, _two_digits),
        near(f"settled, {spare}", cliff.settled, settled, ALLOWED, _two_digits),
    ]


def _two_digits(value: float) -> str:
    return f"{value:.2f}"


def _figure(cliffs: list[_Cliff]) -> Figure:
    figure = figures.new_figure("Random 4 KiB writes after a sequential fill", 0.6 + 3.1 * len(cliffs))
    for index, (panel, cliff) in enumerate(zip(figures.panels(figure, len(cliffs)), cliffs, strict=True)):
        _draw(panel, cliff, index)
    return figure


def _draw(panel: Axes, cliff: _Cliff, index: int) -> None:
    settled, peak, spare = closed_forms.write_amplification(cliff.spare), PEAKS[cliff.spare], cliff.spare
    end = cliff.steps[-1][0]
    ends, values = [0.0, *(each for each, _ in cliff.steps)], [value for _, value in cliff.steps]
    panel.stairs(
        values,
        ends,
        baseline=None,
        color=figures.colour(index),
        zorder=2.2,
        linewidth=2,
        label="modelled, drive's counters",
    )
    figures.expected_line(
        panel, [spare, end], [settled, settled], ALLOWED, f"settled: closed form, {settled:.2f}"
    )
    dashed: dict[str, Any] = {"color": figures.EXPECTED, "linewidth": 1.1, "zorder": 3}
    panel.plot(
        [spare] * 2, [1, peak], linestyle="--", label=f"cliff: at {spare:g} drive writes, the spare", **dashed
    )
    panel.plot(
        *closed_forms.behind_the_cliff(spare, _SUPERBLOCK_PAGES, _FALL),
        linestyle=":",
        label="mean field",
        **dashed,
    )
    panel.plot(
        [spare, spare * (1 + _COARSE)],
        [peak, peak],
        color=figures.EXPECTED,
        linewidth=3,
        solid_capstyle="butt",
        zorder=3,
        label=f"peak over a quarter of the spare: {peak:g}",
    )
    panel.set_title(f"{100 * spare:g} % spare", loc="left", fontsize="medium")
    panel.set_ylabel("write amplification")
    panel.set_xlabel("host writes since the fill (drive writes)")
    panel.set_xlim(0, end)
    panel.set_ylim(0, 1.3 * peak)
    figures.legend(panel, loc="upper right")
