"""The verdict of a trial: every rule in every interval, by the response time of each judged opcode.

Response time counts from when an I/O was due, so that one which waited because the drive was busy is as late
as a client would find it. An interval has the I/Os that completed in it. I/Os that were due and did not go
before the trial's end count in its last interval as longer than any limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import ibis
import numpy as np

from testdrive.manifest import OPCODES, Phase
from testdrive.metrics.scans.distribution import Distribution, rank
from testdrive.qos.rules import Rule, parse_rules
from testdrive.recording import Recording
from testdrive.segments import RESPONSE, SERVICE

#: The figures' name by which a plan says that it is judged so.
FIGURES = "qos"
#: The phase that is judged.
LOAD_PHASE = "load"
_MS = 1e6


@dataclass(frozen=True)
class Held:
    """One rule on one opcode: its value in each interval, by response and by service time.

    Values are nanoseconds or shares; None where the interval has too few I/Os to claim one, infinite where
    it is among I/Os that did not go.
    """

    rule: Rule
    opcode: str
    values: list[Fraction | float | None]
    service: list[Fraction | float | None]
    samples: list[int]
    #: The longest response time of each interval.
    longest_ns: list[int | None]

    @property
    def holds(self) -> bool:
        """Whether every interval has a value within the limit."""
        return bool(self.values) and all(
            value is not None and self.rule.holds(value) for value in self.values
        )

    @property
    def worst(self) -> tuple[float, bool] | None:
        """The greatest value of any interval, and whether it is more than that.

        Of an infinite value that is the longest that was seen. None where no interval claims a value.
        """
        told = [(value, at) for at, value in enumerate(self.values) if value is not None]
        if not told:
            return None
        value, at = max(told)
        return (float(self.longest_ns[at] or 0), True) if math.isinf(value) else (float(value), False)

    def to_json_object(self) -> dict[str, Any]:
        """As ``summary.json`` has it, in ``qos.rules``."""
        worst = self.worst
        service = max((value for value in self.service if value is not None), default=None)
        return {
            "rule": self.rule.text,
            "opcode": self.opcode,
            "unit": "share" if self.rule.is_share else "ns",
            "limit": float(self.rule.limit),
            "holds": self.holds,
            "worst": None if worst is None else worst[0],
            "more": worst is not None and worst[1],
            "worst_service": None if service is None else float(service),
            "samples_min": min(self.samples, default=0),
        }


@dataclass(frozen=True)
class Verdict:
    """What a trial came to; ``reasons`` are sentences, none for a pass."""

    verdict: Literal["pass", "fail"]
    reasons: list[str]
    held: list[Held]
    intervals: int
    intervals_planned: int
    interval_ns: int
    cannot_keep_up: dict[str, Any] | None

    def to_json_object(self) -> dict[str, Any]:
        """As ``summary.json`` has it, under ``qos``."""
        return {
            "verdict": self.verdict,
            "reasons": self.reasons,
            "interval_ns": self.interval_ns,
            "intervals": self.intervals,
            "intervals_planned": self.intervals_planned,
            "cannot_keep_up": self.cannot_keep_up,
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
    behind = next(
        (found for each in manifest.phases if (found := (each.accounting or {}).get("cannot_keep_up"))), None
    )
    reasons = cut_short(manifest.status, manifest.status_reason, behind)
    if whole < planned:
        reasons.append(f"{whole} of {planned} intervals are whole")
    if manifest.counts.errors:
        reasons.append(f"{manifest.counts.errors:,} I/Os failed or were never answered")
    reasons += [reason for one in held for reason in broken(one)]
    return Verdict("fail" if reasons else "pass", reasons, held, whole, planned, interval_ns, behind)


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


def cut_short(status: str, reason: str | None, behind: dict[str, Any] | None) -> list[str]:
    """A sentence where a trial ended before its time."""
    if behind is not None:
        return [
            f"the drive cannot keep up: {behind['lag_ns'] / 1e9:.1f} s behind after"
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
    kept = recording.manifest.kept is not None
    found = recording.execute((_of_histograms if kept else _of_rows)(recording, phase, interval_ns))
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


def value_of(rule: Rule, taken: Distribution, not_issued: int = 0) -> Fraction | float | None:
    """What a rule is held to, of one interval; None with fewer I/Os than it needs.

    Parameters
    ----------
    rule : Rule
        The percentile is the nearest rank: the value of rank ``ceil(p n)``.
    taken : Distribution
        The times of the I/Os that completed.
    not_issued : int
        How many more were due and did not go: longer than any limit for percentiles and shares. They are
        not in the mean and the maximum, which those that waited right before them show.
    """
    if taken.n < rule.samples_min:
        return None
    if rule.kind == "percentile":
        at = rank(rule.millionths, taken.n + not_issued)
        if at > taken.n:
            return math.inf
        return float(taken.value[np.searchsorted(np.cumsum(taken.count), at)])
    if rule.kind == "mean":
        return Fraction(taken.sum, taken.n)
    if rule.kind == "max":
        return float(taken.value[-1])
    reached = int(taken.count[taken.value >= rule.threshold_ns].sum())
    return Fraction(reached + not_issued, taken.n + not_issued)


def _numbered(at: int) -> str:
    return f"interval {at + 1}"


def broken(held: Held, called: Callable[[int], str] = _numbered) -> list[str]:
    """A sentence if there are intervals that claim nothing, and one for the worst that is over the limit.

    ``called`` says what the interval of an index is called.
    """
    rule, ios = held.rule, f"{held.opcode}s"
    reasons = []
    scarce = [at for at, value in enumerate(held.values) if value is None]
    if scarce:
        at = min(scarce, key=lambda place: held.samples[place])
        reasons.append(
            f"{rule.quantity} cannot be claimed: {called(at)} has {held.samples[at]:,} {ios}, and it"
            f" needs {rule.samples_min:,}; give a longer interval"
        )
    over = [
        (value, at) for at, value in enumerate(held.values) if value is not None and not rule.holds(value)
    ]
    if over:
        value, at = max(over)
        limit = rule.text.partition("<")[2].lstrip("= ")
        must = f"and it must be {'at most' if rule.inclusive else 'below'} {limit}"
        where = f"the {ios} of {called(at)}"
        if rule.is_share:
            took = f"took {rule.threshold_ns / _MS:g} ms or more"
            reasons.append(f"{float(value) * 100:.3g} % of {where} {took}, {must}")
        elif math.isinf(value):
            seen = (held.longest_ns[at] or 0) / _MS
            reasons.append(
                f"{rule.quantity} of {where} is more than the {seen:.4g} ms of those that went, {must}"
            )
        else:
            reasons.append(f"{rule.quantity} of {where} is {float(value) / _MS:.4g} ms, {must}")
    return reasons


def _of_rows(recording: Recording, phase: Phase, interval_ns: int) -> Any:
    rows = recording.all_rows()
    rows = rows.filter((rows.phase == phase.index) & (rows.status == 0) & (rows.latency_ns >= 0))
    end_ns = rows.submit_ns + rows.latency_ns
    place = (end_ns - phase.start_ns) // interval_ns
    parts = []
    for quantity, value in (
        (SERVICE, rows.latency_ns),
        (RESPONSE, end_ns - ibis.least(rows.intended_ns, rows.submit_ns)),
    ):
        grouped = rows.group_by(place=place, opcode=rows.opcode, value=value)
        counted = grouped.aggregate(ios=rows.count(), total=value.sum().cast("int64"))
        parts.append(counted.mutate(quantity=ibis.literal(quantity, "int64")))
    return parts[0].union(parts[1])


def _of_histograms(recording: Recording, phase: Phase, interval_ns: int) -> Any:
    entries = recording.intervals()
    entries = entries.filter((entries.phase == phase.index) & (entries.latency_ceiling_ns >= 0))
    keys = ["start_ns", "opcode", "stream"]
    service = entries.filter(entries.quantity == SERVICE)
    response = entries.filter(entries.quantity == RESPONSE)
    # Seconds in which no I/O was late have no histogram of response times, which are the service times then.
    on_time = service.anti_join(response.select(*keys).distinct(), keys)
    parts = [
        part.select("start_ns", "opcode", "max_ns", "count", "sum_ns").mutate(
            quantity=ibis.literal(quantity, "int64")
        )
        for quantity, part in ((SERVICE, service), (RESPONSE, response), (RESPONSE, on_time))
    ]
    table = parts[0].union(parts[1]).union(parts[2])
    # The longest of a bucket stands for all in it: what holds for it holds for them.
    return table.group_by(
        "opcode", "quantity", place=(table.start_ns - phase.start_ns) // interval_ns, value=table.max_ns
    ).aggregate(ios=table["count"].sum().cast("int64"), total=table.sum_ns.sum().cast("int64"))
