"""Real traces, imported as a new user would: `testdrive import PATH`, and no word more.

The traces are no part of the project. They are looked for in `../shared/traces` beside the checkout, or where
TESTDRIVE_TRACES says; where they are not, these tests are skipped.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support import run_testdrive

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "traces"


def sample(name: str) -> Path:
    """A real trace's path, or the end of this test."""
    folder = Path(os.environ.get("TESTDRIVE_TRACES") or BESIDE)
    path = folder / name
    if not path.exists():
        pytest.skip(f"{path} is not there: real traces are not part of the project (set TESTDRIVE_TRACES)")
    return path


#: What is imported, the format that it is found to be, and how many I/Os of each kind it has.
TRACES = [
    ("blktrace-nvme-read/sample.blktrace.0", "blktrace", {"read": 963}),
    ("blktrace-nvme-read", "blktrace", {"read": 963}),
    ("blktrace-keks-sata-discard/keks.blktrace.5", "blktrace", {"write": 1153, "trim": 5, "flush": 24}),
    ("blktrace-keks-sata-discard", "blktrace", {"write": 1153, "trim": 5, "flush": 24}),
    ("blkparse-ycsb-rocksdb-nvme/sample.txt", "blkparse", {"read": 1695}),
    ("octf-nvme-ycsb/trace", "octf", {"write": 64_188, "trim": 231, "read": 1}),
    ("octf-nvme-ycsb/trace/octf.trace.71", "octf", {"write": 64_188, "trim": 231, "read": 1}),
    ("octf-nvme-ycsb", "octf", {"write": 64_188, "trim": 231, "read": 1}),
]


@pytest.mark.parametrize(("name", "format_name", "ios"), TRACES, ids=[name for name, _, _ in TRACES])
def test_a_real_trace_is_imported_with_no_option_but_its_path(
    name: str, format_name: str, ios: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sample(name)
    # The recording goes to where the command is given.
    monkeypatch.chdir(tmp_path)
    done = run_testdrive("import", path)
    assert done.returncode == 0, done.stderr
    recordings = list(tmp_path.iterdir())
    assert len(recordings) == 1
    manifest = json.loads((recordings[0] / "manifest.json").read_text())
    assert manifest["source"]["format"] == format_name
    assert {kind: counts["ios"] for kind, counts in manifest["counts"]["by_opcode"].items()} == ios
    shown = run_testdrive("inspect", recordings[0], "--json")
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["io_counts"]["ios"] == sum(ios.values())
