"""The rules' language: what is read, and what is refused with the character that is wrong."""

from __future__ import annotations

from fractions import Fraction

import pytest

from testdrive.errors import UsageError
from testdrive.metrics.percentiles import SAMPLES_MIN
from testdrive.qos.rules import parse_rules


@pytest.mark.parametrize(
    ("text", "kind", "limit", "inclusive", "millionths", "threshold_ns"),
    [
        ("p99.9<1ms", "percentile", 1_000_000, False, 999_000, 0),
        ("p50 <= 80us", "percentile", 80_000, True, 500_000, 0),
        ("p99.999<1.5ms", "percentile", 1_500_000, False, 999_990, 0),
        ("mean<200us", "mean", 200_000, False, 0, 0),
        ("max<=1s", "max", 1_000_000_000, True, 0, 0),
        ("above 1ms < 0.1%", "above", Fraction(1, 1000), False, 0, 1_000_000),
        ("above 500us<=5 %", "above", Fraction(1, 20), True, 0, 500_000),
    ],
)
def test_a_rule_is_read(
    text: str, kind: str, limit: Fraction, inclusive: bool, millionths: int, threshold_ns: int
) -> None:
    (rule,) = parse_rules(text)
    assert (rule.kind, rule.limit, rule.inclusive) == (kind, limit, inclusive)
    assert (rule.millionths, rule.threshold_ns) == (millionths, threshold_ns)


def test_several_rules_stand_with_commas_between_them() -> None:
    rules = parse_rules(" p99 < 1ms ,mean<200us, above 1ms < 0.1% ")
    assert [rule.text for rule in rules] == ["p99 < 1ms", "mean<200us", "above 1ms < 0.1%"]
    assert [rule.quantity for rule in rules] == ["p99", "mean", "above 1ms"]


@pytest.mark.parametrize(
    ("text", "character", "wanted"),
    [
        ("q99<1ms", 1, "p50 to p99.9999, mean, max, or above"),
        ("p99>1ms", 4, "< or <="),
        ("p99=1ms", 4, "< or <="),
        ("p49<1ms", 1, "from p50 to p99.9999"),
        ("p100<1ms", 1, "from p50 to p99.9999"),
        ("p99.99999<1ms", 1, "at most four decimals"),
        ("p 99<1ms", 2, "the percentile's number"),
        ("p99<1", 5, "a duration"),
        ("p99<0ms", 5, "above 0"),
        ("p99<1parsec", 5, "a duration"),
        ("p99<1ms p50<1ms", 9, "a comma"),
        ("p99<1ms, average<1ms", 10, "mean"),
        ("above 1ms < 0.001", 13, "with its sign"),
        ("above 1ms < 0%", 13, "above 0"),
        ("above 1ms < 100%", 13, "below 100 %"),
        ("above 1 < 1%", 7, "a duration"),
    ],
)
def test_what_is_no_rule_is_refused_with_its_place(text: str, character: int, wanted: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_rules(text)
    assert f"begins at character {character}," in str(raised.value)
    assert wanted in str(raised.value)


@pytest.mark.parametrize("text", ["", "p99", "p99<", "p99<1ms,", "above", "above 1ms <"])
def test_a_rule_that_ends_too_early_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="the text ends"):
        parse_rules(text)


def test_percentiles_need_the_samples_that_they_need_elsewhere() -> None:
    for name, wanted in SAMPLES_MIN.items():
        (rule,) = parse_rules(f"{name.replace('_', '.')}<1ms")
        assert rule.samples_min == wanted
    assert [rule.samples_min for rule in parse_rules("p50<1ms, p98<1ms, mean<1ms, max<1ms")] == [1] * 4


def test_the_limit_itself_holds_with_the_equals_sign_alone() -> None:
    below, at_most = parse_rules("mean<1ms, mean<=1ms")
    assert not below.holds(Fraction(1_000_000))
    assert at_most.holds(Fraction(1_000_000))
