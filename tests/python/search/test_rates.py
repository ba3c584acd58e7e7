"""The search of a rate: its scale, its result on drives that are functions, and runs on modelled drives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from drives_without_runs import no_display, no_word
from support import run_testdrive

from testdrive.errors import UsageError
from testdrive.plans import bind, load
from testdrive.running import RunOptions, Target
from testdrive.search.bisection import Found, Trial, bisect
from testdrive.search.history import read_history
from testdrive.search.rates import RateDrive
from testdrive.search.results import failing_above

DRIVE = "sim:sata?capacity=2GiB"
QUICK = ("interval=1s", "for=2s", "settle=1s", "resolution=0.1", "span=0.25")


def a_drive(**given: Any) -> RateDrive:
    target = Target("sim:sata?capacity=1GiB", None, Path("nowhere"))
    return RateDrive(load("qos"), {"rules": "p99.9<1ms"} | given, target, RunOptions(), no_display, no_word)


@pytest.mark.parametrize("threshold", [700.0, 23_456.0, 1_234_567.0])
def test_the_rate_and_the_failing_one_enclose_the_threshold_within_the_resolution(threshold: float) -> None:
    scale, start = a_drive(resolution="0.05").scale()
    found = bisect(lambda rate, confirming: Trial(rate, rate <= threshold, confirming), scale, start)
    failing = failing_above(found)
    assert found.value is not None
    assert failing is not None
    assert found.value <= threshold < failing <= found.value * 1.05


def test_the_verdict_is_of_the_rate_that_was_asked_for() -> None:
    found = Found(5_000.0, [Trial(5_000.0, True), Trial(5_100.0, False)], "bisection")
    assert not a_drive().fails(found)
    assert not a_drive(**{"at-least": "5000"}).fails(found)
    assert a_drive(**{"at-least": "5001"}).fails(found)
    assert "must be at least 5,001 IOPS" in a_drive(**{"at-least": "5001"}).told(found)
    nothing = Found(None, [Trial(60.0, False)], "bisection")
    assert a_drive().fails(nothing)
    assert failing_above(nothing) is None


def test_a_rate_that_the_host_limits_is_called_so() -> None:
    late = Trial(20_000.0, False, reasons=["x"], figures={"limited_by": "host"})
    found = Found(10_000.0, [Trial(10_000.0, True), late], "bisection")
    assert a_drive().facts(found)["host_limited"]
    told = a_drive().told(found)
    assert "20,000 IOPS do not; at 20,000 IOPS this host was the limit, not the drive" in told
    lost = a_drive().told(Found(None, [late], "bisection"))
    assert lost.startswith("nothing is known of it; even 20,000 IOPS are too much for this host; intervals")
    slow = Trial(20_000.0, False, reasons=["x"], figures={"limited_by": "drive"})
    found = Found(10_000.0, [Trial(10_000.0, True), slow], "bisection")
    assert "host" not in a_drive().told(found)
    assert not a_drive().facts(found)["host_limited"]


def test_why_no_lower_rate_was_tried_is_told() -> None:
    claimed = Found(None, [Trial(3_269.0, False), Trial(55.0, False)], "bisection")
    assert (
        a_drive()
        .told(claimed)
        .startswith(
            "no rate holds p99.9<1ms, not even 55 IOPS, below which intervals are too short to claim p99.9"
            " (give longer ones); intervals of 60 s"
        )
    )
    limited = Found(None, [Trial(5_000.0, False)], "bisection")
    assert a_drive(lowest="5000").told(limited) == (
        "no rate holds p99.9<1ms, not even 5,000 IOPS; intervals of 60 s; 1 trial"
    )


def test_no_rate_is_tried_at_which_a_percentile_cannot_be_claimed() -> None:
    scale, _ = a_drive(rules="p99.99<1ms", interval="1m", **{"read-share": "0.5"}).scale()
    # 29,956 reads and five standard deviations, in a minute, of half of the I/Os.
    assert scale.lowest == 1028
    with pytest.raises(UsageError, match=r"p99\.99 needs 29,956 .* give a longer interval"):
        a_drive(rules="p99.99<1ms", lowest="100").scale()
    with pytest.raises(UsageError, match="give a longer interval"):
        a_drive(rules="p99.9999<1ms", highest="1000").scale()
    with pytest.raises(UsageError, match="from is 5"):
        a_drive(**{"from": "5"}).scale()


def test_no_rate_is_tried_at_which_intervals_are_often_empty() -> None:
    lowest = {
        arrivals: a_drive(rules="max<1s", interval="1s", arrivals=arrivals).scale()[0].lowest
        for arrivals in ("poisson", "constant")
    }
    assert lowest == {"poisson": 15, "constant": 1}
    assert a_drive(rules="max<1s", interval="1m").scale()[0].lowest == 1


def test_reads_are_judged_unless_there_are_none() -> None:
    plan = load("qos")
    assert bind(plan, {"rules": "max<1s", "read-share": "0.7"}).values["opcodes"] == ["read"]
    assert bind(plan, {"rules": "max<1s", "read-share": "0"}).values["opcodes"] == ["write"]
    both = bind(plan, {"rules": "max<1s", "read-share": "0.7", "opcodes": "reads,writes"})
    assert both.values["opcodes"] == ["read", "write"]
    with pytest.raises(UsageError, match="the load has none"):
        bind(plan, {"rules": "max<1s", "opcodes": "writes"})


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ((), "needs rules"),
        (("--set", "p99.9>=1ms"), "begins at character 6"),
        (("--set", "p99.9<1"), "begins at character 7"),
        (("--set", "max<1s", "--set", "for=90s"), "a whole number of intervals"),
        (("--set", "max<1s", "--set", "arrivals=poisson", "--arrivals", "constant"), "both given"),
        (("--set", "max<1s", "--arrivals", "bursts"), "not one of poisson, constant"),
        (("--set", "max<1s", "--set", "resolution=0"), "resolution is 0"),
        (("--set", "max<1s", "--set", "rate=5"), "rate is what the search sets"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, options: tuple[str, ...], wanted: str) -> None:
    done = run_testdrive("run", "qos", "--drive", DRIVE, *options, "-o", tmp_path / "out")
    assert done.returncode == 2
    assert wanted in " ".join(done.stderr.split())


@pytest.mark.slow
def test_a_modelled_drive_is_searched_confirmed_and_judged(tmp_path: Path) -> None:
    settings = [part for each in QUICK for part in ("--set", each)]
    rules = ("--set", "p99.9<1ms", "--set", "above 2ms <= 0.5%")
    options = [*rules, "--arrivals", "poisson", *settings, "--set", "at-least=1e7", "--json"]
    done = run_testdrive("run", "qos", "--drive", DRIVE, *options, "-o", tmp_path / "out")
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)["results"][0]
    passed = [trial["rate_iops"] for trial in result["trials"] if trial["passes"]]
    failed = [trial["rate_iops"] for trial in result["trials"] if not trial["passes"]]
    assert result["rate_iops"] == max(passed)
    assert result["failing_rate_iops"] == min(failed) <= max(passed) * 1.1
    assert result["trials"][-1]["confirming"]
    history = read_history(Path(result["recording"]))
    assert history is not None
    assert history["rules"] == "p99.9<1ms, above 2ms <= 0.5%"
    for trial in history["history"]:
        for rule in trial["figures"]["rules"]:
            at_most = "<=" in rule["rule"]
            within = rule["worst"] <= rule["limit"] if at_most else rule["worst"] < rule["limit"]
            assert rule["holds"] == (within and not rule["more"])
    page = (tmp_path / "out" / "index.html").read_text()
    assert "Response time by rate" in page
    assert "modelled" in page


@pytest.mark.slow
def test_histograms_are_judged_as_every_row_is_within_their_width(tmp_path: Path) -> None:
    rules = "p50<1s, p99.9<1s, mean<1s, max<1s, above 256us < 99%"
    settings = ["interval=1s", "for=2s", "settle=0s", "prepare=random", "read-share=0.7", f"rules={rules}"]
    # A single rate: what is compared is what was measured there.
    settings += ["opcodes=reads,writes", "from=12000", "lowest=12000", "highest=12000"]
    found = {}
    for keep in ("rows", "slowest"):
        options = [part for each in settings for part in ("--set", each)]
        folder = tmp_path / keep
        done = run_testdrive("run", "qos", "--drive", DRIVE, *options, "--keep", keep, "--json", "-o", folder)
        assert done.returncode == 0, done.stderr
        history = read_history(Path(json.loads(done.stdout)["results"][0]["recording"]))
        assert history is not None
        found[keep] = history["history"][0]["figures"]["rules"]
    assert len(found["rows"]) == 10
    for rows, histograms in zip(found["rows"], found["slowest"], strict=True):
        exact = rows["rule"].startswith(("mean", "max", "above"))
        for key in ("worst", "worst_service"):
            assert rows[key] > 0
            assert rows[key] <= histograms[key] <= rows[key] * (1 if exact else 1.008) + 1e-6
        assert rows["samples_min"] == histograms["samples_min"]
