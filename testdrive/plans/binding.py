"""Binding: a plan and the values of its parameters make the phases of a job and the rules of its verdict."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from testdrive.errors import UsageError
from testdrive.job import Phase
from testdrive.manifest import LeftOut
from testdrive.plans.loading import place as place_of
from testdrive.plans.model import Plan, PlanPhase, Rule
from testdrive.plans.values import value_of

_PHASE: TypeAdapter[Any] = TypeAdapter(Phase)
#: The keys and indices that lead to a value of the plan.
_Location = tuple[int | str, ...]
_LIMITS = ("at_most", "at_least", "equals")


@dataclass(frozen=True)
class BoundPlan:
    """A plan whose every value is known.

    Attributes
    ----------
    plan : Plan
        What it was made from.
    values : dict
        Each parameter's value as the job has it; None for one that is absent.
    phases : list
        Phases for ``testdrive.job.Job``, without those whose condition does not hold.
    rules : list of Rule
        With their limits filled in, without those whose parameter is absent.
    left_out : tuple of LeftOut
        The phases that the drive does not support, with why (``testdrive.plans.fitting``).
    short : bool
        Whether this is the plan's short form, whose figures say nothing about the drive.
    """

    plan: Plan
    values: dict[str, Any]
    phases: list[Phase]
    rules: list[Rule]
    left_out: tuple[LeftOut, ...] = ()
    short: bool = False

    def described(self) -> dict[str, Any]:
        """The plan as the recording's manifest keeps it: what it is called, and every parameter's value."""
        plan = self.plan
        values = {
            name: str(value) if isinstance(value, Path) else value for name, value in self.values.items()
        }
        parameters = {name: value for name, value in values.items() if value is not None}
        told = {"name": plan.name, "title": plan.title, "question": plan.question, "figures": plan.figures}
        short = {"short": True} if self.short else {}
        left_out = [one.model_dump(mode="json") for one in self.left_out]
        return {**told, **short, "parameters": parameters, **({"left_out": left_out} if left_out else {})}


def bind(plan: Plan, given: Mapping[str, Any], *, short: bool = False) -> BoundPlan:
    """Fill in a plan's parameters.

    Parameters
    ----------
    plan : Plan
        What to run.
    given : mapping of str to object
        Values by parameter, as text or already of the parameter's type; a value of None counts as not given.
    short : bool
        Whether the plan's ``short`` values stand in for the defaults of parameters that are not given.

    Raises
    ------
    UsageError
        An unknown or missing parameter, a value that is not of its type, a phase that is not one of
        docs/job.md, or no phase left.
    """
    if short:
        if not plan.short:
            raise UsageError(f"the plan {plan.name!r} has no short form; set its parameters instead")
        given = {**plan.short, **{name: value for name, value in given.items() if value is not None}}
    values = _values(plan, given)
    known = {**values, **_derived(plan, values, given)}
    phases = list(_all_phases(plan, ("phases",), plan.phases, known))
    if not phases:
        raise UsageError(f"the plan {plan.name!r} has no phase to run with these parameters")
    return BoundPlan(
        plan=plan,
        values={name: known[name] for name in values},
        phases=phases,
        rules=_rules(plan, known),
        short=short,
    )


def _derived(plan: Plan, values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Values that follow from the parameters by more than a plan's file can say."""
    if plan.derive is None:
        return {}
    # Made where a plan asks for it: no other plan pays for its imports.
    if plan.derive == "qos":
        from testdrive.qos import plan as qos

        return qos.derive(values)
    if plan.derive == "headroom":
        from testdrive.headroom import plan as headroom

        return headroom.derive(values)
    from testdrive.act.plan import derive

    return derive(values, [name for name, value in given.items() if value is not None])


def _values(plan: Plan, given: Mapping[str, Any]) -> dict[str, Any]:
    chosen = {name: value for name, value in given.items() if value is not None}
    for name in chosen:
        if name not in plan.parameters:
            near = difflib.get_close_matches(name, plan.parameters, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(plan.parameters) or 'none'}"
            raise UsageError(f"the plan {plan.name!r} has no parameter {name!r}; {hint}")
    values: dict[str, Any] = {}
    for name, parameter in plan.parameters.items():
        value = chosen.get(name, parameter.default)
        if value is None and parameter.required:
            raise UsageError(
                f"the plan {plan.name!r} needs {name} ({parameter.help}); give it with --set {name}=..."
            )
        values[name] = None if value is None else value_of(name, parameter, value)
    return values


def _resolved(plan: Plan, location: _Location, value: Any, values: Mapping[str, Any]) -> Any:
    """The value itself, or what the parameter that it names has; also within tables and lists."""
    if isinstance(value, dict):
        found = {key: _resolved(plan, (*location, key), each, values) for key, each in value.items()}
        return {key: each for key, each in found.items() if each is not None}
    if isinstance(value, list):
        return [_resolved(plan, (*location, at), each, values) for at, each in enumerate(value)]
    if not (isinstance(value, str) and value.startswith("$")):
        return value
    name = value[1:]
    if name not in values:
        raise UsageError(f"{_place(plan, location)}: {value!r} names a parameter that the plan does not have")
    return values[name]


def _all_phases(
    plan: Plan, location: _Location, phases: Sequence[PlanPhase], values: Mapping[str, Any]
) -> Iterator[Any]:
    """Every phase of a list whose condition holds, those with ``each`` once for each combination."""
    for index, phase in enumerate(phases):
        here = (*location, index)
        if _holds(plan, here, phase, values):
            yield from _phases(plan, here, phase, values)


def _holds(plan: Plan, location: _Location, phase: PlanPhase, values: Mapping[str, Any]) -> bool:
    for name, wanted in phase.when.items():
        if name not in values:
            raise UsageError(f"{_place(plan, (*location, 'when', name))}: the plan has no such parameter")
        if values[name] not in wanted:
            return False
    return True


def _phases(plan: Plan, location: _Location, phase: PlanPhase, values: Mapping[str, Any]) -> Iterator[Phase]:
    """The phase, or one for each combination of the values in its ``each``."""
    for combination in itertools.product(*phase.each.values()):
        chosen = dict(zip(phase.each, combination, strict=True))
        keys = {"kind": phase.kind, **(phase.model_extra or {}), **chosen}
        if phase.phases:
            keys["phases"] = list(_all_phases(plan, (*location, "phases"), phase.phases, values))
        if isinstance(keys.get("name"), str):
            for key, value in chosen.items():
                keys["name"] = keys["name"].replace(f"{{{key}}}", str(value))
        yield _phase(plan, location, keys, values)


def _phase(plan: Plan, place: _Location, keys: Mapping[str, Any], values: Mapping[str, Any]) -> Phase:
    resolved = {key: _resolved(plan, (*place, key), value, values) for key, value in keys.items()}
    try:
        made: Phase = _PHASE.validate_python(
            {key: value for key, value in resolved.items() if value is not None}
        )
    except ValidationError as error:
        first = error.errors()[0]
        # The first part of the location is the kind, by which the models are told apart.
        location = (*place, *first["loc"][1:])
        what = "is not a key of this phase" if first["type"] == "extra_forbidden" else first["msg"]
        raise UsageError(
            f"{_parameter_at(keys, first['loc'])}{_place(plan, location)}: {what} (it is {first['input']!r});"
            " docs/job.md has the keys"
        ) from error
    return made


def _parameter_at(keys: Mapping[str, Any], location: Sequence[Any]) -> str:
    """The parameter whose value is wrong, for who never saw the plan; empty where it is no parameter's."""
    raw = keys.get(location[1]) if len(location) > 1 else None
    return f"parameter {raw[1:]!r}: " if isinstance(raw, str) and raw.startswith("$") else ""


def _rules(plan: Plan, values: Mapping[str, Any]) -> list[Rule]:
    made = []
    for index, rule in enumerate(plan.judgement.rules):
        limits: dict[str, Any] = {}
        for key in _LIMITS:
            location = ("judgement", "rules", index, key)
            limits[key] = _resolved(plan, location, getattr(rule, key), values)
            if key != "equals" and not (limits[key] is None or _is_number(limits[key])):
                shown = repr(limits[key])
                raise UsageError(f"{_place(plan, location)}: {shown} is not a number in the metric's unit")
        if any(limit is not None for limit in limits.values()):
            made.append(rule.model_copy(update=limits))
    return made


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _place(plan: Plan, location: _Location) -> str:
    path = plan.origin
    text: str | None = None
    if path is not None and Path(path).is_file():
        text = path.read_text(encoding="utf-8")
    return place_of(path, text, location)
