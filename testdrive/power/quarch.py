"""A Quarch power module through quarchpy, which is the manufacturer's own and an extra of its own
(``testdrive[quarch]``): it brings pandas and a Java runtime, some hundred MB that no other meter needs.

The module is asked for what it measures at its outputs, ``measure:outputs?``, and nothing of it is changed:
neither its averaging nor whether it supplies power. It answers with a line for each quantity of each rail, as
``5V Voltage = 5012 mV`` and ``5V Current = 250000 uA``. Power is voltage times current, added up over all
rails; a rail that tells its power itself is taken at its word.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import re
import sys
from collections.abc import Callable
from typing import Any

from testdrive.power.choice import Choice
from testdrive.power.meter import Source, Values

_COMMAND = "measure:outputs?"
_LINE = re.compile(r"^(?P<name>[^=:]*\S)\s*[=:]\s*(?P<value>-?\d+(?:\.\d+)?)\s*(?P<unit>[num\u00b5]?[VAW])\b")
#: Of a rail's name, what says which quantity it is.
_QUANTITY = re.compile(r"[\s_-]*(voltage|volts?|current|amps?|power|[VIP])\s*$", re.IGNORECASE)
_SCALES = {"": 1.0, "m": 1e-3, "u": 1e-6, "\u00b5": 1e-6, "n": 1e-9}
_TIMEOUT_S = "5"
#: Addresses that quarchpy takes; behind ``qis:`` stands one of a module that its server QIS serves.
_CONNECTIONS = ("tcp", "usb", "rest", "telnet", "serial")


def power_uw(answer: str) -> int:
    """Return the power over all rails that a module's answer tells.

    Raises
    ------
    OSError
        It tells no power, or a voltage without its current.
    """
    rails: dict[str, dict[str, float]] = {}
    for line in answer.splitlines():
        match = _LINE.match(line.strip())
        if match is None:
            continue
        unit = match["unit"]
        rail = _QUANTITY.sub("", match["name"]).strip().lower()
        rails.setdefault(rail, {})[unit[-1]] = float(match["value"]) * _SCALES[unit[:-1]]
    total_w, known = 0.0, False
    for rail, values in rails.items():
        if "W" in values:
            total_w += values["W"]
        elif "V" in values and "A" in values:
            total_w += values["V"] * values["A"]
        elif "A" in values:
            raise OSError(f"the module told a current of {rail or 'a rail'} without its voltage: {answer!r}")
        else:
            continue
        known = True
    if not known:
        raise OSError(f"the module told no power: {answer.strip()[:120]!r}")
    return round(total_w * 1e6)


class QuarchMeter:
    """A module, connected; one that hung up is connected to again at the next reading."""

    def __init__(self, connect: Callable[[], Any], choice: Choice) -> None:
        self._connect = connect
        self._device: Any = connect()
        identity = self._ask("*idn?")
        name = " ".join(identity.split())[:100] or choice.place
        self.source = Source(
            name=choice.name,
            kind="quarch",
            of=choice.of or "drive",
            title=f"a Quarch module ({name})",
            interval_ns=choice.interval_ns,
            uncertainty="not stated by the module in its answer; its data sheet has it",
            details={"address": choice.place, "identity": identity.strip()},
        )

    def read(self) -> Values:
        """Read what it measures at its outputs."""
        try:
            return {"power_uw": power_uw(self._ask(_COMMAND))}
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """Let the module go, which serves one connection at a time."""
        device, self._device = self._device, None
        if device is not None:
            with contextlib.suppress(Exception):
                device.close_connection()

    def _ask(self, command: str) -> str:
        if self._device is None:
            self._device = self._connect()
        return str(self._device.send_command(command) or "")


def open_meter(choice: Choice) -> QuarchMeter:
    """Open ``quarch:TCP:ADDRESS``, ``quarch:USB:QTL...`` and the like; ``quarch:qis:TCP:ADDRESS`` by a
    running QIS.

    Raises
    ------
    UsageError
        quarchpy is not installed, there is no such module, or it tells no power.
    """
    place, connection_type = choice.place, "PY"
    if place.lower().startswith("qis:"):
        place, connection_type = place[4:], "QIS"
    if place.partition(":")[0].lower() not in _CONNECTIONS:
        kinds = ", ".join(name.upper() for name in _CONNECTIONS)
        raise choice.error(
            f"{choice.place!r} is no address of a module; give quarch:TCP:192.168.1.4 ({kinds})"
        )
    quarchpy = _quarchpy(choice)
    try:
        meter = QuarchMeter(
            lambda: quarchpy.get_quarch_device(place, connection_type, _TIMEOUT_S),
            choice,
        )
    except Exception as error:
        # quarchpy raises whatever it is given by what is beneath it.
        cause = error.__cause__ or error
        raise choice.error(
            f"no module answers at {place}: {cause}; check its address and its cable"
        ) from error
    try:
        meter.read()
    except Exception as error:
        raise choice.error(f"the module at {place} cannot be read: {error}") from error
    return meter


def _quarchpy(choice: Choice) -> Any:
    """The manufacturer's package, kept from speaking up by itself and from changing where we import from."""
    places = list(sys.path)
    try:
        module = importlib.import_module("quarchpy")
    except ImportError as error:
        raise choice.error(
            f"a Quarch module needs the package quarchpy ({error}); pip install 'testdrive[quarch]'"
        ) from error
    finally:
        sys.path[:] = places
    logging.getLogger("quarchpy").setLevel(logging.CRITICAL + 1)
    return module
