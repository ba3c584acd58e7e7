"""The log in act_storage's form: an independent reader of its grammar finds what was recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import write_recording
from log_reader import read_log, shares_above
from runs import act_run

from testdrive.act.log_form import write_log
from testdrive.cli import main
from testdrive.errors import UsageError
from testdrive.recording import Recording

#: Latencies in ms with known buckets: 0, 1, 2, 3, 4, 7 and 10.
MIXED = [0.2, 0.9, 1.0, 1.5, 2.0, 4.0, 8.0, 64.0, 600.0]


def log_of(folder: Path, *paths: Path) -> Path:
    made = folder / "act.txt"
    recordings = [Recording.open(path) for path in paths]
    try:
        write_log(recordings, made)
    finally:
        for recording in recordings:
            recording.close()
    return made


def test_a_reader_of_the_form_finds_every_bucket(tmp_path: Path) -> None:
    log = read_log(log_of(tmp_path, act_run(tmp_path / "one.rec", [MIXED, MIXED, [0.5]])))
    assert 6.0 <= log.version < 7.0
    assert log.names == ["reads", "sim:one-reads", "large-block-reads", "large-block-writes"]
    assert list(log.after) == [1, 2, 3]
    assert log.after[1]["reads"] == {0: 2, 1: 2, 2: 1, 3: 1, 4: 1, 7: 1, 10: 1}
    # Counts are since the start.
    assert log.after[3]["reads"] == {0: 5, 1: 4, 2: 2, 3: 2, 4: 2, 7: 2, 10: 2}
    assert log.after[3]["sim:one-reads"] == log.after[3]["reads"]
    assert (log.after[3]["large-block-reads"], log.after[3]["large-block-writes"]) == ({}, {0: 3})
    assert shares_above(log, "reads", 1, (0, 3, 6)) == [
        [77.78, 33.33, 22.22],
        [77.78, 33.33, 22.22],
        [0.0] * 3,
    ]


def test_the_configuration_and_what_was_derived_stand_before(tmp_path: Path) -> None:
    log = read_log(log_of(tmp_path, act_run(tmp_path / "one.rec", [MIXED])))
    wanted = {"num-devices": "1", "report-interval-sec": "1", "microsecond-histograms": "no"}
    assert wanted.items() <= log.configuration.items()
    assert log.derived == {
        "record-stored-bytes": "1536 ... 1536",
        "internal-read-reqs-per-sec": "2000",
        "internal-write-reqs-per-sec": "0",
        "large-block-reads-per-sec": "23.53",
        "large-block-writes-per-sec": "23.53",
    }


def test_the_head_has_the_keys_of_the_newer_versions_in_their_order(tmp_path: Path) -> None:
    parameters = {"service-threads": 10, "commit-min-bytes": 0, "max-lag-sec": 10}
    path = log_of(tmp_path, act_run(tmp_path / "one.rec", [MIXED], parameters=parameters))
    keys = list(read_log(path).configuration)
    assert keys[:5] == [
        "device-names",
        "num-devices",
        "service-threads",
        "test-duration-sec",
        "report-interval-sec",
    ]
    assert keys[-1] == "max-lag-sec"
    assert "commit-min-bytes" not in keys


def test_large_reads_stand_in_the_log_of_a_load_that_has_none(tmp_path: Path) -> None:
    path = act_run(tmp_path / "one.rec", [MIXED])
    manifest = path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"large-block-reads"', '"tomb-raider"'))
    log = read_log(log_of(tmp_path, path))
    assert log.names == ["reads", "sim:one-reads", "large-block-reads", "large-block-writes"]
    assert log.after[1]["large-block-reads"] == {}


def test_reads_and_writes_of_the_same_threads_are_two_histograms(tmp_path: Path) -> None:
    small = {"name": "reads-and-writes", "read_share": 0.5}
    log = read_log(log_of(tmp_path, act_run(tmp_path / "one.rec", [MIXED], small=small)))
    assert log.names == [
        "reads",
        "sim:one-reads",
        "large-block-reads",
        "large-block-writes",
        "writes",
        "sim:one-writes",
    ]
    # Of the times of MIXED, every second one is a write's.
    assert log.after[1]["reads"] == {0: 1, 1: 1, 2: 1, 4: 1, 10: 1}
    assert log.after[1]["writes"] == {0: 1, 1: 1, 3: 1, 7: 1}


def test_microseconds_and_longer_intervals(tmp_path: Path) -> None:
    options = {"microsecond-histograms": True, "report-interval-sec": 2}
    run = act_run(tmp_path / "one.rec", [[0.001], [0.0005], [5.0]], parameters=options)
    log = read_log(log_of(tmp_path, run))
    assert (log.configuration["microsecond-histograms"], list(log.after)) == ("yes", [2])
    assert log.after[2]["reads"] == {0: 1, 1: 1}


def test_several_drives_are_one_run_with_a_histogram_of_each(tmp_path: Path) -> None:
    runs = (act_run(tmp_path / "one.rec", [MIXED]), act_run(tmp_path / "two.rec", [[0.5], [0.5]]))
    log = read_log(log_of(tmp_path, *runs))
    assert log.names[:3] == ["reads", "sim:one-reads", "sim:two-reads"]
    assert list(log.after) == [1]
    assert log.after[1]["reads"][0] == 3
    # The load of a rating is that of each drive.
    assert log.derived["internal-read-reqs-per-sec"] == "4000"


def test_drives_of_one_name_are_told_apart(tmp_path: Path) -> None:
    runs = [act_run(tmp_path / folder / "one.rec", [MIXED]) for folder in ("a", "b")]
    log = read_log(log_of(tmp_path, *runs))
    assert log.names[:3] == ["reads", "sim:one-reads", "sim:one#2-reads"]


def test_only_drives_of_one_load_are_in_a_log(tmp_path: Path) -> None:
    one, two = (
        act_run(tmp_path / "one.rec", [MIXED]),
        act_run(tmp_path / "two.rec", [MIXED], parameters={"record-bytes": 2048}),
    )
    with pytest.raises(UsageError, match=r"record-bytes is 1536 in .*one\.rec and 2048 in .*two\.rec"):
        log_of(tmp_path, one, two)


def test_the_log_of_several_drives_is_exported_by_one_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = [str(act_run(tmp_path / "night" / f"{name}.rec", [MIXED])) for name in ("one", "two")]
    assert main(["export", *runs, "--format", "act-log"]) == 0
    assert "log: night.act.txt" in capsys.readouterr().out
    log = read_log(tmp_path / "night.act.txt")
    assert log.configuration["num-devices"] == "2"
    assert sum(log.after[1]["reads"].values()) == 2 * len(MIXED)
    assert main(["export", *runs, "--format", "csv"]) == 2
    assert "--format csv is of one" in capsys.readouterr().err


def test_the_command_writes_it_and_refuses_what_is_no_such_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = act_run(tmp_path / "one.rec", [MIXED])
    assert main(["export", str(run), "--format", "act-log"]) == 0
    assert "log: one.act.txt" in capsys.readouterr().out
    assert read_log(tmp_path / "one.act.txt").after[1]["reads"]
    assert main(["export", str(run), "--format", "act-log", "-o", "-"]) == 2
    other = write_recording(tmp_path / "other.rec", {"submit_ns": [1], "latency_ns": [1]})
    with Recording.open(other) as opened, pytest.raises(UsageError, match="no load of the plan act"):
        write_log([opened], tmp_path / "x.txt")
