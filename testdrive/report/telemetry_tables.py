"""Temperature and the SMART log of each drive, before and after, on any page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from testdrive.report import html, units
from testdrive.report.html import Markup, Node
from testdrive.report.power_tables import NOT_MEASURED
from testdrive.report.rows import dig
from testdrive.report.subject import Subject

#: What pages show of the log: its name there, its name in the summary, and its unit.
_SHOWN = (
    ("Percentage used", "percentage_used_percent", "%"),
    ("Available spare", "available_spare_percent", "%"),
    ("Data read", "data_units_read", "units"),
    ("Data written", "data_units_written", "units"),
    ("Media errors", "media_errors", ""),
    ("Entries of the error log", "error_log_entries", ""),
    ("Unsafe shutdowns", "unsafe_shutdowns", ""),
    ("Power-on hours", "power_on_hours", "h"),
    ("Above the warning temperature", "warning_temperature_time_min", "min"),
    ("Above the critical temperature", "critical_temperature_time_min", "min"),
    ("Throttled lightly", "thermal_management_1_time_s", "s"),
    ("Throttled heavily", "thermal_management_2_time_s", "s"),
    ("Critical warnings (flags)", "critical_warning_flags", ""),
)
_DATA_UNIT_BYTES = 512_000


def telemetry_section(subjects: Sequence[Subject]) -> Markup | None:
    """Return temperature and SMART log of each drive; None where no drive told anything."""
    told = [one for one in subjects if not dig(one.summary, "telemetry.code")]
    if not told:
        return None
    temperatures = html.table(
        ["", "Before", "Highest while measured", "After", "Throttled", "Told by"],
        [_temperature(one) for one in subjects],
        caption="Temperature",
    )
    logs = [_log(one) for one in subjects if dig(one.summary, "telemetry.smart_before")]
    return html.section("telemetry", "Temperature and SMART log", temperatures, *logs, link="Temperature")


def _temperature(one: Subject) -> list[Node]:
    found: Mapping[str, Any] = dig(one.summary, "telemetry") or {}
    if found.get("code") or not found:
        return [one.label, *[NOT_MEASURED] * 4, units.ABSENT]
    throttled = found["throttled"]
    return [
        one.label,
        *(_celsius(found[f"temperature_{when}_mc"]) for when in ("before", "max", "after")),
        NOT_MEASURED if throttled is None else "yes" if throttled else "no",
        str(found["source"]),
    ]


def _celsius(value_mc: int | None) -> str:
    return NOT_MEASURED if value_mc is None else f"{value_mc / 1000:.1f} °C".replace(".0 ", " ")


def _log(one: Subject) -> Markup:
    before, after = (dig(one.summary, f"telemetry.smart_{when}") for when in ("before", "after"))
    growth = dig(one.summary, "telemetry.smart_growth") or {}
    rows: list[list[Node]] = []
    for words, name, unit in _SHOWN:
        if before.get(name) is None and after.get(name) is None:
            continue
        grown = growth.get(name)
        rows.append(
            [
                words,
                _value(before.get(name), unit),
                _value(after.get(name), unit),
                units.ABSENT if grown is None else _value(grown, unit),
            ]
        )
    return html.table(["", "Before", "After", "Grew by"], rows, caption=f"SMART log, {one.label}")


def _value(value: int | None, unit: str) -> str:
    if value is None:
        return units.ABSENT
    if unit == "units":
        return units.capacity(value * _DATA_UNIT_BYTES)
    return f"{value:,} {unit}".rstrip()
