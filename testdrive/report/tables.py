"""The page's figures as CSV files beside it: raw, with the unit in each column's name."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from testdrive.report.power import POWER_COLUMNS, power_rows
from testdrive.report.rows import Row
from testdrive.report.view import Views


def write_tables(views: Views, rows: Sequence[Row], directory: Path) -> list[Path]:
    """Write `drives.csv`, `windows.csv`, `percentiles.csv` and, where drives measure themselves, `power.csv`;
    return their paths.
    """
    directory.mkdir(parents=True, exist_ok=True)
    return [
        write_csv(
            directory / "drives.csv",
            list(rows[0]) if rows else [],
            ([_plain(value) for value in row.values()] for row in rows),
        ),
        write_csv(directory / "windows.csv", _WINDOWS, _window_rows(views)),
        write_csv(directory / "percentiles.csv", _CURVES, _curve_rows(views)),
        *_power_table(views, directory / "power.csv"),
    ]


def _power_table(views: Views, path: Path) -> list[Path]:
    if not views.powers:
        path.unlink(missing_ok=True)
        return []
    return [write_csv(path, POWER_COLUMNS, power_rows(views.powers))]


def write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write one CSV file in UTF-8; absent values are empty."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)
    return path


_WINDOWS = (
    "name",
    "window_start_ns",
    "window_ns",
    "latency_mean_ns",
    "latency_p99_ns",
    "latency_max_ns",
    "trimmed_bytes",
    "trims_outstanding_max",
)
_CURVES = ("name", "service_time_ns", "io_weighted_share", "latency_weighted_share")


def _window_rows(views: Views) -> Iterable[list[Any]]:
    width_ns = views.scales.window_ns
    for view in views.views:
        lines, trims = view.lines, view.trims
        for at in range(views.scales.windows):
            latencies = (lines.mean_ns[at], lines.p99_ns[at], lines.max_ns[at])
            yield [
                view.subject.name,
                at * width_ns,
                width_ns,
                *("" if value != value else round(float(value)) for value in latencies),
                int(trims.trimmed_bytes[at]) if trims else 0,
                int(trims.outstanding_max[at]) if trims else 0,
            ]


def _curve_rows(views: Views) -> Iterable[list[Any]]:
    for view in views.views:
        if view.service is None:
            continue
        for value, ios, time in zip(
            view.service.value_ns, view.service.io_share, view.service.time_share, strict=True
        ):
            yield [view.subject.name, int(value), f"{ios:.10g}", f"{time:.10g}"]


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (dict, list)) else value
