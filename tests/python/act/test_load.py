"""Derived rates and sizes: act_storage's own check vectors, and what each key does to them."""

from __future__ import annotations

from typing import Any

import pytest

from testdrive.act.load import Load, derive_load, streams
from testdrive.errors import UsageError
from testdrive.plans import bind, load

DEFAULTS = bind(load("act"), {"rating": 1}).values
#: The larger of the published vectors.
VECTOR = {
    "read-reqs-per-sec": 2000,
    "write-reqs-per-sec": 1000,
    "record-bytes": 1500,
    "record-bytes-range-max": 4000,
    "replication-factor": 2,
    "update-pct": 50,
    "defrag-lwm-pct": 60,
    "commit-to-device": True,
}


def derived(**changes: Any) -> Load:
    return derive_load(DEFAULTS | {key.replace("_", "-"): value for key, value in changes.items()})


def test_the_default_load_is_that_of_a_rating_of_1() -> None:
    found = derived()
    assert (found.reads_per_s, found.writes_per_s) == (2000, 0)
    assert (found.stored_bytes, found.stored_max_bytes) == (1536, 1536)
    assert round(found.large_reads_per_s, 2) == round(found.large_writes_per_s, 2) == 23.53


def test_the_published_vector_of_every_key_together() -> None:
    found = derive_load(DEFAULTS | VECTOR)
    assert (found.stored_bytes, found.stored_max_bytes) == (1504, 4000)
    assert (found.reads_per_s, found.writes_per_s) == (2500, 2000)
    assert (round(found.large_reads_per_s, 2), round(found.large_writes_per_s, 2)) == (106.38, 63.83)


def test_each_key_changes_what_it_is_for() -> None:
    assert derived(no_defrag_reads=True).large_reads_per_s == 0
    assert derived(defrag_lwm_pct=0).large_writes_per_s == pytest.approx(1000 / 85)
    assert derived(large_block_op_kbytes=256).large_writes_per_s == pytest.approx(2 * 1000 / 170)
    assert derived(update_pct=33, write_reqs_per_sec=10).reads_per_s == 2003
    assert derived(record_bytes=1).stored_bytes == 16
    assert derived(commit_to_device=True).large_writes_per_s == pytest.approx(1000 / 85)


def test_a_rating_multiplies_the_load_and_stress_doubles_it() -> None:
    for given, factor in (({"rating": 60}, 60), ({"rating": 60, "stress": "yes"}, 120)):
        (phase,) = bind(load("act"), given | {"prepare": "none"}).phases
        rates = {each.name: each.arrivals.rate_iops for each in phase.streams}
        assert rates["reads"] == 2000 * factor
        assert rates["large-block-reads"] == rates["large-block-writes"] == pytest.approx(factor * 2000 / 85)


def test_the_streams_are_what_the_engine_is_to_do() -> None:
    values = DEFAULTS | VECTOR | {"commit-min-bytes": 1024, "tomb-raider": True, "tomb-raider-sleep-usec": 7}
    reads, large_reads, large_writes, writes, raider = streams(values, drives=2)
    lag_ns = 10 * 10**9
    assert reads == {
        "name": "reads",
        "block_bytes": {"from": 1504, "to": 4000},
        "max_lag_ns": lag_ns,
        "arrivals": {"process": "constant", "rate_iops": 1250},
    }
    assert (large_reads["block_bytes"], "read_share" in large_reads) == (131_072, False)
    assert (large_writes["block_bytes"], large_writes["read_share"]) == (131_072, 0.0)
    assert large_writes["arrivals"]["rate_iops"] == pytest.approx(63.8298 / 2, abs=1e-3)
    assert writes["block_bytes"] == {"from": 1504, "to": 4000, "step": 1024}
    assert raider["arrivals"] == {"process": "after_completion", "think_ns": 7000}
    assert [stream.get("fua") for stream in (reads, large_reads, large_writes, writes)] == [
        None,
        None,
        True,
        True,
    ]
    assert "max_lag_ns" not in streams(values | {"max-lag-sec": 0})[0]


def test_writes_are_forced_through_the_cache_unless_that_is_disabled() -> None:
    assert [stream.get("fua") for stream in streams(DEFAULTS)] == [None, None, True]
    assert not any("fua" in stream for stream in streams(DEFAULTS | {"disable-odsync": True}))


def test_a_committed_write_is_no_shorter_than_a_block() -> None:
    steps = []
    for least in ("256", "4096"):
        bound = bind(load("act"), {"commit-to-device": "yes", "commit-min-bytes": least, "prepare": "none"})
        writes = next(stream for stream in streams(bound.values) if stream["name"] == "writes")
        steps.append(writes["block_bytes"].get("step"))
    assert steps == [None, 4096]


def test_in_phase_the_small_ios_come_from_the_service_threads() -> None:
    bursts = DEFAULTS | {"arrivals": "act", "service-threads": 40}
    reads, *large = streams(bursts)
    assert (reads["threads"], reads["arrivals"]["process"]) == (40, "act")
    # One thread reads large blocks and one writes them, and they begin with the others.
    assert [("threads" in each, each["arrivals"]["process"]) for each in large] == [(False, "act")] * 2
    # Each thread has a whole number a second, of which each of three drives has a third.
    several = DEFAULTS | {"arrivals": "act", "service-threads": 64, "read-reqs-per-sec": 6_000}
    assert streams(several, 3)[0]["arrivals"]["rate_iops"] == 93 * 64 / 3
    with pytest.raises(UsageError, match="service-threads is 3000; give at most 2000"):
        bind(load("act"), {"arrivals": "act", "service-threads": "3000"})


def test_in_phase_the_threads_that_read_commit_the_writes_too() -> None:
    values = DEFAULTS | VECTOR | {"arrivals": "act", "service-threads": 64}
    both, large_reads, large_writes = streams(values)
    assert both == {
        "name": "reads-and-writes",
        "read_share": 2500 / 4500,
        "fua": True,
        "block_bytes": {"from": 1504, "to": 4000},
        "max_lag_ns": 10 * 10**9,
        "threads": 64,
        # 4,500 a second of all 64 threads are 70 of each.
        "arrivals": {"process": "act", "rate_iops": 70 * 64},
    }
    assert (large_reads["name"], large_writes["name"]) == ("large-block-reads", "large-block-writes")
    # Writes of sizes of their own have threads of their own.
    apart = streams(values | {"commit-min-bytes": 1024})
    assert [each["name"] for each in apart] == [
        "reads",
        "large-block-reads",
        "large-block-writes",
        "writes",
    ]
    # Too few writes for a thread each are enough with the reads, as in act_storage.
    few = {"arrivals": "act", "service-threads": "40", "write-reqs-per-sec": "10", "commit-to-device": "yes"}
    assert streams(bind(load("act"), few).values)[0]["arrivals"]["rate_iops"] == 2010 // 40 * 40


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"rating": 0}, "rating is 0"),
        ({"record-bytes": 0}, "record-bytes is 0"),
        ({"record-bytes-range-max": 1536}, r"record-bytes-range-max is 1536; give 0, or more than"),
        ({"record-bytes": 140_000}, "large-block-op-kbytes is 128"),
        ({"large-block-op-kbytes": 96}, "large-block-op-kbytes is 96; give a power of two"),
        ({"update-pct": 101}, "update-pct is 101"),
        ({"defrag-lwm-pct": 100}, "defrag-lwm-pct is 100"),
        ({"compress-pct": 101}, "compress-pct is 101"),
        ({"commit-min-bytes": 768}, "commit-min-bytes is 768"),
        ({"disable-odsync": "yes", "commit-to-device": "yes"}, "disable-odsync is yes"),
        ({"read-reqs-per-sec": 0, "write-reqs-per-sec": 0}, "both 0"),
        ({"for": "59m"}, "for is 3540 s and slice 3600 s"),
        ({"slice": "1500ms"}, "slice is 1.5 s"),
        ({"for": "19s", "slice": "10s"}, "for is 19 s and slice 10 s; give a whole number of slices"),
    ],
)
def test_impossible_values_are_refused(given: dict[str, Any], wanted: str) -> None:
    with pytest.raises(UsageError, match=wanted):
        bind(load("act"), given)
