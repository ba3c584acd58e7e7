"""The values of parameters: from what a plan's file or ``--set`` says to what the job has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from testdrive.errors import UsageError
from testdrive.manifest import OPCODES
from testdrive.plans.model import Parameter
from testdrive.quantities import duration_ns, size_bytes

_TRUTH = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}


def value_of(name: str, parameter: Parameter, given: Any) -> Any:
    """The value of a parameter as the job has it: ns for a duration, bytes for a size, names for opcodes.

    Raises
    ------
    UsageError
        The value is not one of the parameter's type.
    """
    try:
        if parameter.type == "choice":
            return _choice(given, parameter.choices)
        return _READERS[parameter.type](given)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error


def _choice(given: Any, choices: list[str]) -> str:
    if given not in choices:
        raise UsageError(f"{given!r} is not one of {', '.join(choices)}")
    return str(given)


def _number(given: Any) -> float:
    try:
        if isinstance(given, bool):
            raise TypeError
        return float(given)
    except (TypeError, ValueError):
        raise UsageError(f"{given!r} is not a number") from None


def _integer(given: Any) -> int:
    try:
        if isinstance(given, bool | float):
            raise TypeError
        return int(given)
    except (TypeError, ValueError):
        raise UsageError(f"{given!r} is not a whole number") from None


def _boolean(given: Any) -> bool:
    if isinstance(given, bool):
        return given
    if str(given).lower() not in _TRUTH:
        raise UsageError(f"{given!r} is neither true nor false")
    return _TRUTH[str(given).lower()]


def _opcodes(given: Any) -> list[str]:
    """``reads,writes`` or a list; singular and plural are the same."""
    names = given.split(",") if isinstance(given, str) else list(given)
    found = []
    for name in names:
        wanted = str(name).strip().replace("-", "_")
        singular = wanted if wanted in OPCODES else {"flushes": "flush"}.get(wanted, wanted.removesuffix("s"))
        if singular not in OPCODES:
            raise UsageError(f"{wanted!r} is not an operation; there are {', '.join(OPCODES)}")
        found.append(singular)
    return found


def _data(given: Any) -> Any:
    """``incompressible``, ``zero``, or the share that can be compressed away."""
    if given in ("incompressible", "zero"):
        return given
    try:
        share = _number(given)
    except UsageError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UsageError(
            f"{given!r} is not incompressible, zero, or the share that is compressible, such as 0.5"
        )
    return {"compressible_share": share}


def _quantity(read: Callable[[str], int]) -> Callable[[Any], int]:
    return lambda given: read(str(given))


_READERS: dict[str, Callable[[Any], Any]] = {
    "string": str,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "duration": _quantity(duration_ns),
    "size": _quantity(size_bytes),
    "path": lambda given: Path(str(given)),
    "opcodes": _opcodes,
    "data": _data,
}
