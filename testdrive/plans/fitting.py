"""Fitting a bound plan to a drive: phases that it does not support are left out, and the recording says why.

Only phases with ``when_supported`` are. Any other that does not suit the drive is refused by the engine: a
plan that names a block size without reservation is not run with less than it asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from testdrive.errors import UsageError
from testdrive.job import BlockRange, Phase, RoundsPhase, SyntheticPhase
from testdrive.manifest import Drive, LeftOut
from testdrive.plans.binding import BoundPlan


def depends_on_drive(bound: BoundPlan) -> bool:
    """Whether the drive has to be known before the phases are."""
    return any(phase.when_supported for phase in _single(bound.phases) if isinstance(phase, SyntheticPhase))


def fitted(bound: BoundPlan, drive: Drive) -> BoundPlan:
    """The plan for this drive: without the conditional phases whose I/Os are no whole logical blocks of it.

    Phases within rounds are left out as others are, and with them what was tracked of them.

    Raises
    ------
    UsageError
        No phase is left that measures anything, or rounds have nothing left to track.
    """
    left_out: list[LeftOut] = []
    phases = _supported(bound, bound.phases, drive, left_out)
    if left_out and all(phase.kind == "prepare" for phase in phases):
        raise UsageError(
            f"{drive.uri} supports no phase of the plan {bound.plan.name!r}: {left_out[0].name} is"
            f" {left_out[0].reason}; choose larger blocks in a copy of the plan"
        )
    return replace(bound, phases=phases, left_out=(*bound.left_out, *left_out))


def _single(phases: Iterable[Any]) -> Iterable[Any]:
    for phase in phases:
        yield from phase.phases if isinstance(phase, RoundsPhase) else (phase,)


def _supported(bound: BoundPlan, phases: Sequence[Any], drive: Drive, left_out: list[LeftOut]) -> list[Phase]:
    kept: list[Phase] = []
    for phase in phases:
        if isinstance(phase, RoundsPhase):
            kept += _supported_rounds(bound, phase, drive, left_out)
            continue
        reason = _unsupported(phase, drive)
        if reason is None:
            kept.append(phase)
        else:
            settings = phase.model_dump(mode="json", exclude_none=True)
            left_out.append(LeftOut(name=phase.name or phase.kind, reason=reason, settings=settings))
    return kept


def _supported_rounds(
    bound: BoundPlan, rounds: RoundsPhase, drive: Drive, left_out: list[LeftOut]
) -> list[Phase]:
    """The rounds with the phases that the drive supports; nothing if it supports none of them."""
    kept: list[Any] = _supported(bound, rounds.phases, drive, left_out)
    if len(kept) == len(rounds.phases):
        return [rounds]
    if not kept:
        return []
    names = {phase.name for phase in kept}
    tracked = [one for one in rounds.tracked if one.phase in names]
    if not tracked:
        raise UsageError(
            f"{drive.uri} supports nothing that the plan {bound.plan.name!r} tracks: {left_out[-1].name} is"
            f" {left_out[-1].reason}; track larger blocks in a copy of the plan"
        )
    return [rounds.model_copy(update={"phases": kept, "tracked": tracked})]


def _unsupported(phase: Any, drive: Drive) -> str | None:
    logical_bytes = drive.logical_block_bytes
    if not isinstance(phase, SyntheticPhase) or not phase.when_supported or not logical_bytes:
        return None
    blocks = phase.block_bytes
    if isinstance(blocks, BlockRange):
        # Rounded up to whatever blocks the drive has.
        return None
    lengths = [block.bytes for block in blocks] if isinstance(blocks, list) else [blocks or 4096]
    wrong = next((length for length in lengths if length % logical_bytes), None)
    if wrong is None:
        return None
    return f"not supported: {wrong:,} B on {logical_bytes:,} B blocks"
