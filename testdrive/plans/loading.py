"""Finding and reading plans: the built-in ones beside this file, or any TOML file."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from testdrive.errors import UsageError
from testdrive.plans.model import VERSION, Plan

_BUILT_IN = Path(__file__).parent
_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")


def built_in_names() -> list[str]:
    """The names of the plans that come with the package, sorted."""
    return sorted(path.stem for path in _BUILT_IN.glob("*.toml"))


def read_text(name_or_path: str) -> tuple[Path, str]:
    """The file of a plan and its text. A name with ``.toml`` or ``/`` is a path, any other a built-in plan.

    Raises
    ------
    UsageError
        There is no such plan, or its file cannot be read.
    """
    if name_or_path.endswith(".toml") or "/" in name_or_path:
        path = Path(name_or_path)
    elif name_or_path in built_in_names():
        path = _BUILT_IN / f"{name_or_path}.toml"
    else:
        raise UsageError(_unknown(name_or_path))
    try:
        return path, path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the plan {path} cannot be read: {error}") from error


def load(name_or_path: str) -> Plan:
    """Read and check a plan.

    Raises
    ------
    UsageError
        As :func:`read_text`; or it is not TOML, or not a plan. The message names the file, the line where it
        can be told, and the key.
    """
    path, text = read_text(name_or_path)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the plan {path} is not TOML: {error}") from error
    version = content.get("version")
    if isinstance(version, int) and version > VERSION:
        raise UsageError(
            f"the plan {path} has version {version}; this testdrive reads up to {VERSION}, renew it"
        )
    try:
        plan = Plan.model_validate(content)
    except ValidationError as error:
        raise UsageError(_explained(path, text, error)) from error
    plan._origin = path
    return plan


def place(path: Path | None, text: str | None, location: Sequence[int | str]) -> str:
    """``file:line: key`` of a key, as far as it can be told."""
    key = ".".join(str(part) for part in location)
    if path is None:
        return key
    line = _line_of(text, location) if text is not None else None
    return f"{path}:{line}: {key}" if line else f"{path}: {key}"


def _unknown(name: str) -> str:
    names = built_in_names()
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"perhaps {near[0]!r}" if near else f"built in are {', '.join(names)}"
    return f"there is no plan {name!r}; {hint}. A plan of your own is given as FILE.toml"


def _explained(path: Path, text: str, error: ValidationError) -> str:
    first = error.errors()[0]
    where = place(path, text, first["loc"])
    what = "is not a key of a plan" if first["type"] == "extra_forbidden" else first["msg"]
    value = "" if first["type"] in ("missing", "extra_forbidden") else f" (it is {_short(first['input'])})"
    return f"{where}: {what}{value}; docs/plans.md describes every key"


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _line_of(text: str, location: Sequence[int | str]) -> int | None:
    """The line of a key in a TOML text, or of the nearest table around it; None if neither is found.

    It reads headers and plain keys only, which is how plans are written; a miss costs the line number alone.
    """
    best: tuple[int, int] | None = None
    table: list[int | str] = []
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.match(line)
        if header:
            parts = [part.strip().strip("\"'") for part in header[2].split(".")]
            if header[1] == "[[":
                name = ".".join(parts)
                counts[name] = counts.get(name, -1) + 1
                # Tables within this one count from its beginning.
                counts = {key: count for key, count in counts.items() if not key.startswith(f"{name}.")}
            table = []
            for at, part in enumerate(parts, start=1):
                table.append(part)
                if ".".join(parts[:at]) in counts:
                    table.append(counts[".".join(parts[:at])])
            found = table
        else:
            found = [*table, line.partition("=")[0].strip().strip("\"'")]
        depth = len(found)
        if depth and list(location[:depth]) == found and (best is None or depth > best[0]):
            best = (depth, number)
    return best[1] if best else None
