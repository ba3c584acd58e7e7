"""The doctor: each finding on trees of sysfs and procfs that are laid out here, well and not well."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testdrive.cli import main
from testdrive.doctor import Finding, Host, cpu, drive, examine, kernel, link, place, selfcheck
from testdrive.doctor.host import Ring

CPU0 = "sys/devices/system/cpu/cpu0"
DISK = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0n1"
PCI = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
ATA = "sys/devices/ata1/sda"


def lay_out(root: Path, files: dict[str, str]) -> Host:
    """Files below a root, and the host that it shows. io_uring and memory are as well as can be."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return Host(root, lambda: Ring(True, True), lambda: None, lambda: None)


def link_to(root: Path, name: str, target: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(root / target)


def nvme(root: Path, files: dict[str, str] | None = None) -> Host:
    """An NVMe drive of generation 4 in a slot that can do as much, with these files beside or instead."""
    laid = {
        f"{PCI}/nvme/nvme0/transport": "pcie",
        f"{PCI}/current_link_speed": "16.0 GT/s PCIe",
        f"{PCI}/max_link_speed": "16.0 GT/s PCIe",
        f"{PCI}/current_link_width": "4",
        f"{PCI}/max_link_width": "4",
        f"{Path(PCI).parent}/max_link_speed": "16.0 GT/s PCIe",
        f"{Path(PCI).parent}/max_link_width": "4",
        f"{DISK}/queue/scheduler": "[none] mq-deadline kyber",
        f"{DISK}/queue/write_cache": "write through",
        f"{DISK}/queue/io_poll": "1",
        f"{DISK}/queue/logical_block_size": "512",
        f"{DISK}/queue/physical_block_size": "4096",
        "dev/ng0n1": "",
        "sys/module/nvme/parameters/poll_queues": "4",
        f"{PCI}/nvme/nvme0/hwmon1/temp1_input": "41850",
        f"{PCI}/nvme/nvme0/hwmon1/temp1_max": "69850",
    }
    host = lay_out(root, {**laid, **(files or {})})
    link_to(root, "sys/class/block/nvme0n1", DISK)
    link_to(root, f"{DISK}/device", f"{PCI}/nvme/nvme0")
    link_to(root, f"{PCI}/nvme/nvme0/device", PCI)
    return host


def severities(*found: Finding) -> list[str]:
    """Of each finding; whatever is not well says what it means and what to do."""
    for each in found:
        assert each.found
        assert (each.severity == "ok") == (not each.meaning) == (not each.remedy)
    return [each.severity for each in found]


def check(
    function: Callable[[Host], Finding], root: Path, well: dict[str, str], ill: dict[str, str]
) -> Finding:
    """A check is ok on the first tree and not on the second, whose finding is returned."""
    assert severities(function(lay_out(root / "well", well))) == ["ok"]
    found = function(lay_out(root / "ill", ill))
    assert severities(found) != ["ok"]
    return found


def test_a_governor_other_than_performance_is_named_with_its_cpus(tmp_path: Path) -> None:
    name = "cpufreq/scaling_governor"
    well = {f"{CPU0}/{name}": "performance"}
    ill = {f"{CPU0}/{name}": "powersave", f"sys/devices/system/cpu/cpu1/{name}": "performance"}
    found = check(cpu.governor, tmp_path, well, ill)
    assert found.found == "powersave on 1, performance on 1"
    assert found.remedy == "cpupower frequency-set -g performance"
    assert severities(cpu.governor(lay_out(tmp_path / "guest", {}))) == ["ok"]


def test_a_limit_of_the_frequency_is_found(tmp_path: Path) -> None:
    top = {f"{CPU0}/cpufreq/cpuinfo_max_freq": "4000000"}
    well, ill = (top | {f"{CPU0}/cpufreq/scaling_max_freq": text} for text in ("4000000", "2000000"))
    check(cpu.frequency_limit, tmp_path, well, ill)
    turbo = "sys/devices/system/cpu/intel_pstate/no_turbo"
    assert check(cpu.frequency_limit, tmp_path / "turbo", {turbo: "0"}, {turbo: "1"}).found == "turbo is off"
    boost = "sys/devices/system/cpu/cpufreq/boost"
    assert "boost" in check(cpu.frequency_limit, tmp_path / "boost", {boost: "1"}, {boost: "0"}).remedy


def test_deep_sleep_is_found_unless_it_is_switched_off(tmp_path: Path) -> None:
    state = f"{CPU0}/cpuidle/state3"
    deep = {f"{state}/latency": "133", f"{state}/name": "C6"}
    found = check(
        cpu.idle_states, tmp_path, deep | {f"{state}/disable": "1"}, deep | {f"{state}/disable": "0"}
    )
    assert found.found == "C6 takes 133 µs to leave"


@pytest.mark.parametrize(
    ("later", "severity", "shown"),
    [
        ("cpu 105 0 0 195 0 0 0 0 0 0", "ok", "5 % busy, 0.0 % stolen"),
        ("cpu 150 0 0 150 0 0 0 0 0 0", "warning", "50 % busy, 0.0 % stolen"),
        ("cpu 105 0 0 185 0 0 0 10 0 0", "warning", "5 % busy, 10.0 % stolen"),
        ("cpu 150 0 0 140 0 0 0 10 0 0", "warning", "50 % busy, 10.0 % stolen"),
    ],
)
def test_load_and_stolen_time_are_those_between_two_looks(
    tmp_path: Path, later: str, severity: str, shown: str
) -> None:
    laid = lay_out(tmp_path, {"proc/stat": "cpu 100 0 0 100 0 0 0 0 0 0"})
    host = Host(tmp_path, laid.probe_ring, laid.memory_lock_limit_bytes, lambda: _write(tmp_path, later))
    found = cpu.load(host)
    assert (found.severity, found.found) == (severity, shown)
    # A host may be busy and stolen from at once.
    assert ("another guest" in found.meaning) == ("10.0 % stolen" in shown)
    assert ("other work" in found.meaning) == ("50 % busy" in shown)


def _write(root: Path, text: str) -> None:
    (root / "proc/stat").write_text(f"{text}\n")


def test_without_counters_the_load_is_not_known(tmp_path: Path) -> None:
    assert severities(cpu.load(lay_out(tmp_path, {}))) == ["warning"]


def test_a_clock_that_is_a_device_or_not_invariant_is_found(tmp_path: Path) -> None:
    name = "sys/devices/system/clocksource/clocksource0/current_clocksource"
    flags = {"proc/cpuinfo": "flags : fpu constant_tsc nonstop_tsc"}
    assert check(cpu.clock_source, tmp_path, flags | {name: "tsc"}, flags | {name: "hpet"}).found == "hpet"
    bad = {name: "tsc", "proc/cpuinfo": "flags : fpu tsc"}
    assert "not invariant" in check(cpu.clock_source, tmp_path / "b", {name: "kvm-clock"}, bad).found


def test_an_old_kernel_is_found(tmp_path: Path) -> None:
    name = "proc/sys/kernel/osrelease"
    assert (
        check(kernel.version, tmp_path, {name: "6.1.0-13-amd64"}, {name: "4.18.0-553"}).found == "4.18.0-553"
    )


def test_io_uring_is_tried_and_the_switch_is_named(tmp_path: Path) -> None:
    def found(ring: Ring, switch: str) -> Finding:
        lay_out(tmp_path, {"proc/sys/kernel/io_uring_disabled": switch})
        return kernel.io_uring(Host(tmp_path, lambda: ring))

    assert severities(found(Ring(True, True), "0")) == ["ok"]
    assert severities(found(Ring(True, False), "0")) == ["warning"]
    off = found(Ring(False, False), "2")
    assert (off.severity, off.remedy) == ("problem", "sysctl kernel.io_uring_disabled=0")
    assert "seccomp" in found(Ring(False, False), "0").remedy


def test_this_kernels_ring_is_told_without_an_error() -> None:
    available, deferred = Host().probe_ring()
    assert available or not deferred


def test_little_memory_that_may_be_locked_is_found(tmp_path: Path) -> None:
    host = lay_out(tmp_path, {})
    limited = Host(tmp_path, host.probe_ring, lambda: 8 << 20)
    assert severities(*map(kernel.memory_lock, (host, limited))) == ["ok", "warning"]


def test_huge_pages_are_counted_and_their_one_user_is_named(tmp_path: Path) -> None:
    text = "HugePages_Total:      64\nHugePages_Free:       60\nHugepagesize:       2048 kB"
    found = kernel.huge_pages(lay_out(tmp_path, {"proc/meminfo": text}))
    assert (found.severity, found.found) == ("ok", "64 of 2.00 MiB, 60 free")
    assert kernel.huge_pages(lay_out(tmp_path / "b", {})).found == (
        "none set aside: only the user-space driver without an IOMMU needs them"
    )


def test_tracing_needs_tracefs_its_events_and_no_lockdown(tmp_path: Path) -> None:
    mounted = {"proc/self/mounts": "tracefs /sys/kernel/tracing tracefs rw 0 0"}
    well = mounted | {"sys/kernel/tracing/events/block/enable": "0"}
    ill = well | {"sys/kernel/security/lockdown": "none integrity [confidentiality]"}
    assert "locked down" in check(kernel.tracing, tmp_path, well, ill).found
    assert "not mounted" in check(kernel.tracing, tmp_path / "b", well, {"proc/self/mounts": ""}).found
    assert "no block events" in check(kernel.tracing, tmp_path / "c", well, mounted).found


def test_a_meter_of_the_drive_is_named_and_one_of_the_host_is_not_enough(tmp_path: Path) -> None:
    host = {
        "sys/class/powercap/intel-rapl:0/name": "package-0",
        "sys/class/powercap/intel-rapl:0/energy_uj": "1",
        "sys/class/hwmon/hwmon0/power1_average": "1",
        "sys/class/hwmon/hwmon0/name": "power_meter",
    }
    meter = {"sys/class/hwmon/hwmon2/power1_input": "1", "sys/class/hwmon/hwmon2/name": "ina226"}
    found = check(kernel.power_sources, tmp_path, meter | host, host)
    assert found.found == (
        "hwmon:power_meter:power1 (the host); rapl (the host); none that surely measures the drive"
    )
    assert "hwmon:ina226:power1" in kernel.power_sources(lay_out(tmp_path / "both", meter | host)).found
    assert kernel.power_sources(lay_out(tmp_path / "none", {})).found == "none"


def test_a_drive_that_may_tell_its_own_power_is_named_and_is_no_meter_yet(tmp_path: Path) -> None:
    found = kernel.power_sources(lay_out(tmp_path, {"sys/class/nvme/nvme3/model": "X"}))
    assert found.severity == "warning"
    assert found.found.startswith("nvme:/dev/nvme3 (if the drive tells its power); none that surely")


def test_a_guest_is_told_from_bare_metal(tmp_path: Path) -> None:
    product = {"sys/class/dmi/id/product_name": "R750"}
    well = product | {"proc/cpuinfo": "flags : fpu tsc"}
    found = check(kernel.virtual, tmp_path, well, product | {"proc/cpuinfo": "flags : fpu hypervisor"})
    assert found.found == "a guest (R750)"


def test_a_drive_that_is_well_has_nothing_but_good_findings(tmp_path: Path) -> None:
    listed = {"/dev/nvme0n1": {"uri": "/dev/nvme0n1", "erasable": True, "erase_name": "S1"}}
    host = nvme(tmp_path)
    # The character device of a namespace stands for its block device.
    for uri in ("/dev/ng0n1", "/dev/ng0n1?trim_ranges=256"):
        assert "drive_in_use" in {each.code for each in drive.findings(host, uri, listed)}
    found = list(drive.findings(host, "/dev/nvme0n1", listed))
    assert severities(*found) == ["ok"] * 7 + ["info", "ok"]
    assert "512 bytes, in physical blocks of 4,096: smaller writes may cost a read" in [
        each.found for each in found
    ]
    assert "x4, generation 4, at most 7.88 GB/s" in [each.found for each in found]
    assert "42 °C (it warns at 70 °C)" in [each.found for each in found]


def test_a_link_that_is_narrower_than_the_drive_is_found_and_says_whose_fault_it_is(tmp_path: Path) -> None:
    narrow = link.finding(nvme(tmp_path / "a", {f"{PCI}/current_link_width": "2"}), "d", "nvme0n1")
    assert severities(narrow) == ["warning"]
    assert narrow.found == "x2, generation 4, of a drive that can x4, generation 4"
    assert "reseat" in narrow.remedy
    old_slot = {
        f"{PCI}/current_link_speed": "8.0 GT/s PCIe",
        f"{Path(PCI).parent}/max_link_speed": "8.0 GT/s PCIe",
    }
    slow = link.finding(nvme(tmp_path / "b", old_slot), "d", "nvme0n1")
    assert slow.found == "x4, generation 3, of a drive that can x4, generation 4"
    assert slow.remedy == "the slot is x4, generation 3: put the drive into one that is x4, generation 4"


def test_the_controller_of_a_drive_with_several_paths_is_found(tmp_path: Path) -> None:
    host = nvme(tmp_path)
    subsystem = tmp_path / "sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    subsystem.mkdir(parents=True)
    (subsystem / "nvme0").symlink_to(tmp_path / PCI / "nvme/nvme0")
    device = tmp_path / DISK / "device"
    device.unlink()
    device.symlink_to(subsystem)
    assert link.finding(host, "d", "nvme0n1").found.startswith("x4, generation 4")


@pytest.mark.parametrize(
    ("function", "files", "severity"),
    [
        (drive.scheduler, {f"{DISK}/queue/scheduler": "none [mq-deadline] kyber"}, "warning"),
        (drive.polling, {f"{DISK}/queue/io_poll": "0"}, "info"),
        (drive.temperature, {f"{PCI}/nvme/nvme0/hwmon1/temp1_input": "63850"}, "warning"),
        (drive.temperature, {f"{PCI}/nvme/nvme0/hwmon1/temp1_input": "70850"}, "problem"),
    ],
)
def test_what_is_not_well_of_a_drive_is_found(
    tmp_path: Path, function: Callable[[Host, str, str], Finding], files: dict[str, str], severity: str
) -> None:
    assert severities(function(nvme(tmp_path, files), "/dev/nvme0n1", "nvme0n1")) == [severity]


def test_queues_for_polling_that_passthrough_leaves_alone_are_told(tmp_path: Path) -> None:
    for release, severity in (("6.1.0-56-amd64", "info"), ("6.16.1", "ok")):
        host = nvme(tmp_path / release, {"proc/sys/kernel/osrelease": release})
        assert severities(drive.polling(host, "/dev/nvme0n1", "nvme0n1")) == ["ok"]
        assert severities(drive.polling(host, "/dev/ng0n1", "nvme0n1", is_passthrough=True)) == [severity]


def test_a_write_cache_that_is_off_is_worth_a_word_on_sata_alone(tmp_path: Path) -> None:
    name = f"{ATA}/queue/write_cache"
    for text, severity in (("write back", "ok"), ("write through", "warning")):
        host = lay_out(tmp_path / text, {name: text})
        link_to(tmp_path / text, "sys/class/block/sda", ATA)
        assert severities(drive.write_cache(host, "/dev/sda", "sda")) == [severity]
    assert severities(drive.write_cache(nvme(tmp_path / "nvme"), "d", "nvme0n1")) == ["ok"]


def test_a_drive_in_use_prevents_runs_and_one_with_signatures_needs_the_second_consent() -> None:
    def found(**entry: Any) -> Finding:
        return drive.may_be_written("/dev/sda", "sda", {"/dev/sda": {"erase_name": "S1", **entry}})

    assert severities(found(erasable=True)) == ["ok"]
    mounted = found(erasable=False, refusals=["it is mounted at /"], mounted=["/"])
    assert (mounted.severity, mounted.prevents_runs) == ("problem", True)
    signed = found(erasable=False, refusals=["it carries ext4"])
    assert (signed.severity, signed.prevents_runs) == ("warning", False)
    assert signed.remedy.startswith("--erase S1 --erase-signatures")
    assert drive.may_be_written("/dev/sdb", "sdb", {}).prevents_runs


def test_a_drive_that_is_not_there_prevents_runs(tmp_path: Path) -> None:
    (found,) = drive.findings(lay_out(tmp_path, {}), "/dev/nvme7n1", {})
    assert (found.severity, found.prevents_runs) == ("problem", True)


def test_models_and_the_null_drive_are_well_everywhere(tmp_path: Path) -> None:
    host = lay_out(tmp_path, {})
    found = [*drive.findings(host, "sim:sata?capacity=1GiB", {}), *drive.findings(host, "null:", {})]
    assert severities(*found) == ["ok", "ok"]


MOUNTS = {
    "proc/self/mountinfo": "22 1 259:2 / / rw - ext4 /dev/nvme0n1p2 rw\n"
    "30 22 0:40 / /tmp rw - tmpfs tmpfs rw\n"
    "31 22 0:41 / /net rw - nfs4 server:/x rw\n"
    "32 22 8:1 / /data rw - xfs /dev/sda1 rw"
}


def two_disks(root: Path) -> Host:
    """The root on a partition of the NVMe drive, /data on one of a SATA disk."""
    host = nvme(root, MOUNTS | {f"{DISK}/nvme0n1p2/partition": "2", f"{ATA}/sda1/partition": "1"})
    for name, target in (
        ("class/block/nvme0n1p2", f"{DISK}/nvme0n1p2"),
        ("dev/block/259:2", f"{DISK}/nvme0n1p2"),
        ("class/block/sda", ATA),
        ("class/block/sda1", f"{ATA}/sda1"),
        ("dev/block/8:1", f"{ATA}/sda1"),
    ):
        link_to(root, f"sys/{name}", target)
    return host


@pytest.mark.parametrize(
    ("directory", "drives", "severity"),
    [
        ("/data/runs", ["/dev/nvme0n1"], "ok"),
        ("/home/me", ["/dev/nvme0n1"], "problem"),
        ("/home/me", ["/dev/sda"], "ok"),
        ("/home/me", ["file:/srv/x?size=1GiB"], "warning"),
        ("/home/me", ["file:/data/x?size=1GiB"], "ok"),
        ("/home/me", ["sim:sata", "null:"], "ok"),
        ("/tmp/x", [], "warning"),
        ("/net/x", [], "warning"),
    ],
)
def test_a_recording_beside_the_drive_under_test_is_found(
    tmp_path: Path, directory: str, drives: list[str], severity: str
) -> None:
    assert severities(*place.beneath(two_disks(tmp_path), Path(directory), drives)) == [severity]


def test_a_volume_stands_on_the_disks_below_it(tmp_path: Path) -> None:
    volume = "sys/devices/virtual/block/dm-0"
    host = two_disks(tmp_path)
    lay_out(
        tmp_path,
        {f"{volume}/dm/name": "v", "proc/self/mountinfo": "22 1 253:0 / / rw - ext4 /dev/mapper/v rw"},
    )
    link_to(tmp_path, "sys/class/block/dm-0", volume)
    link_to(tmp_path, "sys/dev/block/253:0", volume)
    link_to(tmp_path, f"{volume}/slaves/nvme0n1p2", f"{DISK}/nvme0n1p2")
    (found,) = place.beneath(host, Path("/home"), ["/dev/nvme0n1"])
    assert found.severity == "problem"


def test_a_full_disk_is_a_warning_and_then_prevents_runs(tmp_path: Path) -> None:
    found = [place.room_of("/x", free) for free in (100 << 30, 500 << 20, 1 << 20)]
    assert severities(*found) == ["ok", "warning", "problem"]
    assert [each.prevents_runs for each in found] == [False, False, True]
    assert place.room(tmp_path / "missing").prevents_runs
    assert place.room(tmp_path).code == "recording_room"


def measured(**keys: Any) -> selfcheck.Measured:
    usual: dict[str, Any] = {"cost_ns": 400.0, "lateness_p50_ns": 500, "lateness_p99_ns": 5_000}
    return selfcheck.Measured(**{**usual, "lateness_max_ns": 90_000, "build": "release", **keys})


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ({}, ["ok", "ok", "ok"]),
        ({"build": "debug"}, ["problem", "ok", "ok"]),
        ({"lateness_p99_ns": 100_000}, ["ok", "ok", "warning"]),
        ({"lateness_p99_ns": 5_000_000}, ["ok", "ok", "problem"]),
    ],
)
def test_what_was_measured_is_judged_by_build_and_lateness(keys: dict[str, Any], wanted: list[str]) -> None:
    assert severities(*selfcheck.judged(measured(**keys))) == wanted


def test_the_cost_of_an_io_says_what_one_thread_can_generate() -> None:
    cost = list(selfcheck.judged(measured()))[1]
    assert "400 ns for an I/O: one thread issues and records 2,500,000 IOPS" in cost.found


def test_an_engine_that_does_not_run_prevents_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTDRIVE_ENGINE", str(tmp_path / "none"))
    (found,) = selfcheck.findings(tmp_path)
    assert (found.severity, found.prevents_runs) == ("problem", True)


def test_this_host_is_measured_and_nothing_is_left_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["doctor", "--json", "--directory", str(tmp_path), "null:"])
    told = json.loads(capsys.readouterr().out)
    assert (status, told["runs_possible"]) == (0, True)
    codes = [each["code"] for each in told["findings"]]
    assert codes[-3:] == ["engine", "generator_cost", "generator_pacing"]
    assert len(set(codes)) == len(codes)
    assert list(tmp_path.iterdir()) == []


def test_every_finding_is_documented(tmp_path: Path) -> None:
    listed = {"uri": "/dev/nvme0n1", "erasable": True, "erase_name": "S1"}
    found = list(
        examine(
            nvme(tmp_path), ["/dev/nvme0n1", "null:"], tmp_path, list_drives=lambda: [listed], measure=False
        )
    )
    codes = {each.code for each in (*found, *selfcheck.judged(measured()))}
    text = (Path(__file__).parents[2] / "docs/doctor.md").read_text()
    assert {code for code in codes if f"`{code}`" not in text} == set()


def test_the_picture_says_what_it_comes_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["doctor", "--no-measure", "--directory", str(tmp_path), "/dev/testdrive-none"])
    out = capsys.readouterr().out
    assert status == 1
    assert "problem drive" in out
    assert "runs are not possible as it is" in out
