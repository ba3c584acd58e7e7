"""Who stands in a comparison: the runs in the order given, and the original workload first where it has
completions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from testdrive.errors import RecordingError, UsageError
from testdrive.metrics import summary_of
from testdrive.recording import Recording
from testdrive.report.losses import source_path
from testdrive.report.subject import Subject, names, subject

ORIGINAL_NAME = "original"


@dataclass(frozen=True)
class Lineup:
    """The recordings compared.

    Attributes
    ----------
    subjects
        In the order of the table.
    source_name
        What the workload is called, or None where no recording of it was found.
    notes
        What a reader must know of how the line-up came about.
    unseen
        The original workload's recording where it has no row: the runs rest on it all the same.
    """

    subjects: list[Subject]
    source_name: str | None
    notes: list[str]
    unseen: list[Recording]


@contextmanager
def line_up(recording_dirs: Sequence[Path], original: Path | None) -> Iterator[Lineup]:
    """Open the recordings with their summaries; they are closed on leaving.

    Parameters
    ----------
    recording_dirs
        The runs, at least one. Where one of them is the original itself, it stands first.
    original
        The workload's own recording; if None it is looked for where the runs' manifests say that they
        replayed it.

    Raises
    ------
    UsageError
        If there is no recording to compare.
    RecordingError
        If one cannot be opened. The original is only an error where it was given.
    """
    if not recording_dirs:
        raise UsageError("compare needs at least one recording; give the directories that the replays wrote")
    with ExitStack() as stack:
        runs = [(path, stack.enter_context(Recording.open(path))) for path in recording_dirs]
        for _, run in runs:
            run.require_rows("be compared as a replay")
        notes: list[str] = []
        source = _original(runs, original, notes, stack)
        if source is not None:
            runs = [(path, run) for path, run in runs if path.resolve() != source.path.resolve()]
        subjects = [
            subject(name, "drive", at, run, summary_of(run))
            for at, (name, (_, run)) in enumerate(zip(names([path for path, _ in runs]), runs, strict=True))
        ]
        unseen: list[Recording] = []
        if source is not None:
            if has_completions(source):
                subjects.insert(0, subject(ORIGINAL_NAME, "original", 0, source, summary_of(source)))
            else:
                notes.append("The original workload was recorded without completions, so it has no row.")
                unseen.append(source)
        source_name = names([source.path])[0] if source else _said_name(runs)
        yield Lineup(subjects, source_name, notes, unseen)


def has_completions(recording: Recording) -> bool:
    """Return whether latencies were recorded, for at least one I/O."""
    counts = recording.manifest.counts
    return "latency_ns" not in recording.manifest.absent_columns and counts.no_completion < counts.ios


def _original(
    runs: list[tuple[Path, Recording]], given: Path | None, notes: list[str], stack: ExitStack
) -> Recording | None:
    if given is not None:
        return stack.enter_context(Recording.open(given))
    sources = {found for path, run in runs if (found := source_path(run.manifest, path)) is not None}
    if len(sources) > 1:
        notes.append("These runs replayed different recordings: their figures are not of the same workload.")
        return None
    imports = [run for _, run in runs if run.manifest.kind != "run"]
    if len(imports) == 1 and not sources:
        return imports[0]
    for found in sources:
        try:
            return stack.enter_context(Recording.open(found))
        except RecordingError as error:
            notes.append(f"The original workload could not be opened, so it has no row: {error}")
    return None


def _said_name(runs: list[tuple[Path, Recording]]) -> str | None:
    said = {(run.manifest.source or {}).get("recording") for _, run in runs}
    only = said.pop() if len(said) == 1 else None
    return Path(only).stem if isinstance(only, str) and only else None
