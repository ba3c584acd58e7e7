"""What `testdrive power attach` prints: what was brought in, and what each phase drew by it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table

from testdrive.cli.tables import table
from testdrive.report import units

if TYPE_CHECKING:
    from testdrive.power import Attached

_NUMBERS = ("mean", "MB/s per W", "kIOPS per W", "each I/O", "measured")


def attached_lines(attached: Attached, power: Mapping[str, Any]) -> Iterator[str | Table]:
    """Yield lines and a table, within 80 columns."""
    yield (
        f"{units.count(attached.readings)} readings, from {units.moment(attached.start_ns)} to"
        f" {units.moment(attached.end_ns)} of the recording"
    )
    if attached.passed_over:
        yield f"{units.count(attached.passed_over)} lines are no readings and were passed over"
    yield f"clock: {attached.clock}"
    made = table("phase", *_NUMBERS, right=_NUMBERS)
    for phase in power.get("phases") or []:
        made.add_row(
            phase["name"],
            "not measured" if phase["mean_w"] is None else f"{units.significant(phase['mean_w'])} W",
            units.number(_scaled(phase["throughput_bytes_per_s_per_w"], 1e6)),
            units.number(_scaled(phase["iops_per_w"], 1e3)),
            _energy(phase["energy_per_io_uj"]),
            units.percent(phase["covered_share"]),
        )
    yield made
    idle_w = power.get("idle_w")
    if idle_w is not None:
        yield f"idle before the run: {units.significant(idle_w)} W"


def _scaled(value: float | None, by: float) -> float | None:
    return None if value is None else value / by


def _energy(value_uj: float | None) -> str:
    from testdrive.report.power_tables import energy

    return units.ABSENT if value_uj is None else energy(value_uj)
