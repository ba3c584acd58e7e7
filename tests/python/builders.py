"""Builders that write recordings in the exact format from numpy arrays, for tests with known answers.

``write_recording`` takes the columns that matter to a test; the others get the fillers of
docs/recording-format.md and, unless told otherwise, are named in the manifest's ``absent_columns`` as an
import would.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from testdrive.manifest import OPCODES, Manifest
from testdrive.metrics.scans import Scan
from testdrive.recording import COLUMNS, Recording

Columns = dict[str, NDArray[Any]]

SECOND_NS = 1_000_000_000
_DICTIONARY = ["opcode", "flags", "stream", "status", "phase"]
_FILLERS = {
    "latency_ns": -1,
    "offset_bytes": -1,
    "length_bytes": 0,
    "opcode": 0,
    "flags": 0,
    "stream": -1,
    "status": 0,
    "phase": 0,
}
#: Columns that the filler describes truthfully, so that leaving them out does not make them absent.
_ALWAYS_PRESENT = {"flags", "status", "phase", "opcode"}


def fill_columns(columns: Mapping[str, ArrayLike]) -> tuple[Columns, list[str]]:
    """All columns of the format from some of them, and the names of those that are absent."""
    rows = max((np.size(values) for values in columns.values()), default=0)
    given = {name: np.broadcast_to(np.asarray(values), (rows,)) for name, values in columns.items()}
    absent = [name for name in COLUMNS if name not in given and name not in _ALWAYS_PRESENT]
    if "submit_ns" not in given:
        given["submit_ns"] = given.get("intended_ns", np.zeros(rows, np.int64))
    given.setdefault("intended_ns", given["submit_ns"])
    for name, filler in _FILLERS.items():
        given.setdefault(name, np.full(rows, filler))
    return {name: given[name].astype(kind) for name, kind in COLUMNS.items()}, absent


def as_arrow(columns: Mapping[str, NDArray[Any]]) -> pa.Table:
    """The rows as an Arrow table with required columns."""
    types = {"int64": pa.int64(), "int32": pa.int32()}
    schema = pa.schema([pa.field(name, types[kind], nullable=False) for name, kind in COLUMNS.items()])
    return pa.Table.from_arrays([pa.array(columns[name]) for name in COLUMNS], schema=schema)


def write_segment(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """One Parquet segment with required columns, encoded as the engine does."""
    pq.write_table(
        as_arrow(columns),
        path,
        compression="zstd",
        compression_level=1,
        use_dictionary=_DICTIONARY,
        column_encoding={name: "DELTA_BINARY_PACKED" for name in COLUMNS if name not in _DICTIONARY},
    )


def phase(
    index: int = 0,
    *,
    kind: str = "import",
    measured: bool = True,
    start_ns: int = 0,
    end_ns: int | None = None,
    settings: Mapping[str, Any] | None = None,
    accounting: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A phase of the manifest."""
    return {
        "index": index,
        "name": kind,
        "kind": kind,
        "measured": measured,
        "start_ns": start_ns,
        "end_ns": end_ns,
        "settings": dict(settings or {}),
        "accounting": dict(accounting) if accounting is not None else None,
    }


def accounting_of(columns: Mapping[str, NDArray[Any]], **changes: Any) -> dict[str, Any]:
    """The accounting of a replay that issued every I/O of its source; ``changes`` override."""
    issued = {
        name: {
            "ios": int((columns["opcode"] == code).sum()),
            "bytes": int(columns["length_bytes"][columns["opcode"] == code].sum()),
        }
        for code, name in enumerate(OPCODES)
    }
    none = {name: {"ios": 0, "bytes": 0} for name in OPCODES}
    span_ns = int(np.ptp(columns["intended_ns"])) if len(columns["intended_ns"]) else 0
    replayed_ns = int(np.ptp(columns["submit_ns"])) if len(columns["submit_ns"]) else 0
    parts = ["filtered", "skipped", "wrapped", "scaled", "clipped", "widened", "unsupported", "not_reached"]
    return {
        "source": issued,
        "issued": issued,
        **dict.fromkeys(parts, none),
        "source_depth": {"mean": 1.0, "max": 1},
        "replay_depth": {"mean": 1.0, "max": 1},
        "order_inversions": 0,
        "intended_span_ns": span_ns,
        "replayed_span_ns": replayed_ns,
        **changes,
    }


def this_process() -> dict[str, Any]:
    """The manifest's ``writer`` as this process would write it."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return {"pid": os.getpid(), "start_ticks": int(fields[19]), "boot_id": boot_id}


def completion_order(columns: Columns) -> Columns:
    """The rows as the engine writes them."""
    order = np.argsort(columns["submit_ns"] + np.maximum(columns["latency_ns"], 0), kind="stable")
    return {name: values[order] for name, values in columns.items()}


def manifest_of(
    columns: Columns,
    absent_columns: list[str],
    *,
    phases: Sequence[Mapping[str, Any]] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """The manifest of a complete import of these rows; ``changes`` override."""
    ends = columns["submit_ns"] + np.maximum(columns["latency_ns"], 0)
    return {
        "format": "testdrive-recording",
        "version": 1,
        "kind": "import",
        "status": "complete",
        "status_reason": None,
        "created": "2024-05-01T12:00:00Z",
        "tool": {"name": "builders", "version": "1", "build": "release"},
        "writer": None,
        "source": None,
        "drive": None,
        "host": None,
        "clock": {"source": "trace", "shift_ns": 0},
        "phases": list(phases) if phases is not None else [phase(end_ns=int(ends.max(initial=0)))],
        "absent_columns": absent_columns,
        "counts": _counts(columns),
        "dropped": [],
        "warnings": [],
        **changes,
    }


def write_recording(
    path: Path,
    columns: Mapping[str, ArrayLike] | None = None,
    *,
    kind: str = "import",
    status: str = "complete",
    phases: Sequence[Mapping[str, Any]] | None = None,
    absent_columns: Sequence[str] | None = None,
    segment_rows: int = 4_000_000,
    in_completion_order: bool = False,
    **manifest: Any,
) -> Path:
    """Write a recording and return its path.

    Parameters
    ----------
    path : pathlib.Path
        The directory to make.
    columns : mapping of str to array-like, optional
        Some or all columns of the format, each of the same length or a single value. None writes no segment.
    absent_columns : sequence of str, optional
        What the manifest says; by default the columns left out of ``columns``.
    segment_rows : int
        Rows of a segment.
    in_completion_order : bool
        Sort the rows by completion as the engine does; otherwise they stand as they were given.
    **manifest
        Further or other keys of the manifest.
    """
    filled, absent = fill_columns(columns or {})
    if in_completion_order:
        filled = completion_order(filled)
    rows = len(filled["submit_ns"])
    (path / "ios").mkdir(parents=True)
    for number, start in enumerate(range(0, rows, segment_rows)):
        part = {name: values[start : start + segment_rows] for name, values in filled.items()}
        write_segment(path / "ios" / f"{number:05}.parquet", part)
    content = manifest_of(
        filled, list(absent_columns) if absent_columns is not None else absent, phases=phases, **manifest
    )
    content |= {"kind": kind, "status": status}
    (path / "manifest.json").write_text(json.dumps(content))
    return path


def open_recording(path: Path, columns: Mapping[str, ArrayLike] | None = None, **options: Any) -> Recording:
    """Write a recording and open it."""
    return Recording.open(write_recording(path, columns, **options))


@functools.cache
def _shared_backend() -> Any:
    return ibis.duckdb.connect(preserve_insertion_order=False)


class MemoryRecording(Recording):
    """A recording whose rows are in memory: what a metric sees is the same, without the files.

    All of them share one query engine, which is never closed: starting one takes longer than most tests.
    """

    def __init__(self, columns: Columns, manifest: Manifest) -> None:
        super().__init__(Path("memory.rec"), manifest, [])
        self._columns = columns
        self._backend = _shared_backend()

    def all_rows(self) -> Any:
        """The rows, as those of segments."""
        if "ios" not in self._tables:
            self._tables["ios"] = ibis.memtable(as_arrow(self._columns))
        return self._tables["ios"]


def scan_of(
    columns: Mapping[str, ArrayLike] | None = None,
    *,
    absent_columns: Sequence[str] | None = None,
    in_completion_order: bool = False,
    **manifest: Any,
) -> Scan:
    """A scan over rows in memory, for tests of metrics."""
    filled, absent = fill_columns(columns or {})
    if in_completion_order:
        filled = completion_order(filled)
    content = manifest_of(filled, list(absent_columns) if absent_columns is not None else absent, **manifest)
    return Scan(MemoryRecording(filled, Manifest.model_validate(content)))


def _counts(columns: Columns) -> dict[str, Any]:
    def of(chosen: NDArray[np.bool_]) -> dict[str, int]:
        lengths = columns["length_bytes"][chosen]
        return {
            "ios": int(chosen.sum()),
            "bytes": int(lengths.sum()),
            "errors": int((columns["status"][chosen] != 0).sum()),
            "length_max_bytes": int(lengths.max()) if len(lengths) else 0,
        }

    rows = len(columns["submit_ns"])
    whole = of(np.ones(rows, bool))
    whole.pop("length_max_bytes")
    ends = columns["submit_ns"] + np.maximum(columns["latency_ns"], 0)
    starts = np.minimum(columns["intended_ns"], columns["submit_ns"])
    return {
        **whole,
        "no_completion": int((columns["latency_ns"] < 0).sum()),
        "span_ns": int(ends.max() - starts.min()) if rows else 0,
        "by_opcode": {name: of(columns["opcode"] == code) for code, name in enumerate(OPCODES)},
    }
