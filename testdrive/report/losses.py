"""What a recording lost: events that were not captured, said first of all on every page and in the terminal.

Whatever is counted from a recording that lost events is too low, and nothing in the figures shows it. So it
is told apart from events that were left out knowingly, which stand among the warnings. A replay of such a
recording replays what is left of the workload, and says so too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from testdrive.errors import RecordingError
from testdrive.manifest import MANIFEST_NAME, Dropped, Manifest, Warning_, read_manifest
from testdrive.report.alerts import alert_box
from testdrive.report.html import Markup

if TYPE_CHECKING:
    from testdrive.recording import Recording
    from testdrive.report.subject import Subject

#: What is said above the losses.
TITLE = "Events were lost: counts and rates are too low"
#: Codes of warnings that say that events were lost on the way.
LOSS_CODES = frozenset(
    {
        "events_lost",
        "source_events_lost",
        "cpu_files_missing",
        "truncated",
        "unreadable_events",
        "unreadable_lines",
    }
)
#: The code of a replay that says what the recording lost that it replayed.
_SOURCE_CODE = "source_events_lost"
#: Words of what was dropped that say so.
_LOSS_WORDS = ("lost", "cut off", "did not fit", "could not be read")


def is_loss(entry: Dropped | Warning_) -> bool:
    """Whether events were lost, rather than left out because they are no I/Os that could be used."""
    if isinstance(entry, Warning_):
        return entry.code in LOSS_CODES
    # What stands in brackets explains: a completion whose I/O began before the capture is none that was lost.
    what = entry.what.partition("(")[0]
    return entry.count > 0 and any(word in what for word in _LOSS_WORDS)


def losses(manifest: Manifest) -> list[str]:
    """Sentences on what a recording lost; none if it lost nothing."""
    counted = [
        f"{dropped.count:,} {dropped.what.replace('_', ' ')}."
        for dropped in manifest.dropped
        if is_loss(dropped)
    ]
    warned = [
        " ".join(_sentence(part) for part in (warning.message or warning.code, warning.remedy) if part)
        for warning in manifest.warnings
        if is_loss(warning)
    ]
    return counted + warned


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def source_path(manifest: Manifest, recording: Path) -> Path | None:
    """The recording that a run replayed, if its manifest's path leads to one from here or from beside the
    run.
    """
    said = (manifest.source or {}).get("recording")
    if not isinstance(said, str) or not said:
        return None
    for candidate in (Path(said), recording.parent / said, recording.parent / Path(said).name):
        if (candidate / MANIFEST_NAME).is_file():
            return candidate.resolve()
    return None


def gathered(recordings: Iterable[tuple[str, Manifest, Path]]) -> list[tuple[str, str]]:
    """What some recordings lost, and those that they replay: names and sentences, each loss once.

    Parameters
    ----------
    recordings
        Name, manifest and path of each.
    """
    found = [(name, manifest, path.resolve()) for name, manifest, path in recordings]
    seen = {path for _, _, path in found}
    for _, manifest, path in list(found):
        told = any(warning.code == _SOURCE_CODE for warning in manifest.warnings)
        source = source_path(manifest, path) if manifest.kind == "run" and not told else None
        if source is not None and source not in seen:
            seen.add(source)
            # A source that cannot be read is told of where it is compared with; the runs stand for
            # themselves.
            with contextlib.suppress(RecordingError):
                found.append((f"{source.stem}, which was replayed", read_manifest(source), source))
    return [(name, said) for name, manifest, _ in found for said in losses(manifest)]


def losses_box(subjects: Sequence[Subject], others: Iterable[Recording] = ()) -> Markup | None:
    """Return what the recordings of a page lost, to stand above everything else; None if they lost nothing.

    ``others`` are recordings that the page rests on without showing them.
    """
    items = gathered(
        [
            *((one.name, one.manifest, one.recording.path) for one in subjects),
            *((one.path.stem, one.manifest, one.path) for one in others),
        ]
    )
    if not items:
        return None
    alone = len(subjects) == 1 and all(name == subjects[0].name for name, _ in items)
    return alert_box(TITLE, items, alone=alone, label="Events lost")
