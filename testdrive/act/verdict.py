"""The verdict of an act run: shares of reads above 1, 8 and 64 ms in each slice, and in their average.

Judged on device time, as act_storage does since version 6.0. A share of exactly 5 % is not below 5 %, and
fails. A run that was cut short, that fell behind its schedule, whose load was not delivered or in which an
I/O failed cannot pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from testdrive.act.counts import Counts, count
from testdrive.act.delivery import LimitedBy, Missing, limited_by, missing
from testdrive.act.load import READS
from testdrive.manifest import Phase
from testdrive.recording import Recording

#: The figures' name by which a plan says that it is judged so.
FIGURES = "act"
#: The phase that is judged.
LOAD_PHASE = "load"


@dataclass(frozen=True)
class Limit:
    """Fewer than ``per_thousand`` of a thousand reads may take ``2^power`` ms or more."""

    power: int
    per_thousand: int

    @property
    def threshold_ms(self) -> int:
        """The threshold in milliseconds."""
        return 1 << self.power

    @property
    def share(self) -> float:
        """The share of reads that is too many."""
        return self.per_thousand / 1_000


LIMITS = (Limit(0, 50), Limit(3, 10), Limit(6, 1))


@dataclass(frozen=True)
class Slice:
    """One slice: its reads, and how many of them took each limit's threshold or more."""

    reads: int
    above: tuple[int, ...]
    above_response: tuple[int, ...]
    failed: int

    def share(self, which: int) -> Fraction:
        """The exact share above a limit's threshold; 0 without reads."""
        return Fraction(self.above[which], self.reads) if self.reads else Fraction(0)

    def holds(self, which: int) -> bool:
        """Whether there are reads, and fewer above the threshold than the limit allows."""
        return self.reads > 0 and self.above[which] * 1_000 < LIMITS[which].per_thousand * self.reads


@dataclass(frozen=True)
class Verdict:
    """What a run came to.

    ``reasons`` are sentences, none for a pass. ``average`` has the mean of the slices' shares for each limit;
    it is empty without a whole slice. ``missing`` is what was not delivered of the load, if anything, and
    ``limited_by`` who held back a run that fell behind or whose load was not delivered.
    """

    verdict: Literal["pass", "fail"]
    reasons: list[str]
    slices: list[Slice]
    slices_planned: int
    slice_ns: int
    average: list[float]
    cannot_keep_up: dict[str, Any] | None
    missing: Missing | None = None
    limited_by: LimitedBy | None = None

    def to_json_object(self) -> dict[str, Any]:
        """As ``summary.json`` has it, under ``act``."""
        worst = [
            max((float(one.share(at)) for one in self.slices), default=None) for at in range(len(LIMITS))
        ]
        found: dict[str, Any] = {
            "verdict": self.verdict,
            "reasons": self.reasons,
            "slice_ns": self.slice_ns,
            "slices": len(self.slices),
            "slices_planned": self.slices_planned,
            "reads": sum(one.reads for one in self.slices),
            "cannot_keep_up": self.cannot_keep_up,
            "not_delivered": self.missing.to_json_object() if self.missing else None,
            "limited_by": self.limited_by,
        }
        for at, limit in enumerate(LIMITS):
            key = f"above_{limit.threshold_ms}ms_share"
            found[f"{key}_max"] = worst[at]
            found[f"{key}_mean"] = self.average[at] if self.average else None
            late = [one.above_response[at] / one.reads for one in self.slices if one.reads]
            found[f"response_{key}_max"] = max(late, default=None)
        return found


def is_act(recording: Recording) -> bool:
    """Whether a recording is of a plan that is judged so."""
    plan = recording.manifest.plan
    return plan is not None and FIGURES in plan.figures


def load_phase(recording: Recording) -> Phase | None:
    """The phase that is judged; None where the run did not reach it."""
    return next((phase for phase in recording.manifest.phases if phase.name == LOAD_PHASE), None)


def slices_of(recording: Recording, phase: Phase, slice_ns: int) -> tuple[list[Slice], int]:
    """The whole slices of a run, and how many there should be."""
    planned_ns = int((phase.settings or {}).get("duration_ns") or 0)
    planned = max(planned_ns // slice_ns, 1)
    # What is left of a run that is no whole number of slices is judged by none.
    stretches = max(-(-planned_ns // slice_ns), 1)
    ran_ns = max((phase.end_ns or phase.start_ns) - phase.start_ns, 0)
    whole = min(ran_ns // slice_ns, planned)
    if not whole:
        return [], planned
    # What completed after the last whole slice of a run that was cut short belongs to none.
    counted = count(recording, phase, slice_ns, stretches)
    reads = counted.get(READS)
    return ([] if reads is None else [_slice(reads, at, counted) for at in range(whole)]), planned


def _slice(reads: Counts, at: int, counted: dict[str, Counts]) -> Slice:
    return Slice(
        reads=int(reads.ios[at]),
        above=tuple(int(reads.above(limit.power)[at]) for limit in LIMITS),
        above_response=tuple(int(reads.above(limit.power, response=True)[at]) for limit in LIMITS),
        failed=int(sum(each.failed[at] for each in counted.values())),
    )


def judge(recording: Recording) -> Verdict:
    """The verdict of a run of the plan ``act``, whatever became of it."""
    manifest = recording.manifest
    parameters = manifest.plan.parameters if manifest.plan else {}
    slice_ns = _slice_ns(recording)
    phase = load_phase(recording)
    slices, planned = slices_of(recording, phase, slice_ns) if phase else ([], 1)
    behind = ((phase.accounting or {}).get("cannot_keep_up") if phase else None) or None
    stress = bool(parameters.get("stress"))
    lacks = None
    if phase is not None and manifest.status == "complete" and behind is None:
        lacks = missing(recording, phase, [one.reads for one in slices], slice_ns)
    limit = lacks.limited_by if lacks else None
    if phase is not None and behind is not None:
        limit = limited_by(recording, phase)
    reasons = _cut_short(manifest.status, manifest.status_reason, behind, len(slices), planned, limit)
    if lacks is not None:
        reasons.append(lacks.reason)
    if manifest.counts.errors:
        reasons.append(f"{manifest.counts.errors:,} I/Os failed or were never answered")
    if not stress:
        reasons += over_limits(slices)
    return Verdict(
        verdict="fail" if reasons else "pass",
        reasons=reasons,
        slices=slices,
        slices_planned=planned,
        slice_ns=slice_ns,
        average=averages(slices),
        cannot_keep_up=behind,
        missing=lacks,
        limited_by=limit,
    )


def broken_slices(recording: Recording, whole: int) -> list[str]:
    """Why a run that goes on cannot pass any more, of its first whole slices; empty where it still can."""
    phase = load_phase(recording)
    if phase is None:
        return []
    reads = count(recording, phase, _slice_ns(recording), whole + 1).get(READS)
    return [] if reads is None else over_limits([_slice(reads, at, {}) for at in range(whole)])


def _slice_ns(recording: Recording) -> int:
    parameters = recording.manifest.plan.parameters if recording.manifest.plan else {}
    return int(parameters.get("slice") or 3_600_000_000_000)


def _cut_short(
    status: str,
    reason: str | None,
    behind: dict[str, Any] | None,
    slices: int,
    planned: int,
    limit: LimitedBy | None,
) -> list[str]:
    reasons = []
    if behind is not None:
        who = f" ({behind['stream']})" if behind.get("stream") else ""
        which = "this host cannot keep up, which says nothing about the drive" if limit == "host" else ""
        reasons.append(
            f"{which or 'the drive cannot keep up'}{who}: {behind['lag_ns'] / 1e9:.1f} s behind after"
            f" {behind['at_ns'] / 1e9:.1f} s"
        )
    elif status != "complete":
        reasons.append(f"the run is not complete: {reason or status}")
    if slices < planned:
        reasons.append(f"{slices} of {planned} slices are whole")
    return reasons


def averages(slices: Sequence[Slice]) -> list[float]:
    """The mean over the slices of the share above each limit's threshold; empty without slices."""
    if not slices:
        return []
    return [float(np.mean([float(one.share(at)) for one in slices])) for at in range(len(LIMITS))]


def over_limits(slices: Sequence[Slice]) -> list[str]:
    """A sentence for each limit that some slice does not hold, and for slices without reads."""
    reasons = []
    empty = sum(one.reads == 0 for one in slices)
    if empty:
        reasons.append(f"{empty} of {len(slices)} slices have no reads")
    for at, limit in enumerate(LIMITS):
        failed = [place for place, one in enumerate(slices) if one.reads and not one.holds(at)]
        if failed:
            worst = max(failed, key=lambda place: slices[place].share(at))
            reasons.append(
                f"{float(slices[worst].share(at)) * 100:.2f} % of the reads of slice {worst + 1} took"
                f" {limit.threshold_ms} ms or more, and it must be less than {limit.per_thousand / 10:g} %"
            )
    return reasons


def together(verdicts: Sequence[Verdict]) -> list[Slice]:
    """The slices of several drives as of one: those that every drive has whole."""
    whole = min((len(one.slices) for one in verdicts), default=0)
    return [
        Slice(
            reads=sum(one.slices[at].reads for one in verdicts),
            above=tuple(sum(one.slices[at].above[which] for one in verdicts) for which in range(len(LIMITS))),
            above_response=tuple(
                sum(one.slices[at].above_response[which] for one in verdicts) for which in range(len(LIMITS))
            ),
            failed=sum(one.slices[at].failed for one in verdicts),
        )
        for at in range(whole)
    ]
