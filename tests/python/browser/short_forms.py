"""What the recordings and tables show that the short forms of plans leave behind on a loop device."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

#: How many phases there are, if no group is steady before its last round.
PTS_PHASES = {
    "pts-iops": 2 + 56 * 5,
    "pts-latency": 2 + 9 * 5,
    "pts-throughput": 2 * (2 + 2 * 5),
    "pts-saturation": 2,
    "pts-idle": 3 + 2 * 5,
}
#: Of the plan percentiles.
DEPTHS = ("1", "2", "4", "8", "16", "32")
KINDS = ("spectrum", "ios", "time", "time-nines")


def rows_of(recording: Path, table: str) -> list[dict[str, str]]:
    """A table that was written beside the page."""
    with (recording / "tables" / f"{table}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def is_pts_style(recording: Path, name: str) -> None:
    """No more phases than its rounds have, tables with rows, figures, and no claim to more than the style."""
    phases = json.loads((recording / "manifest.json").read_text())["phases"]
    assert len(phases) <= PTS_PHASES[name]
    assert phases[-1]["accounting"]["issued"]
    page = (recording / "report.html").read_text()
    assert "PTS-style" in page
    assert "compliant" not in page
    tables = [path.stem for path in (recording / "tables").glob("*.csv")]
    assert tables
    assert all(rows_of(recording, table) for table in tables)
    assert len(list((recording / "figures").glob("pts-*.png"))) >= 2


def measures_each_depth(recording: Path, name: str) -> None:
    """Every kind of figure of each depth, and one of all of them, for writes and for reads."""
    rows = rows_of(recording, "distribution-reads")
    assert [row["queue depth"] for row in rows] == list(DEPTHS)
    assert all(float(row["IOPS"].replace(",", "")) > 0 for row in rows)
    assert len(list((recording / "figures").glob("distribution-*.png"))) == 2 * (1 + len(DEPTHS) * len(KINDS))


def measures_its_seconds(recording: Path, name: str) -> None:
    """The seconds that were asked for, of the recording by its name."""
    (row,) = rows_of(recording, "stability")
    assert row["drive"] == "short"
    # By the host's clock, which goes on while the host stands still.
    assert int(row["seconds"]) >= 2


def says_what_is_too_short(recording: Path, name: str) -> None:
    """Both kinds of data, and no claim about a cliff after two seconds."""
    rows = rows_of(recording, "saturation")
    assert [row["drive, data"] for row in rows] == ["short, all-zero", "short, incompressible"]
    assert {row["write amplification"] for row in rows} == {"not told by the drive"}
    lengths = [re.fullmatch(r"too short: (\d+) s, not 25", row["cliff after"]) for row in rows]
    # By the host's clock, which goes on while the host stands still.
    assert all(length and int(length[1]) >= 2 for length in lengths), rows


#: Plans whose short form is looked at more closely: they run on a loop device, the others on a file.
SHOWN: dict[str, Callable[[Path, str], None]] = {
    **dict.fromkeys(PTS_PHASES, is_pts_style),
    "percentiles": measures_each_depth,
    "stability": measures_its_seconds,
    "saturation": says_what_is_too_short,
}
