"""What makes figures less valid than they look: found, shown everywhere, and documented."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support import loop_device, run_testdrive

from testdrive.manifest import Manifest
from testdrive.metrics.incidents import INCIDENT_CODES
from testdrive.metrics.validity import derived_warnings
from testdrive.power.recorded import Metered
from testdrive.recording import Recording, Span

ROOT = Path(__file__).parents[2]


class Made(Recording):
    """A recording without rows or files: as much of one as the warnings look at."""

    def __init__(self, path: Path, **manifest: Any) -> None:
        keys = {"format": "testdrive-recording", "version": 1, "kind": "run", "status": "complete"}
        super().__init__(path, Manifest.model_validate({**keys, **manifest}), [])

    def meters(self) -> list[Metered]:
        return []

    def measured_spans(self) -> list[Span]:
        return [Span(phase=0, start_ns=0, end_ns=10_000_000_000, shift_ns=0)]


def codes(recording: Made, summary: dict[str, Any]) -> list[str]:
    found = derived_warnings(recording, summary)
    assert all(each.message and each.remedy for each in found)
    return [each.code for each in found]


@pytest.mark.parametrize(
    ("lateness_ns", "modelled", "kind", "wanted"),
    [
        (100_000, False, "run", []),
        (100_001, False, "run", ["generator_late"]),
        (None, False, "run", []),
        (100_001, True, "run", []),
        (100_001, False, "import", []),
    ],
)
def test_a_schedule_that_a_real_drive_was_late_for_is_found(
    tmp_path: Path, lateness_ns: int | None, modelled: bool, kind: str, wanted: list[str]
) -> None:
    made = Made(tmp_path, kind=kind, drive={"uri": "x", "modelled": modelled})
    assert codes(made, {"fidelity": {"lateness_p99_ns": lateness_ns}}) == wanted


def test_percentiles_that_cannot_be_stated_are_named_with_what_they_need(tmp_path: Path) -> None:
    made = Made(tmp_path)

    def summary(**scarce: str) -> dict[str, Any]:
        return {"latency_samples": 1234, "percentile_codes": {"io_weighted": scarce}}

    assert codes(made, summary()) == []
    # Beyond p99.9 is more than reports state of every run, and none without I/Os has a percentile to state.
    assert codes(made, summary(p99_99="too_few_samples", p99_9="no_completions")) == []
    (found,) = derived_warnings(made, summary(p99_9="too_few_samples"))
    assert found.code == "too_few_samples"
    assert found.message == "1,234 I/Os are too few for p99.9"
    assert "2,995" in found.remedy


def test_a_drive_that_slowed_down_for_its_temperature_is_found_in_its_log(tmp_path: Path) -> None:
    event = {"start_ns": 10, "end_ns": 2_000_000_010, "busy_ns": 2_000_000_000, "amount": 1, "unit": "times"}
    log = [{"kind": "thermal_throttle", **event}, {"kind": "stall", **event}]
    (tmp_path / "drive_events.jsonl").write_text("".join(json.dumps(each) + "\n" for each in log))
    assert codes(Made(tmp_path), {}) == []
    assert codes(Made(tmp_path, drive_events={"events": 2}), {}) == ["thermal_limit"]


def test_a_run_of_few_ios_says_so_in_its_summary_and_on_its_page(tmp_path: Path) -> None:
    plan = tmp_path / "few.toml"
    plan.write_text(
        'version = 1\nname = "few"\ntitle = "t"\nquestion = "q"\n'
        '[[phases]]\nkind = "synthetic"\nios = 500\ndepth = 4\n'
    )
    recording = tmp_path / "a.rec"
    ran = run_testdrive("run", plan, "--drive", "sim:sata?capacity=4GiB", "-o", recording)
    assert ran.returncode == 0, ran.stderr
    assert "500 I/Os are too few for p99.9" in ran.stdout
    assert run_testdrive("report", recording).returncode == 0
    assert "500 I/Os are too few for p99.9" in (recording / "report.html").read_text()
    with Recording.open(recording) as opened:
        assert "submitter_cpu_share" not in (opened.manifest.phases[0].accounting or {})


def test_the_cpu_of_a_submitter_is_recorded_where_it_sleeps_while_it_waits(tmp_path: Path) -> None:
    plan = tmp_path / "one.toml"
    plan.write_text(
        'version = 1\nname = "one"\ntitle = "t"\nquestion = "q"\n'
        '[[phases]]\nkind = "synthetic"\nios = 2000\ndepth = 1\n'
    )
    with loop_device(tmp_path / "disk", 64 << 20) as device:
        ran = run_testdrive("run", plan, "--drive", device, "-o", tmp_path / "a.rec")
    assert ran.returncode == 0, ran.stderr
    with Recording.open(tmp_path / "a.rec") as recording:
        share = (recording.manifest.phases[0].accounting or {})["submitter_cpu_share"]
    # At depth 1 the drive has its time for each I/O, in which the submitter sleeps.
    assert 0 < share < 1


def test_every_code_of_a_warning_is_documented() -> None:
    documented = set(re.findall(r"`([a-z_]+)`", (ROOT / "docs/warnings.md").read_text()))
    sources = [
        path
        for crate in ("runner", "drives", "capture")
        for path in (ROOT / "engine" / crate / "src").rglob("*.rs")
    ]
    made = re.compile(r'(?:\b[Ww]arning(?:::new)?\(\s*|\bcode: )"([a-z_]+)"')
    found = {code for path in sources for code in made.findall(path.read_text())}
    for name in ("validity", "incidents"):
        found |= set(re.findall(r'code="([a-z_]+)"', (ROOT / f"testdrive/metrics/{name}.py").read_text()))
    found |= INCIDENT_CODES
    assert {"debug_build", "page_cache", "generator_saturated", "generator_late", "feedback"} <= found
    assert found - documented == set()
