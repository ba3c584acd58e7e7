"""Meters of the kernel's hardware monitoring: channels of /sys/class/hwmon
(Documentation/hwmon/sysfs-interface).

A channel has one or more of ``powerN_input`` (microwatts, now), ``powerN_average`` (microwatts, over
``powerN_average_interval``) and ``energyN_input`` (microjoules, counted). Where a channel has a counter of
energy it is what is integrated, since nothing between two readings escapes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from testdrive.power.choice import Choice
from testdrive.power.meter import Of, Source, Values, integer_of, read_integer, sysfs, text_of

_ATTRIBUTE = re.compile(r"(power|energy)(\d+)_(input|average)")
#: Drivers whose power is the whole host's or another part's, never a drive's.
_HOST_DRIVERS = ("power_meter", "amdgpu", "i915", "xe", "corsairpsu", "fam15h_power", "amd_energy")


@dataclass(frozen=True)
class Channel:
    """A channel of a chip that has power or energy."""

    chip: Path
    driver: str
    label: str
    name: str
    power: Path | None
    energy: Path | None
    temperature: Path | None

    @property
    def of(self) -> Of:
        """Whether it is the host's, by its driver."""
        return "host" if self.driver in _HOST_DRIVERS else "drive"

    @property
    def address(self) -> str:
        """How it is asked for."""
        return f"hwmon:{self.driver}:{self.name}"


def channels(root: Path | None = None) -> Iterator[Channel]:
    """Every channel of this host that has power or energy, in the order of chips and numbers.

    `root` stands for sysfs, where it is another's.
    """
    for chip in _chips(root or sysfs()):
        yield from _channels_of(chip)


def _chips(root: Path) -> list[Path]:
    folder = root / "class" / "hwmon"
    if not folder.is_dir():
        return []
    return sorted(folder.iterdir(), key=lambda path: (len(path.name), path.name))


def _channels_of(chip: Path) -> Iterator[Channel]:
    found: dict[tuple[str, int], dict[str, Path]] = {}
    for path in chip.iterdir():
        match = _ATTRIBUTE.fullmatch(path.name)
        if match:
            found.setdefault((match[1], int(match[2])), {})[match[3]] = path
    driver = text_of(chip / "name") or chip.name
    temperature = chip / "temp1_input"
    for (what, number), files in sorted(found.items(), key=lambda item: (item[0][0] != "power", item[0])):
        power = files.get("input") or files.get("average") if what == "power" else None
        # A counter of the same number is the same channel, as drivers number them.
        counter = found.get(("energy", number), {}).get("input")
        if what == "energy" and ("power", number) in found:
            continue
        yield Channel(
            chip=chip,
            driver=driver,
            label=text_of(chip / f"{what}{number}_label") or "",
            name=f"{what}{number}",
            power=power,
            energy=counter,
            temperature=temperature if integer_of(temperature) is not None else None,
        )


class HwmonMeter:
    """One channel, opened."""

    def __init__(self, channel: Channel, choice: Choice) -> None:
        self._channel = channel
        averaged = channel.power is not None and channel.power.name.endswith("_average")
        interval_ms = integer_of(channel.chip / f"{channel.name}_average_interval") if averaged else None
        told = text_of(channel.chip / f"{channel.name}_accuracy")
        uncertainty = (
            f"{told.removesuffix('%').strip()} % by its driver" if told else "not stated by the meter"
        )
        if interval_ms:
            uncertainty += f"; each value is the mean of {interval_ms} ms"
        label = f" ({channel.label})" if channel.label else ""
        self.source = Source(
            name=choice.name,
            kind="hwmon",
            of=choice.of or channel.of,
            title=f"{channel.driver} {channel.name}{label}",
            interval_ns=choice.interval_ns,
            uncertainty=uncertainty,
            details={"chip": str(channel.chip), "average_interval_ms": interval_ms},
        )

    def read(self) -> Values:
        """Read power, energy and the chip's temperature, as far as it has them."""
        channel = self._channel
        parts = {"energy_uj": channel.energy, "power_uw": channel.power}
        values = {name: read_integer(path) for name, path in parts.items() if path is not None}
        # The sensor's own, not the drive's. One that cannot be read now does not cost the power.
        if channel.temperature is not None and (warm := integer_of(channel.temperature)) is not None:
            values["chip_temperature_mc"] = warm
        return values

    def close(self) -> None:
        """Nothing is kept open."""


def open_meter(choice: Choice) -> HwmonMeter:
    """Open the channel that ``hwmon:NAME_OR_PATH[:channel]`` means; without a channel the chip's first.

    Raises
    ------
    UsageError
        There is no such chip or channel, several chips have the name, or it cannot be read.
    """
    chip, channel_name = _divided(choice.place)
    every = list(channels())
    if not chip:
        raise choice.error(f"names no chip; {_offer(every)}")
    named = [channel for channel in every if _is_meant(channel, chip)]
    if not named and Path(chip).is_absolute() and Path(chip).is_dir():
        named = list(_channels_of(Path(chip)))
    if not named:
        raise choice.error(f"this host has no chip {chip!r} with power or energy; {_offer(every)}")
    if len({channel.chip for channel in named}) > 1:
        paths = ", ".join(sorted({channel.chip.name for channel in named}))
        raise choice.error(f"several chips have the name {chip!r}; give one of {paths}")
    chosen = [channel for channel in named if channel_name in ("", channel.name, channel.label)]
    if not chosen:
        names = ", ".join(channel.name for channel in named)
        raise choice.error(f"{chip} has no channel {channel_name!r}; it has {names}")
    meter = HwmonMeter(chosen[0], choice)
    try:
        meter.read()
    except OSError as error:
        raise choice.error(f"cannot be read: {error}") from None
    return meter


def _divided(place: str) -> tuple[str, str]:
    """Chip and channel; a path may itself have colons, as PCI addresses do."""
    if place.startswith("/"):
        if Path(place).exists():
            path = Path(place)
            match = _ATTRIBUTE.fullmatch(path.name)
            return (str(path.parent), f"{match[1]}{match[2]}") if match and path.is_file() else (place, "")
        chip, _, channel = place.rpartition(":")
        return (chip, channel) if chip else (place, "")
    chip, _, channel = place.partition(":")
    return chip, channel


def _is_meant(channel: Channel, chip: str) -> bool:
    if chip in (channel.driver, channel.chip.name):
        return True
    return chip.startswith("/") and Path(chip).resolve() == channel.chip.resolve()


def _offer(every: list[Channel]) -> str:
    if not every:
        return "this host's hardware monitoring has no channel with power or energy"
    return "there are " + ", ".join(f"{channel.address} ({channel.chip.name})" for channel in every)
