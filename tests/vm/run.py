"""Runs the cases in ``cases/``, each in a guest of its own, and says how many passed.

A case is a file. ``NAME.sh`` is a script for the guest, whose exit status is the verdict; lines that start
with ``#guest`` hold what it needs as JSON (the fields of ``guest.Guest``). ``NAME.py`` has ``GUEST``,
``SCRIPT``, and ``check(job)``, which looks at what the script left in its folder.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

import image  # noqa: E402 - found beside this file
import python_files  # noqa: E402
import unsafe_vfio  # noqa: E402
from guest import QEMU, Guest, GuestError, Result, run  # noqa: E402

CASES = HERE / "cases"
#: So much is shown of what a script printed that failed.
OUTPUT_LINES = 100


@dataclasses.dataclass(frozen=True)
class Case:
    """A case as its file has it."""

    name: str
    guest: Guest
    script: str
    check: Callable[[Path], None]


@dataclasses.dataclass(frozen=True)
class Bench:
    """What all cases share: the kernel, busybox, the programs under test, and where things are kept.

    ``directory`` outlives the run, ``scratch`` does not.
    """

    kernel: image.Kernel
    busybox: Path
    programs: Mapping[str, Path]
    directory: Path
    scratch: Path
    keep: Path | None


class Verdict(enum.StrEnum):
    """What came of a case."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclasses.dataclass(frozen=True)
class Done:
    """A case whose guest has ended: its folder, and its result or why it has none."""

    case: Case
    folder: Path
    result: Result | Exception
    elapsed_s: float

    def forget(self, keep: Path | None) -> None:
        """Remove the folder, after it was copied to where it is kept."""
        if keep is not None:
            shutil.copytree(self.folder, keep / self.case.name, dirs_exist_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def main(arguments: list[str] | None = None) -> int:
    """Run cases; the exit status is 0 if all passed, 1 if one failed, 2 if none can run here."""
    parser = argparse.ArgumentParser(prog="tests/vm/run.py", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="names of cases; all without them")
    parser.add_argument("--engine", type=Path, required=True, help="the testdrive-engine to test")
    parser.add_argument("--conformance", type=Path, help="the conformance tests of engine/drives")
    parser.add_argument("--directory", type=Path, default=Path("target/vm"), help="where kernels are kept")
    parser.add_argument("--guests", type=int, default=os.cpu_count() or 1, help="so many at a time")
    parser.add_argument("--keep", type=Path, help="a folder to keep what the cases left in")
    options = parser.parse_args(arguments)
    try:
        if shutil.which(QEMU) is None:
            raise image.ImageError(f"{QEMU} is missing; install the package qemu-system-x86")
        cases = load(options.cases)
        kernel = image.fetch_kernel(options.directory.resolve(), image.KERNEL_PACKAGE)
        busybox = image.unpack("busybox-static", options.directory, options.directory / "busybox")
        with tempfile.TemporaryDirectory(prefix="testdrive-vm-") as folder:
            programs = {
                name: image.without_debug_information(program, Path(folder))
                for name, program in (
                    ("testdrive-engine", options.engine),
                    ("testdrive-conformance", options.conformance),
                )
                if program is not None
            }
            program = busybox / "bin/busybox"
            bench = Bench(kernel, program, programs, options.directory, Path(folder), options.keep)
            return _run_all(cases, bench, options.guests)
    except image.ImageError as error:
        print(f"error: no case can run: {error}", file=sys.stderr)
        return 2


def _run_all(cases: Sequence[Case], bench: Bench, guests: int) -> int:
    """Run cases, several guests at a time, and say how many passed."""
    print(
        f"Linux {bench.kernel.release}, emulated: {len(cases)} cases, {guests} guests at a time", flush=True
    )
    began_s = time.monotonic()
    found: dict[str, list[str]] = {verdict: [] for verdict in Verdict}
    # What has to be built first takes longest: it is begun first.
    together = sorted(
        (case for case in cases if not case.guest.alone), key=lambda case: not case.guest.unsafe_vfio
    )
    alone = [case for case in cases if case.guest.alone]
    for some, workers in ((together, guests), (alone, 1)):
        with ThreadPoolExecutor(max_workers=max(workers, 1)) as pool:
            # What a case left is looked at here, one after the other, so that what it prints stays together.
            try:
                for ended in as_completed([pool.submit(_in_a_guest, case, bench) for case in some]):
                    done = ended.result()
                    found[_told(done)].append(done.case.name)
                    done.forget(bench.keep)
            except BaseException:
                # Interrupted: no other case is begun.
                pool.shutdown(cancel_futures=True)
                raise
    counts = ", ".join(f"{len(found[verdict])} {verdict}" for verdict in Verdict)
    for verdict in (Verdict.FAILED, Verdict.SKIPPED):
        if found[verdict]:
            print(f"{verdict}: {', '.join(sorted(found[verdict]))}")
    print(f"cases in the guest: {counts}, {len(cases)} in {time.monotonic() - began_s:.0f} s")
    if found[Verdict.FAILED]:
        return 1
    return 0 if found[Verdict.PASSED] else 2


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


def _in_a_guest(case: Case, bench: Bench) -> Done:
    """Boot the guest of a case and run its script."""
    folder = Path(tempfile.mkdtemp(prefix="job-", dir=bench.scratch))
    initramfs = folder.with_suffix(".cpio")
    began_s = time.monotonic()
    result: Result | Exception
    try:
        programs = _programs(case, bench)
        with tempfile.TemporaryDirectory(prefix="testdrive-vm-python-") as compiled:
            files = python_files.files_for(case.guest.python, Path(compiled)) if case.guest.python else {}
            kernel, modules = _kernel(case, bench), case.guest.modules
            instead = (
                {"vfio.ko": unsafe_vfio.build(kernel, bench.directory)} if case.guest.unsafe_vfio else {}
            )
            image.write_initramfs(initramfs, kernel, bench.busybox, modules, programs, files, instead)
        result = run(case.guest, kernel.program, initramfs, folder, case.script)
    except (GuestError, image.ImageError) as error:
        result = error
    finally:
        initramfs.unlink(missing_ok=True)
    return Done(case, folder, result, time.monotonic() - began_s)


def _kernel(case: Case, bench: Bench) -> image.Kernel:
    if not case.guest.newer_kernel:
        return bench.kernel
    return image.fetch_kernel(bench.directory.resolve(), image.NEWER_KERNEL_PACKAGE)


def _told(done: Done) -> Verdict:
    """Look at what a case left, print what came of it, and return that."""
    name, result = done.case.name, done.result
    if isinstance(result, image.MissingError) and not _in_ci():
        print(f"skipped {name}: {result}", flush=True)
        return Verdict.SKIPPED
    why = ""
    if isinstance(result, Exception):
        why = str(result)
    elif result.status:
        why = f"its script ended with status {result.status}\n{_end_of(result.output)}"
    else:
        try:
            done.case.check(done.folder)
        except Exception:
            why = f"{traceback.format_exc()}{_end_of(result.output)}"
    if why:
        print(f"FAILED  {name} ({done.elapsed_s:.0f} s): {why}", flush=True)
        return Verdict.FAILED
    print(f"ok      {name} ({done.elapsed_s:.0f} s)", flush=True)
    return Verdict.PASSED


def _end_of(output: str) -> str:
    lines = output.splitlines()
    left_out = [f"(the first {len(lines) - OUTPUT_LINES} lines are left out; --keep keeps them)"]
    return "\n".join(lines if len(lines) <= OUTPUT_LINES else left_out + lines[-OUTPUT_LINES:])


def _in_ci() -> bool:
    """Whether this is continuous integration, where nothing may be missing."""
    return os.environ.get("CI", "").lower() in ("1", "true")


def _programs(case: Case, bench: Bench) -> dict[str, Path]:
    """The programs that a guest needs, by name: built here, of its packages, or of this machine."""
    directory = bench.directory
    roots = [image.unpack(name, directory, directory / f"package-{name}") for name in case.guest.packages]
    places = [root / place for root in roots for place in ("usr/sbin", "usr/bin", "sbin", "bin")]
    path = os.pathsep.join([*map(str, places), os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    named = {name: shutil.which(name, path=path) for name in case.guest.programs}
    found = {name: Path(program) for name, program in named.items() if program is not None}
    found |= {name: program for name, program in bench.programs.items() if name in case.script}
    if "testdrive-conformance" in case.script and "testdrive-conformance" not in found:
        raise image.MissingError("it runs the conformance tests: give --conformance (make vm-test does)")
    missing = [name for name in named if name not in found]
    if missing:
        raise image.MissingError(
            f"the program {missing[0]} is missing; .ci/packages.txt has the packages that cases need"
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
