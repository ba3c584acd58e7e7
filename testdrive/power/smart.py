"""The SMART and health log of an NVMe drive, decoded (NVM Express Base Specification 2.1, 5.1.12.1.3, figure
207).

Little endian, 512 bytes. Counters of 16 bytes are taken whole. A sensor of temperature that reads 0 is not
there. Bytes 240 to 243 are the interval power measurement of revision 2.3, which older drives leave 0: bits
15:0 the power, bits 17:16 its scale (1: 0.1 mW, 2: 10 mW; 0: not reported).
"""

from __future__ import annotations

LOG_ID = 0x02
LOG_BYTES = 512
_KELVIN = 273
#: Name, place, length: one integer each.
_FIELDS = (
    ("critical_warning_flags", 0, 1),
    ("available_spare_percent", 3, 1),
    ("available_spare_threshold_percent", 4, 1),
    ("percentage_used_percent", 5, 1),
    ("data_units_read", 32, 16),
    ("data_units_written", 48, 16),
    ("host_read_commands", 64, 16),
    ("host_write_commands", 80, 16),
    ("controller_busy_time_min", 96, 16),
    ("power_cycles", 112, 16),
    ("power_on_hours", 128, 16),
    ("unsafe_shutdowns", 144, 16),
    ("media_errors", 160, 16),
    ("error_log_entries", 176, 16),
    ("warning_temperature_time_min", 192, 4),
    ("critical_temperature_time_min", 196, 4),
    ("thermal_management_1_transitions", 216, 4),
    ("thermal_management_2_transitions", 220, 4),
    ("thermal_management_1_time_s", 224, 4),
    ("thermal_management_2_time_s", 228, 4),
)
_SENSORS_AT, _SENSORS = 200, 8
_COMPOSITE_AT = 1
_INTERVAL_POWER_AT = 240
#: Microwatts for each step of the two scales of power.
_SCALE_UW = {1: 100, 2: 10_000}
#: Thousands of 512 bytes.
DATA_UNIT_BYTES = 512_000


def decode(page: bytes) -> dict[str, int]:
    """Decode the log.

    Parameters
    ----------
    page : bytes
        512 bytes, as the drive returned them.

    Returns
    -------
    dict
        Integers by names that end in their unit; ``temperature_mc`` is the composite temperature,
        ``sensor_N_temperature_mc`` each sensor that is there, ``power_uw`` the interval power measurement
        where the drive makes one.

    Raises
    ------
    ValueError
        The page has another length.
    """
    if len(page) != LOG_BYTES:
        raise ValueError(f"a SMART log has {LOG_BYTES} bytes, not {len(page)}")
    values = {name: _integer(page, at, length) for name, at, length in _FIELDS}
    values["temperature_mc"] = _celsius_mc(_integer(page, _COMPOSITE_AT, 2))
    for number in range(_SENSORS):
        kelvin = _integer(page, _SENSORS_AT + 2 * number, 2)
        if kelvin:
            values[f"sensor_{number + 1}_temperature_mc"] = _celsius_mc(kelvin)
    interval = _integer(page, _INTERVAL_POWER_AT, 4)
    scale_uw = _SCALE_UW.get(interval >> 16 & 0x3)
    if scale_uw is not None:
        values["power_uw"] = (interval & 0xFFFF) * scale_uw
    return values


def _integer(page: bytes, at: int, length: int) -> int:
    return int.from_bytes(page[at : at + length], "little")


def _celsius_mc(kelvin: int) -> int:
    return (kelvin - _KELVIN) * 1000
