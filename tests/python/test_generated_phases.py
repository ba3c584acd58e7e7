"""Phases whose I/Os are generated: the control plane's keys are the engine's and the document's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support import missing

from testdrive.engine import find_engine, run_job
from testdrive.errors import EngineError, UsageError
from testdrive.events import Event, RoundOver
from testdrive.job import (
    DriveRequest,
    Job,
    Phase,
    PreparePhase,
    RoundsPhase,
    Stream,
    SyntheticPhase,
    Tracked,
)
from testdrive.progress import LineDisplay
from testdrive.recording import Recording

DOCUMENT = Path(__file__).parents[2] / "docs" / "job.md"
DRIVE = "sim:enterprise-mixed?capacity=64MiB"
CLOSED: dict[str, Any] = {
    "name": "closed",
    "pattern": "random",
    "read_share": 0.5,
    "trim_share": 0.1,
    "fua": True,
    "block_bytes": [{"bytes": 4096, "share": 0.5}, {"bytes": 8192, "share": 0.5}],
    "alignment_bytes": 4096,
    "offset_bytes": 1 << 20,
    "span_share": 0.75,
    "hot_spots": [{"span_share": 0.1, "access_share": 0.8}],
    "depth": 8,
    "threads": 2,
    "cpus": [min(os.sched_getaffinity(0))],
    "seed": 7,
    "data": {"compressible_share": 0.5},
    "refill": True,
    "measured": True,
    "rate_limit_iops": 20_000.0,
    "rate_limit_bytes_per_s": 500e6,
    "on_ns": 5_000_000,
    "off_ns": 5_000_000,
    "cycles": 10_000,
    "ios": 4_000,
    "bytes": 1 << 30,
    "duration_ns": 10**10,
    "drive_fills": 5.0,
    "steady_state": {
        "measure": "iops",
        "round_ns": 20_000_000,
        "rounds_max": 20,
        "window": 4,
        "range_share": 0.5,
        "slope_share": 0.5,
    },
}
OPEN: dict[str, Any] = {
    "name": "open",
    "span_bytes": 1 << 20,
    "arrivals": {"process": "poisson", "rate_iops": 5_000.0},
    "max_in_flight": 100,
    "max_lag_ns": 10**9,
    "ios": 500,
}
ROUNDS: dict[str, Any] = {
    "name": "matrix",
    "phases": [
        {"kind": "synthetic", "name": "writes", "read_share": 0.0, "duration_ns": 10_000_000},
        {"kind": "synthetic", "name": "reads", "duration_ns": 10_000_000},
    ],
    "tracked": [{"phase": "writes", "measure": "iops"}, {"phase": "reads", "measure": "latency"}],
    "rounds_max": 4,
    "window": 3,
    "range_share": 0.5,
    "slope_share": 0.5,
}
STREAMS: dict[str, Any] = {
    "name": "streams",
    "duration_ns": 200_000_000,
    "max_in_flight": 64,
    "streams": [
        {
            "name": "reads",
            "block_bytes": {"from": 1500, "to": 9000, "step": 4096},
            "arrivals": {"process": "act", "rate_iops": 1_000.0},
            "threads": 10,
            "max_lag_ns": 10**9,
        },
        {
            "name": "mix",
            "pattern": "random",
            "read_share": 0.5,
            "trim_share": 0.1,
            "fua": True,
            "block_bytes": 8192,
            "alignment_bytes": 4096,
            "hot_spots": [{"span_share": 0.1, "access_share": 0.8}],
            "arrivals": {"process": "constant", "rate_iops": 500.0},
        },
        {"name": "scan", "arrivals": {"process": "after_completion", "think_ns": 10**6}},
    ],
}
PREPARE: dict[str, Any] = {
    "method": "random",
    "block_bytes": 8192,
    "depth": 4,
    "fills": 0.5,
    "offset_bytes": 8192,
    "span_share": 0.5,
    "seed": 3,
    "refill": False,
    "data": "incompressible",
    "measured": False,
}
#: What the drive does as a whole: keys that only an NVMe drive takes.
PURGE: dict[str, Any] = {"method": "purge", "how": "sanitize"}
FORMAT: dict[str, Any] = {"method": "format", "logical_block_bytes": 4096}


@pytest.fixture(autouse=True)
def _engine() -> None:
    """Skip where the engine was not built."""
    try:
        find_engine()
    except EngineError:
        missing("the engine's release build")


def job(folder: Path, *phases: Phase) -> Job:
    return Job(drive=DriveRequest(uri=DRIVE), output=folder / "out.rec", phases=list(phases))


def quiet() -> LineDisplay:
    from rich.console import Console

    return LineDisplay(Console(quiet=True), "")


def test_every_key_is_tried_here_and_documented() -> None:
    tried = (
        {"kind"}
        | CLOSED.keys()
        | OPEN.keys()
        | STREAMS.keys()
        | PREPARE.keys()
        | PURGE.keys()
        | FORMAT.keys()
    )
    fields = {**SyntheticPhase.model_fields, **PreparePhase.model_fields}
    # What is excluded is for the control plane alone, and no key of the job.
    assert tried == {name for name, field in fields.items() if not field.exclude}
    assert {"kind"} | ROUNDS.keys() == RoundsPhase.model_fields.keys()
    assert ROUNDS["tracked"][0].keys() == Tracked.model_fields.keys()
    tried |= ROUNDS.keys()
    of_streams = {key for stream in STREAMS["streams"] for key in stream}
    assert of_streams == Stream.model_fields.keys()
    text = DOCUMENT.read_text()
    assert [key for key in tried if f"`{key}`" not in text] == []


@pytest.mark.parametrize("phase", [PURGE, FORMAT])
def test_a_path_without_admin_commands_is_told_which_has_them(phase: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"/dev/ng0n1"):
        run_job(job(tmp_path, PreparePhase(kind="prepare", **phase)), quiet())


@pytest.mark.parametrize(
    ("phase", "key"),
    [
        ({"method": "sequential", "how": "format"}, "how"),
        ({"method": "random", "logical_block_bytes": 4096}, "logical_block_bytes"),
        ({"method": "format", "logical_block_bytes": 1000}, "logical_block_bytes is 1000"),
        ({"method": "format", "span_share": 0.5}, "the span"),
    ],
)
def test_what_a_format_cannot_have_is_refused(phase: dict[str, Any], key: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=key):
        run_job(job(tmp_path, PreparePhase(kind="prepare", **phase)), quiet())


def test_features_are_set_only_where_they_can_be(tmp_path: Path) -> None:
    asked = job(tmp_path, SyntheticPhase(kind="synthetic", ios=1))
    asked.drive.volatile_write_cache, asked.drive.power_state = False, 1
    with pytest.raises(UsageError, match="volatile_write_cache and power_state cannot be set"):
        run_job(asked, quiet())


def test_the_engine_takes_every_key(tmp_path: Path) -> None:
    phases = [
        PreparePhase(kind="prepare", **PREPARE),
        SyntheticPhase(kind="synthetic", **CLOSED),
        SyntheticPhase(kind="synthetic", **OPEN),
        SyntheticPhase(kind="synthetic", **STREAMS),
    ]
    run_job(job(tmp_path, *phases), quiet())
    with Recording.open(tmp_path / "out.rec") as recording:
        prepared, closed, opened, streams = (phase.accounting or {} for phase in recording.manifest.phases)
        rows = recording.all_rows()
        rows = rows.filter(rows.phase == 3)
        found = recording.execute(rows.group_by("stream").aggregate(n=rows.count()))
    assert prepared["issued"]["write"]["bytes"] == 16 << 20
    assert closed["steady_state"]["measure"] == "iops"
    assert closed["threads"] == 2
    assert opened["issued"]["read"]["ios"] == 500
    assert opened["arrivals_not_issued"] == 0
    assert streams["streams"] == ["reads", "mix", "scan"]
    counts = dict(zip(found["stream"].tolist(), found["n"].tolist(), strict=True))
    assert (counts[0], counts[1]) == (200, 100)
    # Within a fifth of a second, each read of the scan takes at least the time of thinking.
    assert 50 < counts[2] <= 200


def test_the_engine_takes_every_key_of_rounds_and_says_what_came_of_each(tmp_path: Path) -> None:
    told: list[RoundOver] = []

    def note(event: Event) -> None:
        if isinstance(event, RoundOver):
            told.append(event)

    run_job(job(tmp_path, RoundsPhase(kind="rounds", **ROUNDS)), note)
    with Recording.open(tmp_path / "out.rec") as recording:
        phases = recording.manifest.phases
    assert 3 <= len(told) <= 4
    assert [phase.name for phase in phases] == ["writes", "reads"] * len(told)
    assert [phase.settings["round"] for phase in phases] == [at // 2 for at in range(len(phases))]
    found = phases[-1].accounting["rounds"]
    kept = {key: found[key] for key in ("name", "rounds_max", "window", "range_share", "slope_share")}
    assert kept == {key: ROUNDS[key] for key in kept}
    assert found["done"] == len(told)
    last = told[-1]
    assert (last.name, last.round, last.achieved) == ("matrix", len(told) - 1, found["achieved"])
    assert [(one.phase, one.value, one.fit) for one in last.tracked] == [
        (one["phase"], one["values"][-1], one["fit"]) for one in found["tracked"]
    ]


def test_the_engine_says_which_phase_and_key_is_wrong(tmp_path: Path) -> None:
    wrong = SyntheticPhase(kind="synthetic", name="settle", ios=1, block_bytes=1000)
    with pytest.raises(UsageError, match=r"phase 1 \('settle'\): block_bytes is 1000"):
        run_job(job(tmp_path, PreparePhase(kind="prepare"), wrong), quiet())
