"""The search of a rating on modelled drives: history, confirmation, exit status and page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import run_testdrive

from testdrive.plans import load
from testdrive.recording import Recording
from testdrive.running import RunOptions, Target
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
        assert result["trials"][-1] == {"rating": result["rating"], "passes": True, "confirming": True}
        history = read_history(Path(result["recording"]))
        assert history is not None
        assert (history["value"], len(history["history"])) == (result["rating"], len(result["trials"]))
    page = Path(content["page"]).read_text()
    assert "Trials by rating" in page
    assert "fails: " in told


def test_no_rating_is_a_verdict_of_fail(tmp_path: Path) -> None:
    fault = f"fault_read_error_rate=0.01&fault_read_error_length_bytes={1 << 28}"
    drive = f"sim:sata?capacity=256MiB&{fault}"
    status, content, _ = search(
        tmp_path / "out", "--drive", drive, "--set", "from=2", "--on-error", "continue"
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
        (("--save-state", "x.state"), "of a single run"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, options: tuple[str, ...], wanted: str) -> None:
    drive = ("--drive", "sim:sata?capacity=256MiB")
    done = run_testdrive("run", "act-rating", *OPTIONS, *drive, *options, "-o", tmp_path / "out")
    assert done.returncode == 2
    assert wanted in done.stderr


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


@pytest.mark.parametrize(
    ("uri", "seeds"),
    [("file:image?size=1GiB", [7, 8, 9, 10]), ("sim:sata?capacity=1GiB", [7, 7, 7, 8])],
)
@pytest.mark.parametrize(
    ("kind", "plan", "given"), [(RatingDrive, "act-rating", {}), (RateDrive, "qos", {"rules": "p99<1ms"})]
)
def test_no_real_drive_sees_a_sequence_twice_and_no_confirming_run_repeats_a_trial(
    kind: type[Drive], plan: str, given: dict[str, str], uri: str, seeds: list[int]
) -> None:
    target = Target(uri, None, Path("nowhere"))
    drive = kind(load(plan), given | {"seed": "7"}, target, RunOptions(), None, None)  # type: ignore[arg-type]
    settled: list[int] = []
    drive._prepare = lambda whole, name, state: settled.append(whole.values["seed"])  # type: ignore[method-assign]
    found = []
    for number, confirming in enumerate((False, False, False, True), start=1):
        if confirming:
            drive.settle()
        drive.trials = number
        found.append(drive.bound(**drive.load(100, confirming), prepare="none").phases[-1].seed)
    assert found == seeds
    # A load that only reads leaves nothing to settle.
    assert settled == ([10] if kind is RatingDrive else [])


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
