"""The bootstrap of ratios: it must find real differences, and must not find any where there is none."""

from __future__ import annotations

import builders
import numpy as np
import pytest

from testdrive.compare import bootstrap
from testdrive.compare.baseline_ratio import baseline_ratio
from testdrive.compare.bootstrap import (
    RESAMPLES,
    Ratio,
    Resampled,
    block_windows,
    draw,
    resample,
)
from testdrive.compare.peak_ratio import peak_ratio
from testdrive.compare.percentile_ratios import estimates, percentile_ratios
from testdrive.compare.series import Series, window_series
from testdrive.compare.stall_ratio import metric_name, stall_ratio, stalled_ns
from testdrive.compare.wasserstein import distance, wasserstein
from testdrive.metrics import summarize

IOS_PER_WINDOW = 50
STALL_NS = 10_000_000


def compare(reference: Series, other: Series) -> list[Ratio]:
    return percentile_ratios(draw(reference, other))


def series(directory, name: str, level_us: np.ndarray, seed: int) -> Series:
    """A run with a mean latency for each 100 ms window."""
    rng = np.random.default_rng(seed)
    windows = len(level_us)
    at = np.sort(rng.integers(0, windows * 10**8, windows * IOS_PER_WINDOW))
    latency = level_us[at // 10**8] * 1000 * rng.lognormal(0, 0.3, len(at))
    columns = {"intended_ns": at, "latency_ns": latency.astype(np.int64)}
    with builders.open_recording(directory / name, columns) as recording:
        found = window_series(recording)
    assert found is not None
    return found


def autocorrelated(windows: int, seed: int) -> np.ndarray:
    """Levels that wander: ln level is AR(1) with a correlation time of about two seconds."""
    rng = np.random.default_rng(seed)
    level = np.zeros(windows)
    for at in range(1, windows):
        level[at] = 0.95 * level[at - 1] + rng.normal(0, 0.1)
    return 500 * np.exp(level)


def test_a_drive_twice_as_slow_is_worse_in_everything_by_about_two(tmp_path):
    fast = series(tmp_path, "fast.rec", np.full(600, 400.0), 1)
    slow = series(tmp_path, "slow.rec", np.full(600, 800.0), 2)
    for ratio in compare(fast, slow):
        if ratio.verdict == "too_few_samples":
            continue
        assert ratio.verdict == "worse", ratio
        assert ratio.low is not None
        assert ratio.high is not None
        assert ratio.low <= ratio.ratio <= ratio.high
        assert ratio.ratio == pytest.approx(2, rel=0.1)
    assert {ratio.verdict for ratio in compare(slow, fast)} <= {"better", "too_few_samples"}


def test_a_drive_compared_with_itself_is_indistinguishable(tmp_path):
    one = series(tmp_path, "one.rec", autocorrelated(900, 5), 1)
    assert {ratio.verdict for ratio in compare(one, one)} <= {"indistinguishable", "too_few_samples"}
    assert compare(one, one)[0].ratio == 1


def drawn(level_us: np.ndarray, seed: int) -> Series:
    """A series straight from numpy, without a recording, for the tests that need many."""
    rng = np.random.default_rng(seed)
    latency = level_us[:, None] * 1000 * rng.lognormal(0, 0.3, (len(level_us), IOS_PER_WINDOW))
    bucket, column = np.unique(np.floor(np.log(latency) * 128).astype(int), return_inverse=True)
    counts = np.zeros((len(level_us), len(bucket)))
    np.add.at(counts, (np.arange(len(level_us))[:, None], column.reshape(latency.shape)), 1)
    ios, sums = np.full(len(level_us), IOS_PER_WINDOW), latency.sum(axis=1)
    return Series(counts, sums, np.exp((bucket + 1) / 128), 10**8, ios, sums.astype(np.int64))


def false_verdicts(pairs: int) -> int:
    """How many of so many pairs of runs that differ by chance alone are called different."""
    return sum(
        compare(
            drawn(autocorrelated(1200, 2 * seed), seed), drawn(autocorrelated(1200, 2 * seed + 1), seed + 500)
        )[0].verdict
        in ("better", "worse")
        for seed in range(pairs)
    )


@pytest.mark.slow
def test_chance_alone_is_rarely_called_a_difference(monkeypatch):
    # Fewer resamples than in use, for time: the intervals are a little rougher.
    monkeypatch.setattr(bootstrap, "RESAMPLES", 199)
    # 5 % are expected of an exact interval: of 24 pairs, five or more would happen once in a hundred times.
    assert false_verdicts(24) <= 4
    # Resampling single windows, blind to the autocorrelation, calls most of the same pairs different.
    monkeypatch.setattr(bootstrap, "block_windows", lambda series: 1)
    assert false_verdicts(24) >= 10


def test_blocks_are_longer_than_the_correlation_time(tmp_path):
    calm = series(tmp_path, "calm.rec", np.full(600, 400.0), 1)
    wandering = series(tmp_path, "wandering.rec", autocorrelated(900, 3), 1)
    assert block_windows(calm) == 10
    assert 4 * 5 <= block_windows(wandering) <= 4 * 60


def test_a_run_shorter_than_eight_blocks_gets_a_ratio_but_no_verdict(tmp_path):
    step = np.where(np.arange(200) < 100, 400.0, 40_000.0)
    one = series(tmp_path, "one.rec", np.full(200, 400.0), 1)
    other = series(tmp_path, "other.rec", step, 2)
    mean = compare(one, other)[0]
    assert mean.verdict == "too_few_blocks"
    assert mean.low is None
    assert mean.ratio == pytest.approx(50.5, rel=0.05)


def test_resamples_draw_as_many_windows_as_there_are_in_whole_blocks(tmp_path):
    one = series(tmp_path, "one.rec", np.full(95, 400.0), 1)
    weights = resample(one, 10, np.random.default_rng(1))
    assert weights.shape == (RESAMPLES, 95)
    assert (weights.sum(axis=1) == 95).all()
    assert (weights >= 0).all()
    # Every window is as likely as any other.
    assert abs(weights.mean(axis=0) - 1).max() < 0.2


def test_estimates_of_the_whole_run_are_its_own_figures(tmp_path):
    rng = np.random.default_rng(4)
    latency = rng.lognormal(13, 1, 4000).astype(np.int64)
    columns = {"intended_ns": np.arange(4000) * 10**7, "latency_ns": latency}
    with builders.open_recording(tmp_path / "a.rec", columns) as recording:
        one = window_series(recording)
    assert one is not None
    found = estimates(Resampled.whole(one))
    assert found["mean"][0] == pytest.approx(latency.mean())
    for name, p in (("p50", 50), ("p90", 90), ("p99", 99)):
        exact = np.sort(latency)[-(-p * 4000 // 100) - 1]
        assert exact <= found[name][0] <= exact * (1 + 1 / 128)


def test_recordings_without_completions_have_no_series(tmp_path):
    with builders.open_recording(tmp_path / "a.rec", {"intended_ns": [1, 2]}) as recording:
        assert window_series(recording) is None


def whole_run(directory, name: str, columns: dict[str, np.ndarray]):
    with builders.open_recording(directory / name, columns) as recording:
        found = window_series(recording)
        assert found is not None
        return found, summarize(recording), stalled_ns(recording, found, (STALL_NS,))


def steps(latency_ns: np.ndarray) -> dict[str, np.ndarray]:
    """Reads one after another, 500 a second."""
    return {"intended_ns": np.arange(len(latency_ns)) * 2_000_000, "latency_ns": latency_ns}


def stalling(level_us: float, every_s: int, seed: int) -> np.ndarray:
    """Two minutes in which a second of every few is a hundred times slower."""
    n = 60_000
    second = np.arange(n) // 500
    slow = np.where(second % every_s == every_s - 2, 100, 1)
    noise = np.random.default_rng(seed).lognormal(0, 0.2, n)
    return (level_us * 1000 * slow * noise).astype(np.int64)


def test_the_ratio_of_baselines_leaves_bursts_out_and_is_that_of_the_table(tmp_path):
    one, one_summary, _ = whole_run(tmp_path, "one.rec", steps(stalling(400, 10, 1)))
    other, other_summary, _ = whole_run(tmp_path, "other.rec", steps(stalling(500, 5, 2)))
    draws = draw(one, other)
    found = baseline_ratio(draws, one_summary, other_summary)
    assert found.ratio == other_summary["baseline_latency_ns"] / one_summary["baseline_latency_ns"]
    assert found.ratio == pytest.approx(1.25, rel=0.02)
    assert found.verdict == "worse"
    assert found.low is not None
    assert found.high is not None
    # Bursts would make the interval wide; the calm windows alone differ by little.
    assert 1.2 < found.low <= found.ratio <= found.high < 1.3
    assert percentile_ratios(draws)[0].ratio == pytest.approx(1.25 * 20.8 / 10.9, rel=0.05)
    assert baseline_ratio(draw(one, one), one_summary, one_summary).verdict == "indistinguishable"


def test_without_a_baseline_there_is_no_ratio_of_baselines(tmp_path):
    one, summary, _ = whole_run(tmp_path, "one.rec", steps(stalling(400, 10, 1)))
    gone = {**summary, "baseline_latency_ns": None, "baseline_code": "never_recovered"}
    found = baseline_ratio(draw(one, one), summary, gone)
    assert (found.ratio, found.verdict) == (None, "no_baseline")


def test_the_ratio_of_peaks_has_no_interval():
    found = peak_ratio({"peak_latency_ns": 200}, {"peak_latency_ns": 500})
    assert (found.ratio, found.low, found.verdict) == (2.5, None, "no_interval")
    assert peak_ratio({}, {"peak_latency_ns": 500}).verdict == "not_recorded"


def test_the_stalled_time_of_the_windows_adds_up_to_that_of_the_run(tmp_path):
    _, summary, stalls = whole_run(tmp_path, "one.rec", steps(stalling(400, 10, 1)))
    span_ns = summary["workload"]["span_ns"]
    assert stalls[STALL_NS].sum() == pytest.approx(summary["stall_time"][str(STALL_NS)] * span_ns)
    # One I/O of a second, in the middle of a quiet run: its windows are stalled from 10 ms on.
    latency = np.full(2000, 100_000)
    latency[1000] = 1_000_000_000
    _, _, stalls = whole_run(tmp_path, "two.rec", steps(latency))
    assert stalls[STALL_NS][20:30].tolist() == [90_000_000, *[100_000_000] * 9]
    assert stalls[STALL_NS].sum() == 990_000_000


def test_a_drive_that_stalls_five_times_as_long_is_worse_by_about_five(tmp_path):
    one, one_summary, one_stalls = whole_run(tmp_path, "one.rec", steps(stalling(400, 10, 1)))
    other, other_summary, other_stalls = whole_run(tmp_path, "other.rec", steps(stalling(400, 2, 2)))
    summaries = (one_summary, other_summary)
    found = stall_ratio(draw(one, other), STALL_NS, summaries, (one_stalls, other_stalls))
    assert found.metric == metric_name(STALL_NS) == "stall_time_over_10000000_ns"
    assert found.ratio == pytest.approx(5, rel=0.05)
    assert found.verdict == "worse"
    assert found.low is not None
    assert found.high is not None
    assert 1 < found.low <= found.ratio <= found.high


@pytest.mark.parametrize(
    ("shares", "ratio", "verdict"),
    [
        ((0.5, 0.0), 0.0, "no_stall"),
        ((0.0, 0.0), None, "no_stall"),
        ((0.0, 0.5), None, "no_stall_in_reference"),
        ((None, 0.5), None, "not_recorded"),
        ((0.25, 0.5), 2.0, "no_interval"),
    ],
)
def test_stalls_that_only_one_run_has_give_no_ratio(tmp_path, shares, ratio, verdict):
    one = series(tmp_path, "one.rec", np.full(200, 400.0), 1)
    summaries = [{"stall_time": {str(STALL_NS): share}} for share in shares]
    found = stall_ratio(draw(one, one), STALL_NS, tuple(summaries), ({}, {}))
    assert (found.ratio, found.verdict) == (ratio, verdict)


def test_one_stall_is_too_few_for_an_interval(tmp_path):
    latency = np.full(60_000, 100_000)
    latency[1000] = 1_000_000_000
    one, summary, stalls = whole_run(tmp_path, "one.rec", steps(latency))
    found = stall_ratio(draw(one, one), STALL_NS, (summary, summary), (stalls, stalls))
    assert (found.ratio, found.verdict) == (1.0, "too_few_stalls")


def test_the_distance_of_a_drive_twice_as_slow_is_ln_2(tmp_path):
    fast = series(tmp_path, "fast.rec", np.full(600, 400.0), 1)
    slow = series(tmp_path, "slow.rec", np.full(600, 800.0), 2)
    for one, other in ((fast, slow), (slow, fast)):
        found = distance(draw(one, other))
        assert found.verdict == "different"
        assert found.distance == pytest.approx(np.log(2), abs=0.02)
        assert found.factor == pytest.approx(2, rel=0.02)
        assert found.noise is not None
        assert found.noise < 0.05


def test_the_distance_is_the_mean_difference_of_the_sorted_logarithms(tmp_path):
    rng = np.random.default_rng(8)
    latencies = [rng.lognormal(13, 0.5, 5000), rng.lognormal(13.2, 1.0, 5000)]
    runs = [
        whole_run(tmp_path, f"{at}.rec", steps(latency.astype(np.int64)))[0]
        for at, latency in enumerate(latencies)
    ]
    exact = np.abs(np.diff([np.sort(np.log(latency)) for latency in latencies], axis=0)).mean()
    found = wasserstein(Resampled.whole(runs[0]), Resampled.whole(runs[1]))
    assert found == pytest.approx(exact, abs=np.log1p(1 / 128))
    assert wasserstein(Resampled.whole(runs[0]), Resampled.whole(runs[0])) == 0


def test_a_run_at_no_distance_of_itself_is_not_different(tmp_path):
    one = series(tmp_path, "one.rec", autocorrelated(900, 5), 1)
    assert distance(draw(one, one)).verdict == "indistinguishable"
    two = series(tmp_path, "two.rec", autocorrelated(900, 5), 2)
    assert distance(draw(one, two)).verdict == "indistinguishable"
