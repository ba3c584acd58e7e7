"""Bringing in what another meter logged, on the recording's clock: ``meters/attached-NAME.jsonl``."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from testdrive.errors import RecordingError, UsageError
from testdrive.manifest import Manifest, read_manifest
from testdrive.power.choice import Choice, offset_ns
from testdrive.power.csv_text import Layout, Log, read_log
from testdrive.power.files import FOLDER, FORMAT, VERSION
from testdrive.power.meter import Of, Source
from testdrive.power.parts import Part, part_at, parts_of
from testdrive.power.recorded import clock_mappings

#: In `--power csv:...`, what parts several columns; one within a name is written %2B.
_COLUMNS = "+"


@dataclass(frozen=True)
class Attachment:
    """A log to bring in.

    Attributes
    ----------
    file : pathlib.Path
        The meter's CSV file.
    offset_ns : int
        Added to the meter's times.
    """

    file: Path
    layout: Layout = field(default_factory=Layout)
    offset_ns: int = 0
    of: Of = "drive"


@dataclass(frozen=True)
class Attached:
    """What came of it: how many readings, from when to when on the recording's clock, and where they are."""

    file: Path
    readings: int
    start_ns: int
    end_ns: int
    passed_over: int
    clock: str


def attach(recording: Path, attachment: Attachment) -> Attached:
    """Bring a meter's log into a recording; one of the same name that was brought in before is replaced.

    Raises
    ------
    UsageError
        The log cannot be read, its dates cannot be brought to the recording's clock, or nothing of it is of
        the time of the recording.
    RecordingError
        The recording cannot be read or written to.
    """
    manifest = read_manifest(recording)
    log = read_log(attachment.file, attachment.layout)
    time_ns, power_uw, clock = _on_the_recordings_clock(recording, manifest, log, attachment)
    _check_overlap(manifest, time_ns, attachment)
    order = np.argsort(time_ns, kind="stable")
    time_ns, power_uw = time_ns[order], power_uw[order]
    source = Source(
        name=f"csv:{attachment.file.name}",
        kind="csv",
        of=attachment.of,
        title=f"{attachment.file.name} ({log.columns})",
        interval_ns=max(int(np.median(np.diff(time_ns))), 1),
        uncertainty="not stated by the log",
        details={"clock": clock, "offset_ns": attachment.offset_ns},
    )
    lines: list[dict[str, object]] = [
        {"format": FORMAT, "version": VERSION},
        {"source": 0, **asdict(source)},
    ]
    for at, value in zip(time_ns, power_uw, strict=True):
        lines.append({"time_ns": int(at), "source": 0, "power_uw": round(float(value))})
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", attachment.file.stem)
    target = recording / FOLDER / f"attached-{slug}.jsonl"
    try:
        target.parent.mkdir(exist_ok=True)
        partial = target.with_suffix(".partial")
        partial.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        raise RecordingError(target, f"cannot be written: {error.strerror}; check its permissions") from error
    return Attached(target, len(time_ns), int(time_ns[0]), int(time_ns[-1]), log.passed_over, clock)


def _on_the_recordings_clock(
    recording: Path, manifest: Manifest, log: Log, attachment: Attachment
) -> tuple[NDArray[np.int64], NDArray[np.float64], str]:
    """Times on the recording's clock, the power at them, and how they were brought there."""
    offset = f", {attachment.offset_ns / 1e9:+g} s" if attachment.offset_ns else ""
    if not log.absolute:
        time_ns = log.time_ns + attachment.offset_ns
        return time_ns, log.power_uw, f"the meter's own, begun with the recording{offset}"
    if manifest.clock.source == "virtual":
        raise UsageError(
            f"{attachment.file} has dates, and {recording} is of a modelled drive in virtual time, which has"
            " none; a modelled drive keeps a ledger of its own"
        )
    parts = parts_of(manifest.gaps)
    watched = {part_at(parts, mapping.begin_ns).start_ns: mapping for mapping in clock_mappings(recording)}
    times, powers, errors = [], [], []
    for part in parts:
        mapping = watched.get(part.start_ns)
        zero_ns = _zero_unix_ns(manifest, part) if mapping is None else mapping.zero_unix_ns
        if zero_ns is None:
            raise UsageError(
                f"{attachment.file} has dates, and nobody wrote down when {recording} began by the wall"
                " clock; give times in seconds since its begin"
            )
        time_ns = log.time_ns - zero_ns + attachment.offset_ns
        # Between two parts of a run that was resumed time went on, and the recording's clock did not.
        inside = part.holds(time_ns)
        times.append(time_ns[inside])
        powers.append(log.power_uw[inside])
        errors.append(None if mapping is None else mapping.error_ns)
    known = [error for error in errors if error is not None]
    how = f"within {max(known) / 1e6:.0f} ms" if len(known) == len(errors) else "within some ms"
    return (
        np.concatenate(times),
        np.concatenate(powers),
        f"the meter's wall clock, taken for this host's {how}{offset}",
    )


def _zero_unix_ns(manifest: Manifest, part: Part) -> int | None:
    """The wall clock's time of the recording's time zero, by what the engine wrote down of a part."""
    if part.gap is not None:
        return _unix_ns(part.gap.resumed_at) - part.gap.resumed_ns if part.gap.resumed_at else None
    return _unix_ns(manifest.created) if manifest.kind == "run" and manifest.created else None


def _unix_ns(created: str) -> int:
    when = datetime.fromisoformat(created)
    # In whole microseconds, since a float of seconds has not enough digits.
    return round(when.timestamp() * 1e6) * 1000


def _check_overlap(manifest: Manifest, time_ns: NDArray[np.int64], attachment: Attachment) -> None:
    if len(time_ns) < 2:
        raise UsageError(
            f"{attachment.file} has fewer than two readings of the time in which the run was made. Give"
            " --offset, which is added to the meter's times, or --utc if its dates are not in this zone"
        )
    if any(phase.end_ns is None for phase in manifest.phases):
        # A run that crashed has an end only once it is opened.
        return
    end_ns = max((phase.end_ns or 0 for phase in manifest.phases), default=0)
    first_ns, last_ns = int(time_ns.min()), int(time_ns.max())
    if last_ns < 0 or first_ns > end_ns:
        raise UsageError(
            f"{attachment.file} is from {first_ns / 1e9:,.1f} s to {last_ns / 1e9:,.1f} s of the recording,"
            f" which goes from 0 s to {end_ns / 1e9:,.1f} s: nothing of it is of that time. Give --offset,"
            " which is added to the meter's times, or --utc if its dates are not in this host's zone"
        )


def attachment_of(choice: Choice) -> Attachment:
    """What ``--power csv:FILE?...`` means. The file may still be to come: it is read when the run has ended.

    Raises
    ------
    UsageError
        The folder is not there, a key makes no sense, or the file is there and has not these columns.
    """
    keys = choice.keys
    file = Path(choice.place)

    def columns(key: str) -> tuple[str, ...]:
        return tuple(unquote(column) for column in keys[key].split(_COLUMNS)) if key in keys else ()

    layout = Layout(
        time=unquote(keys.get("time", "0")),
        power=columns("power"),
        voltage=columns("voltage"),
        current=columns("current"),
        time_unit=keys.get("time_unit", "s"),
        power_unit=keys.get("power_unit"),
        utc=keys.get("zone") == "utc",
    )
    if keys.get("zone") not in (None, "utc", "local"):
        raise choice.error(f"zone={keys['zone']} is neither utc nor local")
    try:
        layout.check()
        offset = offset_ns(keys.get("offset", "0s"))
    except UsageError as error:
        raise choice.error(str(error)) from None
    if not choice.place or not file.parent.is_dir():
        raise choice.error(
            "the folder of the file is not there; the meter's log has to be written to one that is"
        )
    return Attachment(file.absolute(), layout, offset, choice.of or "drive")
