"""What a run says of a drive that stopped answering, was reset, or was lost: as warnings, before all else.

They follow from the I/Os that were lost (:mod:`testdrive.metrics.lost_ios`) and from what the user-space
driver or the kernel did to the controller (``drive_events.jsonl``), so that recordings of any path and of any
age have them:

- ``command_timeout``: I/Os were waited for in vain, or the drive ended commands because it was told to;
- ``controller_reset``: the controller was reset or said that it failed, the bus had an error, or I/Os were
  cancelled;
- ``drive_lost``: the drive was gone before the run was over.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from testdrive.drive_events import DriveEvent, logged_events
from testdrive.manifest import Warning_
from testdrive.recording import Recording
from testdrive.report import units

#: The codes of these warnings: they stand above everything else.
INCIDENT_CODES = frozenset({"command_timeout", "controller_reset", "drive_lost"})
#: More moments of one kind than this are not told one by one.
_MOMENTS_MAX = 4
_NVME = 65_536
_TYPE_AND_CODE = 0x7FF
_OTHERS = (errno.ETIMEDOUT, errno.ECANCELED, errno.ENOLINK, errno.EIO)
_KINDS = (
    "command_timeout",
    "controller_reset",
    "controller_fatal_status",
    "bus_error",
    "controller_gone",
)
_SEE = "the kernel's log (dmesg), and the drive's SMART and error log, may say why"

Events = Mapping[str, Sequence[tuple[DriveEvent, int | None]]]


def incidents(recording: Recording, summary: Mapping[str, Any]) -> Iterator[Warning_]:
    """The warnings of a run; none where the drive answered everything and was left alone.

    Raises
    ------
    RecordingError
        If what the drive logged is damaged.
    """
    lost = summary.get("lost_ios") or {}
    events = _events(recording)
    worst = (lost.get("percentiles_at_least_ns") or {}).get("max")
    left_out = (
        f"lost I/Os are in no latency figure: with them the longest took at least {units.time(worst)}; {_SEE}"
        if worst is not None
        else _SEE
    )
    for tell, code in (
        (_timeouts, "command_timeout"),
        (_resets, "controller_reset"),
        (_gone, "drive_lost"),
    ):
        message = tell(lost, events)
        if message:
            yield Warning_(code=code, message=message, remedy=left_out)


def _events(recording: Recording) -> Events:
    """The events of each kind with when they were, as the figures count time; None of unmeasured phases."""
    spans = recording.measured_spans()
    found: dict[str, list[tuple[DriveEvent, int | None]]] = {kind: [] for kind in _KINDS}
    for event in logged_events(recording):
        if event.kind in found:
            inside = (span for span in spans if span.start_ns <= event.start_ns <= span.end_ns)
            span = next(inside, None)
            found[event.kind].append((event, None if span is None else event.start_ns - span.shift_ns))
    return found


def _timeouts(lost: Mapping[str, Any], events: Events) -> str | None:
    ios = (lost.get("timed_out") or 0) + (lost.get("aborted") or 0)
    told = events["command_timeout"]
    if not ios and not told:
        return None
    if not ios:
        commands = sum(event.amount for event, _ in told)
        return (
            f"the drive did not answer {_plural(commands, 'command')} within io_timeout_s"
            f" ({_times(told)}); of the I/Os that were measured none was lost"
        )
    chosen = (errno.ETIMEDOUT, *(status for status in _statuses(lost) if status >= _NVME))
    return (
        f"the drive did not answer {_plural(ios, 'I/O')} in time ({_named(lost, chosen)}), {_between(lost)}"
    )


def _resets(lost: Mapping[str, Any], events: Events) -> str | None:
    ios = lost.get("cancelled") or 0
    resets = events["controller_reset"]
    causes = (
        ("controller_fatal_status", "it said that it had failed (CSTS.CFS)"),
        ("bus_error", "the bus had an error"),
    )
    why = [f"{words} {_times(events[kind])}" for kind, words in causes if events[kind]]
    others = [status for status in _statuses(lost) if status in (errno.ECANCELED, errno.ENOLINK, errno.EIO)]
    cancelled = f"{_plural(ios, 'I/O')} went with that ({_named(lost, others)})" if ios else ""
    if resets:
        lasted = max(event.end_ns - event.start_ns for event, _ in resets)
        said = f"the controller was reset {_times(resets)}, for up to {units.time(lasted)}"
        return "; ".join(part for part in (said, *why, cancelled) if part)
    if ios:
        return (
            f"{_plural(ios, 'I/O')} went with a reset of the controller, or were given up by the kernel after"
            f" its own limit ({_named(lost, others)}), {_between(lost)}"
        )
    return "; ".join(why) or None


def _gone(lost: Mapping[str, Any], events: Events) -> str | None:
    ios = lost.get("drive_gone") or 0
    gone = events["controller_gone"]
    if not ios and not gone:
        return None
    when = [moment for _, moment in gone if moment is not None]
    # Of several controllers one may go, and I/Os find another.
    what = "the drive" if ios else "a controller of the drive"
    said = f"{what} was gone before the run was over" + (f", at {units.moment(min(when))}" if when else "")
    others = [status for status in _statuses(lost) if status < _NVME and status not in _OTHERS]
    return said + (f"; {_plural(ios, 'I/O')} went with it ({_named(lost, others)})" if ios else "")


def _statuses(lost: Mapping[str, Any]) -> list[int]:
    return [int(status) for status in lost.get("statuses") or {}]


def _named(lost: Mapping[str, Any], statuses: Iterable[int]) -> str:
    """How many I/Os had each status, by name: `status ETIMEDOUT: 8`."""
    counts = lost.get("statuses") or {}
    name: Callable[[int], str] = lambda status: (  # noqa: E731 - a name for one line of two
        f"NVMe 0x{(status - _NVME) & _TYPE_AND_CODE:03x}"
        if status >= _NVME
        else errno.errorcode.get(status, str(status))
    )
    told = [f"{name(status)}: {counts[str(status)]:,}" for status in statuses if str(status) in counts]
    return "status " + ", ".join(told)


def _between(lost: Mapping[str, Any]) -> str:
    return (
        f"between {units.moment(lost['first_ns'])} and {units.moment(lost['last_ns'])};"
        f" the longest was waited for {units.time(lost['waited_max_ns'])}"
    )


def _times(told: Sequence[tuple[DriveEvent, int | None]]) -> str:
    """How often, and when: `2 times, at 2.4 s and 4.4 s`, of unmeasured phases only how often."""
    moments = sorted(moment for _, moment in told if moment is not None)
    outside = len(told) - len(moments)
    count = "once" if len(told) == 1 else f"{len(told):,} times"
    shown = [units.moment(moment) for moment in moments]
    if len(shown) > _MOMENTS_MAX:
        when = f", between {shown[0]} and {shown[-1]}"
    elif shown:
        when = f", at {' and '.join([', '.join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)}"
    else:
        when = ""
    beyond = (
        "outside of what was measured"
        if outside == len(told)
        else f"{outside:,} of them outside of what was measured"
    )
    return count + when + (f" ({beyond})" if outside else "")


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
