"""What stands around the figures of a standard test's page."""

from __future__ import annotations

from built_runs import BuiltPhase, built_run

from testdrive.methods.runs import Run
from testdrive.report.conditions import warnings_box


def run(**plan: object) -> Run:
    return built_run([BuiltPhase("mix", iops=[100] * 5)], **plan)


def test_a_short_run_says_above_its_figures_that_it_says_nothing_about_the_drive() -> None:
    box = warnings_box([run(short=True).subject, run().subject])
    assert box is not None
    assert "says nothing about the drive. Run it without --short." in box
    assert warnings_box([run().subject]) is None
