"""The recordings of a page: each with the name, colour and role it has there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from testdrive.manifest import Drive, Manifest, Phase, Warning_
from testdrive.recording import Recording
from testdrive.report import palette

Role = Literal["original", "drive"]
#: The identity of a drive of which nothing is known.
UNKNOWN_DRIVE = "drive not known"


@dataclass(frozen=True)
class Subject:
    """One recording on a page.

    Attributes
    ----------
    key
        Safe in identifiers and file names, unique on the page.
    name
        What people call it: the recording directory's name without its suffix. Not to be trusted as HTML.
    role
        `original` for the workload's own recording, `drive` for a run.
    summary
        What `testdrive.metrics.summary_of` gives for the recording.
    """

    key: str
    name: str
    role: Role
    recording: Recording
    summary: dict[str, Any]
    ink: palette.Ink

    @property
    def manifest(self) -> Manifest:
        """The recording's manifest."""
        return self.recording.manifest

    @property
    def warnings(self) -> list[Warning_]:
        """What makes its figures less valid than they look: as recorded, and as the figures tell."""
        return [Warning_.model_validate(each) for each in self.summary.get("warnings", [])]

    @property
    def drive(self) -> Drive:
        """The drive's identity, empty where the source does not tell."""
        return self.manifest.drive or Drive()

    @property
    def modelled(self) -> bool:
        """Whether the drive is a model, so that every figure of it must say so."""
        return self.drive.modelled

    @property
    def identity(self) -> str:
        """The drive's model, or where it is, or where the recording came from."""
        found = self.drive.model or self.drive.uri or (self.manifest.source or {}).get("device")
        return str(found) if found else UNKNOWN_DRIVE

    @property
    def phase(self) -> Phase | None:
        """The phase that is measured (the first, where there are several)."""
        measured = self.manifest.measured_phases
        return measured[0] if measured else None

    @property
    def span_ns(self) -> int:
        """From the start of the first measured phase to the end of the last: without the preparation."""
        measured = [phase for phase in self.manifest.measured_phases if phase.end_ns is not None]
        if not measured:
            return self.manifest.counts.span_ns
        return max(phase.end_ns or 0 for phase in measured) - min(phase.start_ns for phase in measured)

    @property
    def settings(self) -> dict[str, Any]:
        """The measured phase's settings."""
        return (self.phase.settings if self.phase else None) or {}

    @property
    def accounting(self) -> dict[str, Any]:
        """What became of the source's I/Os, empty where this is no replay."""
        return (self.phase.accounting if self.phase else None) or {}

    @property
    def label(self) -> str:
        """The name, marked where the drive is modelled: for figures, which have no badges."""
        return f"{self.name} (modelled)" if self.modelled else self.name


def subject(name: str, role: Role, index: int, recording: Recording, summary: dict[str, Any]) -> Subject:
    """Return the subject at `index` of its page; drives take their colour from it."""
    ink = palette.ORIGINAL if role == "original" else palette.drive(index)
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40]
    key = "original" if role == "original" else f"{index + 1}-{slug or 'drive'}"
    return Subject(key, name, role, recording, summary, ink)


def names(paths: Sequence[Path]) -> list[str]:
    """Return a short name for each recording, with as many parent directories as tell them all apart."""
    resolved = [path.resolve() for path in paths]
    for depth in range(1, max((len(path.parts) for path in resolved), default=0) + 1):
        found = [
            "/".join([*path.parts[:-1], path.stem if path.suffix == ".rec" else path.name][-depth:])
            for path in resolved
        ]
        if len(set(found)) == len(set(resolved)):
            break
    else:
        found = [str(path) for path in resolved]
    # The same recording given twice is compared with itself, which shows the noise; it keeps apart by number.
    return [
        f"{name} #{found[: at + 1].count(name)}" if found.count(name) > 1 else name
        for at, name in enumerate(found)
    ]
