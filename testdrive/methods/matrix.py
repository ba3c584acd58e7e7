"""Mixes by block sizes: what the matrices of the PTS-style tests have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from testdrive.methods.rounds import Cell, Found, Group, cell_of, group_of, notes_of
from testdrive.methods.runs import Run
from testdrive.report import units

Mix = tuple[float, int]
"""Share of reads, and block size in bytes."""


@dataclass(frozen=True)
class Matrices:
    """The matrix of each drive that had a round.

    Attributes
    ----------
    found
        The runs with their groups of rounds.
    cells, refused
        Of each run: what each combination came to, and why others have no value.
    sizes
        Every block size of any drive, the smallest first.
    notes
        What a reader must know before the values are compared, of the runs without a round too.
    """

    found: Found
    cells: dict[Run, dict[Mix, Cell]]
    refused: dict[Run, dict[Mix, str]]
    sizes: list[int]
    notes: list[str]


def matrices_of(runs: Sequence[Run], name: str) -> Matrices:
    """The matrices of the group of rounds of this name."""
    groups = {run: group_of(run, name) for run in runs}
    found = [(run, group) for run, group in groups.items() if group is not None]
    cells = {run: cells_of(run, group) for run, group in found}
    refused = {run: _refusals(run) for run, _ in found}
    notes = [note for run, group in groups.items() for note in notes_of(run, group, "")]
    notes += [note for run, mine in refused.items() for note in _refusal_notes(run, mine)]
    return Matrices(found, cells, refused, _sizes_of(cells, refused), notes)


def mix_name(read_share: float) -> str:
    """``65/35``: percent of reads and of writes."""
    reads = round(read_share * 100)
    return f"{reads}/{100 - reads}"


def cells_of(run: Run, group: Group) -> dict[Mix, Cell]:
    """What each combination came to in the window's rounds."""
    cells = {}
    for name, phases in group.phases.items():
        settings = phases[0].settings or {}
        mix = (float(settings["read_share"]), int(settings["block_bytes"]))
        cells[mix] = cell_of(run, group.window(name))
    return cells


def _refusals(run: Run) -> dict[Mix, str]:
    """The combinations that the drive does not support, with why."""
    plan = run.recording.manifest.plan
    return {
        (float(one.settings["read_share"]), int(one.settings["block_bytes"])): one.reason
        for one in (plan.left_out if plan else [])
    }


NOT_SUPPORTED = "not supported"


def _refusal_notes(run: Run, refused: Mapping[Mix, str]) -> list[str]:
    """What a drive does not support: a sentence for each block size."""
    reasons = {size: reason for (_, size), reason in sorted(refused.items())}
    return [
        f"{run.subject.label} was not measured with {units.block(size)}: {reason}."
        for size, reason in reasons.items()
    ]


def absent(refused: Mapping[Mix, str], mix: Mix) -> str:
    """Why a combination has no value."""
    return NOT_SUPPORTED if mix in refused else "not reached"


def _sizes_of(*found: Mapping[Run, Mapping[Mix, object]]) -> list[int]:
    """Every block size of any drive, the smallest first."""
    return sorted({size for each in found for cells in each.values() for _, size in cells})
