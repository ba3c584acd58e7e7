"""What makes a recording's figures less valid than they look, as far as only the figures tell.

The engine warns of what it alone knows (docs/warnings.md), and its warnings stand in the manifest. These
follow from the summary, so that recordings that were made before have them, too:

- ``generator_late``: one I/O in a hundred (nearest rank) of a schedule was issued later than
  `LATENESS_P99_MAX_NS` after its time, on a real drive. It may be the host, or a drive that does not keep up:
  the warning says how to tell.
- ``too_few_samples``: a percentile that reports state, p99 or p99.9, has fewer I/Os than its confidence asks
  for (``percentiles.SAMPLES_MIN``), and is left out.
- those of a drive that did not answer, was reset or was lost (:mod:`testdrive.metrics.incidents`);
- ``thermal_limit``: in a measured phase the drive logged that it slowed itself down for its temperature, or
  its SMART log counted a limit of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from testdrive.drive_events import drive_events
from testdrive.manifest import Warning_
from testdrive.metrics.incidents import incidents
from testdrive.metrics.metric import TOO_FEW_SAMPLES
from testdrive.metrics.percentiles import SAMPLES_MIN
from testdrive.metrics.telemetry import thermal_growth
from testdrive.recording import Recording
from testdrive.report import units

#: What fast drives take for a read; a schedule that slips by more shows in response times.
LATENESS_P99_MAX_NS = 100_000
_STATED = ("p99", "p99_9")
_THERMAL = "thermal_throttle"

Summary = Mapping[str, Any]


def derived_warnings(recording: Recording, summary: Summary) -> list[Warning_]:
    """The warnings that follow from a summary; none of a recording that is no run."""
    if recording.manifest.kind != "run":
        return []
    return [
        *incidents(recording, summary),
        *_late(recording, summary),
        *_scarce(summary),
        *_hot(recording),
    ]


def _late(recording: Recording, summary: Summary) -> Iterator[Warning_]:
    drive = recording.manifest.drive
    late_ns = (summary.get("fidelity") or {}).get("lateness_p99_ns")
    if late_ns is None or late_ns <= LATENESS_P99_MAX_NS or (drive is not None and drive.modelled):
        return
    yield Warning_(
        code="generator_late",
        message=f"one I/O in a hundred was issued over {units.time(late_ns)} after its time",
        remedy="if the drive kept up (its depth stayed below max_in_flight) the host did not: look at it with"
        " `testdrive doctor`; service times still hold, response times count from the schedule",
    )


def _scarce(summary: Summary) -> Iterator[Warning_]:
    codes = (summary.get("percentile_codes") or {}).get("io_weighted") or {}
    missing = [name for name in _STATED if codes.get(name) == TOO_FEW_SAMPLES]
    if missing:
        named = " and ".join(name.replace("_", ".") for name in missing)
        yield Warning_(
            code="too_few_samples",
            message=f"{units.count(summary.get('latency_samples'))} I/Os are too few for {named}",
            remedy=f"run it longer, for at least {units.count(SAMPLES_MIN[missing[-1]])} I/Os",
        )


def _hot(recording: Recording) -> Iterator[Warning_]:
    """Of a modelled drive's log of events, and of a real one's SMART log: no drive has both."""
    slowed = [event for event in drive_events(recording) if event.kind == _THERMAL]
    if slowed:
        lasted_ns = sum(event.busy_ns for event in slowed)
        yield _too_warm(f"the drive slowed itself down for its temperature, for {units.duration(lasted_ns)}")
    counted = _counted(thermal_growth(recording))
    if counted:
        yield _too_warm(f"the drive's SMART log counted while it was measured: {', '.join(counted)}")


def _counted(growth: Mapping[str, int]) -> list[str]:
    """What a SMART log says of its temperature in words, the gravest first."""
    words = []
    for level in ("critical", "warning"):
        minutes = growth.get(f"{level}_temperature_time_min")
        if minutes:
            words.append(f"{minutes:,} min above the {level} temperature")
    for state, name in ((2, "heavy"), (1, "light")):
        times = growth.get(f"thermal_management_{state}_transitions")
        seconds = growth.get(f"thermal_management_{state}_time_s")
        parts = [f"begun {times:,} times" if times else "", f"{seconds:,} s" if seconds else ""]
        if any(parts):
            words.append(f"{name} throttling ({', '.join(part for part in parts if part)})")
    return words


def _too_warm(message: str) -> Warning_:
    return Warning_(
        code="thermal_limit",
        message=message,
        remedy="cool it as it will be cooled where it works, or say that the figures are of a hot drive",
    )
