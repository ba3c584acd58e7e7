"""The project's Python for a guest: the interpreter, and exactly those files that some modules import.

They lie where an interpreter that is told ``PYTHONHOME=/usr`` and ``PYTHONPATH=/python`` looks for them. The
packages that the modules are in come without their ``__init__.py``, which would import much else.
"""

from __future__ import annotations

import hashlib
import json
import os
import py_compile
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

#: What the guest's shell has set, so that ``python3`` finds its files and leaves none behind.
ENVIRONMENT = "export PYTHONHOME=/usr PYTHONPATH=/python PYTHONDONTWRITEBYTECODE=1"
_PROJECT = Path(__file__).resolve().parents[2]
#: Imports them all, and says which files that took, with the folders that they were found from.
_ASK = """
import importlib, json, os, sys, sysconfig, types
for name in sys.argv[1:]:
    parents = name.split(".")[:-1]
    for depth in range(1, len(parents) + 1):
        package = types.ModuleType(".".join(parents[:depth]))
        package.__path__ = [os.path.join(os.environ["PROJECT"], *parents[:depth])]
        sys.modules.setdefault(package.__name__, package)
    importlib.import_module(name)
files = [module.__file__ for module in list(sys.modules.values()) if getattr(module, "__file__", None)]
print(json.dumps({"standard": sysconfig.get_path("stdlib"), "path": sys.path, "files": files}))
"""


def files_for(modules: Sequence[str], directory: Path) -> Mapping[str, Path]:
    """The interpreter and every file that importing these modules takes, by their names in the guest.

    Sources are compiled into ``directory``, which an emulated processor would take seconds for.

    Raises
    ------
    subprocess.CalledProcessError
        The modules cannot be imported here.
    """
    environment = {**os.environ, "PYTHONPATH": str(_PROJECT), "PROJECT": str(_PROJECT)}
    command = [sys.executable, "-S", "-c", _ASK, *modules]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    told = json.loads(done.stdout)
    standard = Path(told["standard"])
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = {"usr/bin/python3": Path(sys.executable).resolve()}
    # The longest folder first: one may lie within another.
    folders = sorted((Path(each) for each in told["path"] if each), key=lambda path: -len(path.parts))
    for file in map(Path, told["files"]):
        if file.is_relative_to(standard):
            found[f"usr/lib/{version}/{file.relative_to(standard)}"] = file
            continue
        folder = next((folder for folder in folders if file.is_relative_to(folder)), None)
        if folder is None:
            continue
        if folder.name == "lib-dynload":
            found[f"usr/lib/{version}/lib-dynload/{file.name}"] = file
        else:
            found[f"python/{file.relative_to(folder)}"] = file
    return {
        name.replace(".py", ".pyc") if file.suffix == ".py" else name: _compiled(file, directory)
        for name, file in found.items()
    }


def _compiled(file: Path, directory: Path) -> Path:
    """A source as the interpreter keeps it, which does not look for the source again; others as they are."""
    if file.suffix != ".py":
        return file
    place = directory / f"{hashlib.sha256(os.fsencode(file)).hexdigest()}.pyc"
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(os.fspath(file), cfile=os.fspath(place), doraise=True, invalidation_mode=mode)
    return place
