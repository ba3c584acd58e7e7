"""Which values a search tries: bisection, or steps down from an overload. Pure: a trial is a function."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

#: A search that needs more is of something that passes and fails at random.
TRIALS_MAX = 100

Method = Literal["bisection", "step-down"]


@dataclass(frozen=True)
class Trial:
    """One try: a value, whether it passed, and why not.

    ``confirming`` is true for a run from a settled drive that decides about a value which passed before.
    ``figures`` are what the trial measured, for people. A trial that could not pass any more may have been
    ended early, ``ended_after`` so many whole slices.
    """

    value: float
    passes: bool
    confirming: bool = False
    cannot_keep_up: bool = False
    reasons: list[str] = field(default_factory=list)
    recording: str | None = None
    ended_after: int | None = None
    figures: dict[str, Any] = field(default_factory=dict)


#: Tries a value; true for a confirming run.
Attempt = Callable[[float, bool], Trial]


@dataclass(frozen=True)
class Scale:
    """The values that may be tried, and how close two must be to be told apart no more.

    With ``whole`` values are whole numbers and ``resolution`` a difference; without, it is a ratio above 1
    and steps are of equal ratios.
    """

    lowest: float
    highest: float
    resolution: float
    whole: bool

    def clamp(self, value: float) -> float:
        """The value that may be tried nearest to one."""
        value = min(max(value, self.lowest), self.highest)
        return float(round(value)) if self.whole else value

    def middle(self, low: float, high: float) -> float | None:
        """What to try between a value that passed and one that failed; None where they are close enough."""
        if self.whole:
            return None if high - low <= self.resolution else float((int(low) + int(high)) // 2)
        return None if high / low <= self.resolution else math.sqrt(low * high)

    def below(self, value: float, steps: int) -> float | None:
        """The value so many resolutions below one that failed; None where there is none left to try."""
        if value <= self.lowest:
            return None
        # Rounding must not make a neighbour seem too far away.
        lower = (
            value - self.resolution * steps if self.whole else value / self.resolution**steps * (1 + 1e-12)
        )
        return self.clamp(lower)


@dataclass(frozen=True)
class Found:
    """What a search came to: the highest value that passed and was confirmed, or None, and every trial.

    Of one that was stopped before its end ``unfinished`` says why, and the value is None.
    """

    value: float | None
    history: list[Trial]
    method: Method
    unfinished: str | None = None

    @property
    def deciding(self) -> Trial:
        """The confirming trial of the result, which higher ones that failed may follow; else the last."""
        confirmed = (each for each in self.history if each.confirming and each.passes)
        return next((each for each in confirmed if each.value == self.value), self.history[-1])

    @property
    def not_confirmed(self) -> float | None:
        """The highest value that passed in a trial and failed in its confirming run; None where none did."""
        failed = (trial.value for trial in self.history if trial.confirming and not trial.passes)
        return max(failed, default=None)

    @property
    def is_monotone(self) -> bool:
        """Whether no value passed at or above one that failed.

        Trials alone always are so, as they are chosen: a value that was not confirmed is what is not.
        """
        failed = min((trial.value for trial in self.history if not trial.passes), default=math.inf)
        return all(trial.value < failed for trial in self.history if trial.passes)


def bisect(attempt: Attempt, scale: Scale, start: float) -> Found:
    """The highest value that passes, by bisection between one that passes and one that fails.

    From ``start`` on values are doubled until one fails, or halved until one passes. The result is confirmed;
    if it then fails, trials say too much of this drive, and the search goes on below it by confirming runs
    alone. Where a drive passes, fails and passes again as loads grow, the result is a value that passed with
    one that failed a resolution above it: nothing above a value that failed is tried, so that nobody knows.
    """
    history: list[Trial] = []
    low: float | None = None
    high: float | None = None
    while len(history) < TRIALS_MAX:
        value = _next(scale, low, high, start)
        if value is None:
            break
        trial = attempt(value, False)
        history.append(trial)
        low, high = (value, high) if trial.passes else (low, value)
    if low is not None and len(history) < TRIALS_MAX:
        history.append(attempt(low, True))
        if not history[-1].passes:
            low = _confirmed_below(attempt, scale, history)
        return Found(low, history, "bisection")
    return Found(None, history, "bisection")


def _confirmed_below(attempt: Attempt, scale: Scale, history: list[Trial]) -> float | None:
    """The highest value below the last one, which was not confirmed, that is: by steps that double, and back.

    What passes in a trial only is no bound: bisected with such, the search would come back to just below the
    value that failed, and go down by one resolution with each confirming run.
    """
    low: float | None = None
    high, steps = history[-1].value, 1
    while len(history) < TRIALS_MAX:
        value = scale.below(high, steps) if low is None else scale.middle(low, high)
        if value is None:
            break
        history.append(attempt(value, True))
        if history[-1].passes:
            low = value
        else:
            high, steps = value, 2 * steps
    return low


def _next(scale: Scale, low: float | None, high: float | None, start: float) -> float | None:
    if low is not None and high is not None:
        return scale.middle(low, high)
    if low is not None:
        return None if low >= scale.highest else scale.clamp(low * 2)
    if high is not None:
        return None if high <= scale.lowest else scale.clamp(high // 2 if scale.whole else high / 2)
    return scale.clamp(start)


def step_down(attempt: Attempt, scale: Scale, start: float, step: float) -> Found:
    """The first value that passes and is confirmed, from ``start`` down in steps, which are differences."""
    history: list[Trial] = []
    value = scale.clamp(start)
    while len(history) < TRIALS_MAX:
        history.append(attempt(value, False))
        if history[-1].passes:
            history.append(attempt(value, True))
            if history[-1].passes:
                return Found(value, history, "step-down")
        if value <= scale.lowest:
            break
        value = scale.clamp(value - step)
    return Found(None, history, "step-down")
