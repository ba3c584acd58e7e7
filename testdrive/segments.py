"""The segments of a recording: Parquet files with exactly the columns of docs/recording-format.md."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from testdrive.errors import RecordingError
from testdrive.segment_files import has_whole_chunks, what_is_wrong

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
#: The columns of a segment of histograms, of a recording that does not keep every row.
INTERVAL_COLUMNS: dict[str, str] = {
    "start_ns": "int64",
    "latency_ceiling_ns": "int64",
    "kept_from_ns": "int64",
    "count": "int64",
    "sum_ns": "int64",
    "max_ns": "int64",
    "bytes": "int64",
    "quantity": "int32",
    "opcode": "int32",
    "stream": "int32",
    "phase": "int32",
}
#: Values of the column ``quantity``: which of an I/O's times a histogram is of.
SERVICE, RESPONSE = 0, 1
#: The folders of a recording that hold segments, with the columns of each.
FOLDERS: dict[str, dict[str, str]] = {"ios": COLUMNS, "slowest": COLUMNS, "intervals": INTERVAL_COLUMNS}
_PARQUET_TYPES = {"int64": "INT64", "int32": "INT32"}


#: What is said of a page whose checksum or header is wrong.
A_PAGE = "a page of it is not as it was written"


@dataclass(frozen=True)
class Segment:
    """A closed segment: one Parquet file and its number of rows, as its footer says."""

    path: Path
    rows: int


def checked_segments(directory: Path, backend: Any, folder: str = "ios") -> list[Segment]:
    """The closed segments of a folder in order, each checked to be Parquet with exactly the format's columns.

    Parameters
    ----------
    directory : pathlib.Path
        The recording's.
    backend : ibis backend
        The query engine that reads the files' footers.
    folder : str
        One of :data:`FOLDERS`.

    Raises
    ------
    RecordingError
        A file is not Parquet, is cut short, or has other columns or types.
    """
    paths = sorted((directory / folder).glob("*.parquet"))
    return [Segment(path, checked_rows(path, backend)) for path in paths]


def checked_rows(path: Path, backend: Any) -> int:
    """The number of rows of a file that is a whole segment; raises as :func:`checked_segments` does."""
    problem = what_is_wrong(path)
    if problem:
        raise RecordingError(path, f"{problem}; {remedy(path)}")
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
            f"is damaged: it is not a whole Parquet file ({first_line(error)}); {remedy(path)}",
        ) from error
    problem = _schema_problem(schema, FOLDERS.get(path.parent.name, COLUMNS))
    if problem:
        raise RecordingError(
            path, f"is not a segment of a recording: {problem}; it is foreign or damaged, {remedy(path)}"
        )
    return int(rows[0])


def check_pages(segments: Iterable[Segment], backend: Any) -> None:
    """Refuse segments whose pages do not hold what their footers say, before rows are read of them.

    Raises
    ------
    RecordingError
        A page's header is damaged.
    """
    question = (
        "SELECT coalesce(dictionary_page_offset, data_page_offset), total_compressed_size, num_values"
        " FROM parquet_metadata(?)"
    )
    for segment in segments:
        chunks = backend.raw_sql(question, parameters=[str(segment.path)]).fetchall()
        if not has_whole_chunks(segment.path, chunks):
            raise RecordingError(segment.path, f"is damaged: {A_PAGE}; {remedy(segment.path)}")


def _schema_problem(schema: Iterable[tuple[str, str, str]], columns: dict[str, str]) -> str | None:
    found = {name: (kind, repetition) for name, kind, repetition in schema}
    for name, kind in columns.items():
        if name not in found:
            return f"column {name} is missing"
        if found[name][0] != _PARQUET_TYPES[kind]:
            return f"column {name} is {found[name][0]}, expected {_PARQUET_TYPES[kind]}"
        if found[name][1] != "REQUIRED":
            return f"column {name} is {found[name][1]}, expected REQUIRED"
    extra = sorted(set(found) - set(columns))
    return f"column {extra[0]} does not belong there" if extra else None


def remedy(path: Path) -> str:
    """What to do about a segment that cannot be read."""
    return f"restore it from a copy, or rename it to {path.name}.damaged to do without its rows"


def means_damage(error: duckdb.Error) -> bool:
    """Whether an error of the query engine means that a file is damaged, not that the question was wrong."""
    # What the Parquet reader finds wrong in a page arrives as one of these, or as the root class itself.
    return type(error) is duckdb.Error or isinstance(
        error, (duckdb.InvalidInputException, duckdb.IOException)
    )


def first_line(error: Exception) -> str:
    """What an error says, without the context that follows it."""
    line = next(iter(str(error).strip().splitlines()), "no reason")
    return "".join(character if character.isprintable() else "?" for character in line)
