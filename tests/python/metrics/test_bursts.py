"""Baseline, peak, recovery and their codes, on the reference table and on series where the truth is put
in."""

from __future__ import annotations

import numpy as np
import pytest
from builders import scan_of
from reference_drives import DRIVES, Drive, series

from testdrive.metrics.bursts import METRIC
from testdrive.metrics.scans.windows import thresholds

SECOND_NS = 1_000_000_000


def steady(seconds: float, latency_ns: int = 1_000_000, rate_per_s: int = 500) -> dict[str, np.ndarray]:
    submit = (np.arange(int(seconds * rate_per_s)) * (SECOND_NS / rate_per_s)).astype(np.int64)
    return {
        "submit_ns": submit,
        "latency_ns": np.full(len(submit), latency_ns),
        "opcode": np.zeros(len(submit)),
    }


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
@pytest.mark.parametrize("drive", DRIVES, ids=lambda drive: drive.name)
def test_the_reference_table_is_reproduced(drive: Drive, seed: int):
    found = METRIC.values(scan_of(series(drive, seed), in_completion_order=True))
    assert found["recovery_code"] == drive.code
    assert found["peak_latency_ns"] == round(drive.peak_us * 1000)
    if drive.code == "never_recovered":
        assert found["baseline_latency_ns"] is None
        assert found["baseline_code"] == "never_recovered"
        assert found["recovery_ns"] is None
        assert found["recovery_more_than_ns"] == pytest.approx(120 * SECOND_NS, abs=0.8 * SECOND_NS)
        assert found["level_before_burst_ns"] == pytest.approx(drive.baseline_us * 1000, rel=0.05)
        return
    assert found["baseline_latency_ns"] == pytest.approx(drive.baseline_us * 1000, rel=0.05)
    assert found["baseline_code"] is None
    assert len(found["bursts"]) == len(drive.bursts_s)
    for burst, start_s in zip(found["bursts"], drive.bursts_s, strict=True):
        assert burst["onset_ns"] == pytest.approx(start_s * SECOND_NS, abs=0.1 * SECOND_NS)
    if drive.recovery_s is None:
        assert found["recovery_ns"] is None
    else:
        # The end is seen at 1.5 times the baseline, a little before the decay has reached it.
        short_s = drive.recovery_s - found["recovery_ns"] / SECOND_NS
        assert -0.2 <= short_s <= 0.1 + 0.07 * drive.recovery_s
        assert found["peak_time_ns"] == pytest.approx(drive.bursts_s[0] * SECOND_NS, abs=0.05 * SECOND_NS)


def test_an_elevation_of_seven_tenths_of_a_second_is_no_burst_and_of_nine_is_one():
    for tenths, bursts in ((7, 0), (9, 1)):
        columns = steady(20)
        slow = (columns["submit_ns"] >= 10 * SECOND_NS) & (
            columns["submit_ns"] < 10 * SECOND_NS + tenths * SECOND_NS // 10
        )
        columns["latency_ns"][slow] = 10_000_000
        assert len(METRIC.values(scan_of(columns))["bursts"]) == bursts


def test_onset_end_and_recovery_of_a_burst_with_sharp_edges():
    columns = steady(30)
    slow = (columns["submit_ns"] >= 10 * SECOND_NS) & (columns["submit_ns"] < 14 * SECOND_NS)
    columns["latency_ns"][slow] = 10_000_000
    columns["latency_ns"][np.flatnonzero(slow)[500]] = 20_000_000
    (burst,) = METRIC.values(scan_of(columns))["bursts"]
    assert burst["onset_ns"] == 10 * SECOND_NS
    # From one window before the edge nine in ten windows of the next second are calm.
    assert burst["end_ns"] == 13_900_000_000
    assert burst["recovery_ns"] == 3_900_000_000
    assert burst["peak_latency_ns"] == 20_000_000
    assert burst["peak_time_ns"] == 11 * SECOND_NS
    assert burst["recovery_from_peak_ns"] == 2_900_000_000


def test_a_level_less_than_three_times_the_baseline_is_no_burst():
    columns = steady(20)
    columns["latency_ns"][5000:8000] = 2_900_000
    assert METRIC.values(scan_of(columns))["recovery_code"] == "no_burst"
    columns["latency_ns"][5000:8000] = 3_100_000
    assert METRIC.values(scan_of(columns))["recovery_code"] is None


def test_the_recovery_is_that_of_the_burst_with_the_largest_latency_not_of_the_longest():
    columns = steady(60)
    second = columns["submit_ns"] // SECOND_NS
    columns["latency_ns"][(second >= 10) & (second < 20)] = 5_000_000
    columns["latency_ns"][(second >= 40) & (second < 43)] = 50_000_000
    found = METRIC.values(scan_of(columns))
    assert len(found["bursts"]) == 2
    assert found["recovery_ns"] == 2_900_000_000
    assert found["peak_latency_ns"] == 50_000_000


def test_an_isolated_spike_higher_than_every_burst_does_not_change_the_recovery():
    columns = steady(60)
    second = columns["submit_ns"] // SECOND_NS
    columns["latency_ns"][(second >= 10) & (second < 20)] = 5_000_000
    columns["latency_ns"][25_000] = 90_000_000
    found = METRIC.values(scan_of(columns))
    assert found["peak_latency_ns"] == 90_000_000
    assert found["peak_time_ns"] == 50 * SECOND_NS
    assert found["recovery_ns"] == 9_900_000_000


def test_a_closed_loop_that_stops_for_three_seconds_is_a_burst_of_three_seconds():
    # Queue depth 1: one I/O takes 3 s, and nothing starts or completes meanwhile.
    latency = np.full(100_000, 100_000)
    latency[50_500] = 3 * SECOND_NS
    submit = np.concatenate(([0], np.cumsum(latency)[:-1]))
    found = METRIC.values(scan_of({"submit_ns": submit, "latency_ns": latency, "opcode": 0}))
    (burst,) = found["bursts"]
    assert burst["onset_ns"] == pytest.approx(5 * SECOND_NS, abs=200_000_000)
    assert burst["recovery_ns"] == pytest.approx(3 * SECOND_NS, abs=200_000_000)
    assert burst["peak_latency_ns"] == 3 * SECOND_NS
    assert burst["peak_time_ns"] == 5_050_000_000
    assert found["baseline_latency_ns"] == 100_000


def test_a_stall_that_begins_with_the_last_io_is_a_peak_and_not_a_burst():
    latency = np.full(100_000, 100_000)
    latency[-1] = 3 * SECOND_NS
    submit = np.concatenate(([0], np.cumsum(latency)[:-1]))
    found = METRIC.values(scan_of({"submit_ns": submit, "latency_ns": latency, "opcode": 0}))
    assert found["recovery_code"] == "no_burst"
    assert found["baseline_latency_ns"] == 100_000
    assert found["peak_latency_ns"] == 3 * SECOND_NS


@pytest.mark.parametrize(("calm_seconds", "code"), [(29, "unstable"), (31, None)])
def test_a_drive_that_is_calm_for_less_than_half_of_the_time_is_unstable(calm_seconds, code):
    columns = steady(60)
    columns["latency_ns"][columns["submit_ns"] >= calm_seconds * SECOND_NS] = 2_500_000
    found = METRIC.values(scan_of(columns))
    assert found["baseline_code"] == code
    assert found["baseline_latency_ns"] == (None if code else 1_000_000)
    assert found["recovery_code"] == "no_burst"


def test_trims_flushes_and_failed_ios_are_not_part_of_the_latency_of_a_drive():
    columns = steady(20)
    columns["opcode"][::10] = 2
    columns["opcode"][1::10] = 3
    columns["latency_ns"][(columns["opcode"] > 1)] = 500_000_000
    columns["status"] = np.zeros(len(columns["opcode"]))
    columns["status"][5::10] = 5
    columns["latency_ns"][5::10] = 900_000_000
    found = METRIC.values(scan_of(columns))
    assert found["baseline_latency_ns"] == 1_000_000
    assert found["peak_latency_ns"] == 1_000_000
    assert found["recovery_code"] == "no_burst"


def test_sparse_ios_are_joined_into_windows_of_at_least_twenty():
    # Five I/Os a second: single slow ones must not look like elevated windows of 100 ms.
    columns = steady(120, rate_per_s=5)
    columns["latency_ns"][::10] = 9_000_000
    found = METRIC.values(scan_of(columns))
    assert found["recovery_code"] == "no_burst"
    assert found["baseline_latency_ns"] == pytest.approx(1_800_000, rel=0.01)


def test_idle_time_between_groups_of_slow_ios_is_no_burst():
    # Thirty I/Os at once every five seconds, as a journal's commits; some groups are five times slower.
    group = np.repeat(np.arange(20), 30)
    columns = {
        "submit_ns": group * 5 * SECOND_NS + np.tile(np.arange(30), 20) * 1_000_000,
        "latency_ns": np.where(group % 4 == 3, 500_000, 100_000),
        "opcode": 1,
    }
    found = METRIC.values(scan_of(columns))
    assert found["bursts"] == []
    assert found["recovery_code"] == "no_burst"
    assert found["baseline_latency_ns"] == 100_000
    assert found["calm_share"] == 0.75


def test_a_burst_ends_when_the_drive_is_left_alone():
    columns = steady(60)
    second = columns["submit_ns"] // SECOND_NS
    columns["latency_ns"][(second >= 30) & (second < 35)] = 10_000_000
    kept = (second < 35) | (second >= 50)
    (burst,) = METRIC.values(scan_of({name: values[kept] for name, values in columns.items()}))["bursts"]
    assert burst["recovery_ns"] == pytest.approx(5 * SECOND_NS, abs=200_000_000)


def test_a_window_whose_slow_ios_all_follow_its_pause_is_no_burst():
    # The window begins with nine tenths of a second without I/Os: elevated by what comes after, and over when
    # that is submitted.
    columns = steady(20, rate_per_s=200)
    tenth = columns["submit_ns"] // 100_000_000
    columns["latency_ns"][tenth == 109] = 10_000_000
    kept = (tenth < 100) | (tenth >= 109)
    found = METRIC.values(scan_of({name: values[kept] for name, values in columns.items()}))
    assert found["bursts"] == []
    assert found["recovery_code"] == "no_burst"
    assert found["peak_latency_ns"] == 10_000_000


def test_a_sparse_workload_can_have_a_burst():
    columns = steady(120, rate_per_s=5)
    slow = (columns["submit_ns"] >= 60 * SECOND_NS) & (columns["submit_ns"] < 80 * SECOND_NS)
    columns["latency_ns"][slow] = 20_000_000
    (burst,) = METRIC.values(scan_of(columns))["bursts"]
    assert burst["onset_ns"] == pytest.approx(60 * SECOND_NS, abs=2 * SECOND_NS)
    assert burst["recovery_ns"] == pytest.approx(20 * SECOND_NS, abs=3 * SECOND_NS)


def test_the_thresholds_rise_with_the_spread_of_the_calm_level():
    # Uniform within a factor of exp(0.4): three and six deviations are more than ln 1.5 and ln 3.
    log_latency = 14 + np.tile(np.linspace(-0.4, 0.4, 50), 4)
    reference = 14.0
    spread = 1.4826 * np.median(np.abs(log_latency - reference))
    assert 3 * spread > np.log(1.5)
    assert 6 * spread > np.log(3)
    assert thresholds(log_latency) == pytest.approx((reference + 3 * spread, reference + 6 * spread))
    assert thresholds(np.full(200, 14.0)) == pytest.approx((14 + np.log(1.5), 14 + np.log(3)))


def test_the_spread_is_that_of_the_windows_near_the_calm_level():
    # A third of the time is a factor of ten higher; it says nothing about how far calm windows spread.
    log_latency = np.concatenate((np.full(200, 14.0), np.full(100, 14 + np.log(10))))
    assert thresholds(log_latency) == pytest.approx((14 + np.log(1.5), 14 + np.log(3)))


def test_lateness_that_does_not_grow_is_not_saturation():
    columns = steady(60)
    columns["intended_ns"] = np.maximum(columns["submit_ns"] - 300_000_000, 0)
    assert METRIC.values(scan_of(columns))["recovery_code"] == "no_burst"


def test_lateness_that_grows_is_saturation():
    columns = steady(60)
    columns["intended_ns"] = (columns["submit_ns"] * 0.99).astype(np.int64)
    found = METRIC.values(scan_of(columns))
    assert found["recovery_code"] == "saturated"
    assert found["baseline_latency_ns"] == 1_000_000


def test_the_clocks_of_two_hosts_drifting_apart_are_not_saturation():
    columns = steady(60)
    columns["intended_ns"] = (columns["submit_ns"] * (1 - 50e-6)).astype(np.int64)
    assert METRIC.values(scan_of(columns))["recovery_code"] == "no_burst"


def test_of_equal_peaks_the_first_is_told():
    found = METRIC.values(scan_of(steady(5)))
    assert (found["peak_latency_ns"], found["peak_time_ns"]) == (1_000_000, 0)
