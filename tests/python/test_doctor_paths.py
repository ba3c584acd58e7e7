"""The doctor on the paths to drives: what each needs, on hosts laid out here, and each remedy."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from testdrive.doctor import Finding, Host, block_devices, drive, passthrough, user_space
from testdrive.doctor.host import Ring

ADDRESS = "0000:01:00.0"
PCI = f"sys/devices/pci0000:00/0000:00:01.0/{ADDRESS}"
OTHER = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.1"
BRIDGE = "sys/devices/pci0000:00/0000:00:01.0"
DISK = f"{PCI}/nvme/nvme0/nvme0n1"
LISTED: dict[str, dict[str, Any]] = {
    "/dev/nvme0n1": {"erasable": True, "erase_name": "S1", "mounted": [], "holders": [], "swap": False}
}
NOIOMMU = "sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
HUGE = "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"


class Server:
    """A host with an NVMe drive, as well as can be for every path; what is taken away is wanting."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ring = Ring(True, True)
        self.write("proc/sys/kernel/osrelease", "6.8.0-40-generic")
        self.write("proc/self/status", "Name:\ttestdrive\nCapEff:\t000001ffffffffff")
        self.write("proc/self/mounts", "sysfs /sys sysfs rw,nosuid 0 0")
        self.write("proc/cpuinfo", "vendor_id : GenuineIntel")
        self.write(f"{PCI}/class", "0x010802")
        self.write(f"{PCI}/nvme/nvme0/transport", "pcie")
        self.write(f"{DISK}/queue/logical_block_size", "4096")
        self.write("dev/ng0n1", "")
        self.write("sys/bus/pci/drivers/vfio-pci/bind", "")
        self.link("sys/class/nvme/nvme0", f"{PCI}/nvme/nvme0")
        self.link("sys/class/block/nvme0n1", DISK)
        self.link(f"{DISK}/device", f"{PCI}/nvme/nvme0")
        self.link(f"{PCI}/nvme/nvme0/device", PCI)
        self.link(f"sys/bus/pci/devices/{ADDRESS}", PCI)
        self.link(f"{PCI}/driver", "sys/bus/pci/drivers/nvme")
        self.group(PCI)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")

    def link(self, name: str, target: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (self.root / target).mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(self.root / target)

    def group(self, device: str) -> None:
        """Put a device into IOMMU group 12."""
        self.link(f"{device}/iommu_group", "sys/kernel/iommu_groups/12")
        self.link(f"sys/kernel/iommu_groups/12/devices/{Path(device).name}", device)

    def without_iommu(self) -> None:
        (self.root / PCI / "iommu_group").unlink()
        for each in (self.root / "sys/kernel/iommu_groups").rglob("*:*"):
            each.unlink()
        (self.root / "sys/kernel/iommu_groups/12/devices").rmdir()
        (self.root / "sys/kernel/iommu_groups/12").rmdir()

    @property
    def host(self) -> Host:
        return Host(self.root, lambda: self.ring, lambda: None, lambda: None)

    def user_space(self, **options: Any) -> Finding:
        return user_space.of_drive(self.host, "d", ADDRESS, LISTED, **options)


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


def told(found: Finding) -> tuple[str, str]:
    """Severity and what was found; whatever is wanting says what that means and what to do."""
    assert (found.severity == "ok") == (not found.meaning) == (not found.remedy)
    assert found.prevents_runs == (found.severity == "problem")
    return found.severity, found.found


def test_a_server_that_has_everything_can_use_every_path(server: Server) -> None:
    host = server.host
    assert told(passthrough.passthrough(host)) == ("ok", "usable, 1 namespace")
    assert told(user_space.user_space_driver(host)) == ("ok", "usable: 1 IOMMU group, vfio-pci loaded")
    assert told(user_space.without_iommu(host))[1].startswith("not needed")
    assert told(passthrough.of_drive(host, "d", "nvme0n1")) == (
        "ok",
        "/dev/ng0n1 is usable, in blocks of 4,096 bytes",
    )
    assert told(server.user_space()) == (
        "ok",
        f"pci:{ADDRESS} is usable: alone in IOMMU group 12, in blocks of 4,096 bytes",
    )


def test_a_host_without_nvme_drives_is_told_of_no_want(tmp_path: Path) -> None:
    host = Host(tmp_path, lambda: Ring(False, False))
    for function in (passthrough.passthrough, user_space.user_space_driver, user_space.without_iommu):
        severity, found = told(function(host))
        assert (severity, found.startswith("no NVMe drive is")) == ("ok", True)


def test_a_path_that_nobody_asked_for_is_no_warning_and_a_chosen_one_prevents_runs(server: Server) -> None:
    server.without_iommu()
    assert told(user_space.user_space_driver(server.host))[0] == "info"
    assert told(server.user_space())[0] == "info"
    severity, found = told(server.user_space(is_chosen=True))
    assert (severity, found) == ("problem", "not usable: it has no IOMMU group")
    (server.root / "dev/ng0n1").unlink()
    assert told(passthrough.of_drive(server.host, "d", "nvme0n1"))[0] == "info"
    assert told(passthrough.of_drive(server.host, "d", "nvme0n1", is_chosen=True))[0] == "problem"


@pytest.mark.parametrize(
    ("vendor", "remedy"),
    [
        ("GenuineIntel", "switch VT-d on in the firmware's setup and boot with intel_iommu=on"),
        ("AuthenticAMD", "switch the IOMMU (AMD-Vi) on in the firmware's setup"),
        ("other", "switch the IOMMU on in the firmware's setup"),
    ],
)
def test_how_an_iommu_is_switched_on_depends_on_the_processor(
    server: Server, vendor: str, remedy: str
) -> None:
    server.without_iommu()
    server.write("proc/cpuinfo", f"vendor_id : {vendor}")
    assert server.user_space().remedy == f"{remedy} (docs/direct-paths.md)"


def test_everything_that_is_wanting_is_named_at_once_with_each_remedy_once(server: Server) -> None:
    server.without_iommu()
    (server.root / "sys/bus/pci/drivers/vfio-pci/bind").unlink()
    (server.root / "sys/bus/pci/drivers/vfio-pci").rmdir()
    server.write("proc/self/status", "CapEff:\t0000000000000000")
    found = user_space.user_space_driver(server.host)
    assert found.found == (
        "not usable: there is no IOMMU; vfio-pci is not loaded; this user may not bind drivers"
    )
    assert "modprobe vfio-pci; run as root" in found.remedy
    server.write("lib/modules/6.8.0-40-generic/modules.dep", "kernel/drivers/nvme/host/nvme.ko:")
    assert "the kernel has no vfio-pci" in user_space.user_space_driver(server.host).found
    server.write("lib/modules/6.8.0-40-generic/modules.dep", "kernel/drivers/vfio/pci/vfio-pci.ko.zst:")
    assert "vfio-pci is not loaded" in user_space.user_space_driver(server.host).found


def test_a_container_that_sees_sysfs_read_only_cannot_bind_drivers(server: Server) -> None:
    server.write("proc/self/mounts", "sysfs /sys sysfs ro,nosuid 0 0")
    assert server.user_space().found == "not usable: /sys is read-only"


def test_what_else_is_in_the_iommu_group_is_named_unless_it_is_a_bridge_or_harmless(server: Server) -> None:
    server.write(f"{OTHER}/class", "0x020000")
    server.group(OTHER)
    server.write(f"{BRIDGE}/class", "0x060400")
    server.link(f"{BRIDGE}/driver", "sys/bus/pci/drivers/pcieport")
    server.group(BRIDGE)
    assert told(server.user_space())[0] == "ok"
    server.link(f"{OTHER}/driver", "sys/bus/pci/drivers/vfio-pci")
    assert told(server.user_space())[0] == "ok"
    server.link(f"{OTHER}/driver", "sys/bus/pci/drivers/e1000e")
    assert server.user_space().found == ("not usable: in its IOMMU group 12 is also 0000:01:00.1 (e1000e)")


def test_a_namespace_in_use_or_with_metadata_or_zones_is_named(server: Server) -> None:
    used = {"/dev/nvme0n1": {**LISTED["/dev/nvme0n1"], "mounted": ["/"]}}
    found = user_space.of_drive(server.host, "d", ADDRESS, used)
    assert found.found == "not usable: nvme0n1 is in use"
    server.write(f"{DISK}/metadata_bytes", "8")
    for each in (server.user_space(), passthrough.of_drive(server.host, "d", "nvme0n1")):
        assert each.found == "not usable: the blocks of nvme0n1 have metadata"
    server.write(f"{DISK}/metadata_bytes", "0")
    server.write(f"{DISK}/queue/zoned", "host-managed")
    assert server.user_space().found == "not usable: nvme0n1 is zoned"


def test_a_second_controller_and_a_second_namespace_are_named(server: Server) -> None:
    server.write(f"{PCI}/nvme/nvme0/nvme0n2/nsid", "2")
    assert server.user_space().found.endswith("; choose one of its 2 namespaces with ?namespace=N")
    server.link("sys/class/nvme-subsystem/nvme-subsys0/nvme0", f"{PCI}/nvme/nvme0")
    assert told(server.user_space())[0] == "ok"
    server.link("sys/class/nvme-subsystem/nvme-subsys0/nvme4", "sys/devices/nvme4")
    assert server.user_space().found == "not usable: nvme4 reaches the same drive"
    # What the kernel hides behind a namespace of several paths is not a namespace more.
    server.write(f"{PCI}/nvme/nvme0/nvme0c0n1/nsid", "1")
    assert block_devices.namespaces_of(server.host, ADDRESS) == ["nvme0n1", "nvme0n2"]


def test_without_an_iommu_the_kernel_has_to_allow_it_and_huge_pages_be_free(server: Server) -> None:
    server.without_iommu()
    found = user_space.without_iommu(server.host)
    assert told(found) == (
        "info",
        "not usable: VFIO may not do without one; 0 huge pages of 2 MiB are free, of 20 for each submitter",
    )
    assert f"echo Y > /{NOIOMMU}; sysctl vm.nr_hugepages=64" in found.remedy
    server.write("sys/module/vfio/version", "0.3")
    assert "CONFIG_VFIO_NOIOMMU" in user_space.without_iommu(server.host).remedy
    server.write(NOIOMMU, "N")
    server.write(HUGE, "64")
    assert user_space.without_iommu(server.host).found == "not usable: VFIO may not do without one"
    assert told(server.user_space(is_chosen=True, noiommu=True))[0] == "problem"
    server.write(NOIOMMU, "Y")
    assert told(user_space.without_iommu(server.host))[0] == "ok"
    assert server.user_space(is_chosen=True, noiommu=True).found == (
        f"pci:{ADDRESS} is usable: without an IOMMU, in blocks of 4,096 bytes"
    )


def test_behind_an_iommu_noiommu_is_to_be_left_out(server: Server) -> None:
    assert server.user_space(is_chosen=True, noiommu=True).remedy.startswith("leave noiommu=yes out")


def test_passthrough_needs_its_kernel_io_uring_and_privileges(server: Server) -> None:
    server.write("proc/sys/kernel/osrelease", "6.0.1")
    assert passthrough.passthrough(server.host).found == (
        "usable, 1 namespace; without registered buffers, which Linux 6.1 has"
    )
    server.write("proc/sys/kernel/osrelease", "5.15.0-101-generic")
    server.ring = Ring(False, False)
    server.write("proc/self/status", "CapEff:\t0000000000000000")
    assert passthrough.passthrough(server.host).found == (
        "not usable: the kernel is older than 5.19; there is no io_uring; this user may not send commands"
    )


def codes(server: Server, uri: str) -> dict[str, Finding]:
    found = list(drive.findings(server.host, uri, LISTED))
    assert len({each.code for each in found}) == len(found)
    return {each.code: each for each in found}


def test_a_drive_is_told_of_every_path_and_judged_by_the_one_that_it_was_named_by(server: Server) -> None:
    server.without_iommu()
    (server.root / "dev/ng0n1").unlink()
    by_block = codes(server, "/dev/nvme0n1")
    assert by_block["block_size"].found == "4,096 bytes"
    assert (by_block["passthrough"].severity, by_block["user_space_driver"].severity) == ("info", "info")
    assert not any(each.prevents_runs for each in by_block.values())
    assert codes(server, "/dev/ng0n1")["passthrough"].prevents_runs
    for uri in (f"pci:{ADDRESS}", "pci:01:00.0?namespace=1"):
        by_address = codes(server, uri)
        assert by_address["user_space_driver"].prevents_runs
        assert by_address["drive_in_use"].severity == "ok"
        assert "poll_queues" not in by_address
    allowed = codes(server, f"pci:{ADDRESS}?noiommu=yes")["user_space_driver"]
    assert "VFIO may not do without one" in allowed.found


def test_an_address_that_nothing_has_prevents_runs(server: Server) -> None:
    for uri in ("pci:0000:09:00.0", "pci:nonsense", "pci:"):
        (found,) = codes(server, uri).values()
        assert (found.found, found.prevents_runs) == ("there is no such PCI device", True)
    server.write(f"{OTHER}/class", "0x020000")
    server.link("sys/bus/pci/devices/0000:01:00.1", OTHER)
    assert codes(server, "pci:01:00.1")["drive"].found == "it is no NVMe controller"


def test_a_drive_that_vfio_has_already_can_be_released(server: Server) -> None:
    server.link(f"{PCI}/driver", "sys/bus/pci/drivers/vfio-pci")
    shutil.rmtree(server.root / PCI / "nvme")
    found = codes(server, f"pci:{ADDRESS}")["drive_in_use"]
    assert found.severity == "warning"
    assert found.remedy.startswith(f"testdrive drives --release {ADDRESS}")


def test_a_drive_over_a_network_has_no_address(server: Server) -> None:
    server.write(f"{PCI}/nvme/nvme0/transport", "tcp")
    assert "user_space_driver" not in codes(server, "/dev/nvme0n1")
