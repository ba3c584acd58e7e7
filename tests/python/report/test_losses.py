"""What counts as lost, of which recording, and that it is said once and above everything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import builders
import pytest
import scenes

from testdrive.manifest import Dropped, Manifest, Warning_, read_manifest
from testdrive.report.losses import gathered, is_loss, losses
from testdrive.report.single import write_report

LOST = {"code": "events_lost", "message": "the kernel lost 7 events", "remedy": "capture again"}
SAID = "The kernel lost 7 events. Capture again."


def recording(path: Path, **manifest: Any) -> tuple[str, Manifest, Path]:
    builders.write_recording(path, None, **manifest)
    return path.stem, read_manifest(path), path


@pytest.mark.parametrize(
    ("what", "lost"),
    [
        ("events that the tracer lost", True),
        ("events that did not fit into the kernel's buffer", True),
        ("pages of the kernel's buffer that could not be read to their end", True),
        ("records cut off at the end of a file", True),
        ("zone commands", False),
        ("commands passed through to the driver", False),
        (
            "completions whose I/O was not seen to begin (begun before the trace, or its event was lost)",
            False,
        ),
    ],
)
def test_what_was_left_out_knowingly_is_not_lost(what, lost):
    assert is_loss(Dropped(what=what, count=3)) == lost
    assert not is_loss(Dropped(what=what, count=0))


@pytest.mark.parametrize(
    ("code", "lost"), [("events_lost", True), ("source_events_lost", True), ("debug_build", False)]
)
def test_warnings_tell_of_losses_by_their_code(code, lost):
    assert is_loss(Warning_(code=code, message="x")) == lost


def test_losses_are_sentences(tmp_path):
    dropped = [{"what": "events that the tracer lost", "count": 1234}, {"what": "zone commands", "count": 1}]
    _, manifest, _ = recording(tmp_path / "a.rec", dropped=dropped, warnings=[LOST])
    assert losses(manifest) == ["1,234 events that the tracer lost.", SAID]


def test_a_replay_tells_of_its_source_once_and_by_name(tmp_path):
    source = recording(tmp_path / "prod.rec", warnings=[LOST])
    runs = [
        recording(tmp_path / f"{name}.rec", kind="run", source={"recording": str(source[2])}) for name in "ab"
    ]
    assert gathered(runs) == [("prod, which was replayed", SAID)]
    assert gathered([*runs, source]) == [("prod", SAID)]
    moved = recording(tmp_path / "c.rec", kind="run", source={"recording": "/gone/prod.rec"})
    # Beside the run it is found all the same; gone for good, the run stands for itself.
    assert gathered([moved]) == [("prod, which was replayed", SAID)]
    gone = recording(tmp_path / "d.rec", kind="run", source={"recording": "/gone/else.rec"})
    assert gathered([gone]) == []


def test_a_replay_that_tells_of_its_source_itself_is_not_told_again(tmp_path):
    source = recording(tmp_path / "prod.rec", warnings=[LOST])
    own = {**LOST, "code": "source_events_lost", "message": "the replayed workload is not whole"}
    run = recording(tmp_path / "a.rec", kind="run", source={"recording": str(source[2])}, warnings=[own])
    assert gathered([run]) == [("a", "The replayed workload is not whole. Capture again.")]


def test_a_source_that_cannot_be_read_does_not_stop_a_page(tmp_path):
    (tmp_path / "prod.rec").mkdir()
    (tmp_path / "prod.rec" / "manifest.json").write_text("{")
    run = recording(tmp_path / "a.rec", kind="run", source={"recording": str(tmp_path / "prod.rec")})
    assert gathered([run]) == []


def test_a_report_has_its_losses_above_its_verdict_and_not_among_the_warnings(tmp_path):
    columns = scenes.workload(span_s=2, rate_per_s=100)
    path = builders.write_recording(
        tmp_path / "a.rec", {**columns, "latency_ns": 10**5}, kind="capture", warnings=[LOST]
    )
    text = write_report(path).read_text(encoding="utf-8")
    assert text.count(SAID) == 1
    assert text.index(SAID) < text.index('id="verdict"')
