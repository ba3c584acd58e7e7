"""The verdict of a trial at one speed: every rule in every interval of the workload, by response time.

Response time counts from when an I/O was due at this speed. An interval has the I/Os that were due in it, by
the recording's own clock: the same ones at every speed. It is judged once all of them have gone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from testdrive.headroom.host import fell_behind
from testdrive.headroom.intervals import Window, called
from testdrive.headroom.trial import Trial
from testdrive.manifest import Manifest, Phase
from testdrive.qos.delivery import LimitedBy
from testdrive.qos.held import Held, broken, over_a_limit
from testdrive.qos.rules import Rule, parse_rules
from testdrive.qos.verdict import LOAD_PHASE, cut_short
from testdrive.recording import Recording
from testdrive.report import units

#: The figures' name by which a plan says that it is judged so.
FIGURES = "headroom"


@dataclass(frozen=True)
class Break:
    """Where a workload breaks first: an interval, and what of it in short."""

    start_ns: int
    end_ns: int
    what: str

    @property
    def text(self) -> str:
        """As a result line has it."""
        return f"interval {called(self.start_ns, self.end_ns)} {self.what}"


@dataclass(frozen=True)
class Verdict:
    """What a trial came to; ``reasons`` are sentences, none for a pass."""

    verdict: Literal["pass", "fail"]
    reasons: list[str]
    speed: float
    held: list[Held]
    #: From when to when each judged interval is, on the recording's clock, and its I/Os of any opcode.
    bounds_ns: list[tuple[int, int]]
    ios: list[int]
    breaks_first: Break | None
    cannot_keep_up: dict[str, Any] | None
    #: Who fell behind, of a trial that did.
    limited_by: LimitedBy | None = None

    def to_json_object(self) -> dict[str, Any]:
        """As ``summary.json`` has it, under ``headroom``."""
        first = self.breaks_first
        return {
            "verdict": self.verdict,
            "reasons": self.reasons,
            "speed": self.speed,
            "intervals": {
                "start_ns": [start_ns for start_ns, _ in self.bounds_ns],
                "end_ns": [end_ns for _, end_ns in self.bounds_ns],
                "ios": self.ios,
            },
            "breaks_first": None
            if first is None
            else {"start_ns": first.start_ns, "end_ns": first.end_ns, "what": first.what},
            "cannot_keep_up": self.cannot_keep_up,
            "limited_by": self.limited_by,
            "rules": [_told(one) for one in self.held],
        }


def _told(held: Held) -> dict[str, Any]:
    return held.to_json_object() | {
        "values": [None if value is None else float(value) for value in held.values],
        "service_values": [None if value is None else float(value) for value in held.service],
    }


def is_headroom(recording: Recording) -> bool:
    """Whether a recording is a trial that is judged so."""
    plan = recording.manifest.plan
    return plan is not None and FIGURES in plan.figures and {"rules", "opcodes", "to"} <= set(plan.parameters)


def judge(recording: Recording) -> Verdict:
    """The verdict of a trial, whatever became of it. Only for a recording that :func:`is_headroom`."""
    manifest = recording.manifest
    trial = _trial(recording)
    phase = _load_phase(manifest)
    complete = manifest.status == "complete"
    bounds_ns: list[tuple[int, int]] = []
    held: list[Held] = []
    ios: list[int] = []
    lag = None if phase is None else (phase.accounting or {}).get("cannot_keep_up")
    if phase is not None:
        gone = trial.window.pieces if complete else trial.pieces_gone(_gone_until_ns(recording, phase, lag))
        held, bounds_ns, ios = trial.judged(phase, gone, complete=complete)
    late = next((each for each in manifest.phases if (each.accounting or {}).get("cannot_keep_up")), None)
    behind = None if late is None else (late.accounting or {})["cannot_keep_up"]
    limit = None if late is None else fell_behind(manifest, late, held)
    reasons = cut_short(manifest.status, manifest.status_reason, behind, of_host=limit == "host")
    if manifest.counts.errors:
        reasons.append(f"{manifest.counts.errors:,} I/Os failed or were never answered")
    for one in held:
        reasons += broken(one, _names(bounds_ns))
    if complete and not held:
        reasons.append("nothing was judged")
    first = _breaks_first(held, bounds_ns)
    if first is None and lag:
        first = _late_in(trial, lag)
    verdict: Literal["pass", "fail"] = "fail" if reasons else "pass"
    return Verdict(verdict, reasons, trial.speed, held, bounds_ns, ios, first, behind, limit)


def broken_intervals(recording: Recording, intervals: Sequence[tuple[int, int]]) -> list[str]:
    """Why a trial that goes on cannot pass any more, of intervals whose time is over.

    ``intervals`` are the pieces of each. Those of their I/Os that are not recorded must have taken longer
    than :func:`proved_after_ns`: with them no interval could come nearer to holding a rule. Empty if the
    trial can still pass.
    """
    trial = _trial(recording)
    phase = _load_phase(recording.manifest)
    if phase is None:
        return []
    bounds_ns = [trial.window.bounds_ns(*each) for each in intervals]
    held = trial.held(phase, intervals)
    return [reason for one in held for reason in over_a_limit(one, _names(bounds_ns))]


def proved_after_ns(rules: Sequence[Rule]) -> int:
    """How long an I/O must have taken to leave a percentile, mean or share over its limit that is over it.

    The longest becomes no shorter by any.
    """
    limits = [math.ceil(rule.limit) for rule in rules if rule.kind in ("percentile", "mean")]
    return max([*limits, *(rule.threshold_ns for rule in rules)], default=0)


def _trial(recording: Recording) -> Trial:
    assert recording.manifest.plan is not None
    parameters = recording.manifest.plan.parameters
    window = Window(int(parameters.get("from", 0)), int(parameters["to"]), int(parameters["interval"]))
    rules = parse_rules(str(parameters["rules"]))
    return Trial(
        recording, window, float(parameters["speed"]), rules, [str(name) for name in parameters["opcodes"]]
    )


def _load_phase(manifest: Manifest) -> Phase | None:
    return next((phase for phase in manifest.phases if phase.name == LOAD_PHASE), None)


def _names(bounds_ns: Sequence[tuple[int, int]]) -> Callable[[int], str]:
    return lambda at: f"interval {called(*bounds_ns[at])}"


def _late_in(trial: Trial, behind: dict[str, Any]) -> Break:
    """The interval in which the I/O was due that was too late."""
    due_ns = int(behind["at_ns"]) - int(behind["lag_ns"])
    piece = min(trial.pieces_gone(due_ns), trial.window.pieces - 1)
    what = f"falls {behind['lag_ns'] / 1e9:.3g} s behind"
    return Break(*trial.window.bounds_ns(piece, piece + 1), what)


def _gone_until_ns(recording: Recording, phase: Phase, behind: dict[str, Any] | None) -> int:
    """Until when everything that was due has gone, from the phase's start."""
    if behind is not None:
        return int(behind["at_ns"]) - int(behind["lag_ns"])
    rows = recording.all_rows()
    rows = rows.filter(rows.phase == phase.index)
    last_ns = recording.execute(rows.aggregate(last_ns=rows.intended_ns.max()))["last_ns"]
    # Of no rows it is no number.
    return int(last_ns[0]) - phase.start_ns if len(last_ns) and np.isfinite(last_ns[0]) else 0


def _breaks_first(held: Sequence[Held], bounds_ns: Sequence[tuple[int, int]]) -> Break | None:
    """The earliest interval in which a rule does not hold, with the values of all that do not."""
    for at, (start_ns, end_ns) in enumerate(bounds_ns):
        over = [one for one in held if (value := one.values[at]) is not None and not one.rule.holds(value)]
        if over:
            several = len({one.opcode for one in held}) > 1
            return Break(start_ns, end_ns, ", ".join(_short(one, at, several=several) for one in over))
    return None


def _short(held: Held, at: int, *, several: bool) -> str:
    value = held.values[at]
    assert value is not None
    shown = units.percent(float(value)) if held.rule.is_share else units.time(float(value))
    whose = f" of {held.opcode}s" if several else ""
    return f"{held.rule.quantity}{whose} {shown}"
