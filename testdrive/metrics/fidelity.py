"""Replay fidelity: the certificate that what was issued is what the trace held, when it held it.

The verdict is about phases of the kind ``replay``; for anything else it is null with the code
``not_a_replay``, and only the figures that the rows allow are given. A replay is ``not_faithful`` for any of
these reasons:

============================
=================================================================================== ``not_complete``
  the run was interrupted or failed: part of the workload is missing ``no_accounting``            the manifest
  does not say what became of the source's I/Os
``counts_differ``            by some opcode, source != issued + filtered + skipped + unsupported + not
reached; or the
                             bytes differ although nothing was clipped or widened
``unsupported``              I/Os of an opcode that the drive path cannot issue were left out
``rows_differ``              the recording holds another number of I/Os than were issued
``drift``                    timed: the replay's span differs from the intended one by more than 0.1 %, beyond
which
                             rates and everything derived from them are off in the third digit
``late``                     timed: more than 0.1 % of the I/Os were issued more than 1 ms late, which would
change
                             p99.9 of the response time
``late_median``              timed: half of the I/Os were issued more than 50 us late, the read latency of a
fast
                             drive: bursts that the drive should have felt were smoothed by the host
``order_inversions``         I/Os were submitted before one that stands earlier in the trace; where the
streams are
                             kept apart (``streams`` = ``source``), more than 0.1 % of them
``depth_differs``            pace ``depth``: the mean number in flight differs from the trace's by more than
10 % ============================
===================================================================================

Lateness percentiles are exact up to 20 million I/Os; beyond, at most ``lateness_relative_error_max`` too
great. The share of late I/Os is exact always. ``asap`` and ``depth`` have no schedule to be late against:
there counts, order and depth decide.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from testdrive.manifest import Phase
from testdrive.metrics.fidelity_accounting import COUNT_PARTS, accounting_reasons, merged_accounting
from testdrive.metrics.metric import NO_IOS, NOT_RECORDED, Metric, Values
from testdrive.metrics.scans import QUANTILES, Scan

DRIFT_MAX = 0.001
LATE_SHARE_MAX = 0.001
LATENESS_P50_MAX_NS = 50_000
INVERSIONS_SHARE_MAX = 0.001
DEPTH_RATIO_MAX = 0.10

FAITHFUL, NOT_FAITHFUL = "faithful", "not_faithful"
_LATENESS = (
    "lateness_p50_ns",
    "lateness_p99_ns",
    "lateness_p99_9_ns",
    "lateness_max_ns",
    "late_share_over_1ms",
    "lateness_relative_error_max",
)


def compute(scan: Scan) -> Values:
    """The certificate: verdict, reasons, lateness, drift, order and what became of the source's I/Os."""
    phases = [phase for phase in scan.recording.manifest.measured_phases if phase.kind == "replay"]
    paces = {_setting(phase, "pace", "timed") for phase in phases}
    lateness = _lateness(scan)
    values: Values = dict.fromkeys(METRIC.keys)
    values |= {f"fidelity.{name}": value for name, value in lateness.items()}
    if not phases:
        values |= _order(scan)
        return values | {"fidelity.verdict_code": "not_a_replay", "fidelity.reasons": []}
    accounting = merged_accounting(phases)
    values |= _from_accounting(accounting) if accounting else _order(scan)
    reasons = accounting_reasons(scan, accounting)
    if "timed" in paces:
        reasons += _timing_reasons(values)
    streams_apart = any(_setting(phase, "streams") == "source" for phase in phases)
    reasons += _order_reasons(scan, values, streams_apart=streams_apart)
    if "depth" in paces:
        reasons += _depth_reasons(accounting)
    return values | {
        "fidelity.pace": sorted(paces)[0] if len(paces) == 1 else "mixed",
        "fidelity.verdict": NOT_FAITHFUL if reasons else FAITHFUL,
        "fidelity.reasons": reasons,
    }


def _setting(phase: Phase, name: str, default: str | None = None) -> Any:
    return (phase.settings or {}).get(name) or default


def _lateness(scan: Scan) -> Values:
    absent: Values = dict.fromkeys((*_LATENESS, "drift"))
    if not scan.extent.ios:
        return {**absent, "lateness_code": NO_IOS}
    if {"intended_ns", "submit_ns"} & scan.absent_columns:
        return {**absent, "lateness_code": NOT_RECORDED}
    if scan.closed_loop:
        return {**absent, "lateness_code": "closed_loop"}
    late = scan.lateness
    extent = scan.extent
    intended_ns = extent.intended_last_ns - extent.intended_first_ns
    replayed_ns = extent.submit_last_ns - extent.submit_first_ns
    return {
        "lateness_p50_ns": late.quantile(QUANTILES["p50"]),
        "lateness_p99_ns": late.quantile(QUANTILES["p99"]),
        "lateness_p99_9_ns": late.quantile(QUANTILES["p99_9"]),
        "lateness_max_ns": late.max,
        "late_share_over_1ms": int(scan.cells.groups["late_ios"].sum()) / extent.ios,
        "lateness_relative_error_max": scan.relative_error_max,
        "drift": replayed_ns / intended_ns - 1 if intended_ns else None,
        "lateness_code": None,
    }


def _order(scan: Scan) -> Values:
    """Order inversions from the rows: submitted before an I/O that was intended earlier."""
    if not scan.extent.ios or {"intended_ns", "submit_ns"} & scan.absent_columns:
        return {}
    sample = scan.sample
    inside = sample.slice_index >= 0
    submit, index = sample.rows["submit_ns"][inside], sample.slice_index[inside]
    inverted = 0
    for one in np.unique(index):
        mine = submit[index == one]
        inverted += int((mine < np.maximum.accumulate(mine)).sum())
    return {
        "fidelity.order_inversions": inverted,
        "fidelity.order_inversions_sampled_ios": sample.sampled_ios,
    }


def _from_accounting(accounting: dict[str, Any]) -> Values:
    values: Values = {
        "fidelity.order_inversions": accounting.get("order_inversions"),
        "fidelity.source_depth": accounting.get("source_depth"),
        "fidelity.replay_depth": accounting.get("replay_depth"),
        "fidelity.accounting": {part: accounting.get(part) for part in COUNT_PARTS},
    }
    return values


def _timing_reasons(values: Values) -> list[dict[str, str]]:
    drift = values["fidelity.drift"]
    share = values["fidelity.late_share_over_1ms"]
    median_ns = values["fidelity.lateness_p50_ns"]
    found = {}
    if drift is not None and abs(drift) > DRIFT_MAX:
        found["drift"] = f"the replay's span is {drift:+.3%} off the intended one (at most {DRIFT_MAX:.1%})"
    if share is not None and share > LATE_SHARE_MAX:
        found["late"] = (
            f"{100 * share:.3g} % of the I/Os were issued over 1 ms late (at most {100 * LATE_SHARE_MAX:g} %)"
        )
    if median_ns is not None and median_ns > LATENESS_P50_MAX_NS:
        limit = f"at most {LATENESS_P50_MAX_NS // 1000} us"
        found["late_median"] = f"half of the I/Os were issued over {median_ns / 1000:.1f} us late ({limit})"
    return [{"code": code, "message": message} for code, message in found.items()]


def _order_reasons(scan: Scan, values: Values, *, streams_apart: bool) -> list[dict[str, str]]:
    inversions = values["fidelity.order_inversions"]
    allowed = INVERSIONS_SHARE_MAX * scan.extent.ios if streams_apart else 0
    if inversions is None or inversions <= allowed:
        return []
    message = f"{inversions} I/Os were submitted before one that stands earlier in the trace"
    return [{"code": "order_inversions", "message": message}]


def _depth_reasons(accounting: dict[str, Any] | None) -> list[dict[str, str]]:
    source = ((accounting or {}).get("source_depth") or {}).get("mean")
    replay = ((accounting or {}).get("replay_depth") or {}).get("mean")
    if not source or replay is None or abs(replay / source - 1) <= DEPTH_RATIO_MAX:
        return []
    message = f"{replay:.2f} I/Os were in flight on average, {source:.2f} in the trace"
    return [{"code": "depth_differs", "message": message}]


METRIC = Metric(
    "replay fidelity",
    (
        "fidelity.verdict",
        "fidelity.verdict_code",
        "fidelity.reasons",
        "fidelity.pace",
        *(f"fidelity.{name}" for name in _LATENESS),
        "fidelity.drift",
        "fidelity.lateness_code",
        "fidelity.order_inversions",
        "fidelity.order_inversions_sampled_ios",
        "fidelity.source_depth",
        "fidelity.replay_depth",
        "fidelity.accounting",
    ),
    (),
    compute,
)
