"""Baseline, peak and recovery of the latency of reads and writes.

A ratio of peak to baseline cannot tell an isolated spike from a drive that is slow for many seconds, so what
decides is sustained elevation (:mod:`testdrive.metrics.scans.windows`):

- the baseline is the mean latency of the I/Os in windows at most at the low threshold;
- the peak is the largest single latency, its time that of its submission;
- the recovery is the time from onset to end of the burst that holds the largest latency.

A rise that is too short for a burst still costs whoever waits in it: ``longest_rise_ns`` is the longest time
during which every window outside of bursts was above the low threshold and at least one above the high one,
``longest_rise_time_ns`` when it began. None: null.

Codes of ``recovery_code``: ``no_burst``; ``never_recovered`` (a burst lasted until the end: no recovery, no
baseline, ``recovery_more_than_ns`` and ``level_before_burst_ns`` instead); ``saturated`` (no burst, but the
offered rate is not sustained); ``too_short`` (under a second). Codes of ``baseline_code``:
``never_recovered``; ``unstable`` (fewer than half of the windows are calm). No I/Os, or all failed:
everything absent, ``no_completions``. One I/O: it is baseline and peak. Where the source did not say what
each I/O was, ``peak_opcode`` is null (``peak_opcode_code`` ``not_recorded``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from testdrive.manifest import READ, WRITE, opcode_name
from testdrive.metrics.metric import NO_COMPLETIONS, NOT_RECORDED, TOO_SHORT, Metric, Values
from testdrive.metrics.percentiles import SAMPLES_MIN
from testdrive.metrics.scans import QUANTILES, Level, Scan
from testdrive.metrics.scans.saturation import is_saturated
from testdrive.metrics.scans.windows import Burst

NEVER_RECOVERED = "never_recovered"


def compute(scan: Scan) -> Values:
    """Baseline, peak, recovery, their codes and the list of bursts."""
    level = scan.level
    if level is None:
        return {**METRIC.absent(NO_COMPLETIONS), "bursts": []}
    peaks = _peaks(scan, level)
    bursts = [_described(level, burst, peak) for burst, peak in zip(level.bursts, peaks[1:], strict=True)]
    largest = max(bursts, key=lambda burst: burst["peak_latency_ns"], default=None)
    unrecovered = next((burst for burst in level.bursts if burst.end is None), None)
    values: Values = {
        "peak_latency_ns": peaks[0]["latency_ns"],
        "peak_time_ns": peaks[0]["submit_ns"],
        "peak_opcode": peaks[0]["opcode"],
        "peak_opcode_code": None if scan.told_apart else NOT_RECORDED,
        "peak_p99_99_ns": _p99_99(scan),
        "recovery_ns": largest["recovery_ns"] if largest else None,
        "recovery_from_peak_ns": largest["recovery_from_peak_ns"] if largest else None,
        "recovery_more_than_ns": None,
        "level_before_burst_ns": None,
        "recovery_code": None if largest else _code_without_burst(scan, level),
        **_longest_rise(level),
        "calm_share": level.calm_share,
        "calm_below_ns": float(np.exp(level.low)),
        "burst_above_ns": float(np.exp(level.high)),
        "bursts": bursts,
    }
    values["baseline_latency_ns"], values["baseline_code"] = _baseline(level)
    if unrecovered is not None:
        values |= _never_recovered(level, unrecovered)
    return values


def _baseline(level: Level) -> tuple[float | None, str | None]:
    baseline_ns = level.mean_ns(level.calm)
    if baseline_ns is None or level.calm_share < 0.5:
        return None, "unstable"
    return baseline_ns, None


def _never_recovered(level: Level, burst: Burst) -> Values:
    return {
        "baseline_latency_ns": None,
        "baseline_code": NEVER_RECOVERED,
        "recovery_ns": None,
        "recovery_from_peak_ns": None,
        "recovery_code": NEVER_RECOVERED,
        "recovery_more_than_ns": (len(level.ios) - burst.onset) * level.width_ns,
        "level_before_burst_ns": level.mean_ns(level.calm & (np.arange(len(level.ios)) < burst.onset)),
    }


def _code_without_burst(scan: Scan, level: Level) -> str:
    if len(level.ios) < scan.cells.in_a_second:
        return TOO_SHORT
    return "saturated" if is_saturated(scan.cells) else "no_burst"


def _longest_rise(level: Level) -> Values:
    outside = np.ones(len(level.ios), bool)
    for burst in level.bursts:
        outside[burst.onset : burst.end] = False
    raised = outside & (level.log_latency > level.low)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], raised, [False])).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    high = np.concatenate(([0], np.cumsum(raised & (level.log_latency > level.high))))
    lengths = np.where(high[ends] > high[starts], ends - starts, 0)
    if not lengths.any():
        return {"longest_rise_ns": None, "longest_rise_time_ns": None}
    longest = int(lengths.argmax())
    return {
        "longest_rise_ns": int(lengths[longest]) * level.width_ns,
        "longest_rise_time_ns": level.time_ns(int(starts[longest])),
    }


def _described(level: Level, burst: Burst, peak: dict[str, Any]) -> dict[str, Any]:
    end_ns = None if burst.end is None else level.time_ns(burst.end)
    onset_ns = level.time_ns(burst.onset)
    return {
        "onset_ns": onset_ns,
        "end_ns": end_ns,
        "peak_latency_ns": peak["latency_ns"],
        "peak_time_ns": peak["submit_ns"],
        "peak_opcode": peak["opcode"],
        "mean_latency_ns": level.mean_ns(slice(burst.onset, burst.end)),
        "recovery_ns": None if end_ns is None else end_ns - onset_ns,
        "recovery_from_peak_ns": None if end_ns is None else end_ns - peak["submit_ns"],
        "recovery_code": NEVER_RECOVERED if end_ns is None else None,
    }


def _peaks(scan: Scan, level: Level) -> list[dict[str, Any]]:
    """The slowest read or write of the whole recording and of each burst; of equal ones the first submitted.

    The I/Os of a burst are those submitted in it and those outstanding at its onset: a stall begins with I/Os
    that were submitted just before.
    """
    groups = scan.cells.groups
    members = [scan.cells.chosen((READ, WRITE), ok=True)]
    submit, complete = groups["submit_cell"] - level.first_cell, groups["complete_cell"] - level.first_cell
    for burst in level.bursts:
        end = len(level.ios) if burst.end is None else burst.end
        members.append(members[0] & (complete >= burst.onset) & (submit < end))
    highest = [int(groups["latency_ns_max"][mask].max()) for mask in members]
    rows = scan.ok_rows
    rows = rows.filter(rows.latency_ns.isin(sorted(set(highest))) & rows.opcode.isin((READ, WRITE)))
    rows = rows.select(
        "latency_ns",
        "submit_ns",
        code=rows.opcode,
        submit_cell=rows.submit_ns // level.width_ns,
        complete_cell=(rows.submit_ns + rows.latency_ns) // level.width_ns,
    )
    found = scan.execute(
        rows.group_by("latency_ns", "submit_cell", "complete_cell").aggregate(
            code=rows.code.argmin(rows.submit_ns), submit_ns=rows.submit_ns.min()
        )
    )
    peaks = [
        _peak(found, groups, mask, latency_ns) for mask, latency_ns in zip(members, highest, strict=True)
    ]
    return peaks if scan.told_apart else [{**peak, "opcode": None} for peak in peaks]


def _peak(found: Any, groups: Any, mask: Any, latency_ns: int) -> dict[str, Any]:
    holds = mask & (groups["latency_ns_max"] == latency_ns)
    places = set(zip(groups["submit_cell"][holds], groups["complete_cell"][holds], strict=True))
    same = np.flatnonzero(found["latency_ns"] == latency_ns)
    inside = [i for i in same if (found["submit_cell"][i], found["complete_cell"][i]) in places]
    first = min(inside, key=lambda i: found["submit_ns"][i])
    return {
        "latency_ns": latency_ns,
        "submit_ns": int(found["submit_ns"][first]),
        "opcode": opcode_name(int(found["code"][first])),
    }


def _p99_99(scan: Scan) -> int | None:
    """p99.99 of reads and writes together, absent where there are too few of them."""
    both = scan.latency.of(READ, WRITE)
    return both.quantile(QUANTILES["p99_99"]) if both.n >= SAMPLES_MIN["p99_99"] else None


METRIC = Metric(
    "baseline, peak and recovery",
    (
        "baseline_latency_ns",
        "baseline_code",
        "peak_latency_ns",
        "peak_time_ns",
        "peak_opcode",
        "peak_opcode_code",
        "peak_p99_99_ns",
        "recovery_ns",
        "recovery_from_peak_ns",
        "recovery_more_than_ns",
        "level_before_burst_ns",
        "longest_rise_ns",
        "longest_rise_time_ns",
        "recovery_code",
        "calm_share",
        "calm_below_ns",
        "burst_above_ns",
        "bursts",
    ),
    ("latency_ns",),
    compute,
)
