"""The verdict of a plan: its rules against the metrics of a recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from testdrive.plans.model import Rule


@dataclass(frozen=True)
class Outcome:
    """What one rule came to.

    ``value`` is the metric's, or None where it is absent; then ``code`` says why, if the summary does.
    """

    metric: str
    holds: bool
    rule: str
    value: Any
    code: str | None


@dataclass(frozen=True)
class Verdict:
    """``pass`` if every rule holds, ``fail`` if one does not, ``none`` if the plan has no rules."""

    verdict: Literal["pass", "fail", "none"]
    outcomes: list[Outcome]

    def to_json_object(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return asdict(self)


def judge(rules: Sequence[Rule], summary: Mapping[str, Any]) -> Verdict:
    """Hold the rules of a bound plan against ``summary.json``.

    A metric that is absent fails its rule, unless the rule names its code: what was not measured was not
    passed.
    """
    outcomes = [_outcome(rule, summary) for rule in rules]
    if not outcomes:
        return Verdict("none", [])
    return Verdict("pass" if all(outcome.holds for outcome in outcomes) else "fail", outcomes)


def metric_at(summary: Mapping[str, Any], key: str) -> Any:
    """The value of a key with dots, such as ``percentiles_ns.io_weighted.p99_9``; None if there is none."""
    value: Any = summary
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def _outcome(rule: Rule, summary: Mapping[str, Any]) -> Outcome:
    value = metric_at(summary, rule.metric)
    code = metric_at(summary, rule.code) if rule.code else None
    number = isinstance(value, int | float)
    if rule.at_most is not None:
        words, holds = f"at most {rule.at_most}", number and value <= rule.at_most
    elif rule.at_least is not None:
        words, holds = f"at least {rule.at_least}", number and value >= rule.at_least
    else:
        words, holds = f"equals {rule.equals}", value == rule.equals
    if value is None:
        holds = code in rule.holds_without
    return Outcome(rule.metric, bool(holds), words, value, code)
