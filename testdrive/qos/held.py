"""What a rule is held to: its value in each interval of a trial, and what is said of one that is broken."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from testdrive.metrics.scans.distribution import Distribution, rank
from testdrive.qos.rules import Rule

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
    def is_served(self) -> bool | None:
        """Whether the drive served every interval within the limit; None where none claims a value."""
        told = [value for value in self.service if value is not None]
        return all(self.rule.holds(value) for value in told) if told else None

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
    return reasons + over_a_limit(held, called)


def over_a_limit(held: Held, called: Callable[[int], str] = _numbered) -> list[str]:
    """A sentence for the worst interval that is over the limit; none where every one that claims holds."""
    rule, ios = held.rule, f"{held.opcode}s"
    reasons = []
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
