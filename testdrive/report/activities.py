"""What drives were busy with in their bursts, by their own log or the driver's, as a part of the page."""

from __future__ import annotations

from collections.abc import Sequence

from testdrive.explanation import Activity, BurstExplanation, Explanation, explanation_of
from testdrive.report import html, units, words
from testdrive.report.fidelity import name_cell
from testdrive.report.html import Markup, Node
from testdrive.report.subject import Subject

#: The bursts that are told of each drive: those with the largest latencies.
BURSTS_TOLD = 5
#: A table of more rows is folded: what comes after it would be found by few.
FOLDED_FROM = 12


def activities_table(subjects: Sequence[Subject]) -> Markup | None:
    """Return what each drive that keeps a log did in its bursts, or None where none keeps one.

    Raises
    ------
    RecordingError
        If a recording's log is damaged.
    """
    found = [(one, explanation_of(one.recording, one.summary)) for one in subjects]
    told = [(one, explanation) for one, explanation in found if explanation is not None]
    if not told:
        return None
    modelled = all(one.modelled for one, _ in told)
    said = " (modelled)" if modelled else ""
    rows = [cells for one, explanation in told for cells in _rows(one, explanation)]
    table = html.table(
        ["Drive", "When", "Busy with", "Time", "Of that time", "Of the run", "Amount", "Longest stretch"],
        rows,
        caption="The drives' own events, what took most of the time first" + said,
    )
    return html.join(
        html.tag("h3", "What the drives were busy with"),
        html.tag(
            "p",
            "By the log that a modelled drive keeps of itself. "
            if modelled
            else "By what the driver had to do to the controller. ",
            "What takes more of a burst than of the whole "
            "run deserves attention; what goes on all the time explains no burst. ",
            _left_out(told),
        ),
        table
        if len(rows) <= FOLDED_FROM
        else html.details(f"Over the whole run and in each burst: {len(rows)} lines", table),
    )


def _left_out(told: Sequence[tuple[Subject, Explanation]]) -> str:
    said = []
    if any(len(explanation.bursts) > BURSTS_TOLD for _, explanation in told):
        said.append(f"Of each drive the {BURSTS_TOLD} bursts with the largest latencies are shown.")
    dropped = sum(explanation.dropped_events for _, explanation in told)
    if dropped:
        said.append(f"The logs could not keep {dropped:,} short events.")
    return " ".join(said)


def _rows(subject: Subject, explanation: Explanation) -> list[list[Node]]:
    bursts = sorted(explanation.bursts, key=lambda burst: -burst.peak_latency_ns)[:BURSTS_TOLD]
    rows = [_cells(subject, "whole run", activity) for activity in explanation.run]
    if not rows:
        rows = [_nothing(subject, "whole run")]
    for burst in sorted(bursts, key=lambda burst: burst.onset_ns):
        when = _when(burst)
        rows += [_cells(subject, when, activity) for activity in burst.activities]
        if not burst.activities:
            rows.append(_nothing(subject, when))
    return rows


def _when(burst: BurstExplanation) -> str:
    end = "" if burst.recovered else ", to the end"
    return f"burst from {units.moment(burst.onset_ns)}, {units.time(burst.end_ns - burst.onset_ns)}{end}"


def _nothing(subject: Subject, when: str) -> list[Node]:
    return [name_cell(subject), when, "nothing", *[units.ABSENT] * 5]


def _cells(subject: Subject, when: str, activity: Activity) -> list[Node]:
    longest = activity.longest[0]
    return [
        name_cell(subject),
        when,
        words.event(activity.kind),
        units.time(activity.busy_ns),
        units.percent(activity.busy_share),
        units.percent(activity.run_share),
        f"{activity.amount:,} {activity.unit}",
        f"{units.time(longest.end_ns - longest.start_ns)} from {units.moment(longest.start_ns)}",
    ]
