"""The bootstrap of ratios: it must find real differences, and must not find any where there is none."""

from __future__ import annotations

import builders
import numpy as np
import pytest

from testdrive.compare import bootstrap
from testdrive.compare.bootstrap import (
    RESAMPLES,
    Series,
    block_windows,
    compare,
    estimates,
    resample,
    window_series,
)

IOS_PER_WINDOW = 50


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
    return Series(counts, latency.sum(axis=1), np.exp((bucket + 1) / 128))


def false_verdicts(pairs: int) -> int:
    """How many of so many pairs of runs that differ by chance alone are called different."""
    return sum(
        compare(
            drawn(autocorrelated(1200, 2 * seed), seed), drawn(autocorrelated(1200, 2 * seed + 1), seed + 500)
        )[0].verdict
        in ("better", "worse")
        for seed in range(pairs)
    )


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
    found = estimates(one, np.ones((1, len(one.sums_ns))))
    assert found["mean"][0] == pytest.approx(latency.mean())
    for name, p in (("p50", 50), ("p90", 90), ("p99", 99)):
        exact = np.sort(latency)[-(-p * 4000 // 100) - 1]
        assert exact <= found[name][0] <= exact * (1 + 1 / 128)


def test_recordings_without_completions_have_no_series(tmp_path):
    with builders.open_recording(tmp_path / "a.rec", {"intended_ns": [1, 2]}) as recording:
        assert window_series(recording) is None
    assert {ratio.verdict for ratio in compare(None, None)} == {"not_recorded"}
