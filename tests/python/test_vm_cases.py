"""The cases of tests/vm, without a guest: all can be loaded, and what they are made of is sound."""

from __future__ import annotations

import gzip
import importlib.util
import json
import socket
import struct
import subprocess
import sys
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
