"""The table that decides: one row a recording, the figures that averages hide, and why one is absent."""

from __future__ import annotations

from collections.abc import Sequence

from testdrive.report import html, units, words
from testdrive.report.fidelity import fidelity_mark, name_cell
from testdrive.report.html import Markup, Node
from testdrive.report.rows import PERCENTILES, Row, stall_share
from testdrive.report.subject import Subject
from testdrive.report.verdict import mark

STALLS_NS = (10_000_000, 100_000_000)
HEAD: tuple[Node, ...] = (
    "Drive",
    "Baseline latency",
    "Peak latency",
    "Peak recovery",
    "Fidelity",
    "Service p50",
    "p99",
    "p99.9",
    "p99.99",
    "Response p99.9",
    "Time stalled",
    "I/Os",
    "Errors",
)


def decision_table(subjects: Sequence[Subject], rows: Sequence[Row]) -> Markup:
    """Return the table for the recordings, in their order."""
    body = [_cells(subject, row) for subject, row in zip(subjects, rows, strict=True)]
    return html.join(
        html.table(HEAD, body, caption="Latency is the service time of I/Os without an error"),
        html.details(
            "What the columns mean",
            html.tag(
                "ul",
                html.tag(
                    "li",
                    "Baseline latency: the mean over the reads and writes of the calm windows, bursts left "
                    "out.",
                ),
                html.tag(
                    "li",
                    "Peak latency: the single slowest read or write, and how long after the start it was "
                    "submitted. Of lost I/Os no more is known than how long they were waited for: with them "
                    "the peak, and a percentile, is at least (≥) as told.",
                ),
                html.tag(
                    "li",
                    "Peak recovery: how long the burst that holds the peak lasted, from the rise of the "
                    "mean latency until it was calm again. A "
                    "rise that fills less than eight tenths of a second is no burst.",
                ),
                html.tag(
                    "li", "Percentiles: of all I/Os; absent where too few I/Os were made for them to hold."
                ),
                html.tag(
                    "li",
                    "Response p99.9: as service p99.9, but from when the workload wanted the I/O: it holds "
                    "the wait before a late submission too.",
                ),
                html.tag(
                    "li",
                    "Time stalled: the share of the run during which the oldest I/O in flight was older "
                    "than 10 ms, and than 100 ms.",
                ),
                html.tag(
                    "li", "Fidelity: whether the replay was the same workload; the reasons where it was not."
                ),
            ),
        ),
    )


def _cells(subject: Subject, row: Row) -> list[Node]:
    late = row["response_p99_9_ns"]
    return [
        html.join(name_cell(subject), html.tag("small", mark(row))),
        _baseline(row),
        html.join(units.time(row["peak_latency_ns"]), _when(row), _at_least(row)),
        _recovery(row),
        fidelity_mark(row),
        *(_percentile(row, name) for name in PERCENTILES),
        _or_code(late, row["response_code"]),
        _stalls(row),
        units.count(row["ios"]),
        html.join(units.count(row["errors"]), _lost(row)),
    ]


def _baseline(row: Row) -> Node:
    before = row["level_before_burst_ns"]
    note = html.tag("small", f"{units.time(before)} before the burst") if before is not None else None
    return html.join(words.baseline(row), note)


def _recovery(row: Row) -> Node:
    limit = row["recovery_more_than_ns"]
    if limit is None:
        return words.recovery(row)
    return html.join(words.code(row["recovery_code"]), html.tag("small", f"> {units.time(limit)}"))


def _stalls(row: Row) -> Node:
    shares = [(threshold, stall_share(row, threshold)) for threshold in STALLS_NS]
    if all(share is None for _, share in shares):
        return units.ABSENT
    parts = [
        f"{units.percent(share, 2)} > {units.time(threshold).replace('.0', '')}"
        for threshold, share in shares
    ]
    return html.join(parts[0], *(html.tag("small", part) for part in parts[1:]))


def _when(row: Row) -> Markup | None:
    moment = row["peak_time_ns"]
    return html.tag("small", f"at {units.moment(moment)}") if moment is not None else None


def _percentile(row: Row, name: str) -> Node:
    value, at_least = row[f"service_{name}_ns"], row[f"service_{name}_at_least_ns"]
    shown = _or_code(value, row[f"service_{name}_code"])
    if at_least is None or value is None or at_least <= value:
        return shown
    return html.join(shown, html.tag("small", f"≥ {units.time(at_least)} with those lost"))


def _at_least(row: Row) -> Markup | None:
    """What the peak is worth where I/Os were lost, of which none is known but how long it was waited for."""
    if not row["lost_ios"]:
        return None
    return html.tag("small", f"≥ {units.time(row['peak_at_least_ns'])} with those lost")


def _lost(row: Row) -> Markup | None:
    return html.tag("small", f"{units.count(row['lost_ios'])} of them lost") if row["lost_ios"] else None


def _or_code(value_ns: float | None, code: str | None) -> Node:
    if value_ns is not None:
        return units.time(value_ns)
    return html.tag("small", words.code(code)) if code else units.ABSENT
