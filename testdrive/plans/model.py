"""What a plan is: the model of its TOML file (docs/plans.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

VERSION = 1

ParameterType = Literal[
    "string", "integer", "number", "boolean", "duration", "size", "path", "choice", "opcodes", "data"
]


class _Part(BaseModel):
    """A part of a plan. A key that a plan does not have is refused, so that a slip of the pen is found."""

    model_config = ConfigDict(extra="forbid")


class Parameter(_Part):
    """Something that the user may choose, with ``--set name=value``.

    A parameter without a default must be given, unless it is ``optional``: then it is absent, and every key
    and rule that refers to it is left out.
    """

    # As the validator below has it, for the schema.
    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"type": {"const": "choice"}}},
            "then": {"required": ["choices"], "properties": {"choices": {"minItems": 1}}},
            "else": {"properties": {"choices": {"maxItems": 0}}},
        }
    )

    type: ParameterType
    help: str
    default: Any = None
    optional: bool = False
    choices: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _choices_belong_to_a_choice(self) -> Parameter:
        if (self.type == "choice") != bool(self.choices):
            raise ValueError("choices are needed for the type choice, and for no other")
        return self

    @property
    def required(self) -> bool:
        """Whether the user must give it."""
        return self.default is None and not self.optional


class Rule(_Part):
    """A limit on one metric of ``summary.json``.

    ``metric`` and ``code`` are keys of the summary, nested ones with dots. Where the metric is absent, its
    ``code`` says why, and the rule holds if that is one of ``holds_without``.
    """

    # As the validator below has it, for the schema.
    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": [limit]} for limit in ("at_most", "at_least", "equals")],
            "if": {"required": ["holds_without"], "properties": {"holds_without": {"minItems": 1}}},
            "then": {"required": ["code"]},
        }
    )

    metric: str
    at_most: Any = None
    at_least: Any = None
    equals: Any = None
    code: str | None = None
    holds_without: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _exactly_one_limit(self) -> Rule:
        if sum(limit is not None for limit in (self.at_most, self.at_least, self.equals)) != 1:
            raise ValueError("needs exactly one of at_most, at_least and equals")
        if self.holds_without and self.code is None:
            raise ValueError("holds_without needs the code that says why the metric is absent")
        return self


class Judgement(_Part):
    """What is read from the recording at the end: metrics to show, and rules that make the verdict."""

    metrics: list[str] = Field(default_factory=list)
    rules: list[Rule] = Field(default_factory=list)


class PlanPhase(_Part):
    """A phase of the job before its parameters are known: any key of docs/job.md, and a condition.

    A value ``"$name"`` stands for the parameter's. ``when`` holds parameters and the values with which the
    phase is run. ``each`` holds keys with a list of values: the phase is run once for each combination, the
    last key changing fastest, with ``{key}`` in its name standing for the value. ``phases`` holds the phases
    of a round, of the kind ``rounds``. ``when_supported`` leaves a synthetic phase out on a drive whose
    logical blocks do not divide its I/Os, instead of refusing the plan.
    """

    model_config = ConfigDict(extra="allow")

    kind: Literal["prepare", "replay", "synthetic", "rounds"]
    when: dict[str, list[Any]] = Field(default_factory=dict)
    each: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(default_factory=dict)
    phases: list[PlanPhase] = Field(default_factory=list)

    @model_validator(mode="after")
    def _phases_belong_to_rounds(self) -> PlanPhase:
        if (self.kind == "rounds") != bool(self.phases):
            raise ValueError("phases are needed for the kind rounds, and for no other")
        if any(phase.kind == "rounds" for phase in self.phases):
            raise ValueError("rounds are not made of rounds")
        return self


class Plan(_Part):
    """One plan, as its file has it."""

    version: Literal[1]
    name: str
    title: str
    question: str
    #: What its recordings keep of each I/O, unless the user says otherwise.
    keep: Literal["rows", "slowest"] = "rows"
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    #: What makes further values of the parameters, for phases to name: see docs/plans.md.
    derive: Literal["act", "qos", "headroom"] | None = None
    #: Whether it is run once, or again and again until the highest load that passes is found.
    search: Literal["rating", "rate", "speed"] | None = None
    #: Values of parameters that make a run of seconds of it, for trying (``--short``).
    short: dict[str, Any] = Field(default_factory=dict)
    phases: list[PlanPhase] = Field(min_length=1)
    judgement: Judgement = Field(default_factory=Judgement)
    figures: list[str] = Field(default_factory=list)

    #: Where it was read from, for messages; not a key of the file.
    _origin: Path | None = None

    @property
    def origin(self) -> Path | None:
        """The file, or None for a plan that was made in memory."""
        return self._origin
