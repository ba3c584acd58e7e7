"""Temperature and the SMART log before, during and after.

``telemetry.temperature_before_mc`` is the first reading of the drive's temperature, ``temperature_after_mc``
the last, ``temperature_max_mc`` the highest in the measured phases (null without a reading in them). The
source is the drive's SMART log, else the log of a modelled drive; never a meter's chip, which has a
temperature of its own.

``smart_before`` and ``smart_after`` are the first and the last whole reading of the SMART log,
``smart_growth`` by how much what only grows grew. ``throttled`` is whether a count or a time of throttling
grew: above the warning or the critical temperature, or by thermal management. Without a log they are null.
``code`` is ``not_measured`` where nothing told a temperature.

:func:`thermal_growth` is the part of that growth which falls into the measured phases.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testdrive.metrics.metric import NOT_MEASURED, Metric, Values
from testdrive.metrics.scans import Scan
from testdrive.power.recorded import Metered
from testdrive.recording import Recording

_KEYS = tuple(
    f"telemetry.{name}"
    for name in (
        "source",
        "temperature_before_mc",
        "temperature_max_mc",
        "temperature_after_mc",
        "smart_before",
        "smart_after",
        "smart_growth",
        "throttled",
        "code",
    )
)
_TEMPERATURE = "temperature_mc"
_LEVELS = ("temperature_mc", "_percent", "_flags", "power_uw")
#: What a drive counts while it is too warm, or slows itself down for it.
THERMAL_COUNTERS = (
    "warning_temperature_time_min",
    "critical_temperature_time_min",
    "thermal_management_1_transitions",
    "thermal_management_2_transitions",
    "thermal_management_1_time_s",
    "thermal_management_2_time_s",
)
Readings = tuple[str, NDArray[np.int64], NDArray[np.float64]]


def compute(scan: Scan) -> Values:
    """Temperatures, logs, and what throttled."""
    recording = scan.recording
    values: Values = dict.fromkeys(_KEYS)
    log = _smart_log(recording)
    if log is not None:
        before, after = ({name: _whole(each[at]) for name, each in log.values.items()} for at in (0, -1))
        growing = [name for name in before if not name.endswith(_LEVELS)]
        pairs = ((name, before[name], after[name]) for name in growing)
        growth = {name: last - first for name, first, last in pairs if first is not None and last is not None}
        values["telemetry.smart_before"], values["telemetry.smart_after"] = before, after
        values["telemetry.smart_growth"] = growth
        values["telemetry.throttled"] = any(growth.get(name, 0) > 0 for name in THERMAL_COUNTERS)
    warm = _temperature(recording, log)
    if warm is None:
        return values | {"telemetry.code": NOT_MEASURED}
    title, time_ns, celsius = warm
    spans = recording.measured_spans()
    during = np.any([(time_ns >= span.start_ns) & (time_ns <= span.end_ns) for span in spans], axis=0)
    inside = celsius[during] if len(spans) else celsius[:0]
    values["telemetry.source"] = title
    values["telemetry.temperature_before_mc"] = round(float(celsius[0]))
    values["telemetry.temperature_after_mc"] = round(float(celsius[-1]))
    values["telemetry.temperature_max_mc"] = round(float(inside.max())) if len(inside) else None
    return values


def thermal_growth(recording: Recording) -> dict[str, int]:
    """By how much each of `THERMAL_COUNTERS` grew in the measured phases; those that did not are left out.

    A log is read every some seconds: growth between two readings counts where a measured phase lies between
    them, even in part, so that none is missed and none is counted twice. A counter that was set back did not
    grow.
    """
    log = _smart_log(recording)
    growth: dict[str, int] = {}
    for name in THERMAL_COUNTERS if log is not None else ():
        assert log is not None
        values = log.values.get(name)
        if values is None:
            continue
        known = np.isfinite(values)
        time_ns, counted = log.time_ns[known], values[known]
        measured = np.zeros(max(len(counted) - 1, 0), bool)
        for span in recording.measured_spans():
            measured |= (time_ns[:-1] < span.end_ns) & (time_ns[1:] > span.start_ns)
        grown = int(np.maximum(np.diff(counted), 0)[measured].sum())
        if grown:
            growth[name] = grown
    return growth


def _smart_log(recording: Recording) -> Metered | None:
    """The drive's SMART log, with a reading at least."""
    logs = (metered for metered in recording.meters() if metered.source.kind == "nvme")
    return next((log for log in logs if len(log.time_ns)), None)


def _temperature(recording: Recording, log: Metered | None) -> Readings | None:
    told = recording.telemetry().get("temperature")
    if log is None and told is not None and told.unit == "mC" and len(told.time_ns):
        return "the modelled drive's own log", told.time_ns, told.value.astype(np.float64)
    celsius = log.values.get(_TEMPERATURE) if log is not None else None
    if log is None or celsius is None or not (known := np.isfinite(celsius)).any():
        return None
    return log.source.title, log.time_ns[known], celsius[known]


def _whole(value: float) -> int | None:
    return None if np.isnan(value) else int(value)


METRIC = Metric("telemetry", _KEYS, (), compute, needs="manifest")
