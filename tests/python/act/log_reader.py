"""A reader of act_storage's log, of the grammar that its analysis script goes by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_AFTER = re.compile(r"after (\d+) sec:")
_TOTAL = re.compile(r"(\S+) \((\d+) total\)")
_BUCKET = re.compile(r"\((\d\d): (\d+)\)")


@dataclass
class Log:
    """The configuration by key, the names of the histograms, and for each time the buckets of each."""

    version: float
    configuration: dict[str, str]
    derived: dict[str, str]
    names: list[str]
    after: dict[int, dict[str, dict[int, int]]] = field(default_factory=dict)


def read_log(path: Path) -> Log:
    """Read a log; a line that is not of the grammar is a failure."""
    lines = path.read_text().splitlines()
    version = next(float(line.split(" ")[2]) for line in lines if line.startswith("ACT version"))
    names = _block(lines, "HISTOGRAM NAMES")
    configuration, derived = (
        dict(line.split(": ", 1) for line in _block(lines, head))
        for head in ("ACT-STORAGE CONFIGURATION", "DERIVED CONFIGURATION")
    )
    log = Log(version, configuration, derived, names)
    rest = iter(lines[lines.index("HISTOGRAM NAMES") + len(names) + 2 :])
    for line in rest:
        found = _AFTER.fullmatch(line)
        assert found, line
        log.after[int(found[1])] = _chunk(rest)
    return log


def _block(lines: list[str], head: str) -> list[str]:
    start = lines.index(head) + 1
    return lines[start : lines.index("", start)]


def _chunk(lines: Iterator[str]) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    totals: dict[str, int] = {}
    name = ""
    for line in lines:
        if not line:
            break
        if head := _TOTAL.fullmatch(line):
            name = head[1]
            found[name], totals[name] = {}, int(head[2])
            continue
        buckets = _BUCKET.findall(line)
        assert buckets, line
        assert len(buckets) <= 4, line
        found[name] |= {int(at): int(ios) for at, ios in buckets}
    assert {name: sum(each.values()) for name, each in found.items()} == totals
    return found


def shares_above(log: Log, name: str, slice_s: int, powers: Iterable[int]) -> list[list[float]]:
    """Percent of each slice's I/Os at or above ``2^power`` units, as the script computes them."""
    before: dict[int, int] = {}
    table = []
    for after_s in range(slice_s, max(log.after) + 1, slice_s):
        now = log.after[after_s][name]
        grown = {at: now.get(at, 0) - before.get(at, 0) for at in now | before}
        total = sum(grown.values())
        below = [sum(ios for at, ios in grown.items() if at <= power) for power in powers]
        table.append([round((total - each) * 100 / total, 2) for each in below])
        before = now
    return table
