"""Power of the measured phases, of each phase, and what each watt bought.

``power.mean_w`` is energy over time, by the source that `testdrive.power.phases` chooses: a meter that was
attached, one that was read beside the run, or the ledger of a modelled drive; how energy is integrated says
`testdrive.power.integral`. ``throughput_bytes_per_s_per_w`` is mean throughput over mean power of the same
time, ``iops_per_w`` likewise, ``energy_per_io_uj`` energy over I/Os; I/Os are those that completed without an
error, of every kind, and bytes those that they read or wrote: trims move none. ``idle_w`` is the mean while
nothing was issued: before the run, as far as the meter was read then, and in phases that are for it.
``covered_share`` is the share of the time that was measured.
``phases`` has the same for every phase, those of preparation too. ``host`` is the mean power of the host's
own meters, for context.

Absent, with ``code``: ``not_measured`` (nothing measured it), ``partly_measured`` (less than nine tenths of
the time, so that the mean could be another's). Without I/Os the figures for each are null. Never a substitute
from a specification.
"""

from __future__ import annotations

from typing import Any

from testdrive.metrics.metric import NOT_MEASURED, PARTLY_MEASURED, Metric, Values
from testdrive.metrics.scans import Scan
from testdrive.power.phases import Power, powers
from testdrive.power.work import of_phases, work_of_phases

_FIGURES = (
    "mean_w",
    "energy_j",
    "throughput_bytes_per_s_per_w",
    "iops_per_w",
    "energy_per_io_uj",
    "covered_share",
)
_KEYS = tuple(f"power.{name}" for name in (*_FIGURES, "idle_w", "source", "phases", "host", "code"))


def compute(scan: Scan) -> Values:
    """The figures of all measured phases together, and of each phase."""
    recording = scan.recording
    every = powers(recording)
    host = [_context(scan, power) for power in every if power.of == "host"]
    power = next((power for power in every if power.of == "drive"), None)
    values: Values = dict.fromkeys(_KEYS)
    values["power.host"] = host or None
    if power is None:
        return values | {"power.covered_share": 0.0, "power.code": NOT_MEASURED}
    done = work_of_phases(recording)
    whole = of_phases(recording.manifest.measured_phases, power, done)
    values |= {f"power.{name}": value for name, value in whole.to_json_object().items()}
    values["power.idle_w"] = power.idle(recording.manifest.phases).mean_w
    values["power.source"] = {
        "name": power.name,
        "title": power.title,
        "uncertainty": power.uncertainty,
        "clock": power.clock,
    }
    values["power.phases"] = [
        {"index": phase.index, "name": phase.name} | of_phases([phase], power, done).to_json_object()
        for phase in recording.manifest.phases
    ]
    if whole.power.mean_w is None:
        values["power.code"] = PARTLY_MEASURED if whole.power.covered_share else NOT_MEASURED
    return values


def _context(scan: Scan, power: Power) -> dict[str, Any]:
    manifest = scan.recording.manifest
    drawn = power.of_phases(manifest.measured_phases)
    return {
        "name": power.name,
        "title": power.title,
        "mean_w": drawn.mean_w,
        "idle_w": power.idle(manifest.phases).mean_w,
        "covered_share": drawn.covered_share,
    }


METRIC = Metric("power", _KEYS, (), compute, needs="histograms")
