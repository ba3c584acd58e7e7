"""The search of a rating on modelled drives: history, confirmation, exit status and page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drives_without_runs import no_display, no_word
from support import run_testdrive

from testdrive.act.verdict import LIMITS
from testdrive.methods.act_rating import _share_axis
from testdrive.plans import bind, load
from testdrive.recording import Recording
from testdrive.running import Result, RunOptions, Target
from testdrive.search.bisection import Found, Trial
from testdrive.search.history import read_history
from testdrive.search.rates import RateDrive
from testdrive.search.ratings import RatingDrive
from testdrive.search.trials import Drive

OPTIONS = ("--short", "--set", "slice=2s", "--set", "for=2s", "--set", "resolution=8", "--json")


def search(folder: Path, *options: str) -> tuple[int, dict[str, Any], str]:
    done = run_testdrive("run", "act-rating", *OPTIONS, *options, "-o", folder)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


@pytest.mark.slow
def test_drives_of_different_classes_are_rated_in_their_order(tmp_path: Path) -> None:
    models = ("sata", "enterprise-mixed")
    drives = [part for model in models for part in ("--drive", f"sim:{model}?capacity=512MiB")]
    status, content, told = search(tmp_path / "out", *drives)
    assert status == 0
    slow, fast = (result["rating"] for result in content["results"])
    assert 1 <= slow < fast
    for result in content["results"]:
        passed = [trial["rating"] for trial in result["trials"] if trial["passes"]]
        failed = [trial["rating"] for trial in result["trials"] if not trial["passes"]]
        assert result["rating"] == max(passed)
        assert min(failed) - max(passed) <= 8
        last = result["trials"][-1]
        assert (last["rating"], last["passes"], last["confirming"]) == (result["rating"], True, True)
        history = read_history(Path(result["recording"]))
        assert history is not None
        assert (history["value"], len(history["history"])) == (result["rating"], len(result["trials"]))
    page = Path(content["page"]).read_text()
    assert "Trials by rating" in page
    assert "fails: " in told


def test_no_rating_is_a_verdict_of_fail(tmp_path: Path) -> None:
    fault = f"fault_read_error_rate=0.01&fault_read_error_length_bytes={1 << 28}"
    drive = f"sim:sata?capacity=256MiB&{fault}"
    status, content, told = search(
        tmp_path / "out", "--drive", drive, "--set", "from=2", "--on-error", "continue"
    )
    assert "trial at 2x fails: " in told
    assert (
        "the plan's short form: it shows that the plan works here, and says nothing about the drive" in told
    )
    result = content["results"][0]
    assert (status, result["rating"]) == (1, None)
    assert [trial["rating"] for trial in result["trials"]] == [2, 1]
    assert Path(content["page"]).is_file()


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (("--set", "from=2000"), "from is 2000"),
        (("--set", "step=0"), "resolution and step"),
        (("--set", "confirm-for=3s"), "confirm-for is 3 s and slice 2 s"),
        (("--set", "rating=7"), "rating is what the search sets"),
        (("--save-state", "x.state"), "of a single run"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, options: tuple[str, ...], wanted: str) -> None:
    drive = ("--drive", "sim:sata?capacity=256MiB")
    done = run_testdrive("run", "act-rating", *OPTIONS, *drive, *options, "-o", tmp_path / "out")
    assert done.returncode == 2
    assert wanted in done.stderr
    assert not list(tmp_path.glob("**/*.rec")), "no drive was touched"


def test_the_load_is_that_of_the_plan_act() -> None:
    act, rating = load("act"), load("act-rating")
    own = {
        "slice",
        "for",
        "confirm-for",
        "method",
        "from",
        "resolution",
        "step",
        "highest",
        "rating",
        "early-end",
    }
    for name in rating.parameters.keys() - own:
        assert rating.parameters[name] == act.parameters[name]
    assert act.parameters.keys() - rating.parameters.keys() == {
        "stress",
        "config",
        "read-reqs-per-sec",
        "write-reqs-per-sec",
    }
    assert rating.phases == act.phases


def a_drive(uri: str = "sim:sata?capacity=1GiB", **given: str) -> RatingDrive:
    target = Target(uri, None, Path("nowhere"))
    return RatingDrive(load("act-rating"), given, target, RunOptions(), no_display, no_word)


def test_a_rating_that_nothing_failed_above_is_called_so() -> None:
    passed = Trial(1000, True)
    bound = Found(1000, [passed, Trial(1000, True, confirming=True)], "bisection")
    assert "nothing failed above, and it is the highest that may be tried" in a_drive().told(bound)
    assert a_drive().facts(bound)["failing_rating"] is None
    first = Found(2, [Trial(2, True), Trial(2, True, confirming=True)], "step-down")
    assert "it may be higher" in a_drive(method="step-down").told(first)
    enclosed = Found(20, [Trial(20, True), Trial(24, False), Trial(40, False)], "bisection")
    told = a_drive(resolution="4").told(enclosed)
    assert told.startswith("rating 20x; 24x fails; ")
    assert told.endswith("3 trials, resolution 4")
    assert a_drive().facts(enclosed)["failing_rating"] == 24
    assert "no rating passes; the lowest tried is 1x" in a_drive().told(
        Found(None, [Trial(2, False), Trial(1, False)], "bisection")
    )


def test_a_rating_that_the_host_limits_is_called_so() -> None:
    failed = Trial(24, False, cannot_keep_up=True, figures={"limited_by": "host"})
    found = Found(20, [Trial(20, True), failed, Trial(20, True, confirming=True)], "bisection")
    assert a_drive().facts(found)["host_limited"]
    assert "at 24x this host was the limit, not the drive" in a_drive().told(found)


def test_an_undelivered_load_is_a_trial_that_cannot_keep_up() -> None:
    act = {"verdict": "fail", "reasons": ["x"], "not_delivered": {"slice": 1}, "limited_by": "host"}
    result = Result(a_drive().target, {"act": act})
    trial = a_drive().judged(4, False, "a.rec", result)
    assert (trial.passes, trial.cannot_keep_up, trial.figures["limited_by"]) == (False, True, "host")


def test_what_is_written_over_before_it_is_confirmed_is_called_settled() -> None:
    assert a_drive().settles
    assert a_drive("file:image?size=1GiB").settles
    assert not a_drive("file:image?size=1GiB", prepare="none").settles


@pytest.mark.parametrize(
    ("uri", "seeds"),
    [("file:image?size=1GiB", [7, 8, 9, 10]), ("sim:sata?capacity=1GiB", [7, 7, 7, 8])],
)
@pytest.mark.parametrize(
    ("kind", "plan", "given"), [(RatingDrive, "act-rating", {}), (RateDrive, "qos", {"rules": "p99<1ms"})]
)
def test_no_real_drive_sees_a_sequence_twice_and_no_confirming_run_repeats_a_trial(
    monkeypatch: pytest.MonkeyPatch,
    kind: type[Drive],
    plan: str,
    given: dict[str, str],
    uri: str,
    seeds: list[int],
) -> None:
    target = Target(uri, None, Path("nowhere"))
    drive = kind(load(plan), given | {"seed": "7"}, target, RunOptions(), no_display, no_word)
    settled: list[int] = []
    monkeypatch.setattr(drive, "_prepare", lambda whole, name, state: settled.append(whole.values["seed"]))
    found = []
    for number, confirming in enumerate((False, False, False, True), start=1):
        if confirming:
            drive.settle()
        drive.trials = number
        found.append(drive.bound(**drive.load(100, confirming), prepare="none").phases[-1].seed)
    assert found == seeds
    # A load that only reads leaves nothing to settle.
    assert settled == ([10] if kind is RatingDrive else [])


@pytest.mark.parametrize("plan", ["qos", "headroom"])
def test_a_load_has_no_random_numbers_of_the_preparation(plan: str) -> None:
    given = {"rules": "p99<1ms", "prepare": "full"} | ({"recording": "a.rec"} if plan == "headroom" else {})
    for seed in (1, 2):
        phases = bind(load(plan), given | {"seed": str(seed)}).phases
        seeds = [phase.seed for phase in phases if getattr(phase, "seed", None) is not None]
        # A recorded workload may have been made with any small seed.
        assert len(set(seeds)) == len(seeds)
        (preparing,) = (phase.seed for phase in phases if phase.name == "random-writes")
        assert preparing == 2_000_003 + seed


@pytest.mark.slow
def test_a_confirming_run_on_a_modelled_drive_has_other_places(tmp_path: Path) -> None:
    quick = ("slice=1s", "for=1s", "highest=1", "prepare=none")
    settings = [part for each in quick for part in ("--set", each)]
    drive = ("--drive", "sim:sata?capacity=256MiB", "--keep", "rows")
    done = run_testdrive("run", "act-rating", *settings, *drive, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    offsets = []
    for path in sorted((tmp_path / "out").glob("*.rec")):
        with Recording.open(path) as recording:
            rows = recording.all_rows()
            offsets.append(recording.execute(rows.order_by("submit_ns").limit(50))["offset_bytes"].tolist())
    trial, confirming = offsets
    assert trial != confirming


def test_a_limit_stays_visible_beside_trials_far_past_it() -> None:
    linear, wide = (_share_axis(LIMITS[1], np.array([0.0, 0.5, most])) for most in (3.0, 90.0))
    assert (linear.scale, linear.low) == ("linear", 0.0)
    assert (wide.scale, wide.low, wide.high) == ("log", 0.1, 100.0)
    assert _share_axis(LIMITS[0], np.array([])).scale == "linear"
