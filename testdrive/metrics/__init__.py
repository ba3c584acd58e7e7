"""Every metric of a recording, one file each.

What other parts call::

    from testdrive.metrics import summarize, summary_of, write_summary

    with Recording.open("prod.rec") as recording:
        summary = write_summary(recording)   # the dictionary that summary.json holds
        summary = summary_of(recording)      # the same, from the file where it is current

To add a metric, add a module here with a :class:`Metric` named ``METRIC``; the registry finds it.
"""

from testdrive.metrics.kept_summary import summary_of
from testdrive.metrics.metric import Metric
from testdrive.metrics.registry import all_metrics
from testdrive.metrics.summary import SUMMARY_NAME, summarize, write_summary

__all__ = ["SUMMARY_NAME", "Metric", "all_metrics", "summarize", "summary_of", "write_summary"]
