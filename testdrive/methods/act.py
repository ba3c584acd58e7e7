"""ACT: shares of slow reads over time against the limits, their distribution, and each drive's verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testdrive.act.counts import BUCKETS, US_NS, Counts, count
from testdrive.act.load import READS
from testdrive.act.verdict import LIMITS, Limit, Slice, Verdict, averages, judge, load_phase, together
from testdrive.manifest import Phase
from testdrive.methods.drawing import Axis, Figure, Findings, Series, Table
from testdrive.methods.method import Method
from testdrive.methods.runs import SECOND_NS, Run
from testdrive.methods.scales import round_above
from testdrive.report import palette, units

#: At most so many points of a drive over time.
POINTS_MAX = 600
ABSENT = "not reached"


@dataclass(frozen=True)
class _Judged:
    """A run with what it came to; ``phase`` is None where it ended before its load began."""

    run: Run
    verdict: Verdict
    phase: Phase | None

    @property
    def name(self) -> str:
        """As the legend has it."""
        return self.run.subject.label

    @property
    def length_s(self) -> float:
        """How long the load went on."""
        if self.phase is None:
            return 0.0
        return max((self.phase.end_ns or self.phase.start_ns) - self.phase.start_ns, 0) / SECOND_NS


def look(runs: Sequence[Run]) -> Findings:
    """The shares over time, the distributions, and the table of verdicts."""
    judged = [_Judged(run, judge(run.recording), load_phase(run.recording)) for run in runs]
    reached = [one for one in judged if one.phase is not None and one.length_s >= 1]
    figures = [_over_time(reached), _distribution(reached)] if reached else []
    tables = _verdicts(judged)
    # What drives do together tells something where they have the same load.
    if len(judged) > 1 and len({_rating(one.run) for one in judged}) == 1:
        tables.append(_together(judged))
    reasons = [[one.name, reason] for one in judged for reason in one.verdict.reasons]
    if reasons:
        tables.append(Table("act-reasons", "Why a drive fails", ["drive", "reason"], reasons))
    return Findings(figures, tables)


def _counts(one: _Judged, width_ns: int, stretches: int, unit_ns: int = 1_000_000) -> Counts | None:
    assert one.phase is not None, "only runs that reached their load are drawn"
    return count(one.run.recording, one.phase, width_ns, stretches, unit_ns).get(READS)


def _over_time(judged: Sequence[_Judged]) -> Figure:
    width_s = max(1, math.ceil(max(one.length_s for one in judged) / POINTS_MAX))
    series: list[Series] = []
    highest = [limit.share * 100 for limit in LIMITS]
    end_s = 0.0
    for one in judged:
        stretches = max(int(one.length_s) // width_s, 1)
        counted = _counts(one, width_s * SECOND_NS, stretches)
        if counted is None:
            continue
        ends_s = np.arange(1, stretches + 1, dtype=np.float64) * width_s
        end_s = max(end_s, float(ends_s[-1]))
        for panel, limit in enumerate(LIMITS):
            percent = _percent(counted.above(limit.power), counted.ios)
            highest[panel] = max(highest[panel], float(np.nanmax(percent, initial=0.0)))
            series.append(Series(one.name, one.run.subject.ink, ends_s, percent, panel=panel))
    for panel, limit in enumerate(LIMITS):
        ends = np.array([0.0, end_s])
        level = np.full(2, limit.share * 100)
        series.append(Series("limit of a slice", palette.ORIGINAL, ends, level, "rule", panel=panel))
    y = tuple(
        Axis(f"{limit.threshold_ms} ms or more (%)", low=0.0, high=min(round_above(most * 1.1), 100.0))
        for limit, most in zip(LIMITS, highest, strict=True)
    )
    caption = (
        f"Each point is {width_s} s, by the time that the drive took. A slice fails if its mean reaches the"
        " limit."
    )
    return Figure(
        "act-shares",
        "Reads that took 1, 8 and 64 ms or more, over time",
        caption,
        Axis("time (s)", low=0.0, high=end_s),
        y,
        series,
    )


def _percent(part: NDArray[np.int64], whole: NDArray[np.int64]) -> NDArray[np.float64]:
    """NaN where there is nothing to take a share of."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, part * 100.0 / whole, np.nan)


def _distribution(judged: Sequence[_Judged]) -> Figure:
    """The share of reads at or above each power of two of a microsecond."""
    edges_s = 2.0 ** np.arange(BUCKETS - 1) * US_NS / SECOND_NS
    series: list[Series] = []
    least, last_s = 1.0, 0.1
    for one in judged:
        counted = _counts(one, SECOND_NS, 1, US_NS)
        if counted is None or not counted.ios[0]:
            continue
        for panel, buckets in enumerate((counted.service[0], counted.response[0])):
            above = buckets[::-1].cumsum()[::-1][1:] * 100.0 / buckets.sum()
            held = above > 0
            least = min(least, float(above[held].min(initial=1.0)))
            last_s = max(last_s, float(edges_s[held].max(initial=0.0)))
            shown = np.where(held, above, np.nan)
            series.append(Series(one.name, one.run.subject.ink, edges_s, shown, panel=panel))
    limits_s = np.array([limit.threshold_ms / 1e3 for limit in LIMITS])
    percents = np.array([limit.share * 100 for limit in LIMITS])
    series += [
        Series("limits of a slice", palette.ORIGINAL, limits_s, percents, style="points", panel=panel)
        for panel in range(2)
    ]
    low = 10.0 ** math.floor(math.log10(least))
    titles = ("device time at or above (%)", "response time at or above (%)")
    return Figure(
        "act-distribution",
        "How many reads took how long",
        "Over the whole load, at every power of two of a microsecond. Device time is judged, and must pass"
        " below the points; response time counts from when a read was due, so that it holds what lateness"
        " adds.",
        Axis("latency", "log", 1e-5, 10.0 ** math.ceil(math.log10(last_s * 1.01)), si_unit="s"),
        tuple(Axis(title, "log", low, 100.0) for title in titles),
        series,
    )


def _share(value: float | None, limit: Limit) -> str:
    if value is None:
        return ABSENT
    return f"{value * 100:.3g} %" + (" over" if value >= limit.share else "")


def _worst(slices: Sequence[Slice], at: int) -> float | None:
    return max((float(one.share(at)) for one in slices), default=None)


def _verdicts(judged: Sequence[_Judged]) -> list[Table]:
    """The verdict with what decides it, and beside it what explains it; each fits a terminal."""
    decides, explains = [], []
    powers_w = [one.run.power_w(one.phase) if one.phase else math.nan for one in judged]
    # Columns in which nothing is measured would only make the others narrow.
    powered = any(power_w > 0 for power_w in powers_w)
    for one, power_w in zip(judged, powers_w, strict=True):
        verdict = one.verdict
        reads = sum(each.reads for each in verdict.slices)
        whole_s = len(verdict.slices) * verdict.slice_ns / SECOND_NS
        late = [each.above_response[0] / each.reads for each in verdict.slices if each.reads]
        rate = reads / whole_s if whole_s else math.nan
        shares = [_share(_worst(verdict.slices, at), limit) for at, limit in enumerate(LIMITS)]
        reads_per_s = f"{rate:,.0f}" if whole_s else ABSENT
        decides.append([one.name, _rating(one.run), verdict.verdict, reads_per_s, *shares])
        power = [
            f"{units.significant(power_w)} W" if power_w > 0 else "not measured",
            units.number(rate / power_w) if power_w > 0 and whole_s else "not measured",
        ]
        explains.append(
            [
                one.name,
                f"{len(verdict.slices)} of {verdict.slices_planned}",
                f"{max(late) * 100:.3g} %" if late else ABSENT,
                *(power if powered else []),
            ]
        )
    slice_s = judged[0].verdict.slice_ns / SECOND_NS if judged else 0
    stress = "; stress is twice the rating" if any(one.run.parameter("stress") for one in judged) else ""
    return [
        Table(
            "act",
            f"The verdict: slices of {slice_s:,.0f} s, and the worst one's reads by device time{stress}",
            ["drive", "rating", "verdict", "reads/s", *(f"≥ {limit.threshold_ms} ms" for limit in LIMITS)],
            decides,
        ),
        Table(
            "act-beside",
            "Beside the verdict: whole slices, and the worst one's reads by response time",
            ["drive", "slices", "late ≥ 1 ms", *(("power", "reads/J") if powered else ())],
            explains,
        ),
    ]


def _rating(run: Run) -> str:
    rating = run.parameter("rating")
    stress = " stress" if run.parameter("stress") else ""
    return f"{rating}x{stress}" if rating is not None else "as configured"


def _together(judged: Sequence[_Judged]) -> Table:
    slices = together([one.verdict for one in judged])
    holds = bool(slices) and all(one.holds(at) for one in slices for at in range(len(LIMITS)))
    passed = holds and all(one.verdict.verdict == "pass" for one in judged)
    mean = averages(slices)
    rows = [
        [
            f"{limit.threshold_ms} ms or more",
            _share(_worst(slices, at), limit),
            _share(mean[at] if mean else None, limit),
        ]
        for at, limit in enumerate(LIMITS)
    ]
    words = "pass" if passed else ("within the limits, though a drive fails" if holds else "fail")
    return Table(
        "act-together",
        f"All {len(judged)} drives as one: {words}",
        ["reads", "worst slice", "mean of slices"],
        rows,
    )


METHOD = Method(
    "act",
    "ACT: reads in time beside a database's writes",
    "Small reads at a fixed rate, with the large blocks read and written beside them that a database's writes"
    " and their defragmentation make, as the Aerospike Certification Tool does it. A drive passes a rating if"
    " in every slice fewer than 5 % of the reads take 1 ms or more, fewer than 1 % 8 ms and fewer than 0.1 %"
    " 64 ms, by the time that the drive takes. Look for single slices above a limit, and for a response time"
    " far from the device time: then the schedule was late.",
    look,
)
