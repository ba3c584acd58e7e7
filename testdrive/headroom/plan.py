"""What the plan ``headroom`` makes of its parameters, as far as they say it without the recording."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from testdrive.errors import UsageError
from testdrive.qos.plan import PREPARING_SEED
from testdrive.qos.rules import parse_rules

MILLISECOND_NS = 1_000_000
#: The speeds that a replay takes.
SPEED_MIN, SPEED_MAX = 1e-6, 1e6


def derive(values: Mapping[str, Any]) -> dict[str, Any]:
    """Check the parameters against each other, and add what the phases need.

    Raises
    ------
    UsageError
        A rule is none, or values contradict each other.
    """
    parse_rules(values["rules"])
    from_ns, to_ns = values["from"] or 0, values["to"]
    if to_ns is not None and to_ns <= from_ns:
        raise UsageError(f"to is {to_ns / 1e9:g} s and from {from_ns / 1e9:g} s; give a later end")
    if values["interval"] < MILLISECOND_NS:
        raise UsageError(f"interval is {values['interval']} ns; give a millisecond of the recording or more")
    if values["max-lag"] < 1:
        raise UsageError("max-lag is 0; give the time by which a drive may be late, such as 10s")
    if not 0 < values["resolution"] <= 1:
        raise UsageError(f"resolution is {values['resolution']:g}; give a share above 0 and up to 1")
    _check_speeds(values)
    settled_ns = from_ns + values["settle"]
    return {
        "settles": "yes" if values["settle"] else "no",
        # A recording of a load that testdrive made itself may be of random numbers from the same seed.
        "preparing-seed": values["seed"] + PREPARING_SEED,
        "settle-to": settled_ns if to_ns is None else min(settled_ns, to_ns),
    }


def _check_speeds(values: Mapping[str, Any]) -> None:
    for name in ("speed", "lowest", "highest"):
        if not (math.isfinite(values[name]) and SPEED_MIN <= values[name] <= SPEED_MAX):
            raise UsageError(f"{name} is {values[name]:g}; give a speed from {SPEED_MIN:g} to {SPEED_MAX:g}")
    wanted = values["at-least"]
    if wanted is not None and not (wanted > 0 and math.isfinite(wanted)):
        raise UsageError(f"at-least is {wanted:g}; give a speed above 0: 2 is twice the workload")
    if values["lowest"] > values["highest"]:
        raise UsageError(
            f"lowest is {values['lowest']:g} and highest {values['highest']:g}; give a lower lowest"
        )
