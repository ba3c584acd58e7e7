"""What a check found: how it is, what that means for results, and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["ok", "info", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes
    ----------
    code : str
        Which check, by a name that stays (docs/doctor.md).
    severity : str
        ``ok``; ``info``: something cannot be used here that no run needs unless it asks for it; ``warning``:
        figures are less valid than they could be; ``problem``: figures would be wrong, or there can be none.
    found : str
        How it is.
    meaning : str
        What that means for results; empty where it is as it should be.
    remedy : str
        The command or the step that mends it; empty where there is nothing to mend.
    subject : str
        The drive or the directory that it is about; empty for the host.
    prevents_runs : bool
        Whether no run is possible as it is.
    """

    code: str
    severity: Severity
    found: str
    meaning: str = ""
    remedy: str = ""
    subject: str = ""
    prevents_runs: bool = False

    def to_json_object(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return asdict(self)


def ok(code: str, found: str, *, subject: str = "") -> Finding:
    """It is as it should be."""
    return Finding(code, "ok", found, subject=subject)


def info(code: str, found: str, meaning: str, remedy: str, *, subject: str = "") -> Finding:
    """Something cannot be used here that no run needs unless it asks for it."""
    return Finding(code, "info", found, meaning, remedy, subject)


def warning(code: str, found: str, meaning: str, remedy: str, *, subject: str = "") -> Finding:
    """Figures are less valid than they could be."""
    return Finding(code, "warning", found, meaning, remedy, subject)


def problem(
    code: str, found: str, meaning: str, remedy: str, *, subject: str = "", prevents_runs: bool = False
) -> Finding:
    """Figures would be wrong, or there can be none."""
    return Finding(code, "problem", found, meaning, remedy, subject, prevents_runs)
