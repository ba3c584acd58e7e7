"""act_storage's configuration files: every key is taken, and what is wrong is told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from testdrive.act.configuration import KEYS, read_configuration
from testdrive.errors import UsageError
from testdrive.plans import bind, load

WHOLE = """\
# A comment; then every key.
device-names: /dev/sda,/dev/sdb   # two
service-threads: 40
test-duration-sec: 7200
report-interval-sec: 2
microsecond-histograms: yes
read-reqs-per-sec: 4000
write-reqs-per-sec  2000
record-bytes: 1500
record-bytes-range-max: 4000
large-block-op-kbytes: 256
replication-factor: 2
update-pct: 50
defrag-lwm-pct: 60
no-defrag-reads: no
compress-pct: 70
disable-odsync: no
commit-to-device: yes
commit-min-bytes: 1024
tomb-raider: yes
tomb-raider-sleep-usec: 10
max-lag-sec: 0
scheduler-mode: noop
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "act_storage.conf"
    path.write_text(text)
    return path


def test_every_key_is_taken(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE)
    found = read_configuration(path)
    assert found.values.keys() == KEYS.keys() - {"file-size-mbytes"}
    assert found.devices == ["/dev/sda", "/dev/sdb"]
    bound = bind(load("act"), {"config": path, "prepare": "none"})
    (phase,) = bound.phases
    rates = {stream.name: stream.arrivals for stream in phase.streams}
    # Half of the load for each of two drives.
    assert rates["reads"].rate_iops == (4000 + 1000) / 2
    assert rates["writes"].rate_iops == 2 * 2000 / 2
    assert rates["tomb-raider"].think_ns == 10_000
    assert phase.duration_ns == 7200 * 10**9
    assert phase.data.compressible_share == 0.3
    assert {stream.max_lag_ns for stream in phase.streams} == {None}
    assert bound.values["microsecond-histograms"] is True
    assert bound.values["report-interval-sec"] == 2


def test_files_stand_for_drives_where_their_size_is_given(tmp_path: Path) -> None:
    text = "device-names: a.img;b.img\nfile-size-mbytes: 64\ntest-duration-sec: 10\n"
    assert read_configuration(written(tmp_path, text)).devices == [
        "file:a.img?size=64MiB",
        "file:b.img?size=64MiB",
    ]


def test_lines_with_drives_add_up_and_an_initial_is_an_answer(tmp_path: Path) -> None:
    text = (
        "device-names: /dev/sda\ntest-duration-sec: 10\ndevice-names /dev/sdb;/dev/sdc\n"
        "tomb-raider: y\ndisable-odsync: n\n"
    )
    found = read_configuration(written(tmp_path, text))
    assert found.devices == ["/dev/sda", "/dev/sdb", "/dev/sdc"]
    assert (found.values["tomb-raider"], found.values["disable-odsync"]) == (True, False)
    with pytest.raises(UsageError, match=r":3: device-names: .* names /dev/sda twice"):
        read_configuration(written(tmp_path, "test-duration-sec: 1\n" + "device-names: /dev/sda\n" * 2))


def test_options_may_shorten_a_configuration_but_not_change_its_load(tmp_path: Path) -> None:
    path = written(tmp_path, "device-names: /dev/sda\ntest-duration-sec: 10\nread-reqs-per-sec: 10\n")
    bound = bind(load("act"), {"config": path, "slice": "5s", "prepare": "none"})
    assert bound.phases[0].duration_ns == 10 * 10**9
    # What a configuration does not say is 0 there, and not the rating's.
    assert [stream.name for stream in bound.phases[0].streams] == ["reads"]
    for given in ({"rating": 5}, {"record-bytes": 512}, {"stress": "yes"}):
        with pytest.raises(UsageError, match="is given beside the configuration"):
            bind(load("act"), {"config": path, "slice": "5s", **given})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("device-name: /dev/sda", r":1: device-name is no key of act_storage; did you mean device-names\?"),
        ("a: 1", ":1: a is no key of act_storage$"),
        (
            "device-names: /dev/sda\nread-reqs-per-sec: 2k",
            r":2: read-reqs-per-sec: '2k' is not a whole number",
        ),
        ("read-reqs-per-sec: 4294967296", ":1: read-reqs-per-sec: '4294967296' is not a whole number below"),
        ("tomb-raider: true", ":1: tomb-raider: 'true' is neither yes nor no"),
        ("scheduler-mode: bfq", ":1: scheduler-mode: 'bfq' is neither noop nor cfq"),
        ("update-pct:", ":1: update-pct has no value"),
        ("update-pct: 5\n\nupdate-pct: 5", ":3: update-pct was given in line 1 already"),
        ("device-names: /dev/sda, /dev/sda", ":1: device-names: .* names /dev/sda twice"),
        ("test-duration-sec: 5", "device-names is missing"),
        ("device-names: /dev/sdc?", r":1: device-names: .* has /dev/sdc\?: put the drive's own path"),
        ("device-names: /dev/sda", "test-duration-sec is missing"),
        ("device-names: /dev/sda\ntest-duration-sec: 0", ":2: test-duration-sec is 0"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, wanted: str) -> None:
    with pytest.raises(UsageError, match=wanted):
        read_configuration(written(tmp_path, text))


def test_an_impossible_value_is_told_with_its_line_too(tmp_path: Path) -> None:
    head = "device-names: /dev/sda\ntest-duration-sec: 10\nread-reqs-per-sec: 5\n"
    for line, wanted in (
        ("update-pct: 101", ":4: update-pct is 101; give at most 100"),
        ("large-block-op-kbytes: 100", ":4: large-block-op-kbytes is 100"),
    ):
        with pytest.raises(UsageError, match=wanted):
            bind(load("act"), {"config": written(tmp_path, head + line), "slice": "5s"})
    with pytest.raises(UsageError, match=":2: test-duration-sec is 10 s and slice 3600 s"):
        bind(load("act"), {"config": written(tmp_path, head)})
    with pytest.raises(UsageError, match=r"nothing\.conf cannot be read"):
        bind(load("act"), {"config": tmp_path / "nothing.conf"})
