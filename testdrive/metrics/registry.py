"""Finds the metrics: every module of this package that has a ``METRIC``. Adding a metric is adding a file."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path

from testdrive.metrics.metric import Metric


@cache
def all_metrics() -> tuple[Metric, ...]:
    """Every metric, in the order of the modules' names.

    Raises
    ------
    ValueError
        If two metrics fill the same key.
    """
    package = __package__ or "testdrive.metrics"
    names = sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    modules = [importlib.import_module(f"{package}.{name}") for name in names]
    metrics = tuple(module.METRIC for module in modules if hasattr(module, "METRIC"))
    owners: dict[str, str] = {}
    for metric in metrics:
        for key in metric.keys:
            if key in owners:
                raise ValueError(f"metrics {owners[key]} and {metric.name} both fill {key}; rename one key")
            owners[key] = metric.name
    return metrics
