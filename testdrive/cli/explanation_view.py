"""`testdrive inspect --explain` on a terminal: what the drive was busy with in each burst."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from testdrive.cli.tables import table
from testdrive.explanation import Activity, BurstExplanation, Explanation
from testdrive.manifest import Manifest
from testdrive.report import units, words

NO_LOG = (
    "The drive tells nothing of what it was busy with, so there is nothing to explain its bursts with: "
    "only modelled drives (sim:) keep such a log."
)


def explanation_view(explanation: Explanation | None, manifest: Manifest) -> Group:
    """The whole run and each burst, with what took most of the time first."""
    if explanation is None:
        return Group(Text(NO_LOG))
    mark = " (modelled)" if manifest.drive and manifest.drive.modelled else ""
    parts: list[RenderableType] = [
        Text(f"\nWhat the drive was busy with, by its own log{mark}", style="bold")
    ]
    parts.append(_heading("in the whole run", explanation.run))
    parts += _told(explanation.run, of_run=False)
    for burst in explanation.bursts:
        parts.append(_heading(_burst(burst), burst.activities))
        parts += _told(burst.activities, of_run=True)
    if not explanation.bursts:
        parts.append(Text("There was no burst of latency."))
    if explanation.dropped_events:
        parts.append(
            Text(f"The log could not keep {units.count(explanation.dropped_events)} short events.", "yellow")
        )
    return Group(*parts)


def _burst(burst: BurstExplanation) -> str:
    length = units.time(burst.end_ns - burst.onset_ns)
    end = f"{length} long" if burst.recovered else f"{length} to the end"
    return (
        f"in the burst from {units.moment(burst.onset_ns)}, {end}, peak {units.time(burst.peak_latency_ns)}"
    )


def _heading(what: str, found: Sequence[Activity]) -> Text:
    return Text(f"{what}:" if found else f"{what}: nothing")


def _told(found: Sequence[Activity], *, of_run: bool) -> list[Table]:
    if not found:
        return []
    shares = ["of burst", "of run"] if of_run else ["of run"]
    made = table("what", "time", *shares, "amount", "longest", right=("time", *shares, "amount"))
    for activity in found:
        longest = activity.longest[0]
        told = [units.percent(activity.busy_share)] if of_run else []
        made.add_row(
            words.event(activity.kind),
            units.time(activity.busy_ns),
            *told,
            units.percent(activity.run_share),
            f"{units.count(activity.amount)} {activity.unit}",
            f"{units.time(longest.end_ns - longest.start_ns)} from {units.moment(longest.start_ns)}",
        )
    return [made]
