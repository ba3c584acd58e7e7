"""Plans: their files, their parameters, their phases and their verdict."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import needed_values

from testdrive.errors import UsageError
from testdrive.job import DriveRequest, Job, PreparePhase, ReplayPhase, RoundsPhase, Tracked
from testdrive.plans import Rule, bind, built_in_names, judge, load
from testdrive.quantities import duration_ns, size_bytes

MINIMAL = """
version = 1
name = "mine"
title = "Mine"
question = "Is it fast?"

[parameters.depth]
type = "integer"
default = 8
help = "I/Os in flight"

[[phases]]
kind = "prepare"

[[phases]]
kind = "synthetic"
name = "fill"
depth = "$depth"
duration_ns = 1000
"""


def plan_file(directory: Path, text: str) -> str:
    path = directory / "mine.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", built_in_names())
def test_every_built_in_plan_is_named_after_its_file_and_makes_a_job(name: str) -> None:
    plan = load(name)
    assert plan.name == name
    needed = needed_values(plan)
    bound = bind(plan, needed)
    job = Job(drive=DriveRequest(uri="null:"), output=Path("a.rec"), phases=bound.phases)
    assert job.to_json_object()["phases"]


def test_the_replay_plan_prepares_and_scales_unless_told_otherwise() -> None:
    prepare, replay = bind(load("replay"), {"recording": "prod.rec"}).phases
    assert isinstance(prepare, PreparePhase)
    assert isinstance(replay, ReplayPhase)
    assert (prepare.method, replay.lba, replay.recording) == ("sequential", "scale", Path("prod.rec"))
    assert (replay.duration_ns, replay.only) == (None, None)


ROUNDS = """
[[phases]]
kind = "rounds"
name = "matrix"
rounds_max = "$depth"
tracked = [{ phase = "reads-0.0", measure = "iops" }]

[[phases.phases]]
kind = "synthetic"
name = "reads-{read_share}"
each = { read_share = [1.0, 0.0] }
depth = "$depth"
duration_ns = 5

[[phases.phases]]
kind = "synthetic"
name = "left-out"
when = { depth = [7] }
"""


def test_a_group_has_its_phases_with_their_parameters_conditions_and_combinations(tmp_path: Path) -> None:
    *_, group = bind(load(plan_file(tmp_path, MINIMAL + ROUNDS)), {"depth": 6}).phases
    assert isinstance(group, RoundsPhase)
    assert [phase.name for phase in group.phases] == ["reads-1.0", "reads-0.0"]
    assert [phase.model_dump(exclude_none=True) for phase in group.phases][1] == {
        "kind": "synthetic",
        "name": "reads-0.0",
        "read_share": 0.0,
        "depth": 6,
        "duration_ns": 5,
    }
    assert (group.rounds_max, group.tracked) == (6, [Tracked(phase="reads-0.0", measure="iops")])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("duration_ns = 5", "duration_ns = 0"),
            r"mine\.toml:32: phases\.2\.phases\.0\.duration_ns: .*greater",
        ),
        (("rounds_max", "rounds_mx"), r"mine\.toml:24: phases\.2\.rounds_mx: is not a key of this phase"),
        (('"iops"', '"mood"'), r"mine\.toml:25: phases\.2\.tracked\.0\.measure: .*'throughput'"),
        (("depth = [7]", "deep = [7]"), r"mine\.toml:37: phases\.2\.phases\.1\.when\.deep: .*no such"),
        (('"rounds"', '"synthetic"'), r"mine\.toml:21: phases\.2: .*phases are needed for the kind rounds"),
        (
            ('kind = "synthetic"\nname = "left', 'kind = "rounds"\nname = "left'),
            "phases are needed for the kind",
        ),
    ],
)
def test_an_error_within_a_group_names_its_place(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    text = MINIMAL + ROUNDS.replace(*change)
    with pytest.raises(UsageError, match=message):
        bind(load(plan_file(tmp_path, text)), {})


def test_parameters_reach_the_phase_in_the_units_of_the_job() -> None:
    values = {
        "recording": "prod.rec",
        "prepare": "none",
        "for": "10m",
        "from": "1.5s",
        "to": "500ms",
        "only": "reads,write-zeroes,flushes",
        "speed": "2",
        "data": "0.25",
        "loop": 3,
    }
    (replay,) = bind(load("replay"), values).phases
    assert isinstance(replay, ReplayPhase)
    assert replay.model_dump(mode="json", exclude_none=True) == {
        "kind": "replay",
        "recording": "prod.rec",
        "lba": "scale",
        "pace": "timed",
        "speed": 2.0,
        "events": "queued",
        "duration_ns": 600_000_000_000,
        "from_ns": 1_500_000_000,
        "to_ns": 500_000_000,
        "only": ["read", "write_zeroes", "flush"],
        "loop": 3,
        "streams": "one",
        "data": {"compressible_share": 0.25},
    }


@pytest.mark.parametrize(
    ("given_values", "message"),
    [
        ({}, "needs recording"),
        ({"recording": "r", "sped": 2}, "no parameter 'sped'; did you mean 'speed'"),
        ({"recording": "r", "speed": "fast"}, "speed: 'fast' is not a number"),
        ({"recording": "r", "speed": 0}, "phases.1.speed: Input should be greater than 0"),
        ({"recording": "r", "loop": 1.5}, "loop: 1.5 is not a whole number"),
        ({"recording": "r", "lba": "wrp"}, "lba: 'wrp' is not one of skip, wrap"),
        ({"recording": "r", "for": "10"}, "for: '10' is not a duration"),
        ({"recording": "r", "only": "reads,trins"}, "'trins' is not an operation"),
        ({"recording": "r", "data": "2"}, "'2' is not incompressible, zero"),
    ],
)
def test_a_wrong_value_is_named_with_its_parameter(given_values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        bind(load("replay"), given_values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ('depth = "$depth"', 'dept = "$depth"'),
            r"mine\.toml:18: phases\.1\.dept: is not a key of this phase",
        ),
        (
            ("duration_ns = 1000", "duration_ns = -5"),
            r"mine\.toml:19: phases\.1\.duration_ns: .*greater than 0",
        ),
        (('"$depth"', '"$deep"'), r"mine\.toml:18: phases\.1\.depth: '\$deep' names a parameter that"),
        (('kind = "synthetic"', 'kind = "dance"'), r"mine\.toml:16: phases\.1\.kind: .*'synthetic'"),
        (
            ('title = "Mine"', 'titel = "Mine"'),
            r"mine\.toml(:5: titel: is not a key|: title: Field required)",
        ),
        (("version = 1", "version = 2"), r"mine\.toml has version 2; this testdrive reads up to 1"),
        (('type = "integer"', 'type = "int"'), r"mine\.toml:8: parameters\.depth\.type: "),
        (("default = 8", "default = [8"), r"mine\.toml is not TOML: .*line \d+"),
        (
            ("[parameters.depth]", '[[phases]]\nkind="replay"\nwhen={x=[1]}\n[parameters.depth]'),
            "no such parameter",
        ),
    ],
)
def test_a_wrong_plan_is_named_with_file_line_and_key(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    assert change[0] in MINIMAL
    with pytest.raises(UsageError, match=message):
        bind(load(plan_file(tmp_path, MINIMAL.replace(*change))), {})


def test_a_value_that_a_phase_refuses_is_named_by_the_parameter_that_gave_it() -> None:
    with pytest.raises(UsageError, match=r"^parameter 'span': .*latency\.toml:\d+: .*less than or equal"):
        bind(load("latency"), {"span": "2"})


def test_a_plan_of_ones_own_runs_with_its_defaults(tmp_path: Path) -> None:
    bound = bind(load(plan_file(tmp_path, MINIMAL)), {"depth": "4"})
    assert [phase.kind for phase in bound.phases] == ["prepare", "synthetic"]
    assert bound.phases[1].model_dump(exclude_none=True)["depth"] == 4


def test_an_unknown_plan_and_a_missing_file_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="perhaps 'replay'"):
        load("reply")
    with pytest.raises(UsageError, match="cannot be read"):
        load(str(tmp_path / "none.toml"))


SUMMARY = {"a": {"b_ns": 5}, "recovery_ns": None, "recovery_code": "no_burst", "text": "faithful"}


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        (Rule(metric="a.b_ns", at_most=5), True),
        (Rule(metric="a.b_ns", at_most=4), False),
        (Rule(metric="a.b_ns", at_least=5), True),
        (Rule(metric="a.b_ns", at_least=6), False),
        (Rule(metric="text", equals="faithful"), True),
        (Rule(metric="text", equals="other"), False),
        (Rule(metric="a.missing", at_most=5), False),
        (Rule(metric="text", at_most=5), False),
        (Rule(metric="recovery_ns", at_most=5, code="recovery_code"), False),
        (Rule(metric="recovery_ns", at_most=5, code="recovery_code", holds_without=["no_burst"]), True),
        (Rule(metric="recovery_ns", at_most=5, code="recovery_code", holds_without=["other"]), False),
    ],
)
def test_a_rule_holds_or_not(rule: Rule, holds: bool) -> None:
    verdict = judge([rule], SUMMARY)
    assert verdict.verdict == ("pass" if holds else "fail")
    assert verdict.outcomes[0].holds is holds


def test_a_limit_that_was_not_given_leaves_its_rule_out() -> None:
    assert bind(load("replay"), {"recording": "r"}).rules == []
    (rule,) = bind(load("replay"), {"recording": "r", "peak-limit": "10ms"}).rules
    assert (rule.metric, rule.at_most) == ("peak_latency_ns", 10_000_000)
    assert judge([], SUMMARY).verdict == "none"


def test_a_limit_that_is_no_number_is_refused(tmp_path: Path) -> None:
    text = f'{MINIMAL}\n[[judgement.rules]]\nmetric = "peak_latency_ns"\nat_most = "10s"\n'
    with pytest.raises(
        UsageError, match=r"mine\.toml:23: judgement\.rules\.0\.at_most: '10s' is not a number"
    ):
        bind(load(plan_file(tmp_path, text)), {})


def test_the_example_of_the_documentation_is_a_plan(tmp_path: Path) -> None:
    documentation = (Path(__file__).parents[2] / "docs" / "plans.md").read_text()
    example = documentation.split("## An example")[1].split("## Keys")[0]
    plan = load(plan_file(tmp_path, textwrap.dedent(example)))
    bound = bind(plan, {"recording": "prod.rec", "fill": "no", "limit": "10ms"})
    assert [phase.kind for phase in bound.phases] == ["replay"]
    assert bound.rules[0].at_most == 10_000_000


@pytest.mark.parametrize("bad", ["at_most = 1\nat_least = 2", "", 'at_most = 1\nholds_without = ["x"]'])
def test_a_rule_without_a_clear_limit_is_refused(tmp_path: Path, bad: str) -> None:
    text = f'{MINIMAL}\n[[judgement.rules]]\nmetric = "peak_latency_ns"\n{bad}\n'
    with pytest.raises(UsageError, match=r"mine\.toml:\d+: judgement\.rules\.0: "):
        load(plan_file(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "expected_ns"),
    [
        ("30s", 30 * 10**9),
        ("1h30m", 5400 * 10**9),
        ("500ms", 5 * 10**8),
        ("1.5us", 1500),
        ("2 min", 120 * 10**9),
    ],
)
def test_durations_are_read(text: str, expected_ns: int) -> None:
    assert duration_ns(text) == expected_ns


@pytest.mark.parametrize("text", ["", "10", "s", "-5s", "10x", "5s later", "1..5s", " "])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration"):
        duration_ns(text)


@given(st.integers(min_value=0, max_value=2**63), st.sampled_from([("ns", 1), ("us", 1000), ("s", 10**9)]))
def test_whole_durations_of_any_size_are_exact(number: int, unit: tuple[str, int]) -> None:
    assert duration_ns(f"{number}{unit[0]}") == number * unit[1]


@pytest.mark.parametrize(
    ("text", "expected_bytes"), [("4096", 4096), ("4GiB", 4 << 30), ("1TB", 10**12), ("1.5KiB", 1536)]
)
def test_sizes_are_read(text: str, expected_bytes: int) -> None:
    assert size_bytes(text) == expected_bytes


def test_each_runs_a_phase_once_for_each_combination(tmp_path: Path) -> None:
    text = MINIMAL + textwrap.dedent(
        """
        [[phases]]
        kind = "synthetic"
        name = "mix-{read_share}-{depth}"
        each = { depth = [1, 4], read_share = [1.0, 0.5] }
        duration_ns = 1000
        """
    )
    with pytest.raises(UsageError, match=r"mine\.toml:\d+: phases\.2\.depth"):
        bind(load(plan_file(tmp_path, text.replace("[1, 4]", "[1, 0]"))), {})
    phases = bind(load(plan_file(tmp_path, text)), {}).phases
    assert [(phase.name, phase.depth, phase.read_share) for phase in phases[2:]] == [
        ("mix-1.0-1", 1, 1.0),
        ("mix-0.5-1", 1, 0.5),
        ("mix-1.0-4", 4, 1.0),
        ("mix-0.5-4", 4, 0.5),
    ]


def test_a_parameter_is_found_within_tables_and_lists(tmp_path: Path) -> None:
    text = MINIMAL + textwrap.dedent(
        """
        [[phases]]
        kind = "synthetic"
        steady_state = { measure = "iops", rounds_max = "$depth", round_ns = 1000000 }
        block_bytes = [{ bytes = 4096, share = 0.5 }, { bytes = 8192, share = 0.5 }]
        """
    )
    phase = bind(load(plan_file(tmp_path, text)), {"depth": "12"}).phases[2]
    assert phase.steady_state is not None
    assert phase.steady_state.rounds_max == 12
    assert [one.bytes for one in phase.block_bytes] == [4096, 8192]


def test_a_plan_without_a_short_form_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no short form"):
        bind(load(plan_file(tmp_path, MINIMAL)), {}, short=True)


@pytest.mark.parametrize("name", [name for name in built_in_names() if load(name).short])
def test_the_short_form_of_a_built_in_plan_makes_a_job(name: str) -> None:
    plan = load(name)
    assert set(plan.short) <= set(plan.parameters)
    needed = needed_values(plan)
    short = bind(plan, needed, short=True)
    assert short.phases
    assert short.described()["short"] is True
    assert "short" not in bind(plan, needed).described()
