"""The JSON schema of plans: built-in ones fit it, and broken ones are broken for it and for the loader."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from testdrive.cli import main
from testdrive.errors import UsageError
from testdrive.job import PreparePhase, ReplayPhase, SyntheticPhase
from testdrive.plans import bind, built_in_names, load, read_text
from testdrive.plans.schema import plan_schema

WHOLE = """
version = 1
name = "mine"
title = "Mine"
question = "Is it fast?"
keep = "slowest"
figures = ["latency"]
short = { for = "1s" }

[parameters.for]
type = "duration"
default = "1h"
help = "how long"

[parameters.mode]
type = "choice"
choices = ["a", "b"]
default = "a"
help = "which"

[parameters.limit]
type = "number"
optional = true
help = "the verdict's"

[[phases]]
kind = "prepare"
method = "random"
span_share = 0.75
fills = 1.5

[[phases]]
kind = "synthetic"
name = "mix-{read_share}"
when = { mode = ["a"] }
each = { read_share = [1.0, 0.5], depth = [1, 32] }
block_bytes = [{ bytes = 4096, share = 0.5 }, { bytes = 8192, share = 0.5 }]
hot_spots = [{ span_share = 0.1, access_share = 0.9 }]
arrivals = { process = "poisson", rate_iops = 2000 }
data = { compressible_share = 0.5 }
duration_ns = "$for"

[[phases]]
kind = "replay"
recording = "prod.rec"
lba = "scale"
without = ["trim"]

[[phases]]
kind = "rounds"
rounds_max = "$limit"
tracked = [{ phase = "read-1", measure = "latency" }]
when = { mode = ["a"] }

[[phases.phases]]
kind = "synthetic"
name = "read-{depth}"
each = { depth = [1, 32] }
duration_ns = "$for"

[judgement]
metrics = ["peak_latency_ns"]

[[judgement.rules]]
metric = "recovery_ns"
at_most = "$limit"
code = "recovery_code"
holds_without = ["no_burst"]
"""

Break = Callable[[dict[str, Any]], object]
BREAKS: dict[str, Break] = {
    "no version": lambda plan: plan.pop("version"),
    "a newer version": lambda plan: plan.update(version=2),
    "no name": lambda plan: plan.pop("name"),
    "a name that is a number": lambda plan: plan.update(name=7),
    "an unknown key": lambda plan: plan.update(titel="Mine"),
    "an unknown keep": lambda plan: plan.update(keep="some"),
    "no phases": lambda plan: plan.pop("phases"),
    "an empty list of phases": lambda plan: plan.update(phases=[]),
    "a phase without a kind": lambda plan: plan["phases"][0].pop("kind"),
    "an unknown kind": lambda plan: plan["phases"][0].update(kind="format"),
    "an unknown key of a phase": lambda plan: plan["phases"][0].update(dept=3),
    "a key of another kind": lambda plan: plan["phases"][0].update(lba="skip"),
    "an unknown method": lambda plan: plan["phases"][0].update(method="zeroes"),
    "a share above one": lambda plan: plan["phases"][0].update(span_share=1.5),
    "a negative time": lambda plan: plan["phases"][1].update(duration_ns=-1),
    "text for a depth": lambda plan: plan["phases"][0].update(depth="deep"),
    "an unknown process": lambda plan: plan["phases"][1]["arrivals"].update(process="bursts"),
    "an unknown key within a table": lambda plan: plan["phases"][1]["hot_spots"][0].update(share=1),
    "rounds without phases": lambda plan: plan["phases"][3].update(phases=[]),
    "rounds of rounds": lambda plan: plan["phases"][3]["phases"].append(copy.deepcopy(plan["phases"][3])),
    "phases of what is no group": lambda plan: plan["phases"][0].update(phases=plan["phases"][3]["phases"]),
    "an unknown key within a round": lambda plan: plan["phases"][3]["phases"][0].update(dept=1),
    "an unknown measure": lambda plan: plan["phases"][3]["tracked"][0].update(measure="mood"),
    "a seed of a group": lambda plan: plan["phases"][3].update(seed=1),
    "an unknown opcode": lambda plan: plan["phases"][2].update(without=["trims"]),
    "each without values": lambda plan: plan["phases"][1]["each"].update(depth=[]),
    "each of an unknown key": lambda plan: plan["phases"][1]["each"].update(dept=[1]),
    "when that is no list": lambda plan: plan["phases"][1]["when"].update(mode="a"),
    "an unknown type of parameter": lambda plan: plan["parameters"]["for"].update(type="time"),
    "a parameter without help": lambda plan: plan["parameters"]["for"].pop("help"),
    "a choice without choices": lambda plan: plan["parameters"]["mode"].pop("choices"),
    "choices of what is no choice": lambda plan: plan["parameters"]["for"].update(choices=["1s"]),
    "a rule without a limit": lambda plan: plan["judgement"]["rules"][0].pop("at_most"),
    "a rule with two limits": lambda plan: plan["judgement"]["rules"][0].update(at_least=1),
    "holds_without without a code": lambda plan: plan["judgement"]["rules"][0].pop("code"),
    "a rule without a metric": lambda plan: plan["judgement"]["rules"][0].pop("metric"),
    "figures that are no list": lambda plan: plan.update(figures="latency"),
}


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft7Validator:
    schema = plan_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def toml(value: Any) -> str:
    """A value as TOML; JSON but for tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def load_and_bind(directory: Path, plan: dict[str, Any]) -> None:
    path = directory / "mine.toml"
    path.write_text("".join(f"{key} = {toml(value)}\n" for key, value in plan.items()))
    bind(load(str(path)), {"limit": 5})


@pytest.mark.parametrize("name", built_in_names())
def test_every_built_in_plan_fits_the_schema(name: str, validator: jsonschema.Draft7Validator) -> None:
    validator.validate(tomllib.loads(read_text(name)[1]))


def test_a_plan_with_every_part_fits_the_schema_and_the_loader(
    tmp_path: Path, validator: jsonschema.Draft7Validator
) -> None:
    plan = tomllib.loads(WHOLE)
    validator.validate(plan)
    load_and_bind(tmp_path, plan)


@pytest.mark.parametrize("what", BREAKS)
def test_the_schema_and_the_loader_agree_on_what_is_broken(
    what: str, tmp_path: Path, validator: jsonschema.Draft7Validator
) -> None:
    plan = copy.deepcopy(tomllib.loads(WHOLE))
    BREAKS[what](plan)
    assert not validator.is_valid(plan)
    with pytest.raises(UsageError):
        load_and_bind(tmp_path, plan)


@pytest.mark.parametrize("model", [PreparePhase, ReplayPhase, SyntheticPhase])
def test_every_key_of_a_phase_may_name_a_parameter(model: Any, validator: jsonschema.Draft7Validator) -> None:
    (kind,) = model.model_fields["kind"].annotation.__args__
    keys = {name: "$x" for name in model.model_json_schema()["properties"] if name != "kind"}
    validator.validate({**tomllib.loads(WHOLE), "phases": [{"kind": kind, **keys}]})


def test_the_command_prints_the_schema_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plans", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == plan_schema()
    assert main(["plans", "mixed", "--schema"]) == 2
