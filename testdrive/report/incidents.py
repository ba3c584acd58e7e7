"""That a drive stopped answering, was reset or was lost: said first of all on every page and in the terminal.

No latency figure shows it, since what was lost is no part of any, and a page without it would tell of a
healthy drive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from testdrive.manifest import Warning_
from testdrive.metrics.incidents import INCIDENT_CODES
from testdrive.report.alerts import alert_box
from testdrive.report.html import Markup

if TYPE_CHECKING:
    from testdrive.report.subject import Subject

#: What is said above them.
TITLE = "The drive stopped answering, was reset, or was lost"


def is_incident(warning: Warning_) -> bool:
    """Whether a warning is one of these."""
    return warning.code in INCIDENT_CODES


def told_incidents(summaries: Iterable[tuple[str, Mapping[str, Any]]]) -> list[tuple[str, str]]:
    """What happened to the drives of some runs: names and sentences.

    Parameters
    ----------
    summaries
        Name and summary of each.
    """
    found = []
    for name, summary in summaries:
        warnings = [Warning_.model_validate(each) for each in summary.get("warnings") or []]
        told = [warning for warning in warnings if is_incident(warning)]
        # What they have in common is said once.
        last = {warning.remedy: at for at, warning in enumerate(told)}
        for at, warning in enumerate(told):
            parts = [warning.message, warning.remedy if last[warning.remedy] == at else ""]
            found.append((name, " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts if part)))
    return found


def incidents_box(subjects: Sequence[Subject]) -> Markup | None:
    """Return what happened to the drives of a page, to stand above every figure; None where nothing did."""
    items = told_incidents((one.name, one.summary) for one in subjects)
    if not items:
        return None
    return alert_box(TITLE, items, alone=len(subjects) == 1, label="The drive did not answer")
