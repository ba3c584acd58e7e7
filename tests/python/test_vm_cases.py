"""The cases of tests/vm, without a guest: all can be loaded, and what they are made of is sound."""

from __future__ import annotations

import gzip
import importlib.util
import json
import lzma
import shutil
import socket
import struct
import subprocess
import sys
import sysconfig
import tarfile
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support import require

VM = Path(__file__).resolve().parents[1] / "vm"


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(VM))
    spec = importlib.util.spec_from_file_location("vm_run", VM / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "vm_run", module)
    spec.loader.exec_module(module)
    return module


def test_every_case_can_be_loaded_and_says_what_it_is(runner: ModuleType) -> None:
    cases = runner.load([])
    files = [path.stem for path in (VM / "cases").iterdir() if path.suffix in (".sh", ".py")]
    assert sorted(case.name for case in cases) == sorted(files)
    for case in cases:
        assert case.script.strip()
        assert case.guest.devices
    with pytest.raises(runner.image.ImageError, match="there is no case 'nope'; the cases are capture_"):
        runner.load(["nope"])


def test_what_a_guest_asks_of_the_monitor_is_answered(runner: ModuleType, tmp_path: Path) -> None:
    address = tmp_path / "monitor"
    asked: list[dict[str, Any]] = []

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile("rw") as stream:
            stream.write('{"QMP": {}}\n')
            stream.flush()
            for line in stream:
                asked.append(json.loads(line))
                stream.write('{"event": "RESUME"}\n{"return": {}}\n')
                stream.flush()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()
        server = threading.Thread(target=serve, args=(listener,))
        server.start()
        with sys.modules["monitor"].Monitor(address, tmp_path):
            (tmp_path / "monitor.1.part").write_text('{"wait_s": 0}\n{"execute": "cont"}\n')
            (tmp_path / "monitor.1.part").rename(tmp_path / "monitor.1")
            while not (tmp_path / "monitor.1.done").exists():
                time.sleep(0.01)
        server.join()
    assert [each["execute"] for each in asked] == ["qmp_capabilities", "cont"]
    assert (tmp_path / "monitor.1.done").read_text() == '{}\n{"return": {}}\n'


def test_the_archive_is_one_that_others_read(runner: ModuleType, tmp_path: Path) -> None:
    cpio = require("cpio")
    archive = tmp_path / "a.cpio"
    with runner.image.Archive(archive) as made:
        made.add("init", b"#!/bin/sh\n", 0o755)
        made.add("a/b/c.txt", b"12345")
        made.add_file("a/b/d.txt", Path(__file__))
    folder = tmp_path / "out"
    folder.mkdir()
    subprocess.run([cpio, "-idm", "--quiet", "--no-absolute-filenames"], cwd=folder, stdin=archive.open("rb"))
    assert (folder / "a/b/c.txt").read_bytes() == b"12345"
    assert (folder / "a/b/d.txt").read_bytes() == Path(__file__).read_bytes()
    assert (folder / "init").stat().st_mode & 0o777 == 0o755


def test_a_packed_kernel_is_unpacked_and_another_refused(runner: ModuleType) -> None:
    program = b"\x7fELF" + bytes(1000)

    def boot_image(payload: bytes) -> bytes:
        # Two sectors: the first with the header, then the payload 64 bytes into what follows.
        head = bytearray(2 * 512 + 64)
        head[0x1F1] = 1
        struct.pack_into("<II", head, 0x248, 64, len(payload))
        return bytes(head) + payload

    assert runner.image.uncompressed(boot_image(gzip.compress(program))) == program
    with pytest.raises(runner.image.ImageError, match="not known"):
        runner.image.uncompressed(boot_image(b"unknown!"))
    with pytest.raises(runner.image.ImageError, match="no program"):
        runner.image.uncompressed(boot_image(gzip.compress(b"text") + bytes(4)))


class Bench:
    """The runner without kernel and guests: a case's script is the status that it ends with."""

    def __init__(self, runner: ModuleType, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.runner, self.folder = runner, folder
        self.cases: list[Any] = []
        monkeypatch.setattr(runner.shutil, "which", lambda name, path=None: None if "no-" in name else name)
        monkeypatch.setattr(
            runner.image, "fetch_kernel", lambda _, package: runner.image.Kernel("6", Path(package), Path())
        )
        monkeypatch.setattr(runner.image, "unpack", lambda *_: Path("busybox"))
        monkeypatch.setattr(runner.image, "without_debug_information", lambda program, _: program)
        monkeypatch.setattr(runner.image, "write_initramfs", lambda path, *_: path.touch())
        monkeypatch.setattr(runner, "load", lambda _: self.cases)
        monkeypatch.setattr(runner, "run", self._run)

    def _run(self, guest: Any, kernel: Path, initramfs: Path, job: Path, script: str) -> Any:
        assert initramfs.exists()
        (job / "left").write_text(script)
        (job / "kernel").write_text(str(kernel))
        return self.runner.Result(int(script), "what it printed", 1.0)

    def add(self, name: str, script: str, check: Any = lambda _: None, **guest: Any) -> None:
        self.cases.append(self.runner.Case(name, self.runner.Guest(**guest), script, check))

    def main(self) -> int:
        arguments = ["--engine", "engine", "--keep", str(self.folder), "--guests", "2"]
        status: int = self.runner.main(arguments)
        return status


@pytest.fixture
def bench(runner: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    return Bench(runner, monkeypatch, tmp_path)


def test_cases_that_run_at_once_are_counted_and_what_they_left_is_kept(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    def disappointed(job: Path) -> None:
        assert (job / "left").read_text() == "1"

    bench.add("good", "0")
    bench.add("alone", "0", alone=True)
    assert bench.main() == 0
    assert "cases in the guest: 2 passed, 0 failed, 0 skipped, 2 in" in capsys.readouterr().out
    bench.add("bad", "7")
    bench.add("wrong", "0", disappointed)
    assert bench.main() == 1
    out = capsys.readouterr().out
    assert "its script ended with status 7\nwhat it printed" in out
    assert "failed: bad, wrong\ncases in the guest: 2 passed, 2 failed, 0 skipped, 4 in" in out
    assert {path.name for path in bench.folder.iterdir()} == {"good", "alone", "bad", "wrong"}


def test_what_this_machine_lacks_is_a_skip_and_in_ci_a_failure(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.add("good", "0")
    bench.add("lacking", "0", programs=("no-such-program",))
    monkeypatch.delenv("CI", raising=False)
    assert bench.main() == 0
    out = capsys.readouterr().out
    assert "skipped lacking: the program no-such-program is missing; .ci/packages.txt has" in out
    assert "1 passed, 0 failed, 1 skipped" in out
    monkeypatch.setenv("CI", "true")
    assert bench.main() == 1
    assert "1 passed, 1 failed, 0 skipped" in capsys.readouterr().out


def test_a_case_boots_the_kernel_that_it_names(bench: Bench, runner: ModuleType) -> None:
    bench.add("usual", "0")
    bench.add("newer", "0", newer_kernel=True)
    assert bench.main() == 0
    booted = {name: (bench.folder / name / "kernel").read_text() for name in ("usual", "newer")}
    assert booted == {"usual": runner.image.KERNEL_PACKAGE, "newer": runner.image.NEWER_KERNEL_PACKAGE}


def test_a_package_that_was_unpacked_is_left_alone_for_those_who_read_it(
    runner: ModuleType, tmp_path: Path
) -> None:
    build = require("dpkg-deb")
    control = tmp_path / "tree/DEBIAN/control"
    control.parent.mkdir(parents=True)
    control.write_text(
        "Package: tool\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: a\n"
    )
    (tmp_path / "tree/file").write_text("packed")
    (tmp_path / "debs").mkdir()
    subprocess.run(
        [build, "--build", tmp_path / "tree", tmp_path / "debs/tool_1_all.deb"],
        check=True,
        capture_output=True,
    )
    root = tmp_path / "root"
    assert runner.image.unpack("tool", tmp_path, root) == root
    before = (root / "file").stat().st_ino
    assert (root / "file").read_text() == "packed"
    runner.image.unpack("tool", tmp_path, root)
    assert (root / "file").stat().st_ino == before


def test_without_a_kernel_or_a_case_that_can_run_nothing_is_taken_for_passed(
    bench: Bench, runner: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CI", raising=False)
    bench.add("lacking", "0", programs=("no-such-program",))
    assert bench.main() == 2
    # An archive that cannot be reached: every download ends so.
    monkeypatch.undo()
    monkeypatch.setattr(runner, "QEMU", "true")
    monkeypatch.setattr(runner.image, "KERNEL_PACKAGE", "no-such-kernel")
    assert runner.main(["--engine", "engine"]) == 2
    assert "apt knows no no-such-kernel" in capsys.readouterr().err
    monkeypatch.setattr(runner, "QEMU", "no-such-qemu")
    assert runner.main(["--engine", "engine"]) == 2
    assert "no-such-qemu is missing; install the package qemu-system-x86" in capsys.readouterr().err


def test_a_module_that_came_packed_is_taken_as_it_was(runner: ModuleType, tmp_path: Path) -> None:
    packed = tmp_path / "nvme.ko.xz"
    packed.write_bytes(lzma.compress(b"module"))
    assert runner.image._module_name(packed) == "nvme.ko"
    assert runner.image._module_content(packed) == b"module"
    plain = tmp_path / "nvme.ko"
    plain.write_bytes(b"module")
    assert runner.image._module_content(plain) == b"module"


def test_the_files_that_a_guests_python_gets_are_all_that_it_needs(
    runner: ModuleType, tmp_path: Path
) -> None:
    name = "testdrive.power.nvme"
    found = runner.python_files.files_for([name], tmp_path)
    assert not any(file.startswith(("python/numpy", "python/pydantic")) for file in found)
    root = tmp_path / "root"
    for place, file in found.items():
        copy = root / place
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    # Where the interpreter is linked to its library by a relative path, that is beside its own folder.
    library = sysconfig.get_config_var("LIBDIR")
    environment = {
        "PYTHONHOME": str(root / "usr"),
        "PYTHONPATH": str(root / "python"),
        "LD_LIBRARY_PATH": library,
    }
    command = [root / "usr/bin/python3", "-S", "-c", f"import {name}; print({name}.__file__)"]
    done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(root / "python/testdrive/power/nvme.pyc"), done.stderr


def test_sources_are_taken_from_an_archive_and_no_more_of_it_is_read(
    runner: ModuleType, tmp_path: Path
) -> None:
    archive = tmp_path / "linux-source-6.1.tar.xz"
    with tarfile.open(archive, "w:xz") as made:
        for name in ("drivers/vdpa/a.c", "drivers/vfio/b.c", "drivers/vfio/pci/c.c", "drivers/vhost/d.c"):
            member = tarfile.TarInfo(f"linux-source-6.1/{name}")
            made.addfile(member)
    found = runner.unsafe_vfio._unpack_sources(archive, tmp_path / "out")
    files = sorted(path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*.c"))
    assert [str(path) for path in files] == [
        "linux-source-6.1/drivers/vfio/b.c",
        "linux-source-6.1/drivers/vfio/pci/c.c",
    ]
    assert found == tmp_path / "out/linux-source-6.1/drivers/vfio"
    with tarfile.open(archive, "w:xz"):
        pass
    with pytest.raises(runner.image.ImageError, match=r"linux-source-6.1.tar.xz has no drivers/vfio"):
        runner.unsafe_vfio._unpack_sources(archive, tmp_path / "out")
