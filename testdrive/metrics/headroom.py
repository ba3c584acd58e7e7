"""The verdict of a user's rules on latencies, of trials of the plan ``headroom``.

``headroom.verdict`` is ``pass`` if every rule holds in every interval of the workload for each judged opcode,
by the response time, which counts from when an I/O was due at the trial's speed; no I/O failed, and the
drive kept up. Else ``fail``, and ``headroom.reasons`` says why in sentences. An interval has the I/Os that
were due in it by the recording's own clock. ``headroom.rules`` has for each rule and opcode the value of
every interval (``values``, nearest rank; at most 0.8 % above the exact one, and on the same side of the
limit), the worst of them, and the same by service time. ``headroom.breaks_first`` is the earliest interval
that does not hold, and ``headroom.limited_by`` who fell behind, the ``drive`` or the ``host``.

Codes: ``not_headroom`` (the recording is no trial of that plan).
"""

from __future__ import annotations

from testdrive.headroom.verdict import is_headroom, judge
from testdrive.metrics.metric import Metric, Values
from testdrive.metrics.scans import Scan

NOT_HEADROOM = "not_headroom"


def compute(scan: Scan) -> Values:
    """The verdict and what it is made of."""
    if not is_headroom(scan.recording):
        return METRIC.absent(NOT_HEADROOM)
    found = judge(scan.recording).to_json_object()
    return {**{f"headroom.{key}": value for key, value in found.items()}, "headroom.code": None}


METRIC = Metric(
    "headroom",
    (
        "headroom.verdict",
        "headroom.reasons",
        "headroom.speed",
        "headroom.intervals",
        "headroom.breaks_first",
        "headroom.cannot_keep_up",
        "headroom.limited_by",
        "headroom.rules",
        "headroom.code",
    ),
    (),
    compute,
)
