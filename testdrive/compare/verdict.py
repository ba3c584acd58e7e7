"""The comparison in plain words: which drives handle the workload, generated from the rows."""

from __future__ import annotations

from collections.abc import Sequence

from testdrive.report import html, units, words
from testdrive.report.fidelity import name_cell
from testdrive.report.html import Markup
from testdrive.report.rows import Row
from testdrive.report.subject import Subject
from testdrive.report.verdict import mark, outcome, sentences

_ORDER = {"calm": 0, "reserved": 1, "recovers": 2, "unknown": 3, "fails": 4, "unanswering": 5}


def verdict_box(subjects: Sequence[Subject], rows: Sequence[Row]) -> Markup:
    """Return the box that stands first on the page."""
    pairs = [(subject, row) for subject, row in zip(subjects, rows, strict=True) if row["role"] == "drive"]
    pairs.sort(key=lambda pair: rank(pair[1]))
    pairs += [
        (subject, row) for subject, row in zip(subjects, rows, strict=True) if row["role"] == "original"
    ]
    items = [
        html.tag(
            "li", html.tag("strong", name_cell(subject, identity=False)), " ", mark(row), ". ", sentences(row)
        )
        for subject, row in pairs
    ]
    return html.tag(
        "section",
        html.tag("h2", "Which drive handles this workload"),
        html.tag("p", headline([row for _, row in pairs if row["role"] == "drive"]), class_="headline"),
        html.tag("ul", *items),
        html.tag("p", _LIMITS, class_="note"),
        class_="verdict",
        id="verdict",
    )


_LIMITS = (
    "This says how each drive took this workload in this one run, not why. That trims, writes or the "
    "drive's own housekeeping cause a burst is shown only by "
    "replaying the same workload without them and comparing."
)


def rank(row: Row) -> tuple[int, bool, float, float]:
    """Return the order of merit: class, errors, duration of the worst burst, slowest read or write."""
    infinite = float("inf")
    recovery, peak = row["recovery_ns"], row["peak_latency_ns"]
    return (
        _ORDER[outcome(row)],
        bool(row["errors"]),
        recovery if recovery is not None else (0.0 if outcome(row) in ("calm", "reserved") else infinite),
        peak if peak is not None else infinite,
    )


def headline(rows: Sequence[Row]) -> str:
    """Return one or two sentences for rows of drives that stand in their order of merit."""
    by_class = {name: [row for row in rows if outcome(row) == name] for name in _ORDER}
    said = []
    if by_class["calm"]:
        best = by_class["calm"][0]
        names = words.listed([str(row["name"]) for row in by_class["calm"]])
        verb = "handles" if len(by_class["calm"]) == 1 else "handle"
        said.append(f"{names} {verb} this workload without a burst{_slowest(by_class['calm'], best)}.")
    if by_class["reserved"]:
        names = words.listed([str(row["name"]) for row in by_class["reserved"]])
        verb = "shows" if len(by_class["reserved"]) == 1 else "show"
        said.append(f"{names} {verb} no burst, but with reservations.")
    if by_class["recovers"]:
        names = words.listed([str(row["name"]) for row in by_class["recovers"]])
        worst = max(row["recovery_ns"] for row in by_class["recovers"])
        verb = "has" if len(by_class["recovers"]) == 1 else "have"
        said.append(
            f"{names} {verb} bursts of raised latency, the worst of up to {units.time(worst)}, and "
            f"recover{'s' if verb == 'has' else ''}."
        )
    if by_class["fails"]:
        names = words.listed([str(row["name"]) for row in by_class["fails"]])
        said.append(f"{names} {'does' if len(by_class['fails']) == 1 else 'do'} not handle it.")
    if by_class["unanswering"]:
        names = words.listed([str(row["name"]) for row in by_class["unanswering"]])
        verb = "was" if len(by_class["unanswering"]) == 1 else "were"
        said.append(f"{names} stopped answering, {verb} reset or lost, whatever the latencies say.")
    if by_class["unknown"]:
        names = words.listed([str(row["name"]) for row in by_class["unknown"]])
        said.append(f"Of {names} nothing can be said.")
    if not by_class["calm"] and not by_class["reserved"] and rows:
        said.insert(0, "No drive takes this workload without a burst." if len(rows) > 1 else "")
    return " ".join(sentence for sentence in said if sentence)


def _slowest(calm: Sequence[Row], best: Row) -> str:
    if len(calm) == 1:
        return f" (slowest read or write {units.time(best['peak_latency_ns'])})"
    return f"; {best['name']} has the lowest peak, {units.time(best['peak_latency_ns'])}"
