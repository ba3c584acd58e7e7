"""What the trials of a search come to: how many they are, which failed above the result; whose fault."""

from __future__ import annotations

import math

from testdrive.search.bisection import Found, Trial


def failing_above(found: Found) -> float | None:
    """The lowest load that failed above the result; None where none did, or nothing was found.

    Of a search that was stopped, the lowest that failed at all.
    """
    if found.value is None and found.unfinished is None:
        return None
    result = found.value or 0.0
    above = min(
        (trial.value for trial in found.history if not trial.passes and trial.value > result),
        default=math.inf,
    )
    return None if math.isinf(above) else above


def trials_of(found: Found) -> str:
    """How many trials a search took."""
    return "1 trial" if len(found.history) == 1 else f"{len(found.history)} trials"


def failing_trial(found: Found) -> Trial | None:
    """The trial of the lowest load that failed above the result, or of the lowest of all without one."""
    failed = [trial for trial in found.history if not trial.passes]
    if found.value is not None:
        above = failing_above(found)
        failed = [trial for trial in failed if trial.value == above]
    return min(failed, key=lambda trial: trial.value, default=None)


def is_of_host(trial: Trial | None) -> bool:
    """Whether a trial failed because this host could not send its load in time."""
    return trial is not None and trial.figures.get("limited_by") == "host"
