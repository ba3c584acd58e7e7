"""The JSON schema of plans, made from the models that read them, so that it cannot say anything else.

It is for editors, which check a plan as it is written and offer its keys. What only a run can tell is left to
:func:`testdrive.plans.bind`: whether ``"$name"`` is a parameter, and whether its value suits the key.
"""

from __future__ import annotations

from typing import Any, get_args

from testdrive.job import Phase, RoundsPhase
from testdrive.plans.model import Plan, PlanPhase

Schema = dict[str, Any]

#: The newest that editors' TOML servers read.
_DIALECT = "http://json-schema.org/draft-07/schema#"
_DEFINITIONS = "$defs"
_PARAMETER: Schema = {
    "type": "string",
    "pattern": r"^\$",
    "description": "the value of the parameter of this name",
}
#: What pydantic says for people who write clients, and TOML has no use for.
_LEFT_OUT = ("discriminator", "title")


def plan_schema() -> Schema:
    """The schema of a plan's file, after its TOML was parsed."""
    schema = _without_null(Plan.model_json_schema())
    definitions: Schema = schema[_DEFINITIONS]
    # The phase's own model takes any key: which ones there are is for the job to say, by the kind.
    own: Schema = definitions.pop(PlanPhase.__name__)["properties"]
    rounds_phases = own.pop("phases")
    models = get_args(get_args(Phase)[0])
    variants = [{"$ref": f"#/{_DEFINITIONS}/{model.__name__}"} for model in models]
    of_round = [variant for variant, model in zip(variants, models, strict=True) if model is not RoundsPhase]
    for model in models:
        phase = _without_null(model.model_json_schema())
        parts = phase.pop(_DEFINITIONS, {})
        names = parts.keys() - {each.__name__ for each in models}
        definitions.update({name: _open(parts[name]) for name in names})
        if model is RoundsPhase:
            # A round's phases are a plan's too: with conditions and combinations, and without rounds.
            mine = {**own, "phases": {**rounds_phases, "items": {"oneOf": of_round}, "minItems": 1}}
            definitions[model.__name__] = {**_phase(phase, mine), "required": ["kind", "phases"]}
        else:
            definitions[model.__name__] = _phase(phase, own)
    definitions[PlanPhase.__name__] = {"description": "A phase; docs/job.md has its keys.", "oneOf": variants}
    return {"$schema": _DIALECT, **schema, "title": "A plan of testdrive"}


def _phase(phase: Schema, own: Schema) -> Schema:
    """A kind of phase as a plan has it: keys may come from ``each`` or be left to a parameter."""
    keys = {name: part for name, part in _open(phase)["properties"].items() if name not in own}
    own = {name: part for name, part in own.items() if name != "kind"}
    keys["kind"] = phase["properties"]["kind"]
    each = {**own["each"], "propertyNames": {"enum": sorted(keys.keys() - {"kind"})}}
    # Of what the kind of phase needs, a combination may have a part: that is found when the plan is bound.
    return {
        "type": "object",
        "description": phase.get("description", ""),
        "properties": {**keys, **own, "each": each},
        "required": ["kind"],
        "additionalProperties": False,
    }


def _open(part: Schema) -> Schema:
    """The part with a parameter allowed for each of its values but those that tell kinds apart."""
    properties = {
        name: value if "const" in value else _or_parameter(value)
        for name, value in part.get("properties", {}).items()
    }
    return {**part, "properties": properties} if properties else part


def _or_parameter(value: Schema) -> Schema:
    value = dict(value)
    if "items" in value:
        value["items"] = _or_parameter(value["items"])
    choices = value.pop("anyOf", None) or value.pop("oneOf", None)
    described = {key: value.pop(key) for key in ("description",) if key in value}
    return {**described, "anyOf": [*(choices or [value]), _PARAMETER]}


def _without_null(part: Any) -> Any:
    """The schema without null, which TOML does not have, and without what is for writers of clients."""
    if isinstance(part, list):
        return [_without_null(each) for each in part if each != {"type": "null"}]
    if not isinstance(part, dict):
        return part
    found: Schema = {}
    for key, value in part.items():
        # Below `properties` keys are names of a plan's, which may be `title`.
        if key == "properties":
            found[key] = {name: _without_null(each) for name, each in value.items()}
        elif key not in _LEFT_OUT and not (key == "default" and value is None):
            found[key] = _without_null(value)
    if len(found.get("anyOf", [])) == 1:
        found |= found.pop("anyOf")[0]
    return found
