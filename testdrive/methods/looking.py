"""The recordings of a standard test as its methods see them: their tables, without anything that draws.

A command that only prints tables does not wait for what makes pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from testdrive.errors import UsageError
from testdrive.manifest import MANIFEST_NAME, Manifest, read_manifest
from testdrive.methods.drawing import Findings, Table
from testdrive.methods.method import Method, all_methods
from testdrive.methods.runs import Run
from testdrive.metrics import summary_of
from testdrive.recording import Recording
from testdrive.report import words
from testdrive.report.subject import Subject, names, subject

#: What each method made of the runs.
Found = Sequence[tuple[Method, Findings]]


def methods_of(manifest: Manifest) -> list[Method]:
    """The methods that the plan of a recording names among its figures; none for other recordings."""
    wanted = manifest.plan.figures if manifest.plan else []
    return [all_methods()[name] for name in wanted if name in all_methods()]


def has_method(recording: Path) -> bool:
    """Whether a path is a recording of a standard test; what is no recording is told by whoever opens it."""
    return (recording / MANIFEST_NAME).is_file() and bool(methods_of(read_manifest(recording)))


def method_tables(recording_dirs: Sequence[Path]) -> list[Table]:
    """The tables that decide, without a page. Parameters and errors are those of ``write_method_page``."""
    with looked_at(recording_dirs) as (_, found):
        return deciding(found)


@contextmanager
def looked_at(
    recording_dirs: Sequence[Path], called: Sequence[str] | None = None
) -> Iterator[tuple[list[Subject], Found]]:
    """The recordings as their methods see them, open until the end of the block."""
    with ExitStack() as stack:
        opened = [stack.enter_context(Recording.open(path)) for path in recording_dirs]
        methods = _methods_of_all(opened)
        named = names(recording_dirs) if called is None else called
        subjects = [
            subject(name, "drive", at, recording, summary_of(recording))
            for at, (name, recording) in enumerate(zip(named, opened, strict=True))
        ]
        runs = [Run(one) for one in subjects]
        yield subjects, [(method, method.look(runs)) for method in methods]


def deciding(found: Found) -> list[Table]:
    """The tables of all methods that a reader needs first."""
    # Where every table is a detail, a terminal is better off with the first than with none.
    return [table for _, findings in found for table in findings.tables or findings.details[:1]]


def _methods_of_all(opened: Sequence[Recording]) -> list[Method]:
    plans = {recording.manifest.plan.name if recording.manifest.plan else None for recording in opened}
    if len(plans) > 1:
        told = words.listed([name or "no plan" for name in sorted(plans, key=str)])
        raise UsageError(f"the recordings are of different tests ({told}); compare those of one plan")
    methods = methods_of(opened[0].manifest)
    if not methods:
        raise UsageError(
            f"{opened[0].path} is of no standard test; its plan names none of {', '.join(all_methods())}"
        )
    return methods
