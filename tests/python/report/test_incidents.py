"""A drive that stopped answering, was reset or was lost: that this is said first, everywhere, and how."""

from __future__ import annotations

import errno
import json
import re

import builders
import numpy as np
import pytest
from support import run_testdrive

from testdrive.compare import write_comparison
from testdrive.metrics import summarize
from testdrive.recording import Recording
from testdrive.report.incidents import TITLE
from testdrive.report.single import write_report

SECOND_NS = 1_000_000_000
TIMEOUT = {"kind": "command_timeout", "start_ns": 4 * SECOND_NS, "end_ns": 4 * SECOND_NS, "amount": 4}
RESET = {
    "kind": "controller_reset",
    "start_ns": 4 * SECOND_NS,
    "end_ns": 4 * SECOND_NS + 7_000_000,
    "amount": 4,
}


def made(path, events=(), statuses=None, **changes):
    """A run of 20 s with 500 reads a second; lost ones were waited for two seconds."""
    ios = 10_000
    columns = {
        "submit_ns": np.arange(ios) * (20 * SECOND_NS // ios),
        "latency_ns": np.full(ios, 100_000),
        "offset_bytes": np.arange(ios) * 4096,
        "length_bytes": 4096,
        "status": np.zeros(ios, np.int64),
        "stream": 0,
    }
    for at, status in (statuses or {}).items():
        columns["status"][at], columns["latency_ns"][at] = status, 2 * SECOND_NS
    phases = [builders.phase(kind="synthetic", end_ns=20 * SECOND_NS)]
    drive = {"uri": "pci:0000:01:00.0", "path": "userspace", "model": "Example", "modelled": False}
    builders.write_recording(
        path,
        columns,
        kind="run",
        phases=phases,
        drive=drive,
        drive_events={"events": len(events), "dropped": []},
        **changes,
    )
    lines = [json.dumps({"busy_ns": 0, "unit": "commands", **event}) + "\n" for event in events]
    (path / "drive_events.jsonl").write_text("".join(lines))
    return path


def warned(path):
    with Recording.open(path) as recording:
        return {each["code"]: each["message"] for each in summarize(recording)["warnings"]}


LOST = {1_000: errno.ETIMEDOUT, 1_001: errno.ETIMEDOUT, 1_002: errno.ECANCELED}


def test_a_healthy_run_says_nothing_of_it(tmp_path):
    path = made(tmp_path / "a.rec")
    assert not set(warned(path)) & {"command_timeout", "controller_reset", "drive_lost"}
    assert TITLE not in write_report(path).read_text()


def test_timeouts_and_resets_are_told_with_count_time_and_statuses(tmp_path):
    found = warned(made(tmp_path / "a.rec", [TIMEOUT, RESET], LOST))
    assert found["command_timeout"] == (
        "the drive did not answer 2 I/Os in time (status ETIMEDOUT: 2), between 2.0 s and 4.0 s;"
        " the longest was waited for 2.00 s"
    )
    assert found["controller_reset"] == (
        "the controller was reset once, at 4.0 s, for up to 7.00 ms;"
        " 1 I/O went with that (status ECANCELED: 1)"
    )


@pytest.mark.parametrize(
    ("events", "statuses", "code", "said"),
    [
        ([], {5: errno.ECANCELED}, "controller_reset", "or were given up by the kernel"),
        ([RESET], {}, "controller_reset", "the controller was reset once, at 4.0 s"),
        ([TIMEOUT], {}, "command_timeout", "did not answer 4 commands within io_timeout_s"),
        ([{**RESET, "kind": "controller_gone"}], {}, "drive_lost", "was over, at 4.0 s"),
        ([], {9_999: errno.ENODEV}, "drive_lost", "1 I/O went with it (status ENODEV: 1)"),
        ([{**RESET, "kind": "bus_error"}], {}, "controller_reset", "the bus had an error once"),
        (
            [{**RESET, "start_ns": 30 * SECOND_NS}],
            {},
            "controller_reset",
            "once (outside of what was measured)",
        ),
        ([], {7: 65_536 + 7}, "command_timeout", "status NVMe 0x007: 1"),
    ],
)
def test_each_sign_of_it_is_enough(tmp_path, events, statuses, code, said):
    found = warned(made(tmp_path / "a.rec", events, statuses))
    assert said in found[code]
    assert len(set(found) & {"command_timeout", "controller_reset", "drive_lost"}) == 1


def test_page_comparison_and_terminal_say_it_before_any_figure(tmp_path):
    bad, good = made(tmp_path / "bad.rec", [TIMEOUT, RESET], LOST), made(tmp_path / "good.rec")
    page = write_report(bad).read_text()
    box = page.index(TITLE)
    assert box < page.index("How the drive took it") < page.index("Figures</h2>")
    assert page.count("The controller was reset once") == 1
    assert "✗ stopped answering" in page
    assert "handles it" not in page
    assert "≥ 2.00 s with those lost" in page
    compared = write_comparison([bad, good], tmp_path / "compared")
    text = compared.page.read_text()
    assert text.index(TITLE) < text.index("Which drive handles this workload")
    headline = re.search(r'class="headline">([^<]*)<', text)
    assert headline is not None
    assert "bad stopped answering, was reset or lost" in headline.group(1)
    assert [row["lost_ios"] for row in compared.rows] == [3, 0]
    shown = run_testdrive("inspect", bad, "--no-page").stdout
    assert shown.index(TITLE) < shown.index("What a drive needs for it")
    assert "at least 2.00 s" in shown
    assert all(len(line.rstrip()) <= 80 for line in shown.splitlines())
    beside = run_testdrive("inspect", bad, good, "--no-page").stdout
    assert beside.index(TITLE) < beside.index("A  bad")


def test_a_reset_without_a_lost_io_keeps_a_drive_from_being_called_calm(tmp_path):
    page = write_report(made(tmp_path / "a.rec", [RESET])).read_text()
    assert "✗ was reset" in page
    assert "lost" not in re.search(r'id="verdict">.*?</section>', page, re.DOTALL).group(0)
