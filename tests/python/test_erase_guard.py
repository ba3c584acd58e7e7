"""The guard before a real block device, through the command: refused with what to do, or done by consent."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import loop_device, missing, require, run_testdrive
from workloads import write_workload

MARK = b"somebody's data" * 100


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Path]:
    """A loop device of 64 MiB that starts with data."""
    with loop_device(tmp_path / "drive.img", 64 << 20) as found:
        found.write_bytes(MARK)
        yield found


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    return write_workload(tmp_path / "prod.rec", seconds=1, trims=4)


def replay(workload: Path, device: Path, *options: str) -> subprocess.CompletedProcess[str]:
    output = workload.with_name("run.rec")
    fixed = ("--lba", "wrap", "--pace", "asap", "--depth", "8", "--prepare", "none")
    return run_testdrive("replay", workload, "--drive", device, "-o", output, *fixed, *options)


def test_without_consent_nothing_is_written_and_the_way_to_consent_is_told(
    workload: Path, device: Path
) -> None:
    done = replay(workload, device)
    assert done.returncode == 3
    assert f"{device} is refused" in done.stderr
    assert f"--erase {device}" in done.stderr
    assert device.read_bytes()[: len(MARK)] == MARK
    assert not workload.with_name("run.rec").exists()


def test_with_consent_the_drive_is_written_and_every_io_recorded(workload: Path, device: Path) -> None:
    before = device.read_bytes()
    done = replay(workload, device, "--erase", str(device))
    assert done.returncode == 0, done.stderr
    assert "504" in done.stdout
    assert workload.with_name("run.rec").is_dir()
    assert device.read_bytes() != before


def test_consent_for_another_drive_is_none(workload: Path, device: Path, tmp_path: Path) -> None:
    done = replay(workload, device, "--erase", "/dev/nvme9n1")
    assert done.returncode in (2, 3)
    assert "/dev/nvme9n1" in done.stderr
    assert device.read_bytes()[: len(MARK)] == MARK


def test_a_filesystem_needs_a_consent_of_its_own_and_a_mounted_one_gets_none(
    workload: Path, device: Path, tmp_path: Path
) -> None:
    subprocess.run([require("mkfs.ext4"), "-q", "-F", device], check=True)
    consent = ("--erase", str(device))
    done = replay(workload, device, *consent)
    assert done.returncode == 3
    assert "ext4" in done.stderr
    assert "--erase-signatures" in done.stderr
    place = tmp_path / "mounted"
    place.mkdir()
    if subprocess.run([require("mount"), device, place], check=False).returncode:
        missing("the right to mount")
    try:
        done = replay(workload, device, *consent, "--erase-signatures")
    finally:
        subprocess.run(["umount", place], check=True)
    assert done.returncode == 3
    assert f"mounted at {place}: unmount it first" in done.stderr
    done = replay(workload, device, *consent, "--erase-signatures")
    assert done.returncode == 0, done.stderr
