"""What the guest boots: Debian's kernel, and a file system in memory that is made for one case.

Nothing is installed on the machine. Packages are downloaded and unpacked into a directory of their own.
"""

from __future__ import annotations

import lzma
import os
import re
import shutil
import stat
import struct
import subprocess
import threading
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

#: Debian's own kernel, and a newer one that it offers beside, for cases that name it.
KERNEL_PACKAGE = "linux-image-amd64"
NEWER_KERNEL_PACKAGE = "linux-image-6.12-amd64"
#: To reach the shared folder, and the drives that most cases use.
COMMON_MODULES = ("virtio_pci", "9pnet_virtio", "9p", "nvme")

#: Cases that run at the same time may name the same package, or the same kernel.
_UNPACKING = threading.Lock()
_FETCHING = threading.Lock()

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/usr/bin:/bin HOME=/ LANG=C
mkdir -p /proc /sys /dev /tmp /job /run
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t debugfs debug /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing
ln -s /proc/self/fd /dev/fd
while read -r module; do insmod "/modules/$module" || echo "init: $module was refused"; done </modules/order
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 job /job || poweroff -f
cd /job
sh ./case.sh >output 2>&1 </dev/null
echo $? >status
sync
poweroff -f
"""


class ImageError(Exception):
    """The guest cannot be made here; the message says what to do."""


class MissingError(ImageError):
    """This machine lacks what one case needs, and others may not."""


@dataclass(frozen=True)
class Kernel:
    """An unpacked kernel: its release, the program to boot, and the folder that holds ``lib/modules``."""

    release: str
    program: Path
    root: Path


def fetch_kernel(directory: Path, package: str) -> Kernel:
    """Download and unpack the kernel that a package depends on, unless that was done before.

    Raises
    ------
    MissingError
        The package cannot be had.
    ImageError
        The kernel is packed in a way that is not known.
    """
    with _FETCHING:
        return _fetch_kernel(directory, package)


def _fetch_kernel(directory: Path, package: str) -> Kernel:
    # Of a package that apt does not know it tells nothing.
    command = [tool("apt-cache"), "depends", package]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.search(r"Depends: linux-image-(\d\S*)", told)
    if found is None:
        raise MissingError(
            f"the guest's kernel cannot be had: apt knows no {package}, a package of Debian for amd64;"
            " run `apt-get update`, with a Debian archive among its sources"
        )
    release = found[1]
    root = directory / f"kernel-{release}"
    program = root / "vmlinux"
    if not program.is_file():
        shutil.rmtree(root, ignore_errors=True)
        unpack(f"linux-image-{release}", directory, root)
        # depmod looks in lib, which on newer systems is a link to usr/lib.
        if not (root / "lib/modules").is_dir():
            (root / "lib").symlink_to("usr/lib")
        subprocess.run([tool("depmod"), "-b", root, release], check=True)
        # Renamed when it is whole: a kernel that is there is not made again.
        part = program.with_suffix(".part")
        part.write_bytes(uncompressed((root / f"boot/vmlinuz-{release}").read_bytes()))
        part.rename(program)
    return Kernel(release, program, root)


def unpack(package: str, directory: Path, root: Path) -> Path:
    """Unpack a package below ``root``, unless that was done before; download it if need be.

    What is there is left alone: another case may be reading it.

    Raises
    ------
    ImageError
        The package cannot be had.
    """
    with _UNPACKING:
        return _unpack(package, directory, root)


def _unpack(package: str, directory: Path, root: Path) -> Path:
    debs = directory / "debs"
    debs.mkdir(parents=True, exist_ok=True)
    if not list(debs.glob(f"{package}_*.deb")):
        done = subprocess.run(
            ["apt-get", "download", "-qq", package], cwd=debs, capture_output=True, text=True, check=False
        )
        if done.returncode:
            # Warnings, as of a download that root makes, are beside the point.
            errors = [line for line in done.stderr.splitlines() if line.startswith("E:")]
            raise MissingError(
                f"the package {package} cannot be downloaded (apt-get download, into {debs}); run"
                f" `apt-get update`, and see that the archive can be reached: {' '.join(errors)}"
            )
    # Debian writes the colon of an epoch as %3a; one file of the package is enough.
    deb = sorted(debs.glob(f"{package}_*.deb"))[-1]
    done_before = root / f".unpacked-{deb.name}"
    if not done_before.exists():
        root.mkdir(parents=True, exist_ok=True)
        subprocess.run(["dpkg-deb", "-x", deb, root], check=True)
        done_before.touch()
    return root


def uncompressed(bz_image: bytes) -> bytes:
    """The ELF program in a kernel image, so that an emulated processor need not unpack it.

    The header's fields are those of the x86 boot protocol: sectors of the setup code at 0x1f1, place and
    length of the payload at 0x248.
    """
    sectors = bz_image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", bz_image, 0x248)
    payload = bz_image[(sectors + 1) * 512 + offset :][:length]
    if payload[:2] == b"\x1f\x8b":
        program = zlib.decompressobj(wbits=31).decompress(payload)
    elif payload[:6] == b"\xfd7zXZ\x00":
        # The kernel's own length follows the stream.
        program = lzma.LZMADecompressor().decompress(payload)
    elif payload[:4] == b"\x28\xb5\x2f\xfd":
        command = [tool("zstd"), "-dc"]
        # Here, too, the kernel's length follows; zstd takes it for another stream.
        program = subprocess.run(command, input=payload[:-4], stdout=subprocess.PIPE, check=False).stdout
    else:
        raise ImageError(f"the kernel is packed in a way that is not known: {payload[:6]!r}")
    if program[:4] != b"\x7fELF":
        raise ImageError("the kernel's payload is no program")
    return program


def write_initramfs(
    path: Path,
    kernel: Kernel,
    busybox: Path,
    modules: Sequence[str],
    programs: Mapping[str, Path],
    files: Mapping[str, Path],
    instead: Mapping[str, Path],
) -> None:
    """Write the guest's file system: busybox, modules in their order, programs, files, libraries.

    ``instead`` has modules that take the place of the kernel's of the same name.
    """
    order: list[Path] = []
    for module in (*COMMON_MODULES, *modules):
        order += [file for file in _module_files(kernel, module) if file not in order]
    with Archive(path) as archive:
        archive.add("init", INIT.encode(), 0o755)
        archive.add_file("bin/busybox", busybox)
        archive.add("modules/order", "".join(f"{_module_name(file)}\n" for file in order).encode())
        for file in order:
            archive.add(
                f"modules/{_module_name(file)}", _module_content(instead.get(_module_name(file), file))
            )
        for name, program in programs.items():
            archive.add_file(f"usr/bin/{name}", program)
        for name, file in files.items():
            archive.add_file(name, file)
        loaded = [file for file in files.values() if file.suffix != ".py"]
        for library in _libraries([*programs.values(), *loaded]):
            # Where the program's own header looks for it.
            archive.add_file(os.fspath(library).lstrip("/"), library)


def _module_files(kernel: Kernel, module: str) -> list[Path]:
    """A module's file after those of the modules that it needs; none for one that is built in."""
    where: list[str | Path] = ["-d", kernel.root, "-S", kernel.release]
    lines = _output([tool("modprobe"), *where, "--show-depends", module]).splitlines()
    return [Path(line.split()[1]) for line in lines if line.startswith("insmod")]


def _module_name(file: Path) -> str:
    return file.name.partition(".ko")[0] + ".ko"


def _module_content(file: Path) -> bytes:
    """A module as the kernel takes it, whether or not it came packed."""
    packed = file.read_bytes()
    if file.suffix == ".xz":
        return lzma.decompress(packed)
    if file.suffix == ".zst":
        return subprocess.run([tool("zstd"), "-dc"], input=packed, stdout=subprocess.PIPE, check=True).stdout
    return packed


def without_debug_information(program: Path, directory: Path) -> Path:
    """A copy that is loaded faster: what debuggers need is most of a program that cargo builds for tests."""
    copy = directory / program.name
    subprocess.run([tool("strip"), "--strip-debug", "-o", copy, program], check=True)
    return copy


def _libraries(programs: Iterable[Path]) -> list[Path]:
    found: set[Path] = set()
    for program in programs:
        # A static program has none, and ldd says so with a status of its own.
        done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
        found |= {Path(word) for word in done.stdout.split() if word.startswith("/")}
    return sorted(found)


def tool(name: str) -> str:
    """The path of a program of this machine.

    Raises
    ------
    MissingError
        It is not there.
    """
    tool = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if tool is None:
        raise MissingError(f"{name} is missing; .ci/packages.txt has the packages that the guest needs")
    return tool


def _output(command: Sequence[str | Path]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ImageError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


class Archive:
    """A cpio archive as the kernel unpacks it ("newc"): no program is needed to write one."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._directories: set[Path] = set()
        self._inode = 0

    def __enter__(self) -> Archive:
        self._entry("dev", stat.S_IFDIR | 0o755)
        self._entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
        self._directories = {Path("."), Path("dev")}
        return self

    def __exit__(self, *_: object) -> None:
        self._entry("TRAILER!!!", 0)
        self._file.close()

    def add_file(self, name: str, path: Path) -> None:
        """Add a file of this machine, under a name of its own."""
        self.add(name, path.read_bytes(), stat.S_IMODE(path.stat().st_mode))

    def add(self, name: str, content: bytes, mode: int = 0o644) -> None:
        """Add a file, after the folders that it is in."""
        for folder in reversed(Path(name).parents):
            if folder not in self._directories:
                self._directories.add(folder)
                self._entry(os.fspath(folder), stat.S_IFDIR | 0o755)
        self._entry(name, stat.S_IFREG | mode, content)

    def _entry(self, name: str, mode: int, content: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        self._inode += 1
        text = name.encode() + b"\0"
        links = 2 if stat.S_ISDIR(mode) else 1
        numbers = (self._inode, mode, 0, 0, links, 0, len(content), 0, 0, *device, len(text), 0)
        head = b"070701" + b"".join(b"%08X" % number for number in numbers) + text
        for part in (head, content):
            self._file.write(part + b"\0" * (-len(part) % 4))
