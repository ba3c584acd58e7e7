"""What a drive was busy with in its bursts of latency, by its own log.

For each burst, and for the whole run beside it: work that goes on all the time explains no burst, so that
what deserves attention is what took more of the burst than of the run. It is still no proof of a cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from testdrive.drive_events import DriveEvent, drive_events
from testdrive.recording import Recording

#: How many single events of a kind are told of a burst: the longest.
LONGEST_TOLD = 3


@dataclass(frozen=True)
class Activity:
    """What the drive did of one kind within some time.

    Attributes
    ----------
    kind : str
        As in ``drive_events.jsonl``.
    busy_ns : int
        The time spent on it. Of an event that lies there in part, the same part.
    busy_share : float
        Of the time.
    run_share : float
        The same share over the whole run, for comparison.
    amount : int
        How much was done, in ``unit``; in part as above.
    events : int
        Stretches of it; work without an end is divided into stretches of about a second.
    longest : list of DriveEvent
        The longest stretches, whole, the longest first.
    """

    kind: str
    busy_ns: int
    busy_share: float
    run_share: float
    amount: int
    unit: str
    events: int
    longest: list[DriveEvent]


@dataclass(frozen=True)
class BurstExplanation:
    """A burst and what the drive did in it, what took most of the time first."""

    onset_ns: int
    end_ns: int
    recovered: bool
    peak_latency_ns: int
    activities: list[Activity]


@dataclass(frozen=True)
class Explanation:
    """What the drive did in the whole run and in each of its bursts.

    ``dropped_events`` is how many events the drive's log could not keep: what is told is then a lower bound.
    """

    run: list[Activity]
    bursts: list[BurstExplanation]
    dropped_events: int

    def as_json(self) -> dict[str, Any]:
        """As it is printed with ``--json``."""
        lists = [self.run, *(burst.activities for burst in self.bursts)]
        found = asdict(self)
        told = [found["run"], *(burst["activities"] for burst in found["bursts"])]
        for activities, plain in zip(lists, told, strict=True):
            for activity, entry in zip(activities, plain, strict=True):
                entry["longest"] = [event.model_dump() for event in activity.longest]
        return found


def explanation_of(recording: Recording, summary: Mapping[str, Any]) -> Explanation | None:
    """What the drive of a recording did in its bursts; None where the drive tells nothing of itself.

    Parameters
    ----------
    recording
        Opened by :meth:`Recording.open`.
    summary
        Its summary, for the bursts.

    Raises
    ------
    RecordingError
        If the log in the recording is damaged.
    """
    told = recording.manifest.drive_events
    if told is None:
        return None
    span_ns = sum(span.end_ns - span.start_ns for span in recording.measured_spans())
    dropped = sum(each.events for each in told.dropped)
    return explain(summary.get("bursts") or [], drive_events(recording), span_ns, dropped)


def explain(
    bursts: Sequence[Mapping[str, Any]],
    events: Sequence[DriveEvent],
    span_ns: int,
    dropped_events: int = 0,
) -> Explanation:
    """What the drive did in each burst.

    Parameters
    ----------
    bursts
        ``bursts`` of the summary (:mod:`testdrive.metrics.bursts`).
    events
        Of :func:`testdrive.drive_events.drive_events`, so that both count from the same moment.
    span_ns
        How long the run was: the end of a burst from which the drive did not recover.
    dropped_events
        How many events the drive's log could not keep.
    """
    run = activities(events, 0, span_ns)
    run_shares = {each.kind: each.busy_share for each in run}
    explained = []
    for burst in bursts:
        onset_ns = int(burst["onset_ns"])
        recovered = burst["end_ns"] is not None
        end_ns = int(burst["end_ns"]) if recovered else max(span_ns, onset_ns)
        found = activities(events, onset_ns, end_ns, run_shares)
        explained.append(BurstExplanation(onset_ns, end_ns, recovered, int(burst["peak_latency_ns"]), found))
    return Explanation(run, explained, dropped_events)


def activities(
    events: Iterable[DriveEvent], start_ns: int, end_ns: int, run_shares: Mapping[str, float] | None = None
) -> list[Activity]:
    """What the drive did between two times, by kind, what took most of the time first."""
    by_kind: dict[str, list[tuple[int, float, DriveEvent]]] = {}
    for event in events:
        overlap_ns, share = event.within(start_ns, end_ns)
        if share:
            by_kind.setdefault(event.kind, []).append((overlap_ns, share, event))
    found = [_activity(kind, parts, end_ns - start_ns, run_shares) for kind, parts in by_kind.items()]
    return sorted(found, key=lambda activity: (-activity.busy_ns, -activity.amount, activity.kind))


def _activity(
    kind: str,
    parts: list[tuple[int, float, DriveEvent]],
    length_ns: int,
    run_shares: Mapping[str, float] | None,
) -> Activity:
    busy_ns = round(sum(share * event.busy_ns for _, share, event in parts))
    busy_share = min(busy_ns / length_ns, 1.0) if length_ns else 0.0
    longest = sorted(parts, key=lambda part: (-part[0], part[2].start_ns))[:LONGEST_TOLD]
    return Activity(
        kind=kind,
        busy_ns=busy_ns,
        busy_share=busy_share,
        run_share=busy_share if run_shares is None else run_shares.get(kind, 0.0),
        amount=round(sum(share * event.amount for _, share, event in parts)),
        unit=parts[0][2].unit,
        events=len(parts),
        longest=[event for _, _, event in longest],
    )
