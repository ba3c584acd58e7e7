"""The search of the highest rate of I/Os at which a user's rules on latencies hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from testdrive.errors import UsageError
from testdrive.plans import BoundPlan
from testdrive.qos.plan import SECOND_NS, lowest_claimed_rate
from testdrive.qos.rules import parse_rules
from testdrive.qos.verdict import LOAD_PHASE, broken_intervals
from testdrive.running import Result
from testdrive.search.bisection import Found, Scale, Trial, bisect
from testdrive.search.early import Watch, equal
from testdrive.search.results import failing_trial, is_of_host, trials_of
from testdrive.search.trials import Drive, confirming_length, lengths

#: Where a search begins without a word from the user.
START_IOPS = 10_000.0


class RateDrive(Drive):
    """One drive through the search of its rate."""

    key = "rate_iops"
    sets, instead = "rate", "say with from, lowest and highest which are tried"
    settled_by = "random"

    @staticmethod
    def shown(value: float) -> str:
        """A rate as people write it."""
        return f"{value:,.0f} IOPS" if value >= 100 else f"{value:.4g} IOPS"

    def load(self, value: float, confirming: bool) -> dict[str, Any]:
        """The plan's parameters for a rate."""
        length = confirming_length(self.bound().values, confirming)
        return {"rate": value, "seed": self.seed(confirming), **length}

    @property
    def settles(self) -> bool:
        """Reads alone leave nothing behind that would have to be settled."""
        return super().settles or self.bound().values["read-share"] == 1

    def settle(self) -> Path | None:
        """Bring a real drive back from the trials before it; reads alone leave nothing behind."""
        return super().settle() if self.bound().values["read-share"] < 1 else self.state

    def scale(self) -> tuple[Scale, float]:
        """The rates at which the rules can be claimed, up to the highest that may be tried."""
        values = self.bound().values
        claimed, rule = lowest_claimed_rate(values)
        lowest = values["lowest"] or claimed
        if lowest < claimed and rule is not None:
            raise UsageError(f"lowest is {lowest:g}; {self._claimed(claimed)}")
        if lowest > values["highest"]:
            if rule is not None and values["lowest"] is None:
                raise UsageError(f"highest is {values['highest']:g}; {self._claimed(claimed)}")
            raise UsageError(f"lowest is {lowest:g} and highest {values['highest']:g}; give a lower lowest")
        start = values["from"] or min(max(START_IOPS, lowest), values["highest"])
        if not lowest <= start <= values["highest"]:
            raise UsageError(
                f"from is {start:g}; give a rate from {lowest:g} (lowest) to {values['highest']:g} (highest)"
            )
        return Scale(lowest, values["highest"], 1 + values["resolution"], whole=False), start

    def find(self, scale: Scale, start: float) -> Found:
        """Bisect."""
        return bisect(self.attempt, scale, start)

    def judged(self, value: float, confirming: bool, name: str, result: Result) -> Trial:
        """What a run came to: whether every rule held in every interval."""
        qos = (result.summary or {}).get("qos") or {}
        passes = qos.get("verdict") == "pass"
        return Trial(
            value=value,
            passes=passes,
            confirming=confirming,
            cannot_keep_up=bool(qos.get("cannot_keep_up")),
            reasons=[] if passes else list(qos.get("reasons") or ["nothing was judged"]),
            recording=name,
            figures={
                "rules": qos.get("rules") or [],
                "intervals": qos.get("intervals"),
                "limited_by": qos.get("limited_by"),
            },
        )

    def watch(self, bound: BoundPlan, recording: Path) -> Watch | None:
        """A trial of several intervals ends with the first in which a rule does not hold."""
        values = bound.values
        intervals = values["for"] // values["interval"]
        if not values["early-end"] or intervals < 2:
            return None
        ends_ns = equal(values["interval"], intervals)
        return Watch(recording, LOAD_PHASE, ends_ns, broken_intervals, called="interval")

    def facts(self, found: Found) -> dict[str, Any]:
        """The rules, the failing rate next above, whether the host failed it, and what was asked for."""
        values = self.bound().values
        failing = failing_trial(found)
        return {
            "failing_rate_iops": None if failing is None else failing.value,
            "host_limited": is_of_host(failing),
            "rules": values["rules"],
            "opcodes": values["opcodes"],
            "arrivals": values["arrivals"],
            "interval_ns": values["interval"],
            "at_least_iops": values["at-least"],
            **lengths(values),
        }

    def told(self, found: Found) -> str:
        """The result in a line or two."""
        values = self.bound().values
        failing = failing_trial(found)
        parts = [f"intervals of {values['interval'] / SECOND_NS:,g} s; {trials_of(found)}"]
        if found.value is not None and failing is not None and is_of_host(failing):
            parts.insert(0, f"at {self.shown(failing.value)} this host was the limit, not the drive")
        if found.value is None and failing is not None and is_of_host(failing):
            said = f"nothing is known of it; even {self.shown(failing.value)} are too much for this host"
        elif found.value is None:
            said = self._none_holds(min(trial.value for trial in found.history))
        else:
            said = f"{self.shown(found.value)} hold {values['rules']}"
            above = (
                "the highest that may be tried" if failing is None else f"{self.shown(failing.value)} do not"
            )
            parts.insert(0, above)
        if found.value is not None and self.fails(found):
            parts.append(f"fail: it must be at least {self.shown(values['at-least'])}")
        return "; ".join([said, *parts])

    def _none_holds(self, tried: float) -> str:
        """That no rate holds, with the lowest that was tried, and why there is none below it to try."""
        values = self.bound().values
        claimed, rule = lowest_claimed_rate(values)
        said = f"no rate holds {values['rules']}, not even {self.shown(tried)}"
        if rule is not None and tried <= claimed * (1 + 1e-9):
            said += f", below which intervals are too short to claim {rule.quantity} (give longer ones)"
        return said

    def fails(self, found: Found) -> bool:
        """Whether no rate holds, or one that is too low."""
        wanted = self.bound().values["at-least"]
        return found.value is None or (wanted is not None and found.value < wanted)

    def _claimed(self, claimed: float) -> str:
        values = self.bound().values
        worst = max(parse_rules(values["rules"]), key=lambda rule: rule.samples_min)
        return (
            f"{worst.quantity} needs {worst.samples_min:,} judged I/Os in every interval to be claimed,"
            f" {self.shown(claimed)} with intervals of {values['interval'] / SECOND_NS:g} s: give a longer"
            " interval"
        )
