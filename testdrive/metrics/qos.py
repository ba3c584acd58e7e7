"""The verdict of a user's rules on latencies, of trials of the plan ``qos``.

``qos.verdict`` is ``pass`` if every rule holds in every interval for each judged opcode, by the response
time, which counts from when an I/O was due; no I/O failed, the drive kept up, and every interval is whole.
Else ``fail``, and ``qos.reasons`` says why in sentences. ``qos.rules`` has for each rule and opcode the worst
value of any interval, with the same by service time; with ``more`` it is the longest that was seen, because
the I/Os that decide did not go before the end. ``qos.limited_by`` says who made I/Os late, the ``drive`` or
the ``host``, where the verdict fails for that. Percentiles are of the nearest rank; of recordings that keep
histograms they are the longest of their bucket, at most 0.8 % above the exact ones, so that a rule that
holds there holds. One from p99 up needs the samples of the metric percentiles in every interval.

Codes: ``not_qos`` (the recording is of no such plan).
"""

from __future__ import annotations

from testdrive.metrics.metric import Metric, Values
from testdrive.metrics.scans import Scan
from testdrive.qos.verdict import is_qos, judge

NOT_QOS = "not_qos"


def compute(scan: Scan) -> Values:
    """The verdict and what it is made of."""
    if not is_qos(scan.recording):
        return METRIC.absent(NOT_QOS)
    found = judge(scan.recording).to_json_object()
    return {**{f"qos.{key}": value for key, value in found.items()}, "qos.code": None}


METRIC = Metric(
    "qos",
    (
        "qos.verdict",
        "qos.reasons",
        "qos.interval_ns",
        "qos.intervals",
        "qos.intervals_planned",
        "qos.cannot_keep_up",
        "qos.limited_by",
        "qos.rules",
        "qos.code",
    ),
    (),
    compute,
    needs="histograms",
)
