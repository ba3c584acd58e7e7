"""`testdrive export`: a recording as a trace that other tools read."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testdrive.cli import options as shared
from testdrive.errors import UsageError

if TYPE_CHECKING:
    from testdrive.events import Exported


class Format(StrEnum):
    """What can be written."""

    fio_iolog = "fio-iolog"
    blkparse = "blkparse"
    csv = "csv"
    act_log = "act-log"


class Times(StrEnum):
    """Which time is written where the format has room for one."""

    intended = "intended"
    submit = "submit"


SUFFIXES = {
    Format.fio_iolog: ".iolog",
    Format.blkparse: ".blkparse",
    Format.csv: ".csv",
    Format.act_log: ".act.txt",
}
STDOUT = Path("-")


def export(
    recordings: Annotated[
        list[Path],
        typer.Argument(
            metavar="REC...",
            help="The recording; for act-log those of all drives of a run.",
            show_default=False,
        ),
    ],
    format_name: Annotated[
        Format,
        typer.Option(
            "--format",
            help="What to write: for fio to replay, as blkparse prints, CSV, or act_storage's log.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The file to make, or - for standard output.  [default: named after the recording]",
            show_default=False,
        ),
    ] = None,
    phases: Annotated[
        str,
        typer.Option(metavar="measured|all|NAME,...", help="Which phases' I/Os."),
    ] = "measured",
    times: Annotated[
        Times | None,
        typer.Option(help="For fio-iolog: which time is written.  [default: intended]", show_default=False),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="For fio-iolog: the file or device that it names. `fio --replay_redirect` overrules it."
            "  [default: testdrive-target]",
            show_default=False,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="MAJ:MIN",
            help="For blkparse: the device that it names.  [default: the recording's, or 0:0]",
            show_default=False,
        ),
    ] = None,
    as_json: shared.AsJson = False,
) -> int:
    """Write a recording as a trace that other tools read."""
    from testdrive.cli.output import print_json, show_on_stderr
    from testdrive.engine import export_recording

    recording = recordings[0]
    if len(recordings) > 1 and format_name is not Format.act_log:
        raise UsageError(
            f"{len(recordings)} recordings are given, and --format {format_name.value} is of one; export each"
            " by itself"
        )
    if output == STDOUT and as_json:
        raise UsageError("--json prints on standard output, where the trace goes with -o -; choose a file")
    # The log of several drives is called after the directory of their run.
    subject = recording if len(recordings) == 1 else recording.resolve().parent
    made = _new_file(subject, format_name, output)
    if format_name is Format.act_log:
        return _act_log(recordings, made, as_json=as_json)
    with show_on_stderr(recording.name) as shown:
        exported = export_recording(
            recording,
            made,
            format_name.value,
            phases=phases,
            times=times.value if times else None,
            target=target,
            device=device,
            on_event=shown,
        )
    if as_json:
        content = exported.model_dump(mode="json", exclude={"event", "status", "reason", "accounting"})
        print_json(content | {"output": str(made), "format": format_name.value})
    else:
        _say(exported, made, format_name)
    return 0


def _act_log(recordings: Sequence[Path], made: Path, *, as_json: bool) -> int:
    """Write the log of a run of the plan act, which the engine knows nothing of."""
    from testdrive.act.log_form import write_log
    from testdrive.cli.output import print_json
    from testdrive.recording import Recording

    if made == STDOUT:
        raise UsageError("--format act-log goes to a file, which act_latency.py reads; choose one with -o")
    with contextlib.ExitStack() as stack:
        write_log([stack.enter_context(Recording.open(path)) for path in recordings], made)
    if as_json:
        print_json({"output": str(made), "format": Format.act_log.value})
    else:
        print(f"log: {made}\nnext: act_latency.py -l {made}")
    return 0


def _new_file(recording: Path, format_name: Format, output: Path | None) -> Path:
    """Where the trace goes: where the user said, if nothing is there, else a free name after the recording.

    Raises
    ------
    UsageError
        Something is there already: an export overwrites nothing.
    """
    from testdrive.cli.naming import RECORDING_SUFFIX, free_path

    if output is None:
        name = recording.resolve().name.removesuffix(RECORDING_SUFFIX)
        return free_path(Path(name + SUFFIXES[format_name]))
    if output != STDOUT and (output.exists() or output.is_symlink()):
        raise UsageError(f"{output} exists, and an export overwrites nothing; choose another name with -o")
    return output


def _say(exported: Exported, made: Path, format_name: Format) -> None:
    """What is in the trace, and on standard error what is not."""
    from testdrive.cli.output import note
    from testdrive.report import units

    for dropped in exported.dropped:
        note(f"left out: {units.count(dropped.count)} {dropped.what}")
    for lost in exported.not_carried:
        note(f"not in the trace: {lost.column} of {units.count(lost.ios)} I/Os ({lost.what})")
    if made == STDOUT:
        return
    print(f"{units.count(exported.counts.get('ios'))} I/Os")
    print(f"trace: {made}")
    if format_name is Format.fio_iolog:
        print(f"next: fio --name=replay --read_iolog={made} --replay_redirect=FILE-OR-DEVICE")
    elif format_name is Format.csv:
        print(f"next: testdrive import {made}")
