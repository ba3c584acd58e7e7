"""Write amplification from the counters that a drive keeps of itself."""

from __future__ import annotations

from builders import phase, scan_of

from testdrive.metrics.write_amplification import METRIC

ONE = {"submit_ns": [5], "latency_ns": [1000], "opcode": [1]}


def counted(before, after, **changes):
    return phase(**changes) | {"drive_counters": {"before": before, "after": after}}


def values(*phases):
    return METRIC.values(scan_of(ONE, kind="run", phases=list(phases)))


def test_the_ratio_is_of_what_was_written_in_the_measured_phases_alone():
    prepared = counted(
        {"host_written_bytes": 0, "nand_written_bytes": 0, "erases": 0},
        {"host_written_bytes": 1000, "nand_written_bytes": 9000, "erases": 7},
        index=0,
        measured=False,
    )
    first = counted(
        {"host_written_bytes": 1000, "nand_written_bytes": 9000, "erases": 7},
        {"host_written_bytes": 1400, "nand_written_bytes": 9600, "erases": 8},
        index=1,
    )
    second = counted(
        {"host_written_bytes": 1400, "nand_written_bytes": 9600, "erases": 8},
        {"host_written_bytes": 1600, "nand_written_bytes": 10_500, "erases": 9},
        index=2,
    )
    found = values(prepared, first, second)
    assert found["write_amplification"] == (600 + 900) / (400 + 200)
    assert found["write_amplification_code"] is None
    assert found["drive_counters"] == {"host_written_bytes": 600, "nand_written_bytes": 1500, "erases": 2}


def test_a_drive_that_does_not_count_has_no_ratio_and_says_so():
    assert values(phase()) == {
        "write_amplification": None,
        "write_amplification_code": "not_counted",
        "drive_counters": None,
    }
    host_only = counted({"host_written_bytes": 0}, {"host_written_bytes": 8192})
    assert values(host_only)["write_amplification_code"] == "not_counted"
    assert values(host_only)["drive_counters"] == {"host_written_bytes": 8192}
    # What was counted in one phase and not in the next says nothing of both.
    assert values(host_only, phase(index=1))["drive_counters"] is None


def test_a_run_that_wrote_nothing_has_no_ratio():
    same = {"host_written_bytes": 4096, "nand_written_bytes": 4096}
    found = values(counted(same, same))
    assert found["write_amplification"] is None
    assert found["write_amplification_code"] == "no_writes"


def test_counters_of_later_versions_are_kept_and_what_is_no_number_is_passed_over():
    before = {"host_written_bytes": 0, "nand_written_bytes": 0, "spare_blocks": 9, "health": "good"}
    after = {"host_written_bytes": 4, "nand_written_bytes": 8, "spare_blocks": 8, "health": "poor"}
    found = values(counted(before, after))
    assert found["write_amplification"] == 2.0
    assert found["drive_counters"]["spare_blocks"] == -1
    assert "health" not in found["drive_counters"]
