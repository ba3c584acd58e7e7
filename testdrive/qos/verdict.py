"""The verdict of a trial: every rule in every interval, by the response time of each judged opcode.

Response time counts from when an I/O was due, so that one which waited because the drive was busy is as late
as a client would find it. An interval has the I/Os that completed in it. I/Os that were due and did not go
before the trial's end count in its last interval as longer than any limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from testdrive.manifest import OPCODES, Phase
from testdrive.metrics.scans.distribution import Distribution
from testdrive.qos.delivery import HOST_LATE, LimitedBy, limited_by
from testdrive.qos.held import Held, broken, value_of
from testdrive.qos.rules import Rule, parse_rules
from testdrive.qos.times import times
from testdrive.recording import Recording
from testdrive.segments import RESPONSE, SERVICE

#: The figures' name by which a plan says that it is judged so.
FIGURES = "qos"
#: The phase that is judged.
LOAD_PHASE = "load"


@dataclass(frozen=True)
class Verdict:
    """What a trial came to; ``reasons`` are sentences, none for a pass.

    ``limited_by`` says who made a trial late that fails for its lateness.
    """

    verdict: Literal["pass", "fail"]
    reasons: list[str]
    held: list[Held]
    intervals: int
    intervals_planned: int
    interval_ns: int
    cannot_keep_up: dict[str, Any] | None
    limited_by: LimitedBy | None = None

    def to_json_object(self) -> dict[str, Any]:
        """As ``summary.json`` has it, under ``qos``."""
        return {
            "verdict": self.verdict,
            "reasons": self.reasons,
            "interval_ns": self.interval_ns,
            "intervals": self.intervals,
            "intervals_planned": self.intervals_planned,
            "cannot_keep_up": self.cannot_keep_up,
            "limited_by": self.limited_by,
            "rules": [one.to_json_object() for one in self.held],
        }


def is_qos(recording: Recording) -> bool:
    """Whether a recording is of a plan that is judged so."""
    plan = recording.manifest.plan
    return plan is not None and FIGURES in plan.figures and "rules" in plan.parameters


def judge(recording: Recording) -> Verdict:
    """The verdict of a trial, whatever became of it. Only for a recording that :func:`is_qos`."""
    manifest = recording.manifest
    assert manifest.plan is not None
    parameters = manifest.plan.parameters
    interval_ns = int(parameters["interval"])
    phase = next((phase for phase in manifest.phases if phase.name == LOAD_PHASE), None)
    planned = max(int(parameters["for"]) // interval_ns, 1)
    whole = 0
    if phase is not None:
        whole = min(max((phase.end_ns or phase.start_ns) - phase.start_ns, 0) // interval_ns, planned)
    held: list[Held] = []
    if phase is not None and whole:
        rules = parse_rules(str(parameters["rules"]))
        held = _held(recording, phase, rules, [str(name) for name in parameters["opcodes"]], whole, planned)
    late = next((each for each in manifest.phases if (each.accounting or {}).get("cannot_keep_up")), None)
    behind = None if late is None else (late.accounting or {})["cannot_keep_up"]
    limit = limited_by(recording, late or phase, held, behind)
    reasons = [HOST_LATE] if limit == "host" and behind is None else []
    reasons += cut_short(manifest.status, manifest.status_reason, behind, of_host=limit == "host")
    if whole < planned:
        reasons.append(f"{whole} of {planned} intervals are whole")
    if manifest.counts.errors:
        reasons.append(f"{manifest.counts.errors:,} I/Os failed or were never answered")
    reasons += [reason for one in held for reason in broken(one)]
    return Verdict("fail" if reasons else "pass", reasons, held, whole, planned, interval_ns, behind, limit)


def broken_intervals(recording: Recording, whole: int) -> list[str]:
    """Why a trial that goes on cannot pass any more, of its first whole intervals; empty if it still can."""
    assert recording.manifest.plan is not None
    parameters = recording.manifest.plan.parameters
    phase = next((phase for phase in recording.manifest.phases if phase.name == LOAD_PHASE), None)
    if phase is None:
        return []
    opcodes = [str(name) for name in parameters["opcodes"]]
    # One more is planned: what completed later belongs to none of these.
    held = _held(recording, phase, parse_rules(str(parameters["rules"])), opcodes, whole, whole + 1)
    return [reason for one in held for reason in broken(one)]


def cut_short(
    status: str, reason: str | None, behind: dict[str, Any] | None, *, of_host: bool = False
) -> list[str]:
    """A sentence where a trial ended before its time; ``of_host`` where it was the host that fell behind."""
    if behind is not None:
        who = "this host cannot keep up, which says nothing about the drive"
        return [
            f"{who if of_host else 'the drive cannot keep up'}: {behind['lag_ns'] / 1e9:.1f} s behind after"
            f" {behind['at_ns'] / 1e9:.1f} s"
        ]
    return [] if status == "complete" else [f"the run is not complete: {reason or status}"]


def _held(
    recording: Recording,
    phase: Phase,
    rules: Sequence[Rule],
    opcodes: Sequence[str],
    whole: int,
    planned: int,
) -> list[Held]:
    interval_ns = int(recording.manifest.plan.parameters["interval"]) if recording.manifest.plan else 1
    found = times(recording, phase, interval_ns)
    place = np.maximum(found["place"].astype(np.int64), 0)
    if whole == planned:
        # What completed after the end counts in the last interval, so that no stall hides behind it.
        place = np.minimum(place, whole - 1)
    not_issued = int((phase.accounting or {}).get("arrivals_not_issued") or 0) if whole == planned else 0

    def taken(at: int, opcode: str, quantity: int) -> Distribution:
        mine = (place == at) & (found["opcode"] == OPCODES.index(opcode)) & (found["quantity"] == quantity)
        order = np.argsort(found["value"][mine])
        return Distribution(*(found[key][mine][order].astype(np.int64) for key in ("value", "ios", "total")))

    held = []
    for opcode in opcodes:
        response = [taken(at, opcode, RESPONSE) for at in range(whole)]
        service = [taken(at, opcode, SERVICE) for at in range(whole)]
        late = [not_issued if at == whole - 1 else 0 for at in range(whole)]
        for rule in rules:
            held.append(
                Held(
                    rule,
                    opcode,
                    [value_of(rule, one, more) for one, more in zip(response, late, strict=True)],
                    [value_of(rule, one) for one in service],
                    [one.n for one in response],
                    [one.max for one in response],
                )
            )
    return held
