"""What of a recording is replayed, and what is refused before anything is written to a drive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import phase, write_recording
from recorded import SECOND_NS, workload

from testdrive.errors import UsageError
from testdrive.headroom.workload import Workload, read_workload
from testdrive.plans import bind, load

#: 3,000 I/Os a second for ten seconds, and as many in one of them again.
EVEN = np.arange(30_000) * SECOND_NS // 3_000
BURST = np.arange(6_000) * SECOND_NS // 6_000 + 4 * SECOND_NS


def read(path: Path, **given: Any) -> Workload:
    values = {"recording": str(path), "rules": "p99.9<1ms", "interval": "1s"} | given
    return read_workload(bind(load("headroom"), values).values)


def test_a_workload_is_known_by_its_intervals_its_rate_and_its_busiest_second(tmp_path: Path) -> None:
    found = read(workload(tmp_path / "a.rec", np.r_[EVEN, BURST]))
    assert found.intervals == [(at, at + 1) for at in range(10)]
    assert found.opcodes == ["read"]
    assert found.peak_iops == 9_000
    assert found.mean_iops == pytest.approx(3_600, rel=1e-3)
    assert not found.writes
    assert (found.window.from_ns, found.window.to_ns) == (0, int(EVEN[-1]) + 1)


def test_a_window_and_filters_choose_as_a_replay_does(tmp_path: Path) -> None:
    path = workload(tmp_path / "a.rec", EVEN, opcode=np.arange(len(EVEN)) % 3)
    found = read(path, **{"from": "2s", "to": "5s", "without": "trims", "rules": "max<1s"})
    assert found.by_opcode == {"read": 3_000, "write": 3_000}
    assert found.window.from_ns == 2 * SECOND_NS
    assert found.window.to_ns <= 5 * SECOND_NS
    assert found.intervals == [(0, 1), (1, 2), (2, 3)]
    assert found.writes
    both = read(path, opcodes="reads,trims", rules="p99<1ms")
    assert both.opcodes == ["read", "trim"]
    assert read(path, only="writes", rules="p99<1ms").opcodes == ["write"]


def test_a_run_is_replayed_from_the_start_of_its_measured_phase(tmp_path: Path) -> None:
    times = np.r_[EVEN, EVEN + 20 * SECOND_NS]
    rows = np.repeat([0, 1], len(EVEN))
    phases = [
        phase(0, kind="prepare", measured=False, end_ns=10 * SECOND_NS),
        phase(1, kind="synthetic", start_ns=20 * SECOND_NS, end_ns=30 * SECOND_NS),
    ]
    columns = {"submit_ns": times, "phase": rows, "offset_bytes": 0, "length_bytes": 4096}
    found = read(write_recording(tmp_path / "a.rec", columns, kind="run", phases=phases))
    assert found.by_opcode == {"read": 30_000}
    assert len(found.intervals) == 10


def test_rests_are_joined_with_what_follows_and_the_longest_interval_is_known(tmp_path: Path) -> None:
    rest = np.r_[EVEN, EVEN + 60 * SECOND_NS]
    found = read(workload(tmp_path / "a.rec", rest))
    assert found.intervals[9:11] == [(9, 10), (10, 61)]
    assert found.longest_ns == 51 * SECOND_NS


def test_what_a_percentile_cannot_be_claimed_of_is_refused(tmp_path: Path) -> None:
    few = workload(tmp_path / "few.rec", EVEN[:2_994])
    with pytest.raises(
        UsageError, match=r"p99\.9 needs 2,995 reads to be claimed, .* has 2,994; give a lower"
    ):
        read(few)
    assert read(few, rules="p99<1ms").intervals
    one = workload(tmp_path / "one.rec", [5 * SECOND_NS])
    assert read(one, rules="max<1ms").intervals == [(0, 6)]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"from": "20s"}, "no I/O left to replay"),
        ({"only": "flushes"}, "no I/O left to replay"),
        ({"opcodes": "writes"}, "the recording has none"),
        ({"interval": "1ms", "to": "101s"}, "give one that makes at most 100,000"),
    ],
)
def test_a_recording_without_what_is_asked_for_is_refused(
    tmp_path: Path, given: dict[str, str], wanted: str
) -> None:
    path = workload(tmp_path / "a.rec", np.r_[EVEN, 100_500_000_000])
    with pytest.raises(UsageError, match=wanted):
        read(path, **given) if "from" not in given else read(path, **{"from": "200s"})


def test_trims_alone_are_judged_only_when_they_are_asked_for(tmp_path: Path) -> None:
    path = workload(tmp_path / "a.rec", EVEN, opcode=2)
    with pytest.raises(UsageError, match="neither reads nor writes to judge, only trim; give opcodes"):
        read(path)
    assert read(path, opcodes="trims").opcodes == ["trim"]


def test_a_folder_of_several_volumes_is_refused_with_their_names(tmp_path: Path) -> None:
    for name in ("hm_0.rec", "hm_1.rec"):
        workload(tmp_path / "import" / name, EVEN)
    with pytest.raises(UsageError, match=r"several drives or volumes: hm_0\.rec and hm_1\.rec; .*hm_0\.rec"):
        read(tmp_path / "import")


def test_a_recording_that_cannot_be_replayed_is_refused(tmp_path: Path) -> None:
    kept = {"interval_ns": SECOND_NS, "slowest_per_second": 1000, "window_s": 10}
    # Of none of its I/Os there are histograms: none may be counted.
    counts = dict.fromkeys(("ios", "bytes", "errors", "no_completion", "span_ns", "end_max_bytes"), 0)
    with pytest.raises(UsageError, match="cannot be replayed"):
        read(workload(tmp_path / "kept.rec", EVEN, kept=kept, counts={**counts, "by_opcode": {}}))
    with pytest.raises(UsageError, match="does not tell offset_bytes"):
        read(workload(tmp_path / "a.rec", EVEN, absent_columns=["offset_bytes"]))
    with pytest.raises(UsageError, match="has no times"):
        read(workload(tmp_path / "b.rec", EVEN, absent_columns=["intended_ns", "submit_ns"]))
