"""Recordings whose writer crashed: telling so, and putting them right (docs/recording-format.md, Crashes)."""

from __future__ import annotations

import contextlib
import fcntl
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ibis

from testdrive.errors import RecordingError
from testdrive.manifest import Counts, Manifest, OpcodeCounts, opcode_name, write_manifest
from testdrive.segment_files import what_is_wrong
from testdrive.segments import FOLDERS, SERVICE, checked_rows

if TYPE_CHECKING:
    from testdrive.recording import Arrays, Recording


#: The file that a writer holds a lock on for as long as it lives.
LOCK_NAME = "writer.lock"
_LEFTOVERS = ("reserve", LOCK_NAME)


def has_crashed(directory: Path, manifest: Manifest) -> bool:
    """Whether a manifest says `running` although its writer is gone.

    The writer's lock says so on whichever host or in whichever container it is; a recording without one is
    judged by the process that its manifest names.
    """
    if manifest.status != "running":
        return False
    lock = directory / LOCK_NAME
    alive = _is_locked(lock) if lock.exists() else _writer_alive(manifest)
    return not alive


def keep_whole_segments(directory: Path, backend: Any) -> None:
    """Give segments that were closed but not yet renamed when the writer died their final name.

    Raises
    ------
    RecordingError
        The system does not let one be read: nothing is settled then.
    """
    for path in open_segments(directory):
        wrong = what_is_wrong(path)
        # Another reader may have settled it meanwhile.
        if wrong is not None and wrong.startswith("cannot be read") and path.exists():
            # It may be whole, and would be removed.
            raise RecordingError(path, f"{wrong}; make it readable, so that what it holds is not lost")
        with contextlib.suppress(RecordingError, OSError):
            checked_rows(path, backend)
            path.rename(path.with_suffix(""))


def open_segments(directory: Path) -> list[Path]:
    """The segments of a recording that do not have their final name."""
    return sorted(path for folder in FOLDERS for path in (directory / folder).glob("*.parquet.open"))


def recover(recording: Recording) -> None:
    """Mark a recording whose writer crashed: remove the open segment, count what is there, set
    `interrupted`.

    On a read-only directory this happens in memory alone, and again at the next opening.

    Parameters
    ----------
    recording : testdrive.recording.Recording
        With its closed segments checked. Its manifest is changed, in memory and on disk.
    """
    manifest = recording.manifest
    manifest.counts = _count(recording)
    manifest.status = "interrupted"
    manifest.status_reason = (
        "the process that wrote it ended without closing it; the closed segments were kept"
    )
    end_ns = _end_ns(recording)
    for phase in manifest.phases:
        if phase.end_ns is None or phase.end_ns < phase.start_ns:
            phase.end_ns = max(end_ns, phase.start_ns)
    # Until a phase ends its end is its start: the last one was cut off by the crash.
    for phase in manifest.phases[-1:]:
        phase.end_ns = max(phase.end_ns or 0, end_ns)
    recording.recovered = True
    with contextlib.suppress(OSError):
        for leftover in (*open_segments(recording.path), *(recording.path / name for name in _LEFTOVERS)):
            leftover.unlink(missing_ok=True)
        write_manifest(recording.path, manifest)


def _end_ns(recording: Recording) -> int:
    rows = _rows(recording)
    end = recording.execute(
        rows.aggregate(
            ios=rows.count(), end_ns=(rows.submit_ns + ibis.greatest(rows.latency_ns, 0)).max().fill_null(0)
        )
    )
    return int(end["end_ns"][0]) if end["ios"][0] else 0


def _rows(recording: Recording) -> Any:
    """Every row that there is: those of the slowest I/Os, where not all are kept."""
    return recording.all_rows() if recording.manifest.kept is None else recording.slowest_rows()


def _count(recording: Recording) -> Counts:
    """The manifest's counts, from the rows and histograms of the closed segments."""
    rows = _rows(recording)
    ended = rows.submit_ns + ibis.greatest(rows.latency_ns, 0)
    found = recording.execute(
        rows.group_by(code=rows.opcode).aggregate(
            ios=rows.count(),
            bytes=rows.length_bytes.sum(),
            errors=(rows.status != 0).sum(),
            no_completion=(rows.latency_ns < 0).sum(),
            length_max_bytes=rows.length_bytes.max(),
            end_max_bytes=(rows.offset_bytes + rows.length_bytes).max(),
            start_ns=ibis.least(rows.intended_ns, rows.submit_ns).min(),
            end_ns=ended.max(),
        )
    )
    counts = Counts()
    if not len(found["code"]):
        if recording.manifest.kept is not None:
            whole = _count_intervals(recording, counts)
            counts.ios, counts.bytes, counts.errors = (int(each.sum()) for each in whole.values())
        return counts
    for i, code in enumerate(found["code"]):
        counts.by_opcode[opcode_name(int(code))] = OpcodeCounts(
            **{key: int(found[key][i]) for key in ("ios", "bytes", "errors", "length_max_bytes")}
        )
    if recording.manifest.kept is not None:
        found |= _count_intervals(recording, counts)
    counts.ios = int(found["ios"].sum())
    counts.bytes = int(found["bytes"].sum())
    counts.errors = int(found["errors"].sum())
    counts.no_completion = int(found["no_completion"].sum())
    counts.end_max_bytes = max(int(found["end_max_bytes"].max()), 0)
    counts.span_ns = int(found["end_ns"].max() - found["start_ns"].min())
    return counts


def _count_intervals(recording: Recording, counts: Counts) -> Arrays:
    """I/Os, bytes and errors as the histograms have them, put in place of what the kept rows came to."""
    entries = recording.intervals()
    entries = entries.filter(entries.quantity == SERVICE)
    failed = (entries.latency_ceiling_ns < 0).ifelse(entries["count"], 0)
    found = recording.execute(
        entries.group_by(code=entries.opcode).aggregate(
            ios=entries["count"].sum(), bytes=entries.bytes.sum(), errors=failed.sum()
        )
    )
    for i, code in enumerate(found["code"]):
        known = counts.by_opcode.setdefault(opcode_name(int(code)), OpcodeCounts())
        known.ios, known.bytes, known.errors = (int(found[key][i]) for key in ("ios", "bytes", "errors"))
    return {key: found[key] for key in ("ios", "bytes", "errors")}


def _is_locked(lock: Path) -> bool:
    """Whether somebody holds the lock; also true where that cannot be told, since the recording is then best
    left alone.
    """
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def _writer_alive(manifest: Manifest) -> bool:
    """Whether the process that the manifest names still runs on this machine since this boot."""
    writer = manifest.writer
    if writer is None:
        return False
    try:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        stat = Path(f"/proc/{writer.pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    # The name of the process, field 2, may hold spaces and parentheses: fields are counted after the last
    # one.
    fields = stat.rpartition(")")[2].split()
    state, start_ticks = fields[0], int(fields[19])
    return boot_id == writer.boot_id and start_ticks == writer.start_ticks and state not in ("Z", "X")
