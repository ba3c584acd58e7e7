"""The search of the highest ACT rating that a drive passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from testdrive.act.verdict import LOAD_PHASE, broken_slices
from testdrive.errors import UsageError
from testdrive.plans import BoundPlan
from testdrive.running import Result
from testdrive.search.bisection import Found, Scale, Trial, bisect, step_down
from testdrive.search.early import Watch, equal
from testdrive.search.results import failing_trial, is_of_host, trials_of
from testdrive.search.trials import Drive, confirming_length, lengths

#: Where a search begins without a word from the user.
START = {"bisection": 32, "step-down": 150}


class RatingDrive(Drive):
    """One drive through the search of its rating."""

    key = "rating"
    sets, instead = "rating", "say with from and highest which are tried, or run the plan act at one rating"
    settled_by = "salt"

    @staticmethod
    def shown(value: float) -> str:
        """A rating as people write it."""
        return f"{value:g}x"

    def load(self, value: float, confirming: bool) -> dict[str, Any]:
        """The plan's parameters for a rating."""
        length = confirming_length(self.bound().values, confirming)
        return {"rating": int(value), "seed": self.seed(confirming), **length}

    def judged(self, value: float, confirming: bool, name: str, result: Result) -> Trial:
        """What a run came to: the verdict of the original's rules."""
        act = (result.summary or {}).get("act") or {}
        passes = act.get("verdict") == "pass"
        return Trial(
            value=float(value),
            passes=passes,
            confirming=confirming,
            cannot_keep_up=bool(act.get("cannot_keep_up") or act.get("not_delivered")),
            reasons=[] if passes else list(act.get("reasons") or ["nothing was judged"]),
            recording=name,
            figures={
                key: each
                for key, each in act.items()
                if key.startswith(("above_", "response_", "limited_by"))
            },
        )

    def scale(self) -> tuple[Scale, float]:
        """The ratings from 1 to the highest that may be tried."""
        values = self.bound().values
        start = values["from"] or min(START[values["method"]], max(values["highest"], 1))
        scale = Scale(1, values["highest"], values["resolution"], whole=True)
        if not scale.lowest <= start <= scale.highest:
            raise UsageError(f"from is {start}; give a rating from 1 to highest, which is {scale.highest:g}")
        if scale.resolution < 1 or values["step"] < 1:
            raise UsageError("resolution and step are ratings; give at least 1")
        return scale, start

    def find(self, scale: Scale, start: float) -> Found:
        """Bisect, or step down from an overload."""
        values = self.bound().values
        if values["method"] == "bisection":
            return bisect(self.attempt, scale, start)
        return step_down(self.attempt, scale, start, values["step"])

    def watch(self, bound: BoundPlan, recording: Path) -> Watch | None:
        """A trial of several slices ends with the first that is over a limit."""
        values = bound.values
        slices = values["for"] // values["slice"]
        if not values["early-end"] or slices < 2:
            return None
        return Watch(recording, LOAD_PHASE, equal(values["slice"], slices), broken_slices)

    def facts(self, found: Found) -> dict[str, Any]:
        """The failing rating next above, whether the host failed it, the slices, and how long trials are."""
        values = self.bound().values
        failing = failing_trial(found)
        return {
            "failing_rating": None if failing is None else failing.value,
            "host_limited": is_of_host(failing),
            "highest": values["highest"],
            "slice_ns": values["slice"],
            **lengths(values),
        }

    def told(self, found: Found) -> str:
        """The result in a line: the rating, what failed above it, and how closely it was searched."""
        values = self.bound().values
        failing = failing_trial(found)
        if found.value is None:
            lowest = min(trial.value for trial in found.history)
            parts = [f"no rating passes; the lowest tried is {self.shown(lowest)}"]
        else:
            parts = [f"rating {self.shown(found.value)}"]
            if failing is not None:
                parts.append(f"{self.shown(failing.value)} fails")
            elif found.value >= values["highest"]:
                parts.append("nothing failed above, and it is the highest that may be tried")
            else:
                parts.append("nothing failed above, so that it may be higher: begin with a higher from")
        if failing is not None and is_of_host(failing):
            parts.append(f"at {self.shown(failing.value)} this host was the limit, not the drive")
        parts.append(f"slices of {values['slice'] / 1e9:,g} s")
        by = f"resolution {values['resolution']}"
        if values["method"] == "step-down":
            by = f"in steps of {values['step']}"
        parts.append(f"{trials_of(found)}, {by}")
        return "; ".join(parts)
