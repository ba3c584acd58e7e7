"""A host that sends late is told from a drive that is slow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recorded import trial

from testdrive.headroom.host import host_lateness_ns
from testdrive.manifest import read_manifest

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
