"""Every metric of a recording, one file each.

What other parts call::

    from testdrive.metrics import summarize, write_summary

    with Recording.open("prod.rec") as recording:
        summary = write_summary(recording)   # the dictionary that summary.json holds

To add a metric, add a module here with a :class:`Metric` named ``METRIC``; the registry finds it.
"""

from testdrive.metrics.metric import Metric
from testdrive.metrics.registry import all_metrics
from testdrive.metrics.summary import SUMMARY_NAME, summarize, write_summary

__all__ = ["SUMMARY_NAME", "Metric", "all_metrics", "summarize", "write_summary"]
