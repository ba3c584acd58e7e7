"""The rules that a user sets on latencies: ``p99.9<1ms``, ``mean <= 200us``, ``above 1ms < 0.1%``.

A rule is a quantity, ``<`` or ``<=``, and a limit; several stand with commas between them. What is not a rule
is an error that names the character, and never read as something near it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from testdrive.errors import UsageError
from testdrive.quantities import duration_ns

Kind = Literal["percentile", "mean", "max", "above"]

#: Percentiles are whole millionths, so that ranks are exact.
_MILLION = 1_000_000
_PERCENTILE_MIN, _PERCENTILE_MAX = Decimal(50), Decimal("99.9999")
#: A percentile from here on is claimed only with the samples that bound it (docs/methods/qos.md).
_CLAIMED_FREELY_BELOW = 990_000
_CONFIDENCE = 0.95

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_WORD = re.compile(r"[A-Za-z]+")
_DURATION = re.compile(r"(?:[0-9.]+\s*[A-Za-zµ]+)+")
_SPACE = re.compile(r"\s*")


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes
    ----------
    text : str
        As people write it, without spaces that say nothing.
    kind : str
        What is held: a percentile, the mean, the longest, or the share that took ``threshold_ns`` or more.
    limit : Fraction
        In nanoseconds, or a share.
    inclusive : bool
        Whether the limit itself holds.
    millionths : int
        Which percentile, 999,000 for p99.9; 0 for other kinds.
    threshold_ns : int
        Of ``above``; 0 for other kinds.
    """

    text: str
    kind: Kind
    limit: Fraction
    inclusive: bool
    millionths: int = 0
    threshold_ns: int = 0

    @property
    def quantity(self) -> str:
        """What is held, without the limit."""
        return re.split("<", self.text, maxsplit=1)[0].strip()

    @property
    def is_share(self) -> bool:
        """Whether the limit is a share of I/Os, not a time."""
        return self.kind == "above"

    @property
    def samples_min(self) -> int:
        """The fewest I/Os of which it can be claimed.

        For a percentile p from p99 up the least n with ``1 - p^n >= 0.95``, as everywhere in this project;
        else 1.
        """
        if self.millionths < _CLAIMED_FREELY_BELOW:
            return 1
        return math.ceil(math.log(1 - _CONFIDENCE) / math.log(self.millionths / _MILLION))

    def holds(self, value: Fraction | float) -> bool:
        """Whether a value is within the limit."""
        return value <= self.limit if self.inclusive else value < self.limit


def parse_rules(text: str) -> list[Rule]:
    """Read rules with commas between them.

    Raises
    ------
    UsageError
        Something is no rule; the message has the character, counted from 1, and what may stand there.
    """
    reader = _Reader(text)
    rules = [reader.rule()]
    while not reader.at_end():
        reader.expect(",", "a comma and another rule, or nothing")
        rules.append(reader.rule())
    return rules


class _Reader:
    """Reads one text from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def _skip(self) -> None:
        found = _SPACE.match(self.text, self.at)
        assert found is not None, "no space is a match too"
        self.at = found.end()

    def at_end(self) -> bool:
        self._skip()
        return self.at >= len(self.text)

    def wrong(self, wanted: str, at: int | None = None) -> UsageError:
        place = self.at if at is None else at
        rest = self.text[place:].strip()
        found = f"{rest!r} begins at character {place + 1}" if rest else "the text ends"
        return UsageError(
            f"rules {self.text!r}: {found}, where there must be {wanted}; docs/methods/qos.md has the rules"
        )

    def take(self, pattern: re.Pattern[str], wanted: str) -> str:
        self._skip()
        found = pattern.match(self.text, self.at)
        if found is None:
            raise self.wrong(wanted)
        self.at = found.end()
        return found.group()

    def expect(self, mark: str, wanted: str) -> None:
        self._skip()
        if not self.text.startswith(mark, self.at):
            raise self.wrong(wanted)
        self.at += len(mark)

    def rule(self) -> Rule:
        self._skip()
        start = self.at
        wanted = "p50 to p99.9999, mean, max, or above and a duration"
        word = self.take(_WORD, wanted)
        kind: Kind
        millionths = threshold_ns = 0
        if word == "p":
            kind, millionths = "percentile", self._millionths(start)
        elif word == "mean":
            kind = "mean"
        elif word == "max":
            kind = "max"
        elif word == "above":
            kind, threshold_ns = "above", self._duration()
        else:
            raise self.wrong(wanted, start)
        self.expect("<", "< or <=")
        inclusive = self.text.startswith("=", self.at)
        self.at += inclusive
        limit = self._share() if kind == "above" else Fraction(self._duration())
        return Rule(
            " ".join(self.text[start : self.at].split()), kind, limit, inclusive, millionths, threshold_ns
        )

    def _millionths(self, start: int) -> int:
        # Right after the letter: "p 99" is a slip as likely as not.
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            raise self.wrong("the percentile's number, as in p99.9")
        self.at = found.end()
        percent = Decimal(found.group())
        millionths = percent * (_MILLION // 100)
        if not _PERCENTILE_MIN <= percent <= _PERCENTILE_MAX or millionths != int(millionths):
            raise self.wrong("a percentile from p50 to p99.9999, with at most four decimals", start)
        return int(millionths)

    def _duration(self) -> int:
        self._skip()
        start = self.at
        wanted = "a duration above 0 with its unit, such as 1ms or 200us"
        text = self.take(_DURATION, wanted)
        try:
            found = duration_ns(text)
        except UsageError:
            raise self.wrong(wanted, start) from None
        if not found:
            raise self.wrong(wanted, start)
        return found

    def _share(self) -> Fraction:
        self._skip()
        start = self.at
        wanted = "a share above 0 and below 100 % with its sign, such as 0.1%"
        number = Fraction(self.take(_NUMBER, wanted))
        self._skip()
        if not self.text.startswith("%", self.at):
            raise self.wrong(wanted, start)
        self.at += 1
        if not 0 < number < 100:
            raise self.wrong(wanted, start)
        return number / 100
