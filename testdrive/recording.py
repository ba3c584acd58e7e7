"""Opening a recording and reading its rows (docs/recording-format.md).

What other parts call::

    with Recording.open("prod.rec") as recording:
        recording.manifest            # testdrive.manifest.Manifest
        recording.table()             # Ibis table over the rows of the measured phases
        recording.all_rows()          # Ibis table over every row, times as recorded
        recording.connect()           # the Ibis DuckDB backend, bounded in memory
        recording.execute(expression) # an Ibis expression to a dict of numpy arrays
        recording.telemetry()         # what the drive measured of itself, by sensor
        recording.meters()            # what each meter beside the run showed
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import duckdb
import ibis
from numpy.typing import NDArray

from testdrive.completeness import check_completeness
from testdrive.errors import RecordingError, UsageError
from testdrive.manifest import Manifest, Warning_, read_manifest
from testdrive.power.files import read_warnings
from testdrive.power.recorded import Metered, read_meters
from testdrive.recovery import has_crashed, keep_whole_segments, recover
from testdrive.segments import (
    A_PAGE,
    COLUMNS,
    FOLDERS,
    SERVICE,
    Segment,
    check_pages,
    checked_segments,
    first_line,
    means_damage,
    remedy,
)
from testdrive.telemetry import Series, read_telemetry

__all__ = ["COLUMNS", "Arrays", "Recording", "Segment", "Span"]

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Span:
    """A measured phase: from when to when, on the recording's clock, and what is taken from its times."""

    phase: int
    start_ns: int
    end_ns: int
    shift_ns: int


class Recording:
    """A recording that was opened and checked. Use :meth:`open`; close it, or use it as a context manager.

    Attributes
    ----------
    path : pathlib.Path
        The directory.
    manifest : Manifest
        As on disk, or as it is after the recovery from a crash.
    segments : list of Segment
        The closed segments of every I/O's row, in order.
    kept_segments : dict of str to list of Segment
        Where not every row is kept: the closed segments under ``slowest`` and ``intervals``.
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
        self.kept_segments: dict[str, list[Segment]] = {}
        self.recovered = False
        self._memory_limit = memory_limit
        self._threads = threads
        self._backend: Any = None
        self._tables: dict[str, Any] = {}
        self._scratch: weakref.finalize[Any, Any] | None = None
        self._meters: list[Metered] | None = None

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
            a segment that is not Parquet, has another schema, or is missing.
        """
        directory = Path(path)
        if not directory.exists():
            raise RecordingError(directory, "does not exist; check the path")
        if not directory.is_dir():
            raise RecordingError(directory, "is not a directory; a recording is one, give its path")
        manifest = read_manifest(directory)
        crashed = has_crashed(directory, manifest)
        if crashed:
            # The writer may have ended well between the reading of its manifest and the look at its lock.
            manifest = read_manifest(directory)
            crashed = manifest.status == "running"
        recording = cls(directory, manifest, [], memory_limit=memory_limit, threads=threads)
        try:
            if crashed:
                keep_whole_segments(directory, recording.connect())
            recording.segments = checked_segments(directory, recording.connect())
            if manifest.kept is not None:
                for folder in ("slowest", "intervals"):
                    recording.kept_segments[folder] = checked_segments(directory, recording.connect(), folder)
            if crashed:
                recover(recording)
            check_completeness(directory, manifest, recording._held_ios)
            # The engine, which writes the manifest, knows nothing of meters: theirs stand beside it.
            manifest.warnings += [Warning_(**each) for each in read_warnings(directory)]
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
            self._backend = None
            self._tables = {}
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
        return self._table_of("ios", self.segments)

    def slowest_rows(self) -> Any:
        """An Ibis table over the rows of the slowest and the failed I/Os, where only those are kept.

        Times are as recorded. Empty where the recording keeps every row.
        """
        return self._table_of("slowest", self.kept_segments.get("slowest", []))

    def intervals(self) -> Any:
        """An Ibis table over the histograms of a recording that does not keep every row.

        Entries of the same second, opcode, quantity and ceiling add up. Empty where every row is kept.
        """
        return self._table_of("intervals", self.kept_segments.get("intervals", []))

    def require_rows(self, purpose: str) -> None:
        """Raise a UsageError where not every row is kept, for what cannot be told without."""
        if self.manifest.kept is not None:
            raise UsageError(
                f"{self.path} keeps histograms and the slowest I/Os, so that it cannot {purpose}; run its"
                " plan with --keep rows, or look at it with testdrive report if it is of a standard test"
            )

    def _table_of(self, folder: str, segments: list[Segment]) -> Any:
        if folder not in self._tables:
            backend = self.connect()
            columns = FOLDERS[folder]
            name = "rows" if folder == "ios" else f"{folder}_rows"
            if segments:
                check_pages(segments, backend)
                paths = [str(segment.path) for segment in segments]
                self._tables[folder] = backend.read_parquet(paths, table_name=name).select(*columns)
            else:
                schema = ibis.schema({column: f"!{kind}" for column, kind in columns.items()})
                self._tables[folder] = backend.create_table(name, schema=schema, temp=True)
        return self._tables[folder]

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
        shifts = {span.phase: span.shift_ns for span in self.measured_spans()}
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

    def measured_spans(self) -> list[Span]:
        """When each measured phase was, and what :meth:`table` takes from its times."""
        spans: list[Span] = []
        laid_ns = 0
        for phase in self.manifest.measured_phases:
            end_ns = max(phase.end_ns or phase.start_ns, phase.start_ns)
            spans.append(Span(phase.index, phase.start_ns, end_ns, phase.start_ns - laid_ns))
            laid_ns += end_ns - phase.start_ns
        return spans

    def telemetry(self) -> dict[str, Series]:
        """What each of the drive's sensors showed, by its name; empty where the drive told nothing.

        A modelled drive has ``power`` (mW), ``energy`` (uJ, since the run began) and, where its model has
        heat, ``temperature`` (mC), a row for each second at most.

        Raises
        ------
        RecordingError
            If the file is damaged.
        """
        return read_telemetry(self.path, self.manifest)

    def meters(self) -> list[Metered]:
        """What each meter showed that was read beside the run, or attached afterwards; read once.

        Raises
        ------
        RecordingError
            If a file of meters is damaged.
        """
        if self._meters is None:
            self._meters = read_meters(self.path, self.manifest.gaps)
        return self._meters

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
        check_pages(self.segments, self.connect())
        for segment in self.segments:
            yield segment, self.connect().read_parquet(str(segment.path))

    def _reading(self, read: Callable[[], Arrays]) -> Arrays:
        try:
            return read()
        except duckdb.Error as error:
            if not means_damage(error):
                raise
            raise self._damage(error) from error

    def _damage(self, error: duckdb.Error) -> RecordingError:
        """Which segment an error of the query engine is about: the first that cannot be read by itself."""
        found = first_line(error)
        everything = "SELECT {} FROM read_parquet(?)"
        for folder, columns in FOLDERS.items():
            of_all = everything.format(", ".join(f"bit_xor({column})" for column in columns))
            for segment in self.segments if folder == "ios" else self.kept_segments.get(folder, []):
                try:
                    self.connect().raw_sql(of_all, parameters=[str(segment.path)]).fetchall()
                except duckdb.Error as own:
                    return RecordingError(
                        segment.path, f"is damaged: {A_PAGE} ({first_line(own)}); {remedy(segment.path)}"
                    )
        return RecordingError(self.path, f"a segment is damaged: {found}; restore the recording from a copy")

    def _held_ios(self) -> int:
        """I/Os that the closed segments hold, in whichever form."""
        if self.manifest.kept is None:
            return sum(segment.rows for segment in self.segments)
        entries = self.intervals()
        entries = entries.filter(entries.quantity == SERVICE)
        total = self.execute(entries.aggregate(ios=entries["count"].sum().fill_null(0)))
        return int(total["ios"][0])


def warm_up() -> None:
    """Load now what the first reading of a recording would load: most of a second of a CPU's time.

    For those who will read while something is measured.
    """
    backend = ibis.duckdb.connect(threads=1)
    try:
        numbers = ibis.range(1).unnest().name("number").as_table()
        _fetch(backend, numbers.aggregate(last=numbers.number.max()))
    finally:
        backend.disconnect()


def _fetch(backend: Any, expression: Any) -> Arrays:
    table = backend.to_pyarrow(expression)
    found: Arrays = {}
    for name in table.column_names:
        # One column at a time, so that the two copies of a result are never held whole.
        found[name] = table.column(name).to_numpy()
        table = table.drop_columns([name])
    return found
