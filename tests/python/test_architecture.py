"""Dependencies run one way: which part of the package may import which."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "testdrive"

#: The parts of the package, each a module or a package of ``testdrive``, and which others each may import. A
#: part of a package stands here for itself where others may import it and not the rest. What only the type
#: checker needs does not count.
ALLOWED: dict[str, str] = {
    # What anybody may need: the package itself is only its version.
    "": "",
    "errors": "",
    "quantities": "errors",
    "durable_json": "",
    "drive_names": "",
    "report.units": "",
    "report.words": "report.units",
    # The engine: what it is asked, what it tells, and its process.
    "job": "",
    "events": "",
    "engine_binary": "errors",
    "stopping": "errors",
    "engine_process": "engine_binary errors events stopping",
    "engine": "engine_binary engine_process errors events job manifest",
    # What was recorded.
    "regular_files": "",
    "segment_files": "",
    "manifest": "durable_json errors regular_files",
    "segments": "errors segment_files",
    "completeness": "errors manifest segments",
    "recovery": "errors manifest segment_files segments",
    "telemetry": "errors manifest regular_files",
    "power": "errors events manifest quantities regular_files segments",
    "recording": "completeness errors manifest power recovery segments telemetry",
    "drive_events": "errors recording regular_files",
    "explanation": "drive_events recording",
    # What it comes to.
    "metrics.scans": "manifest recording segments",
    "act": "errors manifest recording segments",
    "qos": "errors manifest metrics.scans quantities recording segments",
    "headroom": "errors manifest metrics.scans qos recording report.units report.words segments",
    "metrics": "act drive_events durable_json headroom manifest metrics.scans power qos recording"
    " report.units segments telemetry",
    # What is run.
    "plans": "act errors headroom job manifest qos quantities",
    "progress": "events report.units",
    "running": "engine errors events job metrics plans power progress recording stopping",
    "search": "act drive_names errors events headroom job manifest metrics plans progress qos recording"
    " report.units running"
    " search.bisection search.history",
    "search.bisection": "",
    "search.history": "durable_json errors search.bisection",
    "doctor": "engine errors job power recording report.units report.words",
    # What is shown.
    "report": "errors explanation manifest metrics power recording report.units report.words",
    "statement": "errors manifest metrics metrics.scans recording report report.units report.words",
    "compare": "errors manifest metrics metrics.scans recording report report.units report.words",
    "methods": "act errors headroom manifest metrics metrics.scans power qos recording report report.units"
    " report.words search.history segments",
    "demo": "compare errors plans running",
}
#: Nothing imports these, and they may import everything.
OUTERMOST = ("cli", "__main__")


def part_of(module: str) -> str:
    """The part that a module of the package belongs to, by its name without ``testdrive.``."""
    names = module.split(".")
    longest = ".".join(names[:2])
    return longest if longest in ALLOWED else names[0]


def module_of(path: Path) -> str:
    names = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def at_run_time(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a module, however deep, without those that only the type checker sees."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.stmt):
            yield child
        yield from at_run_time(child)


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """The modules of the package that a file imports at run time, with the line; and names in packages."""
    for node in at_run_time(ast.parse(path.read_text(encoding="utf-8"))):
        found: list[str] = []
        if isinstance(node, ast.Import):
            found = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            found = [f"{node.module}.{each.name}" for each in node.names]
        for name in found:
            root, _, rest = name.partition(".")
            if root == PACKAGE.name:
                yield node.lineno, rest


def imports_between_parts() -> Iterator[tuple[str, str, str]]:
    """Each import of a part by another: who, whom, and where."""
    for path in sorted(PACKAGE.rglob("*.py")):
        mine = part_of(module_of(path))
        for line, name in imported(path):
            # A name of the package itself, such as its version.
            other = part_of(name) if is_module(name.partition(".")[0]) else ""
            if other != mine:
                yield mine, other, f"{path.relative_to(PACKAGE.parent)}:{line}"


@cache
def is_module(name: str) -> bool:
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()


def test_parts_import_only_what_they_may() -> None:
    wrong = [
        f"{where}: {part} imports {other}"
        for part, other, where in imports_between_parts()
        if part not in OUTERMOST and other and other not in ALLOWED.get(part, "").split()
    ]
    assert not wrong, "\n".join([*wrong, "if that is the right way round, add it to ALLOWED"])


def test_what_is_allowed_has_no_cycle() -> None:
    # Raises CycleError, which names the parts of one.
    tuple(TopologicalSorter({part: ALLOWED[part].split() for part in ALLOWED}).static_order())


def test_each_part_that_is_named_is_there() -> None:
    for part in {*ALLOWED, *(each for allowed in ALLOWED.values() for each in allowed.split())}:
        assert is_module(part.replace(".", "/")), part
