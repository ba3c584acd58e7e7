"""Phases that depend on the drive: what it does not support is left out, and the recording says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import run_testdrive

from testdrive.engine import identify_drive
from testdrive.errors import UsageError
from testdrive.manifest import Drive, read_manifest
from testdrive.plans import BoundPlan, bind, load
from testdrive.plans.fitting import depends_on_drive, fitted

PLAN = """
version = 1
name = "small"
title = "Small"
question = "How small can it be?"

[[phases]]
kind = "prepare"

[[phases]]
kind = "synthetic"
name = "blocks-{block_bytes}"
when_supported = true
each = { block_bytes = [512, 4096, 6144] }
ios = 100
"""


def bound(directory: Path, text: str = PLAN) -> BoundPlan:
    """The plan, bound."""
    path = directory / "small.toml"
    path.write_text(text)
    return bind(load(str(path)), {})


def drive(logical_block_bytes: int | None) -> Drive:
    """A drive with such blocks."""
    return Drive(uri="/dev/x", logical_block_bytes=logical_block_bytes)


def names(plan: BoundPlan) -> list[Any]:
    """The names of the phases that are left."""
    return [phase.name for phase in plan.phases[1:]]


def test_what_is_no_whole_block_is_left_out_with_the_reason(tmp_path: Path) -> None:
    plan = fitted(bound(tmp_path), drive(4096))
    assert names(plan) == ["blocks-4096"]
    assert [(one.name, one.reason) for one in plan.left_out] == [
        ("blocks-512", "not supported: 512 B on 4,096 B blocks"),
        ("blocks-6144", "not supported: 6,144 B on 4,096 B blocks"),
    ]
    assert plan.described()["left_out"][0]["settings"]["block_bytes"] == 512


@pytest.mark.parametrize("logical_block_bytes", [512, 2048, None])
def test_what_a_drive_supports_is_kept(tmp_path: Path, logical_block_bytes: int | None) -> None:
    plan = fitted(bound(tmp_path), drive(logical_block_bytes))
    left_out = [one.name for one in plan.left_out]
    assert left_out == (["blocks-512"] if logical_block_bytes == 2048 else [])
    assert ("left_out" in plan.described()) == bool(left_out)


def test_fitting_twice_changes_nothing(tmp_path: Path) -> None:
    once = fitted(bound(tmp_path), drive(512))
    assert names(fitted(once, drive(4096))) == ["blocks-4096"]


def test_every_length_of_a_mix_of_lengths_has_to_fit(tmp_path: Path) -> None:
    mixed = PLAN.replace(
        "each = { block_bytes = [512, 4096, 6144] }",
        "each = { read_share = [1.0] }\n"
        "block_bytes = [{ bytes = 4096, share = 0.5 }, { bytes = 512, share = 0.5 }]",
    ).replace("blocks-{block_bytes}", "mixed")
    plan = bound(tmp_path, mixed)
    assert names(fitted(plan, drive(512))) == ["mixed"]
    with pytest.raises(UsageError, match="512 B on 4,096 B blocks"):
        fitted(plan, drive(4096))


def test_a_phase_without_the_key_is_for_the_engine_to_refuse(tmp_path: Path) -> None:
    plain = bound(tmp_path, PLAN.replace("when_supported = true\n", ""))
    assert not depends_on_drive(plain)
    assert names(fitted(plain, drive(4096))) == ["blocks-512", "blocks-4096", "blocks-6144"]


ROUNDS = """
version = 1
name = "small"
title = "Small"
question = "How small can it be?"

[[phases]]
kind = "rounds"
rounds_max = 5
tracked = [{ phase = "blocks-TRACKED", measure = "iops" }, { phase = "blocks-512", measure = "iops" }]

[[phases.phases]]
kind = "synthetic"
name = "blocks-{block_bytes}"
when_supported = true
each = { block_bytes = [512, 4096] }
ios = 100
"""


def test_phases_of_rounds_are_left_out_with_what_was_tracked_of_them(tmp_path: Path) -> None:
    plan = bound(tmp_path, ROUNDS.replace("TRACKED", "4096"))
    assert depends_on_drive(plan)
    (rounds,) = fitted(plan, drive(4096)).phases
    assert [phase.name for phase in rounds.phases] == ["blocks-4096"]
    assert [one.phase for one in rounds.tracked] == ["blocks-4096"]
    assert fitted(plan, drive(512)).phases == plan.phases


def test_rounds_with_nothing_left_to_track_are_refused(tmp_path: Path) -> None:
    plan = bound(tmp_path, ROUNDS.replace("TRACKED", "512"))
    with pytest.raises(UsageError, match="tracks: blocks-512 is not supported"):
        fitted(plan, drive(4096))


def test_the_key_is_not_one_of_the_job(tmp_path: Path) -> None:
    phases = [phase.model_dump(mode="json", exclude_none=True) for phase in bound(tmp_path).phases]
    assert not any("when_supported" in phase for phase in phases)
    with pytest.raises(UsageError, match="when_supported: is not a key of this phase"):
        bound(tmp_path, PLAN.replace('kind = "prepare"', 'kind = "prepare"\nwhen_supported = true'))


def test_a_run_leaves_out_what_the_drive_does_not_support(tmp_path: Path) -> None:
    bound(tmp_path)
    out = tmp_path / "out"
    drives = ["--drive", "sim:enterprise-read?capacity=64MiB", "--drive", "null:?size=64MiB"]
    done = run_testdrive("run", tmp_path / "small.toml", *drives, "--no-compare", "-o", out)
    assert done.returncode == 0, done.stderr
    phases = {}
    for name in ("enterprise-read", "null"):
        manifest = read_manifest(out / f"{name}.rec")
        phases[name] = [phase.name for phase in manifest.phases[1:]]
        assert len(manifest.plan.left_out) == 3 - len(phases[name])
    assert phases["enterprise-read"] == ["blocks-4096"]
    assert phases["null"] == ["blocks-512", "blocks-4096", "blocks-6144"]


def test_a_drive_that_is_not_there_is_told_as_by_the_run_itself(tmp_path: Path) -> None:
    bound(tmp_path)
    out = tmp_path / "out.rec"
    done = run_testdrive("run", tmp_path / "small.toml", "--drive", "sim:no-such-model", "-o", out)
    assert done.returncode == 2
    assert "no-such-model" in done.stderr
    assert not out.exists()


def test_a_drive_is_identified_without_a_write() -> None:
    found = identify_drive("sim:sata?capacity=64MiB&logical_block_bytes=4096")
    assert (found.logical_block_bytes, found.capacity_bytes, found.modelled) == (4096, 64 << 20, True)
