"""Several measurements of one thing: median, least and greatest, and ratios taken round by round."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

Sample = TypeVar("Sample")


class Spread:
    """The values of several rounds."""

    def __init__(self, values: Sequence[float]) -> None:
        if not values:
            raise ValueError("a spread needs at least one value")
        self.values = list(values)
        self.median = statistics.median(values)
        self.min = min(values)
        self.max = max(values)

    def __truediv__(self, other: Spread) -> Spread:
        """Ratios of the same rounds: what changed between rounds changed both, and cancels."""
        return Spread([mine / theirs for mine, theirs in zip(self.values, other.values, strict=True)])

    def scaled(self, factor: float) -> Spread:
        return Spread([value * factor for value in self.values])

    def text(self, digits: int, unit: str = "") -> str:
        """For people: `median (min..max)`."""
        # Adding 0 to what was rounded makes a zero of "-0".
        median, least, most = (
            f"{round(value, digits) + 0.0:,.{digits}f}" for value in (self.median, self.min, self.max)
        )
        return f"{median}{unit}" if len(self.values) == 1 else f"{median}{unit} ({least}..{most})"

    def json(self) -> dict[str, object]:
        return {"median": self.median, "min": self.min, "max": self.max, "values": self.values}


def alternate(contenders: Mapping[str, Callable[[], Sample]], rounds: int) -> dict[str, list[Sample]]:
    """Every contender once a round, in turns forwards and backwards: a drift of the machine favours none."""
    samples: dict[str, list[Sample]] = {name: [] for name in contenders}
    names = list(contenders)
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            samples[name].append(contenders[name]())
    return samples
