"""The verdict of the Aerospike Certification Tool's workload, of runs of the plan ``act``.

``act.verdict`` is ``pass`` if in every slice fewer than 5 % of the small reads took 1 ms or more, fewer than
1 % 8 ms or more and fewer than 0.1 % 64 ms or more, by the time that the drive took; and no I/O failed, the
schedule was kept to ``max-lag-sec``, the load was delivered (all but a thousandth of what was due), and every
slice is whole. Else ``fail``, and ``act.reasons`` says why in sentences; ``act.limited_by`` is ``drive`` or
``host`` where a schedule was not kept, and ``act.not_delivered`` what is missing. A stress run is held to the
last four alone. Shares are the greatest of any slice (``_max``) and
the mean over slices (``_mean``); those with ``response_`` count from the scheduled time on. Counts above a
threshold are exact, also of recordings that keep histograms. Source: Aerospike Certification Tool 6.x.

Codes: ``not_act`` (the recording is of no such plan).
"""

from __future__ import annotations

from testdrive.act.verdict import LIMITS, is_act, judge
from testdrive.metrics.metric import Metric, Values
from testdrive.metrics.scans import Scan

NOT_ACT = "not_act"
_SHARES = tuple(
    f"act.{which}"
    for limit in LIMITS
    for which in (
        f"above_{limit.threshold_ms}ms_share_max",
        f"above_{limit.threshold_ms}ms_share_mean",
        f"response_above_{limit.threshold_ms}ms_share_max",
    )
)


def compute(scan: Scan) -> Values:
    """The verdict and what it is made of."""
    if not is_act(scan.recording):
        return METRIC.absent(NOT_ACT)
    found = judge(scan.recording).to_json_object()
    return {**{f"act.{key}": value for key, value in found.items()}, "act.code": None}


METRIC = Metric(
    "act",
    (
        "act.verdict",
        "act.reasons",
        "act.slice_ns",
        "act.slices",
        "act.slices_planned",
        "act.reads",
        "act.cannot_keep_up",
        "act.not_delivered",
        "act.limited_by",
        *_SHARES,
        "act.code",
    ),
    (),
    compute,
    needs="histograms",
)
