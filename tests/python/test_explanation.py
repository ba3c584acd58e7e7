"""What a drive was busy with in a burst, by its log: read, cut to the measured phases, and told."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import SECOND_NS, phase, write_recording
from rich.console import Console
from support import run_testdrive
from workloads import write_source

from testdrive.cli import main
from testdrive.cli.explanation_view import explanation_view
from testdrive.drive_events import DriveEvent, drive_events
from testdrive.errors import RecordingError
from testdrive.explanation import activities, explain, explanation_of
from testdrive.manifest import DroppedDriveEvents
from testdrive.metrics import summarize
from testdrive.recording import Recording
from testdrive.report import write_report

S = SECOND_NS


def event(start_ns: int, end_ns: int, kind: str = "garbage_collection", **changes: Any) -> DriveEvent:
    given = {"busy_ns": end_ns - start_ns, "amount": 100, "unit": "pages"} | changes
    return DriveEvent(kind=kind, start_ns=start_ns, end_ns=end_ns, **given)


def burst(onset_ns: int, end_ns: int | None) -> dict[str, Any]:
    return {"onset_ns": onset_ns, "end_ns": end_ns, "peak_latency_ns": 7}


def write(path: Path, columns: dict[str, Any], events: list[DriveEvent], **options: Any) -> Path:
    """A recording of a modelled drive with a log."""
    told = {"events": len(events), "dropped": []}
    drive = {"uri": "sim:x", "model": "x", "modelled": True}
    made = write_recording(path, columns, kind="run", drive=drive, drive_events=told, **options)
    lines = "".join(each.model_dump_json() + "\n" for each in events)
    (made / "drive_events.jsonl").write_text(lines)
    return made


def calm_with_a_burst(at_s: int = 30, length_s: int = 3, span_s: int = 60) -> dict[str, Any]:
    """A read every 2 ms of 100 us, and for some seconds of 20 ms."""
    submit_ns = np.arange(span_s * 500) * 2_000_000
    slow = (submit_ns >= at_s * S) & (submit_ns < (at_s + length_s) * S)
    latency_ns = np.where(slow, 20_000_000, 100_000)
    return {"submit_ns": submit_ns, "intended_ns": submit_ns, "latency_ns": latency_ns, "opcode": 0}


def test_what_took_most_of_the_burst_comes_first_with_its_share_of_the_run():
    events = [
        event(0, 100 * S, amount=1000),
        event(40 * S, 44 * S, "trim_service", busy_ns=3 * S, amount=400),
        event(48 * S, 48 * S, "power_loss", amount=12),
    ]
    explanation = explain([burst(42 * S, 52 * S)], events, 100 * S)
    [found] = explanation.bursts
    assert [each.kind for each in found.activities] == ["garbage_collection", "trim_service", "power_loss"]
    collected, trims, lost = found.activities
    assert (collected.busy_ns, collected.busy_share, collected.run_share) == (10 * S, 1.0, 1.0)
    assert collected.amount == 100
    # Half of the trims' stretch lies in the burst, and with it half of the work.
    assert (trims.busy_ns, trims.amount, trims.busy_share, trims.run_share) == (3 * S // 2, 200, 0.15, 0.03)
    assert (lost.busy_ns, lost.amount) == (0, 12)
    assert [each.kind for each in explanation.run] == ["garbage_collection", "trim_service", "power_loss"]


def test_a_burst_without_an_end_reaches_to_the_end_of_the_run():
    events = [event(at * S, (at + 1) * S) for at in range(100)]
    [found] = explain([burst(60 * S, None)], events, 100 * S).bursts
    assert (found.end_ns, found.recovered) == (100 * S, False)
    # The stretch that ends as the burst begins only touches it.
    assert found.activities[0].busy_ns == 40 * S
    assert found.activities[0].amount == 4000


def test_the_longest_stretches_are_told_and_of_equal_ones_the_first():
    events = [event(at * S, at * S + length) for at, length in ((0, 5), (2, 9), (4, 9), (6, 1), (8, 7))]
    [found] = activities(events, 0, 10 * S)
    assert [each.start_ns for each in found.longest] == [2 * S, 4 * S, 8 * S]
    assert found.events == 5


def test_times_count_from_the_measured_phases_laid_end_to_end(tmp_path):
    phases = [
        phase(0, kind="prepare", measured=False, start_ns=0, end_ns=100 * S),
        phase(1, start_ns=100 * S, end_ns=110 * S),
        phase(2, kind="prepare", measured=False, start_ns=110 * S, end_ns=200 * S),
        phase(3, start_ns=200 * S, end_ns=230 * S),
    ]
    events = [
        event(1 * S, 99 * S),
        event(95 * S, 105 * S, amount=10),
        event(108 * S, 212 * S, amount=104),
        event(220 * S, 221 * S, amount=5),
    ]
    path = write(tmp_path / "a.rec", {"submit_ns": [101 * S], "phase": [1]}, events, phases=phases)
    with Recording.open(path) as recording:
        found = [(each.start_ns // S, each.end_ns // S, each.amount) for each in drive_events(recording)]
    assert found == [(0, 5, 5), (8, 10, 2), (10, 22, 12), (30, 31, 5)]


def test_a_damaged_line_is_told_with_its_number(tmp_path):
    path = write(tmp_path / "a.rec", {"submit_ns": [1]}, [event(0, 1), event(2, 3), event(4, 5)])
    lines = (path / "drive_events.jsonl").read_text().splitlines()
    lines[2] = '{"kind": "stall", "start_ns": "soon"}'
    (path / "drive_events.jsonl").write_text("\n".join(lines) + "\n")
    with Recording.open(path) as recording, pytest.raises(RecordingError, match="line 3: start_ns"):
        drive_events(recording)
    (path / "drive_events.jsonl").unlink()
    with Recording.open(path) as recording, pytest.raises(RecordingError, match="cannot be read"):
        drive_events(recording)


def test_a_drive_that_keeps_no_log_explains_nothing(tmp_path, capsys):
    path = write_recording(tmp_path / "a.rec", calm_with_a_burst(), kind="run")
    with Recording.open(path) as recording:
        assert explanation_of(recording, summarize(recording)) is None
    assert main(["inspect", str(path), "--explain"]) == 0
    assert "tells nothing of what it was busy with" in " ".join(capsys.readouterr().out.split())
    assert main(["inspect", str(path), "--explain", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["explanation"] is None


def test_the_terminal_names_the_burst_and_what_the_drive_did_in_it(tmp_path, capsys):
    events = [event(30 * S, 33 * S, "trim_service", amount=786_432), event(50 * S, 51 * S, "slc_folding")]
    path = write(tmp_path / "a.rec", calm_with_a_burst(), events)
    assert main(["inspect", str(path), "--explain"]) == 0
    text = capsys.readouterr().out
    assert "(modelled)" in text
    # A burst ends once nine of the next ten windows are calm: a window before the last slow one.
    assert "in the burst from 30.0 s, 2.90 s long, peak 20.0 ms" in text
    of_burst = text[text.index("in the burst") :]
    assert "760,218 pages" in of_burst
    assert "SLC" not in of_burst
    assert "SLC cache folding" in text
    assert main(["inspect", str(path), "--explain", "--json"]) == 0
    [told] = json.loads(capsys.readouterr().out)["explanation"]["bursts"]
    assert told["activities"][0]["longest"] == [events[0].model_dump()]


def test_events_that_the_log_dropped_are_told(tmp_path):
    with Recording.open(write(tmp_path / "a.rec", calm_with_a_burst(), [event(0, 1)])) as recording:
        manifest = recording.manifest
        assert manifest.drive_events is not None
        manifest.drive_events.dropped.append(DroppedDriveEvents(kind="stall", events=1234))
        explanation = explanation_of(recording, summarize(recording))
    console = Console(record=True, width=80, file=io.StringIO())
    console.print(explanation_view(explanation, manifest))
    assert "could not keep 1,234 short events" in console.export_text()


def test_the_page_has_what_the_drive_did_marked_as_modelled(tmp_path):
    events = [event(30 * S, 33 * S, "trim_service", amount=786_432)]
    page = write_report(write(tmp_path / "a.rec", calm_with_a_burst(), events)).read_text()
    at = page.index("What the drives were busy with")
    table = page[at : page.index("</table>", at)]
    assert all(words in table for words in ("burst from 30.0 s", "786,432 pages", "modelled"))


def test_the_real_engine_leaves_a_log_that_explains_a_storm_of_trims(tmp_path):
    """3,000 trims of 2 MiB at 0.7 us a page keep a drive from answering for 1.075 s; its log says so."""
    reads, trims = 20_000, 3_000
    columns = {
        "submit_ns": np.r_[np.arange(reads) * 1_000_000, np.full(trims, 10 * S)],
        "latency_ns": np.full(reads + trims, 100_000),
        "offset_bytes": np.r_[np.arange(reads) % 1000 * 4096, (512 + np.arange(trims)) * (2 << 20)],
        "length_bytes": np.r_[np.full(reads, 4096), np.full(trims, 2 << 20)],
        "opcode": np.r_[np.full(reads, 0), np.full(trims, 2)],
    }
    source = write_source(tmp_path / "source.rec", columns)
    cost = "trim_mode=firmware&trim_per_page=0.7us&trim_per_range=0us"
    uri = f"sim:consumer-dramless-small-slc?capacity=16GiB&{cost}"
    output = tmp_path / "out.rec"
    ran = run_testdrive("replay", source, "--drive", uri, "-o", output)
    assert ran.returncode == 0, ran.stderr
    with Recording.open(output) as recording:
        explanation = explanation_of(recording, summarize(recording))
    assert explanation is not None
    [served] = [each for each in explanation.run if each.kind == "trim_service"]
    assert (served.busy_ns, served.amount) == (3_000 * 512 * 700, 3_000 * 512)
    [found] = explanation.bursts
    assert found.activities[0].kind == "trim_service"
    assert found.activities[0].busy_share > 0.9
