"""What `--power` says: `KIND:PLACE?key=value&...`, and opening the meter that it means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from testdrive.errors import UsageError
from testdrive.power.meter import Meter, Of
from testdrive.quantities import duration_ns

#: Readings in a second, where nothing else is said: a burst is seen, and nothing is disturbed.
RATE_DEFAULT_NS = 100_000_000
RATE_MAX_HZ = 100.0
#: A drive's log is read more seldom: each reading is a command to the drive.
LOG_INTERVAL_NS = 10_000_000_000
KINDS = ("hwmon", "quarch", "nvme", "rapl", "csv")
_SHARED_KEYS = ("drive", "of", "rate")
CSV_KEYS = ("time", "power", "voltage", "current", "offset", "time_unit", "power_unit", "zone")
_OWN_KEYS: dict[str, tuple[str, ...]] = {"hwmon": (), "quarch": (), "nvme": (), "rapl": (), "csv": CSV_KEYS}


@dataclass(frozen=True)
class Choice:
    """One meter that was asked for.

    Attributes
    ----------
    text : str
        As it was written.
    kind : str
        One of `KINDS`.
    place : str
        What stands behind the kind; may be empty.
    interval_ns : int
        From one reading to the next.
    of : str
        ``drive`` or ``host``; None where the meter itself knows better.
    drive : str or None
        The URI of the drive that it measures, for runs on several.
    keys : mapping of str to str
        The keys of this kind alone, as they were written.
    """

    text: str
    kind: str
    place: str
    interval_ns: int
    of: Of | None
    drive: str | None
    keys: Mapping[str, str]

    @property
    def name(self) -> str:
        """The kind with its place."""
        return f"{self.kind}:{self.place}" if self.place else self.kind

    def concerns(self, uri: str) -> bool:
        """Whether it is read beside a run on this drive."""
        return self.drive is None or self.drive == uri

    def error(self, what: str) -> UsageError:
        """A `UsageError` that names this choice."""
        return UsageError(f"--power {self.text}: {what}")


def parse(texts: Sequence[str]) -> list[Choice]:
    """Read what `--power` says, each time that it was given.

    Raises
    ------
    UsageError
        A kind or a key is not known, a value makes no sense, or a meter is named twice.
    """
    choices = [_parsed(text) for text in texts]
    for at, choice in enumerate(choices):
        if any((choice.name, choice.drive) == (other.name, other.drive) for other in choices[:at]):
            raise choice.error("is given twice; give each meter once")
    return choices


def _parsed(text: str) -> Choice:
    before, _, query = text.partition("?")
    kind, _, place = before.partition(":")
    if kind not in KINDS:
        raise UsageError(
            f"--power {text}: {kind!r} is no kind of meter; use one of {', '.join(KINDS)}, or see which there"
            " are with `testdrive power list`"
        )
    # Not as web forms have it, where a plus is a space: here it parts columns.
    pairs = [(key, value) for key, _, value in (part.partition("=") for part in query.split("&") if part)]
    keys = dict(pairs)
    known = (*_SHARED_KEYS, *_OWN_KEYS[kind])
    for key, _ in pairs:
        if key not in known:
            raise UsageError(f"--power {text}: {key!r} is no key of {kind}; use {', '.join(known)}")
    if len(keys) < len(pairs):
        raise UsageError(f"--power {text}: a key is given twice; give each once")
    own = {key: value for key, value in keys.items() if key not in _SHARED_KEYS}
    default_ns = LOG_INTERVAL_NS if kind == "nvme" else RATE_DEFAULT_NS
    interval_ns = _interval_ns(text, keys.get("rate"), default_ns)
    return Choice(text, kind, place, interval_ns, _of(text, keys.get("of")), keys.get("drive"), own)


def _of(text: str, of: str | None) -> Of | None:
    if of is None:
        return None
    known: dict[str, Of] = {"drive": "drive", "host": "host"}
    if of in known:
        return known[of]
    raise UsageError(f"--power {text}: of={of} is neither drive nor host; say what the meter measures")


def _interval_ns(text: str, rate: str | None, default_ns: int) -> int:
    if rate is None:
        return default_ns
    try:
        rate_hz = float(rate)
    except ValueError:
        rate_hz = 0.0
    if not 0 < rate_hz <= RATE_MAX_HZ:
        raise UsageError(
            f"--power {text}: rate={rate} is no number of readings in a second; give one above 0 and at most"
            f" {RATE_MAX_HZ:g}"
        )
    return round(1e9 / rate_hz)


def offset_ns(text: str) -> int:
    """Read an offset of time such as ``1.5s`` or ``-300ms``.

    Raises
    ------
    UsageError
        The text is no duration.
    """
    stripped = text.strip()
    if stripped.startswith("-"):
        return -duration_ns(stripped[1:])
    return duration_ns(stripped.removeprefix("+"))


def open_meter(choice: Choice) -> Meter:
    """Open the meter.

    Raises
    ------
    UsageError
        It is not there, or cannot be read.
    """
    from testdrive.power import hwmon, nvme, quarch, rapl

    openers: dict[str, Callable[[Choice], Meter]] = {
        "hwmon": hwmon.open_meter,
        "nvme": nvme.open_meter,
        "quarch": quarch.open_meter,
        "rapl": rapl.open_meter,
    }
    return openers[choice.kind](choice)
