"""Runs the cases in ``cases/``, each in a guest of its own, and says how many ran.

A case is a file. ``NAME.sh`` is a script for the guest, whose exit status is the verdict; lines that start
with ``#guest`` hold what it needs as JSON (the fields of ``guest.Guest``). ``NAME.py`` has ``GUEST``,
``SCRIPT``, and ``check(job)``, which looks at what the script left in its folder.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

import image  # noqa: E402 - found beside this file
from guest import QEMU, Guest, GuestError, run  # noqa: E402

CASES = HERE / "cases"


@dataclasses.dataclass(frozen=True)
class Case:
    """A case as its file has it."""

    name: str
    guest: Guest
    script: str
    check: Callable[[Path], None]


class CaseError(Exception):
    """The script of a case ended with another status than 0."""


def main(arguments: list[str] | None = None) -> int:
    """Run cases; the exit status is 0 if all passed, 1 if one failed, 2 if they cannot run here."""
    parser = argparse.ArgumentParser(prog="tests/vm/run.py", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="names of cases; all without them")
    parser.add_argument("--engine", type=Path, required=True, help="a testdrive-engine without libraries")
    parser.add_argument("--conformance", type=Path, help="the conformance tests of engine/drives")
    parser.add_argument("--directory", type=Path, default=Path("target/vm"), help="where kernels are kept")
    parser.add_argument("--keep", type=Path, help="a folder to keep what the cases left in")
    options = parser.parse_args(arguments)
    if shutil.which(QEMU) is None:
        print(f"error: {QEMU} is missing; install the package qemu-system-x86", file=sys.stderr)
        return 2
    try:
        cases = load(options.cases)
        kernel = image.fetch_kernel(options.directory.resolve())
        busybox = image.unpack("busybox-static", options.directory, options.directory / "busybox")
    except image.ImageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"Linux {kernel.release}, emulated")
    began_s = time.monotonic()
    failed = [
        case.name
        for case in cases
        if not _passes(case, kernel, busybox / "bin/busybox", options.engine, options)
    ]
    elapsed_s = time.monotonic() - began_s
    print(f"{len(cases)} cases ran in {elapsed_s:.0f} s, {len(failed)} failed", *failed)
    return 1 if failed or not cases else 0


def load(names: Sequence[str]) -> list[Case]:
    """The cases of these names, or all, in the order of their names.

    Raises
    ------
    image.ImageError
        There is no case of a name.
    """
    files = {path.stem: path for path in sorted(CASES.glob("*")) if path.suffix in (".sh", ".py")}
    unknown = [name for name in names if name not in files]
    if unknown:
        raise image.ImageError(f"there is no case {unknown[0]!r}; the cases are {', '.join(files)}")
    return [_load(path) for name, path in files.items() if not names or name in names]


def _load(path: Path) -> Case:
    if path.suffix == ".sh":
        script = path.read_text()
        needs = [line.removeprefix("#guest") for line in script.splitlines() if line.startswith("#guest")]
        return Case(path.stem, Guest(**json.loads(" ".join(needs) or "{}")), script, lambda _: None)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses of a case look their module up.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return Case(path.stem, module.GUEST, module.SCRIPT, module.check)


def _passes(
    case: Case, kernel: image.Kernel, busybox: Path, engine: Path, options: argparse.Namespace
) -> bool:
    with tempfile.TemporaryDirectory(prefix="testdrive-vm-job-") as folder:
        job = Path(folder)
        initramfs = job.with_suffix(".cpio")
        began_s = time.monotonic()
        output = ""
        try:
            programs = _programs(case.guest, options.directory)
            programs["testdrive-engine"] = engine
            if "testdrive-conformance" in case.script:
                programs["testdrive-conformance"] = _conformance(options)
            image.write_initramfs(initramfs, kernel, busybox, case.guest.modules, programs)
            result = run(case.guest, kernel.program, initramfs, job, case.script)
            output = result.output
            if result.status:
                raise CaseError(f"its script ended with status {result.status}")
            case.check(job)
        except (GuestError, image.ImageError, CaseError) as error:
            print(f"FAILED {case.name}: {error}\n{output}")
            return False
        except Exception:
            print(f"FAILED {case.name}\n{traceback.format_exc()}{output}")
            return False
        finally:
            initramfs.unlink(missing_ok=True)
            if options.keep:
                shutil.copytree(job, options.keep / case.name, dirs_exist_ok=True)
        print(f"ok     {case.name} ({time.monotonic() - began_s:.0f} s)", flush=True)
        return True


def _conformance(options: argparse.Namespace) -> Path:
    if options.conformance is None:
        raise image.ImageError("the case runs the conformance tests: give --conformance (make vm-test does)")
    return Path(options.conformance)


def _programs(guest: Guest, directory: Path) -> dict[str, Path]:
    """The programs that a guest needs, by name, from its packages or from this machine."""
    roots = [image.unpack(name, directory, directory / f"package-{name}") for name in guest.packages]
    places = [root / place for root in roots for place in ("usr/sbin", "usr/bin", "sbin", "bin")]
    path = os.pathsep.join([*map(str, places), os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    found = {name: shutil.which(name, path=path) for name in guest.programs}
    missing = [name for name, program in found.items() if program is None]
    if missing:
        raise image.ImageError(f"{missing[0]} is missing; .ci/packages.txt has the packages that cases need")
    return {name: Path(program) for name, program in found.items() if program is not None}


if __name__ == "__main__":
    sys.exit(main())
