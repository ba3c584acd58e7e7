"""act_storage's configuration: its keys, what they may be, and its files of ``key: value`` lines."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testdrive.act.load import KIB, rates_of_threads
from testdrive.errors import UsageError

UINT32_MAX = 2**32 - 1
#: act_storage's own limits.
DEVICES_MAX, DEVICE_NAME_MAX = 128, 127


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > UINT32_MAX:
        raise UsageError("is not a whole number below 2^32")
    return int(text)


def _yes_no(text: str) -> bool:
    if text not in ("yes", "no", "y", "n"):
        raise UsageError("is neither yes nor no")
    return text[0] == "y"


def _scheduler(text: str) -> str:
    if text not in ("noop", "cfq"):
        raise UsageError("is neither noop nor cfq")
    return text


#: Every key of act_storage 6.x with what reads its value. The newer ones have neither commit-min-bytes nor
#: scheduler-mode any more.
KEYS: dict[str, Callable[[str], Any]] = {
    "device-names": str,
    "file-size-mbytes": _whole,
    "service-threads": _whole,
    "test-duration-sec": _whole,
    "report-interval-sec": _whole,
    "microsecond-histograms": _yes_no,
    "read-reqs-per-sec": _whole,
    "write-reqs-per-sec": _whole,
    "record-bytes": _whole,
    "record-bytes-range-max": _whole,
    "large-block-op-kbytes": _whole,
    "replication-factor": _whole,
    "update-pct": _whole,
    "defrag-lwm-pct": _whole,
    "no-defrag-reads": _yes_no,
    "compress-pct": _whole,
    "disable-odsync": _yes_no,
    "commit-to-device": _yes_no,
    "commit-min-bytes": _whole,
    "tomb-raider": _yes_no,
    "tomb-raider-sleep-usec": _whole,
    "max-lag-sec": _whole,
    "scheduler-mode": _scheduler,
}


@dataclass(frozen=True)
class Configuration:
    """A configuration file: the values that it gives, and the line of each."""

    path: Path
    values: dict[str, Any]
    lines: dict[str, int] = field(default_factory=dict)

    @property
    def devices(self) -> list[str]:
        """The drives that it names, as URIs: files where it gives their size."""
        names: list[str] = self.values["device-names"]
        size_mib = self.values.get("file-size-mbytes", 0)
        return [f"file:{name}?size={size_mib}MiB" for name in names] if size_mib else names


def read_configuration(path: Path) -> Configuration:
    """Read a configuration file of act_storage.

    Raises
    ------
    UsageError
        It cannot be read; a key is unknown, given twice or missing; a value is impossible. The message has
        the file, the line and the value.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the configuration {path} cannot be read: {error}") from error
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        key, value = _parts(content)
        where = f"{path}:{number}: {key}"
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f"{where} is no key of act_storage{hint}")
        if key in lines and key != "device-names":
            raise UsageError(f"{where} was given in line {lines[key]} already; give each key once")
        if not value:
            raise UsageError(f"{where} has no value; give one, or leave the line out")
        try:
            # Lines with drives add up, as they do in act_storage.
            known = values.get(key, [])
            values[key] = _devices(value, known) if key == "device-names" else KEYS[key](value)
        except UsageError as error:
            raise UsageError(f"{where}: {value!r} {error}") from error
        lines.setdefault(key, number)
    configuration = Configuration(path, values, lines)
    _require(configuration)
    return configuration


def _parts(content: str) -> tuple[str, str]:
    """The key, up to a colon or white space, and the value behind it."""
    end = next((at for at, letter in enumerate(content) if letter == ":" or letter.isspace()), len(content))
    return content[:end], content[end:].lstrip(": \t").strip()


def _devices(text: str, known: list[str]) -> list[str]:
    names = known + text.replace(",", " ").replace(";", " ").split()
    if len(names) > DEVICES_MAX:
        raise UsageError(f"are {len(names)} drives, and act_storage takes {DEVICES_MAX}")
    for name in names:
        if len(name) > DEVICE_NAME_MAX:
            raise UsageError(f"has a name of more than {DEVICE_NAME_MAX} letters")
        if "?" in name and ":" not in name.partition("?")[0]:
            # act_storage's own file has /dev/sdc? for whoever is to put a drive there.
            raise UsageError(f"has {name}: put the drive's own path in its place")
        if names.count(name) > 1:
            raise UsageError(f"names {name} twice")
    return names


def _require(configuration: Configuration) -> None:
    for key in ("device-names", "test-duration-sec"):
        if key not in configuration.values:
            raise UsageError(f"{configuration.path}: {key} is missing, which act_storage needs")
    if configuration.values["test-duration-sec"] == 0:
        line = configuration.lines["test-duration-sec"]
        raise UsageError(f"{configuration.path}:{line}: test-duration-sec is 0; give at least a second")


def check_values(values: Mapping[str, Any], where: Callable[[str], str]) -> None:
    """Refuse what act_storage refuses, and what makes no load.

    Parameters
    ----------
    values : mapping
        Every key that matters to the load.
    where : callable
        What stands before a key in a message: its file and line, or the option that gave it.

    Raises
    ------
    UsageError
        A value is impossible.
    """

    def check(holds: bool, key: str, wanted: str) -> None:
        if not holds:
            value = values[key]
            shown = ("no", "yes")[value] if isinstance(value, bool) else value
            raise UsageError(f"{where(key)} is {shown}; give {wanted}")

    large_bytes = values["large-block-op-kbytes"] * KIB
    longest = max(values["record-bytes"], values["record-bytes-range-max"])
    commit = values["commit-min-bytes"]
    check(values["report-interval-sec"] > 0, "report-interval-sec", "at least a second")
    check(values["service-threads"] > 0, "service-threads", "at least 1")
    check(values["record-bytes"] > 0, "record-bytes", "at least 1")
    check(
        values["record-bytes-range-max"] == 0 or values["record-bytes-range-max"] > values["record-bytes"],
        "record-bytes-range-max",
        f"0, or more than record-bytes ({values['record-bytes']})",
    )
    check(
        large_bytes >= longest and large_bytes & (large_bytes - 1) == 0,
        "large-block-op-kbytes",
        f"a power of two that holds a record of {longest} bytes",
    )
    check(large_bytes <= 256 << 20, "large-block-op-kbytes", "at most 262144, the longest transfer")
    check(values["replication-factor"] > 0, "replication-factor", "at least 1")
    check(values["update-pct"] <= 100, "update-pct", "at most 100")
    check(values["defrag-lwm-pct"] < 100, "defrag-lwm-pct", "less than 100")
    check(values["compress-pct"] <= 100, "compress-pct", "at most 100")
    check(
        not (values["disable-odsync"] and values["commit-to-device"]),
        "disable-odsync",
        "no together with commit-to-device",
    )
    check(
        commit <= large_bytes and commit & (commit - 1) == 0,
        "commit-min-bytes",
        "0, or a power of two up to the large block",
    )
    if values["read-reqs-per-sec"] + values["write-reqs-per-sec"] == 0:
        raise UsageError(f"{where('read-reqs-per-sec')} and write-reqs-per-sec are both 0; give one of them")
    for rate in rates_of_threads(values):
        check(
            values["arrivals"] != "act" or rate == 0 or rate >= values["service-threads"],
            "service-threads",
            f"at most {rate}, so that each has an I/O a second",
        )
