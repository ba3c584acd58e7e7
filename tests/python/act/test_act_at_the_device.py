"""What the block device itself sees of a configuration: rates, sizes, places, and writes that are forced."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support import loop_device, run_testdrive
from test_capture import Capturing, captures_here

from testdrive.act.load import derive_load
from testdrive.act.verdict import load_phase
from testdrive.manifest import OPCODES
from testdrive.plans import bind, load
from testdrive.recording import Recording

SECONDS = 2
#: 425 writes/s fill 5 large blocks of 85 records, and defragmentation doubles them: 10 of each kind a second.
KEYS = {"read-reqs-per-sec": 850, "write-reqs-per-sec": 425}
FUA = 1
LARGE_BYTES = 128 << 10


def flushes_of(device: Path) -> int:
    """How many flushes a device has completed; those that waited together were one."""
    return int(Path("/sys/block", device.name, "stat").read_text().split()[15])


def seen_and_recorded(folder: Path, disable: str) -> tuple[dict[str, Any], dict[str, Any], int, int]:
    """Rows as captured below testdrive and as recorded by it, arrivals not issued, and flushes."""
    configuration = folder / "act_storage.conf"
    with loop_device(folder / "disk.img", 64 << 20) as device:
        lines = [f"device-names: {device}", f"test-duration-sec: {SECONDS}", f"disable-odsync: {disable}"]
        configuration.write_text("\n".join(lines + [f"{key}: {value}" for key, value in KEYS.items()]))
        before = flushes_of(device)
        capturing = Capturing(device, "-o", folder / "seen.rec")
        options = ("--set", "slice=1s", "--set", "prepare=none", "--keep", "rows", "--erase", str(device))
        done = run_testdrive("run", "act", "--config", configuration, *options, "-o", folder / "act.rec")
        status, _, said = capturing.stop()
        flushes = flushes_of(device) - before
    assert done.returncode in (0, 1), done.stderr
    assert status == 0, said
    found = []
    for name in ("seen.rec", "act.rec"):
        with Recording.open(folder / name) as recording:
            found.append(recording.execute(recording.all_rows()))
            phase = load_phase(recording)
    assert phase is not None
    return found[0], found[1], int((phase.accounting or {})["arrivals_not_issued"]), flushes


def ios(rows: dict[str, Any]) -> Counter[tuple[str, int, int, int]]:
    """How often each operation went to each place, with or without FUA."""
    columns = (rows[key].tolist() for key in ("opcode", "offset_bytes", "length_bytes", "flags"))
    return Counter(
        (OPCODES[code], offset, length, flags & FUA)
        for code, offset, length, flags in zip(*columns, strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("disable", ["no", "yes"])
def test_the_device_sees_what_the_configuration_demands(tmp_path: Path, disable: str) -> None:
    captures_here()
    seen, recorded, not_issued, flushes = seen_and_recorded(tmp_path, disable)
    derived = derive_load(bind(load("act"), KEYS).values)
    demanded = SECONDS * (derived.reads_per_s + derived.large_reads_per_s + derived.large_writes_per_s)
    # Whatever a busy host made late, each arrival went or is counted; a stream may be cut within a gap.
    assert abs(len(recorded["opcode"]) + not_issued - demanded) <= 3
    below, above = ios(seen), ios(recorded)
    # Before the load, the drive is looked at through the page cache, and so never by 1.5 KiB nor 128 KiB.
    assert not above - below, "what is recorded is what the device was asked for"
    extra = below - above
    assert all((opcode, length % 4096) == ("read", 0) for opcode, _, length, _ in extra)
    writes = [key for key in above.elements() if key[0] == "write"]
    assert writes
    assert all((length, fua) == (LARGE_BYTES, int(disable == "no")) for _, _, length, fua in writes)
    # The kernel flushes a loop device for each forced write, which has no FUA of its own.
    assert flushes <= len(writes)
    assert (flushes > 0) == (disable == "no")
