"""The figures of a statement as CSV files beside its page: raw, with the unit in each column's name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from testdrive.report.rows import dig
from testdrive.report.tables import write_csv
from testdrive.statement.contrast import contrasts
from testdrive.statement.needs import CAPACITIES_BYTES, drive_writes_per_day
from testdrive.statement.view import Views

Rows = Iterable[Sequence[Any]]


def write_tables(views: Views, directory: Path, capacities_bytes: Sequence[int] = ()) -> list[Path]:
    """Write `workload-*.csv`, and return their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    tables: dict[str, tuple[Sequence[str], Rows]] = {
        "rates": (_RATES, _rates(views)),
        "sizes": (_SIZES, _sizes(views)),
        "hot-regions": (_HOT, _hot(views)),
        "footprint": (_GROWTH, _growth(views)),
        "working-sets": (_WORKING_SETS, _working_sets(views)),
        "arrivals": (_ARRIVALS, _arrivals(views)),
        "in-flight": (_IN_FLIGHT, _in_flight(views)),
        "latency": (_LATENCY, _latency(views)),
        "trim-streams": (_TRIMS, _trims(views)),
        "drive-writes": (_ENDURANCE, _endurance(views, capacities_bytes)),
    }
    if len(views.views) > 1:
        tables["side-by-side"] = (_CONTRAST, _contrast(views))
    return [
        write_csv(directory / f"workload-{name}.csv", head, rows) for name, (head, rows) in tables.items()
    ]


_RATES = ("name", "window_start_ns", "window_ns", "opcode", "ios", "bytes", "busiest_second_ios")


def _rates(views: Views) -> Iterator[list[Any]]:
    for view in views.views:
        if view.rates is None:
            continue
        width, busiest = view.time.width_ns, view.rates.busiest_ios
        for name, ios in view.rates.ios.items():
            for at in range(view.time.windows):
                most = int(busiest[at]) if busiest is not None else ""
                size = int(view.rates.bytes[name][at])
                yield [view.subject.name, at * width, width, view.key(name), int(ios[at]), size, most]


_SIZES = ("name", "opcode", "length_bytes_max", "ios", "bytes")


def _sizes(views: Views) -> Iterator[list[Any]]:
    for view in views.views:
        for name, ios in (view.sizes.ios if view.sizes else {}).items():
            assert view.sizes is not None
            for edge, count, size in zip(view.sizes.edges_bytes, ios, view.sizes.bytes[name], strict=True):
                yield [view.subject.name, view.key(name), edge, count, size]


_HOT = ("name", "ios", "hottest_share_of_regions", "share_of_ios")


def _hot(views: Views) -> Iterator[list[Any]]:
    for view in views.views:
        for name, curve in view.hot.items():
            for part, share in zip(curve.part, curve.share, strict=True):
                yield [view.subject.name, name, f"{part:.8g}", f"{share:.8g}"]


_GROWTH = ("name", "time_ns", "opcode", "touched_bytes")


def _growth(views: Views) -> Iterator[list[Any]]:
    for view in views.views:
        if view.growth is None:
            continue
        width = view.growth["interval_ns"]
        for name, series in (("all", view.growth["total"]), *view.growth["by_opcode"].items()):
            for at, touched in enumerate(series):
                yield [view.subject.name, (at + 1) * width, name, touched]


_WORKING_SETS = ("name", "minute", "working_set_bytes")


def _working_sets(views: Views) -> Iterator[list[Any]]:
    for view in views.views:
        found = dig(view.subject.summary, "workload.working_set_per_minute_bytes") or []
        for minute, size in enumerate(found):
            yield [view.subject.name, minute, size]


_ARRIVALS = ("name", "interval_ns", "share_at_or_below")


def _arrivals(views: Views) -> Iterator[list[Any]]:
    for view in views.views:
        if view.arrivals:
            curve = view.arrivals.curve
            for value, share in zip(curve.value_ns, curve.io_share, strict=True):
                yield [view.subject.name, int(value), f"{share:.10g}"]


_IN_FLIGHT = ("name", "ios_in_flight_max", "time_share")


def _in_flight(views: Views) -> Iterator[list[Any]]:
    for view in views.views:
        if view.in_flight:
            for edge, share in zip(view.in_flight.up_to, view.in_flight.time_share, strict=True):
                yield [view.subject.name, edge, f"{share:.10g}"]


_LATENCY = ("name", "opcode", "service_time_ns", "share_at_or_below", "latency_weighted_share")


def _latency(views: Views) -> Iterator[list[Any]]:
    for view in views.views:
        for name, curve in (view.latencies.curves if view.latencies else {}).items():
            for value, ios, time in zip(curve.value_ns, curve.io_share, curve.time_share, strict=True):
                yield [view.subject.name, view.key(name), int(value), f"{ios:.10g}", f"{time:.10g}"]


_TRIMS = ("name", "stream", "window_start_ns", "window_ns", "trimmed_bytes")


def _trims(views: Views) -> Iterator[list[Any]]:
    for view in views.views:
        if view.trims is None:
            continue
        width = view.time.width_ns
        for stream, series in zip(view.trims.streams, view.trims.trimmed_bytes, strict=True):
            for at in series.nonzero()[0]:
                yield [view.subject.name, stream, int(at) * width, width, int(series[at])]


_ENDURANCE = ("name", "capacity_bytes", "drive_writes_per_day", "extrapolated_from_ns")


def _endurance(views: Views, capacities_bytes: Sequence[int]) -> Iterator[list[Any]]:
    chosen = sorted({*CAPACITIES_BYTES, *capacities_bytes})
    for view in views.views:
        span = dig(view.subject.summary, "workload.sizing.extrapolated_from_ns")
        for capacity, times in drive_writes_per_day(view.subject.summary, chosen):
            yield [view.subject.name, capacity, f"{times:.6g}", span]


_CONTRAST = ("group", "figure", "key", "a", "b", "ratio")


def _contrast(views: Views) -> Iterator[list[Any]]:
    a, b = (view.subject.summary for view in views.views)
    for row in contrasts(a, b):
        values = ["" if value is None else value for value in (row.a, row.b, row.ratio)]
        yield [row.group, row.name, row.key, *values]
