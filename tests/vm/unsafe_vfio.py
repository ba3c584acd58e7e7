"""The kernel's vfio module, built with CONFIG_VFIO_NOIOMMU, which Debian leaves out, from its own source."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
import tempfile
import threading
from pathlib import Path

import image

_BUILDING = threading.Lock()
_SOURCES = "drivers/vfio"


def build(kernel: image.Kernel, directory: Path) -> Path:
    """The module for this kernel, built unless that was done before.

    Raises
    ------
    image.ImageError
        A package cannot be had, or the module does not build.
    """
    with _BUILDING:
        made = directory / f"vfio-noiommu-{kernel.release}.ko"
        if not made.is_file():
            with tempfile.TemporaryDirectory(dir=directory, prefix="vfio-") as folder:
                shutil.copyfile(_build(kernel, directory, Path(folder)), part := made.with_suffix(".part"))
            part.rename(made)
        return made


def _build(kernel: image.Kernel, directory: Path, folder: Path) -> Path:
    headers = f"linux-headers-{kernel.release}"
    tree = folder / "usr/src" / headers
    for package in (headers, *_dependencies(headers)):
        image.unpack(package, directory, folder)
    # The package names the rest of the headers by the place that it would be installed at.
    makefile = tree / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{folder.resolve()}/usr/src/"))
    version = re.match(r"\d+\.\d+", kernel.release)
    assert version is not None, kernel.release
    source = image.unpack(f"linux-source-{version[0]}", directory, folder / "source")
    module = _unpack_sources(next(source.glob("usr/src/linux-source-*.tar.xz")), folder)
    command = [image.tool("make"), "-C", str(tree.resolve()), f"M={module.resolve()}"]
    command += ["KCFLAGS=-DCONFIG_VFIO_NOIOMMU=1", "vfio.ko"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise image.ImageError(f"the module vfio does not build: {done.stdout}{done.stderr}")
    return module / "vfio.ko"


def _dependencies(package: str) -> list[str]:
    """The other packages that headers are spread over."""
    told = subprocess.run(
        [image.tool("apt-cache"), "depends", package], capture_output=True, text=True, check=False
    ).stdout
    return re.findall(r"Depends: (linux-(?:headers|kbuild)-\S+)", told)


def _unpack_sources(archive: Path, folder: Path) -> Path:
    """The module's directory of the kernel's source, which is read no further than that."""
    found = None
    with tarfile.open(archive, "r|xz") as members:
        for member in members:
            root, _, place = member.name.partition("/")
            if place == _SOURCES or place.startswith(f"{_SOURCES}/"):
                members.extract(member, folder)
                found = folder / root / _SOURCES
            elif found is not None:
                break
    if found is None:
        raise image.ImageError(f"{archive.name} has no {_SOURCES}")
    return found
