"""A path to drives: whether it can be used here, and if not, everything that is wanting, with its remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from testdrive.doctor.finding import Finding, info, ok, problem


class Wanting(NamedTuple):
    """One thing that a path needs and does not have."""

    what: str
    remedy: str


def judged(
    code: str,
    path: str,
    usable: str,
    wanting: Sequence[Wanting],
    *,
    subject: str = "",
    is_chosen: bool = False,
) -> Finding:
    """The finding about a path.

    Parameters
    ----------
    code : str
        Of the finding.
    path : str
        How the path is named as a drive, and what it is for.
    usable : str
        What to say of it where nothing is wanting.
    wanting : sequence of Wanting
        What keeps it from being used.
    subject : str
        The drive that it leads to.
    is_chosen : bool
        Whether a drive was named by this path: runs by it are then not possible. A path that nobody asked
        for is merely not there.
    """
    if not wanting:
        return ok(code, usable, subject=subject)
    found = f"not usable: {'; '.join(each.what for each in wanting)}"
    remedies = list(dict.fromkeys(each.remedy for each in wanting))
    remedy = f"{'; '.join(remedies)} (docs/direct-paths.md)"
    if is_chosen:
        return problem(code, found, f"no run by {path}", remedy, subject=subject, prevents_runs=True)
    return info(
        code, found, f"runs by {path} are not possible; others are not affected", remedy, subject=subject
    )
