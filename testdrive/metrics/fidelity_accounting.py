"""What became of every I/O of a replay's source, and whether it adds up."""

from __future__ import annotations

from typing import Any

from testdrive.manifest import Phase
from testdrive.metrics.scans import Scan

#: Where an I/O of the source can have gone; these add up to the source in I/Os.
_FATES = ("issued", "filtered", "skipped", "unsupported", "not_reached")
#: What may have changed an I/O that was issued.
_CHANGES = ("wrapped", "scaled", "clipped", "widened")
COUNT_PARTS = ("source", *_FATES, *_CHANGES)

Reason = dict[str, str]


def merged_accounting(phases: list[Phase]) -> dict[str, Any] | None:
    """The accounting of all replay phases together, or None if one has none.

    Counts and inversions add up. The depths are those of the only phase; of several they are left out.
    """
    parts = [phase.accounting for phase in phases]
    if not parts or any(not part for part in parts):
        return None
    known = [part for part in parts if part]
    merged: dict[str, Any] = {}
    for name in COUNT_PARTS:
        merged[name] = {}
        for part in known:
            for opcode, count in (part.get(name) or {}).items():
                total = merged[name].setdefault(opcode, {"ios": 0, "bytes": 0})
                total["ios"] += int(count.get("ios", 0))
                total["bytes"] += int(count.get("bytes", 0))
    inversions = [part.get("order_inversions") for part in known]
    known_inversions = [int(count) for count in inversions if count is not None]
    merged["order_inversions"] = sum(known_inversions) if len(known_inversions) == len(known) else None
    if len(known) == 1:
        merged |= {name: known[0].get(name) for name in ("source_depth", "replay_depth")}
    return merged


def accounting_reasons(scan: Scan, accounting: dict[str, Any] | None) -> list[Reason]:
    """Why the counts speak against the replay: nothing if they add up."""
    reasons: list[Reason] = []
    manifest = scan.recording.manifest
    if manifest.status != "complete":
        reasons.append(
            _reason("not_complete", f"the run is {manifest.status}: part of the workload is missing")
        )
    if accounting is None:
        message = "the manifest does not say what became of the I/Os of the source"
        return [*reasons, _reason("no_accounting", message)]
    for opcode in sorted({name for part in ("source", *_FATES) for name in accounting[part]}):
        reasons += _opcode_reasons(accounting, opcode)
    issued = sum(count["ios"] for count in accounting["issued"].values())
    if issued != scan.extent.ios:
        message = f"{issued} I/Os were issued but {scan.extent.ios} are recorded"
        reasons.append(_reason("rows_differ", message))
    return reasons


def _opcode_reasons(accounting: dict[str, Any], opcode: str) -> list[Reason]:
    def of(part: str, what: str) -> int:
        return int(accounting[part].get(opcode, {}).get(what, 0))

    reasons = []
    source, fates = of("source", "ios"), sum(of(fate, "ios") for fate in _FATES)
    source_bytes, fate_bytes = of("source", "bytes"), sum(of(fate, "bytes") for fate in _FATES)
    changed = sum(of(change, "ios") for change in ("clipped", "widened"))
    if source != fates:
        message = f"{opcode}: the source has {source} I/Os, {fates} are accounted for"
        reasons.append(_reason("counts_differ", message))
    elif source_bytes != fate_bytes and not changed:
        message = f"{opcode}: the source has {source_bytes} bytes, {fate_bytes} are accounted for"
        reasons.append(_reason("counts_differ", message))
    if of("unsupported", "ios"):
        message = f"{opcode}: {of('unsupported', 'ios')} I/Os were left out, the drive path cannot issue them"
        reasons.append(_reason("unsupported", message))
    return reasons


def _reason(code: str, message: str) -> Reason:
    return {"code": code, "message": message}
