"""What the plan ``act`` makes of its parameters: the whole configuration, and the streams of the job."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from testdrive.act.configuration import KEYS, Configuration, check_values, read_configuration
from testdrive.act.load import (
    READS_PER_S_AT_1X,
    SECOND_NS,
    WRITES_PER_S_AT_1X,
    in_flight_max,
    streams,
)
from testdrive.errors import UsageError

#: Keys of a configuration that are no parameters of the plan: the drives are options of the command.
_NOT_PARAMETERS = ("device-names", "file-size-mbytes", "test-duration-sec", "scheduler-mode")
#: act_storage has so many service threads for each CPU.
_THREADS_PER_CPU = 5


def derive(values: Mapping[str, Any], given: Collection[str]) -> dict[str, Any]:
    """The plan's values with the configuration taken in, and what its phases are made of.

    Parameters
    ----------
    values : mapping
        The plan's parameters with their defaults.
    given : collection of str
        Which of them the user gave.

    Returns
    -------
    dict
        Values to add or to replace; those with ``streams``, ``written`` and ``in-flight`` are for the phases.

    Raises
    ------
    UsageError
        Parameters contradict each other, or a value is impossible.
    """
    found = dict(values)
    configuration = read_configuration(values["config"]) if values.get("config") else None
    drives = 1
    if configuration is not None:
        drives = len(configuration.devices)
        _take(found, configuration, given)
    else:
        rating = values["rating"] * (2 if values.get("stress") else 1)
        if rating < 1:
            raise UsageError(f"rating is {values['rating']}; give at least 1")
        for key, at_1x in (
            ("read-reqs-per-sec", READS_PER_S_AT_1X),
            ("write-reqs-per-sec", WRITES_PER_S_AT_1X),
        ):
            found[key] = rating * at_1x if found.get(key) is None else found[key]
    if found["service-threads"] == 0:
        found["service-threads"] = _THREADS_PER_CPU * (os.cpu_count() or 1)
    check_values(found, lambda key: _place(configuration, key))
    _check_slices(found, configuration if "for" not in given else None)
    compress = found["compress-pct"]
    written = "incompressible" if compress == 100 else {"compressible_share": round(1 - compress / 100, 2)}
    return found | {
        "streams": streams(found, drives),
        "written": written,
        "in-flight": in_flight_max(found),
        "drives": drives,
    }


def _take(found: dict[str, Any], configuration: Configuration, given: Collection[str]) -> None:
    """Put the values of a configuration file in the place of the parameters' defaults."""
    for name in given:
        if name in KEYS or name in ("rating", "stress"):
            raise UsageError(
                f"{name} is given beside the configuration {configuration.path}; change it there, or leave"
                " --config out"
            )
    found.update(dict.fromkeys(("read-reqs-per-sec", "write-reqs-per-sec"), 0))
    found.update({key: value for key, value in configuration.values.items() if key not in _NOT_PARAMETERS})
    found["rating"] = None
    if "for" not in given:
        found["for"] = configuration.values["test-duration-sec"] * SECOND_NS


def _place(configuration: Configuration | None, key: str) -> str:
    if configuration is None:
        return key
    line = configuration.lines.get(key)
    return f"{configuration.path}:{line}: {key}" if line else f"{configuration.path}: {key}"


def _check_slices(found: Mapping[str, Any], configuration: Configuration | None) -> None:
    """Refuse lengths of which a part would be judged by no slice; ``configuration`` is what gave ``for``."""
    slice_ns = found["slice"]
    if slice_ns < SECOND_NS or slice_ns % SECOND_NS:
        raise UsageError(f"slice is {slice_ns / SECOND_NS:g} s; give whole seconds, at least one")
    for name in ("for", "confirm-for"):
        length_ns = found.get(name)
        if length_ns is None or (length_ns >= slice_ns and length_ns % slice_ns == 0):
            continue
        called = name
        if name == "for" and configuration is not None:
            called = _place(configuration, "test-duration-sec")
        raise UsageError(
            f"{called} is {length_ns / SECOND_NS:g} s and slice {slice_ns / SECOND_NS:g} s; give a whole"
            " number of slices, since they are what is judged"
        )


def drives_of(path: Path) -> list[str]:
    """The drives that a configuration names, as URIs."""
    return read_configuration(path).devices
