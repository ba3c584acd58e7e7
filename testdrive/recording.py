"""Opening a recording and reading its rows (docs/recording-format.md).

What other parts call::

    with Recording.open("prod.rec") as recording:
        recording.manifest            # testdrive.manifest.Manifest
        recording.table()             # Ibis table over the rows of the measured phases
        recording.all_rows()          # Ibis table over every row, times as recorded
        recording.connect()           # the Ibis DuckDB backend, bounded in memory
        recording.execute(expression) # an Ibis expression to a dict of numpy arrays
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import duckdb
import ibis
from numpy.typing import NDArray

from testdrive.errors import RecordingError
from testdrive.manifest import (
    Counts,
    Manifest,
    OpcodeCounts,
    opcode_name,
    read_manifest,
    write_manifest,
)

#: The columns of a segment and their types, in order. Every one is required.
COLUMNS: dict[str, str] = {
    "intended_ns": "int64",
    "submit_ns": "int64",
    "latency_ns": "int64",
    "offset_bytes": "int64",
    "length_bytes": "int64",
    "opcode": "int32",
    "flags": "int32",
    "stream": "int32",
    "status": "int32",
    "phase": "int32",
}
_PARQUET_TYPES = {"int64": "INT64", "int32": "INT32"}

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Segment:
    """A closed segment: one Parquet file and its number of rows, as its footer says."""

    path: Path
    rows: int


class Recording:
    """A recording that was opened and checked. Use :meth:`open`; close it, or use it as a context manager.

    Attributes
    ----------
    path : pathlib.Path
        The directory.
    manifest : Manifest
        As on disk, or as it is after the recovery from a crash.
    segments : list of Segment
        The closed segments, in order.
    recovered : bool
        True if this opening found that the writer had crashed and marked the recording interrupted.
    """

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        segments: list[Segment],
        *,
        memory_limit: str = "600MB",
        threads: int | None = None,
    ) -> None:
        self.path = path
        self.manifest = manifest
        self.segments = segments
        self.recovered = False
        self._memory_limit = memory_limit
        self._threads = threads
        self._backend: Any = None
        self._rows: Any = None
        self._scratch: weakref.finalize[Any, Any] | None = None

    @classmethod
    def open(cls, path: Path | str, *, memory_limit: str = "600MB", threads: int | None = None) -> Recording:
        """Open a recording, check it, and put it right if its writer crashed.

        Parameters
        ----------
        path : path-like
            The recording's directory.
        memory_limit : str
            What the query engine may hold in memory, e.g. ``"600MB"``; beyond it, it spills to a temporary
            directory.
        threads : int, optional
            Threads of the query engine; all cores without it.

        Raises
        ------
        RecordingError
            Not a directory, no manifest, a manifest that is not JSON or not a recording's, a greater version,
            a segment that is not Parquet or has another schema.
        """
        directory = Path(path)
        if not directory.exists():
            raise RecordingError(directory, "does not exist; check the path")
        if not directory.is_dir():
            raise RecordingError(directory, "is not a directory; a recording is one, give its path")
        manifest = read_manifest(directory)
        crashed = manifest.status == "running" and not _writer_alive(manifest)
        recording = cls(directory, manifest, [], memory_limit=memory_limit, threads=threads)
        try:
            recording.segments = _checked_segments(directory, recording.connect())
            if crashed:
                recording._recover()
        except BaseException:
            recording.close()
            raise
        return recording

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the query engine and its temporary directory. Closing twice is harmless."""
        if self._backend is not None:
            self._backend.disconnect()
            self._backend = self._rows = None
        if self._scratch is not None:
            self._scratch()
            self._scratch = None

    def connect(self) -> Any:
        """The Ibis DuckDB backend, made once, bounded in memory, with a temporary directory of its own."""
        if self._backend is None:
            scratch = tempfile.mkdtemp(prefix="testdrive-")
            # Removed by close, and for those who forget to close when the recording goes or the process ends.
            self._scratch = weakref.finalize(self, shutil.rmtree, scratch, ignore_errors=True)
            options: dict[str, Any] = {
                "memory_limit": self._memory_limit,
                "temp_directory": scratch,
                # Order is only asked for where it matters (rows_in_file_order); keeping it costs memory.
                "preserve_insertion_order": False,
            }
            if self._threads is not None:
                options["threads"] = self._threads
            self._backend = ibis.duckdb.connect(**options)
        return self._backend

    def all_rows(self) -> Any:
        """An Ibis table over every row of every phase, with the columns and times as recorded.

        A recording without segments gives an empty table with the same columns.
        """
        if self._rows is None:
            backend = self.connect()
            schema = ibis.schema({name: f"!{kind}" for name, kind in COLUMNS.items()})
            if self.segments:
                table = backend.read_parquet(
                    [str(segment.path) for segment in self.segments], table_name="rows"
                )
                self._rows = table.select(*COLUMNS)
            else:
                self._rows = backend.create_table("rows", schema=schema, temp=True)
        return self._rows

    def table(self) -> Any:
        """An Ibis table over the rows of the measured phases, with times from the measured phase's start.

        The columns are those of the format. ``intended_ns`` and ``submit_ns`` count from the ``start_ns`` of
        the first measured phase. Where several phases are measured they are laid end to end: a later one
        begins where the one before it ended, so that their times neither overlap nor hold the gap of what was
        not measured.
        """
        rows = self.all_rows()
        measured = self.manifest.measured_phases
        if len(measured) != len(self.manifest.phases) or not measured:
            rows = rows.filter(rows.phase.isin([phase.index for phase in measured] or [-1]))
        shifts = self._shifts()
        if not any(shifts.values()):
            return rows
        distinct = set(shifts.values())
        if len(distinct) == 1:
            shift: Any = ibis.literal(distinct.pop(), type="int64")
        else:
            cases = [
                (rows.phase == index, ibis.literal(value, type="int64")) for index, value in shifts.items()
            ]
            shift = ibis.cases(*cases, else_=0)
        return rows.mutate(intended_ns=rows.intended_ns - shift, submit_ns=rows.submit_ns - shift)

    def _shifts(self) -> dict[int, int]:
        """For each measured phase, what is taken from its times."""
        shifts: dict[int, int] = {}
        laid_ns = 0
        for phase in self.manifest.measured_phases:
            shifts[phase.index] = phase.start_ns - laid_ns
            laid_ns += max((phase.end_ns or phase.start_ns) - phase.start_ns, 0)
        return shifts

    def execute(self, expression: Any) -> Arrays:
        """Run an Ibis table expression and return its columns as numpy arrays, for results that are small.

        Raises
        ------
        RecordingError
            If a segment turns out to be damaged while it is read.
        """
        return self._reading(lambda: _fetch(self.connect(), expression))

    def rows_in_file_order(self, expression: Any) -> Arrays:
        """Like :meth:`execute`, with the rows in the order of the files, for results of bounded size."""
        backend = self.connect()
        backend.raw_sql("SET preserve_insertion_order = true")
        try:
            return self.execute(expression)
        finally:
            backend.raw_sql("SET preserve_insertion_order = false")

    def iter_segments(self) -> Iterator[tuple[Segment, Any]]:
        """Each closed segment with an Ibis table over its rows alone, in order."""
        for segment in self.segments:
            yield segment, self.connect().read_parquet(str(segment.path))

    def _reading(self, read: Callable[[], Arrays]) -> Arrays:
        try:
            return read()
        except duckdb.Error as error:
            if not _means_damage(error):
                raise
            raise RecordingError(
                self.path,
                f"a segment is damaged: {_first_line(error)}; restore it from a copy or remove that segment",
            ) from error

    def _recover(self) -> None:
        """Mark a recording whose writer crashed: remove the open segment, count what is there, set
        `interrupted`.

        On a read-only directory this happens in memory alone, and again at the next opening.
        """
        manifest = self.manifest
        manifest.counts = self._count()
        manifest.status = "interrupted"
        manifest.status_reason = (
            "the process that wrote it ended without closing it; the closed segments were kept"
        )
        end_ns = self._end_ns()
        for phase in manifest.phases:
            if phase.end_ns is None or phase.end_ns < phase.start_ns:
                phase.end_ns = max(end_ns, phase.start_ns)
        self.recovered = True
        with contextlib.suppress(OSError):
            for leftover in [*(self.path / "ios").glob("*.parquet.open"), self.path / "reserve"]:
                leftover.unlink(missing_ok=True)
            write_manifest(self.path, manifest)

    def _end_ns(self) -> int:
        rows = self.all_rows()
        end = self.execute(rows.aggregate(end_ns=(rows.submit_ns + ibis.greatest(rows.latency_ns, 0)).max()))
        return int(end["end_ns"][0]) if sum(segment.rows for segment in self.segments) else 0

    def _count(self) -> Counts:
        """The manifest's counts, from the rows of the closed segments."""
        rows = self.all_rows()
        ended = rows.submit_ns + ibis.greatest(rows.latency_ns, 0)
        found = self.execute(
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
            return counts
        for i, code in enumerate(found["code"]):
            counts.by_opcode[opcode_name(int(code))] = OpcodeCounts(
                **{key: int(found[key][i]) for key in ("ios", "bytes", "errors", "length_max_bytes")}
            )
        counts.ios = int(found["ios"].sum())
        counts.bytes = int(found["bytes"].sum())
        counts.errors = int(found["errors"].sum())
        counts.no_completion = int(found["no_completion"].sum())
        counts.end_max_bytes = max(int(found["end_max_bytes"].max()), 0)
        counts.span_ns = int(found["end_ns"].max() - found["start_ns"].min())
        return counts


def _fetch(backend: Any, expression: Any) -> Arrays:
    table = backend.to_pyarrow(expression)
    # One column at a time, so that the two copies of a result are never held whole.
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _checked_segments(directory: Path, backend: Any) -> list[Segment]:
    """The closed segments, each checked to be Parquet with exactly the columns of the format."""
    paths = sorted((directory / "ios").glob("*.parquet"))
    return [Segment(path, _checked_rows(path, backend)) for path in paths]


def _checked_rows(path: Path, backend: Any) -> int:
    try:
        schema = backend.raw_sql(
            "SELECT name, type, repetition_type FROM parquet_schema(?) WHERE type IS NOT NULL",
            parameters=[str(path)],
        ).fetchall()
        rows = backend.raw_sql(
            "SELECT num_rows FROM parquet_file_metadata(?)", parameters=[str(path)]
        ).fetchone()
    except duckdb.Error as error:
        raise RecordingError(
            path,
            f"is not a whole Parquet file ({_first_line(error)}); restore it from a copy, or move it away",
        ) from error
    problem = _schema_problem(schema)
    if problem:
        raise RecordingError(
            path, f"is not a segment of a recording: {problem}; it is foreign or damaged, move it away"
        )
    return int(rows[0])


def _schema_problem(schema: Iterable[tuple[str, str, str]]) -> str | None:
    found = {name: (kind, repetition) for name, kind, repetition in schema}
    for name, kind in COLUMNS.items():
        if name not in found:
            return f"column {name} is missing"
        if found[name][0] != _PARQUET_TYPES[kind]:
            return f"column {name} is {found[name][0]}, expected {_PARQUET_TYPES[kind]}"
        if found[name][1] != "REQUIRED":
            return f"column {name} is {found[name][1]}, expected REQUIRED"
    extra = sorted(set(found) - set(COLUMNS))
    return f"column {extra[0]} does not belong there" if extra else None


def _means_damage(error: duckdb.Error) -> bool:
    # What the Parquet reader finds wrong in a page arrives as one of these, or as the root class itself.
    return type(error) is duckdb.Error or isinstance(
        error, (duckdb.InvalidInputException, duckdb.IOException)
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


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
