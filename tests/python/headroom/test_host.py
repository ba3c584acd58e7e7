"""A host that sends late is told from a drive that is slow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recorded import trial

from testdrive.headroom.host import IN_FLIGHT_MAX, host_lateness_ns
from testdrive.headroom.verdict import judge
from testdrive.manifest import read_manifest
from testdrive.recording import Recording

RULE = {"rule": "p99.9<1ms", "limit": 1e6, "worst_service": 2e5}
LATE: dict[str, Any] = {
    "headroom": {"rules": [RULE]},
    "fidelity": {"lateness_p99_ns": 2_000_000, "replay_depth": {"mean": 3.0, "max": 40}},
    "warnings": [{"code": "generator_late"}],
}


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({}, 2_000_000),
        # The drive took too long; nothing was judged; it had all that it may have; the host was in time.
        ({"headroom": {"rules": [{**RULE, "worst_service": 1e6}]}}, None),
        ({"headroom": {"rules": []}}, None),
        ({"fidelity": {**LATE["fidelity"], "replay_depth": {"mean": 4e3, "max": 4096}}}, None),
        ({"warnings": []}, None),
    ],
)
def test_a_late_host_is_not_taken_for_the_drive(
    tmp_path: Path, change: dict[str, Any], wanted: int | None
) -> None:
    manifest = read_manifest(trial(tmp_path / "a.rec", [0, 1_000], 1.0, "max<1s"))
    assert host_lateness_ns({**LATE, **change}, manifest) == wanted


def test_a_queue_of_the_drive_that_was_full_is_no_fault_of_the_host(tmp_path: Path) -> None:
    manifest = read_manifest(trial(tmp_path / "a.rec", [0, 1_000], 1.0, "max<1s"))
    assert manifest.drive is not None
    manifest.drive.settings = {"queue_entries": 64}
    assert host_lateness_ns(LATE, manifest) == 2_000_000
    manifest.drive.settings = {"queue_entries": 41}
    assert host_lateness_ns(LATE, manifest) is None


@pytest.mark.parametrize(
    ("depth", "rules", "modelled", "who"),
    [
        (40, "p99<1ms", False, "host"),
        (IN_FLIGHT_MAX, "p99<1ms", False, "drive"),
        # It took 500 us.
        (40, "p99<400us", False, "drive"),
        (40, "p99<1ms", True, "drive"),
    ],
)
def test_who_fell_behind_is_told_by_what_was_in_flight(
    tmp_path: Path, depth: int, rules: str, modelled: bool, who: str
) -> None:
    lag = {"stream": None, "at_ns": 2_600_000_000, "lag_ns": 100_000_000, "max_lag_ns": 100_000_000}
    accounting = {"cannot_keep_up": lag, "replay_depth": {"mean": 3.0, "max": depth}}
    times = range(0, 3_000_000_000, 1_000_000)
    options = {"accounting": accounting, "modelled": modelled, "issued": 2_500, "status": "failed"}
    with Recording.open(trial(tmp_path / "a.rec", times, 500.0, rules, **options)) as recording:
        found = judge(recording)
    assert found.limited_by == who
    said = {"host": "this host cannot keep up, which says nothing about the drive", "drive": "the drive"}
    assert found.reasons[0].startswith(said[who])
    assert found.reasons[0].endswith(": 0.1 s behind after 2.6 s")
