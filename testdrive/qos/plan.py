"""What the plan ``qos`` makes of its parameters: rules that are read, and the fewest I/Os that they need."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from testdrive.errors import UsageError
from testdrive.qos.rules import Rule, parse_rules

SECOND_NS = 1_000_000_000
#: Outstanding I/Os beyond which further ones wait, and are late; fewer where their buffers would not fit.
IN_FLIGHT_MAX = 4_096
BUFFERS_MAX_BYTES = 1 << 30
#: What keeps the settling's random numbers apart from those of the load that is judged, and the preparation's
#: from both: a load in the order in which the drive was written would find its data evenly spread, and its
#: writes would free whole blocks.
_SETTLING_SEED = 1_000_003
PREPARING_SEED = 2_000_003
_READ, _WRITE = "read", "write"
#: The mean of a Poisson count that is hardly ever 0.
NEVER_EMPTY_MEAN = 15


def derive(values: Mapping[str, Any]) -> dict[str, Any]:
    """Check the parameters against each other, and add what the phases and the verdict need.

    Raises
    ------
    UsageError
        A rule is none, or values contradict each other.
    """
    parse_rules(values["rules"])
    if not 0 <= values["read-share"] <= 1:
        raise UsageError(f"read-share is {values['read-share']:g}; give a share from 0 to 1")
    _check_times(values)
    for name in ("rate", "highest", "lowest", "from", "at-least"):
        value = values[name]
        if value is not None and not (value > 0 and math.isfinite(value)):
            raise UsageError(f"{name} is {value:g}; give I/Os a second, more than 0")
    if not 0 < values["resolution"] <= 1:
        raise UsageError(f"resolution is {values['resolution']:g}; give a share above 0 and up to 1")
    if values["block"] < 1:
        raise UsageError(f"block is {values['block']}; give the size of an I/O")
    if values["max-lag"] < 1:
        raise UsageError("max-lag is 0; give the time by which a drive may be late, such as 10s")
    return {
        "opcodes": judged_opcodes(values),
        "settles": "yes" if values["settle"] else "no",
        "settling-seed": values["seed"] + _SETTLING_SEED,
        "preparing-seed": values["seed"] + PREPARING_SEED,
        "in-flight": max(1, min(IN_FLIGHT_MAX, BUFFERS_MAX_BYTES // values["block"])),
    }


def judged_opcodes(values: Mapping[str, Any]) -> list[str]:
    """The opcodes that rules are held to: those given, else reads, or writes where the load has no reads."""
    present = {_READ: values["read-share"], _WRITE: 1 - values["read-share"]}
    if values["opcodes"] is None:
        return [_READ] if present[_READ] else [_WRITE]
    for opcode in values["opcodes"]:
        if not present.get(opcode):
            raise UsageError(
                f"opcodes has {opcode!r}, and with read-share {values['read-share']:g} the load has none;"
                " judge those that it has"
            )
    return list(dict.fromkeys(values["opcodes"]))


def _check_times(values: Mapping[str, Any]) -> None:
    interval_ns = values["interval"]
    if interval_ns < SECOND_NS or interval_ns % SECOND_NS:
        raise UsageError(f"interval is {interval_ns / SECOND_NS:g} s; give whole seconds, at least one")
    for name in ("for", "confirm-for"):
        value = values[name]
        if value is not None and (value < interval_ns or value % interval_ns):
            raise UsageError(
                f"{name} is {value / SECOND_NS:g} s and interval {interval_ns / SECOND_NS:g} s; give a whole"
                " number of intervals, since every one is judged"
            )


def lowest_claimed_rate(values: Mapping[str, Any]) -> tuple[float, Rule | None]:
    """The lowest rate at which every interval has the I/Os that rules need, and the rule that needs most.

    The number in an interval varies: with Poisson arrivals, and with a mix of opcodes, five standard
    deviations of a Poisson count are added to what is needed.
    """
    shares = {_READ: values["read-share"], _WRITE: 1 - values["read-share"]}
    share = min(shares[opcode] for opcode in values["opcodes"])
    worst = max(parse_rules(values["rules"]), key=lambda rule: rule.samples_min)
    interval_s = values["interval"] / SECOND_NS
    if worst.samples_min == 1:
        even = values["arrivals"] == "constant" and share == 1
        # Evenly spread, one a second leaves no interval empty. Else an interval is empty with e^-mean, which
        # is as unlikely as five deviations (3e-7) from a mean of 15 on.
        return (1.0 if even else max(1.0, NEVER_EMPTY_MEAN / interval_s)) / share, None
    wanted = worst.samples_min + 5 * math.sqrt(worst.samples_min)
    return math.ceil(wanted / (share * interval_s)), worst
