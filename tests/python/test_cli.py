"""The command line: exit statuses, what goes to which output, and names that are never overwritten."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import write_recording
from engine_stub import COMPLETE, PHASE, PROGRESS, STARTED, SetScenario, error_event, scenario

from testdrive.cli import main

__all__ = ["scenario"]

DRIVES = [
    {
        "uri": "/dev/nvme9n1",
        "model": "Fine Drive",
        "serial": "S9",
        "firmware": "F1",
        "capacity_bytes": 10**12,
        "logical_block_bytes": 512,
        "erase_name": "S9",
        "erasable": False,
        "refusals": ["mounted at /srv", "carries a gpt partition table"],
    },
    {"uri": "/dev/nvme8n1", "serial": "", "erase_name": "/dev/nvme8n1", "erasable": True, "refusals": []},
]


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)


@pytest.fixture
def run_recording(tmp_path: Path) -> Path:
    """A small recording of a run, for the fake engine to leave."""
    n = 400
    columns = {
        "intended_ns": np.arange(n) * 10_000_000,
        "submit_ns": np.arange(n) * 10_000_000 + 100,
        "latency_ns": np.full(n, 90_000),
        "offset_bytes": np.arange(n) * 4096,
        "length_bytes": np.full(n, 4096),
        "opcode": np.arange(n) % 2,
    }
    return write_recording(tmp_path / "made.rec", columns, kind="run")


def said(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def runs_of(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The jobs that run the plan: not those that only ask what the drive is."""
    return [call for call in calls if call["job"].get("record") is not False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["replay"], "Missing argument 'REC'; see `testdrive replay --help`"),
        (["replay", "a.rec"], "Missing option '--drive'"),
        (["frobnicate"], "No such command 'frobnicate'"),
        (["replay", "a.rec", "--drive", "null:", "--lba", "wrp"], "'wrp' is not one of"),
        (["replay", "a.rec", "--drive", "null:", "--for", "10"], "for: '10' is not a duration"),
        (["replay", "a.rec", "--drive", "null:", "--io-timeout", "x"], "'x' is not a duration"),
        (["run", "replay", "--drive", "null:", "--set", "recording"], "is not of the form KEY=VALUE"),
        (["run", "replay", "--drive", "null:", "--set", "depth=1", "--set", "depth=2"], "given twice"),
        (["import"], "import needs the trace's files"),
        (["inspect", "none.rec"], "none.rec: does not exist"),
        (["compare", "none.rec"], "none.rec: does not exist"),
        (["report", "none.rec"], "none.rec: does not exist"),
        (["plans", "none"], "there is no plan 'none'"),
    ],
)
def test_a_wrong_request_is_one_message_and_status_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], scenario: SetScenario
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert message in err
    assert "Traceback" not in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ([error_event("usage", 2)], 2),
        ([error_event("refused", 3)], 3),
        ([{**COMPLETE, "status": "failed", "reason": "EIO"}], 4),
        ([error_event("drive", 4)], 4),
        ([{**COMPLETE, "status": "interrupted"}], 5),
        (["garbage"], 4),
    ],
)
def test_replay_ends_with_the_documented_status(
    lines: list[Any], status: int, scenario: SetScenario, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario(lines=lines, exit=status)
    assert main(["replay", "prod.rec", "--drive", "null:"]) == status
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: ")


def test_every_option_of_replay_reaches_the_job(scenario: SetScenario, tmp_path: Path) -> None:
    scenario(lines=[COMPLETE], save=str(tmp_path / "said"))
    options = """prod.rec --drive file:x?size=1GiB -o a.rec --lba wrap --pace asap --speed 2 --depth 8
        --events issued --loop 2 --for 10m --from 1s --to 2s --only reads,trims --without writes
        --streams source --prepare sequential --data zero --erase X1 --erase-signatures
        --io-timeout 5s --on-error continue"""
    assert main(["replay", *options.split()]) == 0
    (call,) = said(tmp_path / "said")
    prepare, replay = call["job"].pop("phases")
    assert prepare == {"kind": "prepare", "method": "sequential", "data": "zero"}
    assert replay == {
        "kind": "replay",
        "recording": "prod.rec",
        "events": "issued",
        "pace": "asap",
        "speed": 2.0,
        "depth": 8,
        "lba": "wrap",
        "from_ns": 10**9,
        "to_ns": 2 * 10**9,
        "loop": 2,
        "duration_ns": 600 * 10**9,
        "only": ["read", "trim"],
        "without": ["write"],
        "streams": "source",
        "data": "zero",
    }
    assert call["job"].pop("plan")["name"] == "replay"
    assert call["job"] == {
        "keep": "rows",
        "version": 1,
        "drive": {"uri": "file:x?size=1GiB", "erase": "X1", "erase_signatures": True},
        "output": "a.rec",
        "io_timeout_s": 5.0,
        "on_error": "continue",
    }


def test_replay_prints_data_alone_on_standard_output(
    scenario: SetScenario, run_recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario(lines=[STARTED, PHASE, PROGRESS, COMPLETE], copy=str(run_recording))
    assert main(["replay", "prod.rec", "--drive", "null:", "-o", "a.rec", "--json"]) == 0
    out, err = capsys.readouterr()
    (result,) = json.loads(out)["results"]
    assert (result["recording"], result["status"], result["error"]) == ("a.rec", "complete", None)
    assert result["metrics"]["baseline_latency_ns"] == 90_000
    assert "null:: phase 1 replay  begins" in err
    assert Path("a.rec/summary.json").is_file()


def test_the_end_of_a_run_shows_each_warning_with_its_remedy(
    scenario: SetScenario, run_recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run_recording / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["warnings"] = [{"code": "debug_build", "message": "it is a debug build", "remedy": "build it"}]
    path.write_text(json.dumps(manifest))
    scenario(lines=[STARTED, PHASE, PROGRESS, COMPLETE], copy=str(run_recording))
    assert main(["replay", "prod.rec", "--drive", "null:", "-o", "a.rec"]) == 0
    assert "warning: it is a debug build; build it" in capsys.readouterr().out


def test_a_limit_that_is_exceeded_is_status_1(
    scenario: SetScenario, run_recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario(lines=[COMPLETE], copy=str(run_recording))
    plan = ["run", "replay", "--drive", "null:", "--set", "recording=prod.rec", "--set"]
    assert main([*plan, "peak-limit=80us", "-o", "a.rec"]) == 1
    assert "fail  peak_latency_ns is 90000, wanted at most 80000" in capsys.readouterr().out
    assert main([*plan, "peak-limit=100us", "-o", "b.rec"]) == 0


def test_a_recording_is_never_overwritten(
    scenario: SetScenario, run_recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.rec").mkdir()
    assert main(["replay", "prod.rec", "--drive", "null:", "-o", "a.rec"]) == 2
    assert main(["import", "x.csv", "-o", "a.rec"]) == 2
    assert capsys.readouterr().err.count("a.rec exists, and a recording is never overwritten") == 2
    assert list(Path("a.rec").iterdir()) == []


def test_without_a_name_the_recording_gets_a_free_one(
    scenario: SetScenario, run_recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario(lines=[COMPLETE], copy=str(run_recording))
    for _ in range(2):
        assert main(["replay", "some/prod.rec", "--drive", "sim:enterprise-mixed?seed=2"]) == 0
    names = {path.name for path in Path().iterdir()}
    assert names == {"prod-on-enterprise-mixed.rec", "prod-on-enterprise-mixed-2.rec"}


def test_several_drives_get_a_recording_each_and_their_own_consent(
    scenario: SetScenario, run_recording: Path, tmp_path: Path
) -> None:
    scenario(
        lines=[COMPLETE], copy=str(run_recording), save=str(tmp_path / "said"), answers={"drives": DRIVES}
    )
    targets = (
        "--drive /dev/nvme8n1 --drive /dev/nvme9n1?engine=sync --drive null: --erase S9 -o out --no-compare"
    )
    assert main(["replay", "prod.rec", *targets.split()]) == 0
    calls = runs_of(said(tmp_path / "said"))
    assert [call["job"]["drive"].get("erase") for call in calls] == [None, "S9", None]
    assert [call["job"]["output"] for call in calls] == ["out/nvme8n1.rec", "out/nvme9n1.rec", "out/null.rec"]


def test_a_consent_that_names_no_drive_starts_nothing(
    scenario: SetScenario, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario(lines=[COMPLETE], save=str(tmp_path / "said"), answers={"drives": DRIVES})
    command = "replay prod.rec --drive /dev/nvme8n1 --drive null: --erase S7"
    assert main(command.split()) == 2
    assert "--erase S7 names none of the drives (/dev/nvme8n1 is '/dev/nvme8n1')" in capsys.readouterr().err
    assert not (tmp_path / "said").exists()


@pytest.mark.parametrize(("kind", "status"), [("usage", 2), ("refused", 3)])
def test_no_drive_is_started_where_one_is_not_as_it_was_named(
    kind: str, status: int, scenario: SetScenario, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario(lines=[error_event(kind, status)], exit=status, save=str(tmp_path / "said"))
    assert main(["run", "consistency", "--short", "--drive", "null:", "--drive", "sim:x"]) == status
    assert capsys.readouterr().err.rstrip().endswith("nothing was started")
    assert runs_of(said(tmp_path / "said")) == []


def test_a_file_that_is_not_there_is_not_made_to_ask_for_it(scenario: SetScenario, tmp_path: Path) -> None:
    scenario(lines=[error_event("drive", 4)], exit=4, save=str(tmp_path / "said"))
    drives = ["--drive", f"file:{tmp_path}/new.img?size=1GiB", "--drive", "null:"]
    assert main(["run", "consistency", "--short", *drives]) == 4
    asked = [
        call["job"]["drive"]["uri"] for call in said(tmp_path / "said") if call["job"].get("record") is False
    ]
    assert asked == ["null:"]


def test_the_terminal_says_what_a_short_run_is_worth(
    scenario: SetScenario, run_recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario(lines=[COMPLETE], copy=str(run_recording))
    assert main(["run", "consistency", "--drive", "null:", "-o", "long.rec"]) == 0
    assert "short form" not in capsys.readouterr().err
    assert main(["run", "consistency", "--short", "--drive", "null:", "-o", "short.rec"]) == 0
    assert "says nothing about the drive" in capsys.readouterr().err


@pytest.mark.parametrize(("plan", "several"), [("mixed", True), ("percentiles", True), ("stability", False)])
def test_figures_of_several_phases_together_say_so(
    plan: str,
    several: bool,
    scenario: SetScenario,
    run_recording: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scenario(lines=[COMPLETE], copy=str(run_recording))
    assert main(["run", plan, "--drive", "null:", "-o", "made.rec"]) == 0
    assert ("null: (all measured phases together)" in capsys.readouterr().out) == several


def test_one_failing_drive_does_not_keep_the_next_from_its_turn_but_a_signal_does(
    scenario: SetScenario, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drives = "replay prod.rec --drive null: --drive sim:x"
    scenario(lines=[error_event("drive", 4)], exit=4, save=str(tmp_path / "failing"))
    assert main(drives.split()) == 4
    assert len(runs_of(said(tmp_path / "failing"))) == 2
    scenario(lines=[{**COMPLETE, "status": "interrupted"}], exit=5, save=str(tmp_path / "stopped"))
    assert main(drives.split()) == 5
    assert len(said(tmp_path / "stopped")) == 1


def test_drives_are_listed_with_what_stands_against_erasing_them(
    scenario: SetScenario, capsys: pytest.CaptureFixture[str]
) -> None:
    release = "'testdrive drives --release 0000:01:00.0' gives it back to the kernel"
    away = {"uri": "pci:0000:01:00.0", "model": "", "capacity_bytes": 0, "refusals": [release]}
    scenario(answers={"drives": [*DRIVES, away]})
    assert main(["drives"]) == 0
    out = capsys.readouterr().out
    assert "0 B" not in out
    assert f"pci:0000:01:00.0: is not erased: {release}" in " ".join(out.split())
    assert "/dev/nvme9n1: is not erased: mounted at /srv; carries a gpt partition table" in out
    assert "/dev/nvme8n1: can be erased with --erase /dev/nvme8n1" in out
    assert "1.00 TB" in out
    assert main(["drives", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [*DRIVES, away]


def test_models_and_formats_are_listed(scenario: SetScenario, capsys: pytest.CaptureFixture[str]) -> None:
    models = [{"name": "fast", "description": "a fast one", "parameters": {"capacity_bytes": 10**12}}]
    formats = [{"name": "csv", "description": "columns", "has_queue_events": True}]
    scenario(answers={"models": models, "formats": formats})
    assert main(["drives", "--models"]) == 0
    assert main(["import", "--list-formats"]) == 0
    out = capsys.readouterr().out
    assert "sim:fast" in out
    assert "csv" in out


def test_import_names_the_recording_after_the_first_file(
    scenario: SetScenario, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario(lines=[{**COMPLETE, "counts": {"ios": 7, "span_ns": 10**9}}])
    assert main(["import", "logs/sda.blktrace.0", "logs/sda.blktrace.1"]) == 0
    assert "recording: sda.rec" in capsys.readouterr().out


def test_inspect_prints_the_summary_that_it_leaves(
    run_recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(run_recording), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == json.loads((run_recording / "summary.json").read_text())
    assert err == ""
    assert main(["inspect", str(run_recording)]) == 0
    shown = capsys.readouterr().out
    assert "90.0 µs" in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_plans_are_listed_and_printed_to_copy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plans"]) == 0
    assert "replay" in capsys.readouterr().out
    assert main(["plans", "replay"]) == 0
    assert 'name = "replay"' in capsys.readouterr().out
    assert main(["plans", "--json"]) == 0
    plans = {plan["name"]: plan for plan in json.loads(capsys.readouterr().out)}
    assert plans["replay"]["parameters"]["lba"]["default"] == "scale"


@pytest.mark.parametrize(
    "command", ["demo", "drives", "import", "inspect", "export", "replay", "run", "plans", "compare"]
)
def test_every_command_documents_its_exit_statuses(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "3 refused for safety; 4 the drive failed; 5 interrupted" in words
    assert "--json" in words


@pytest.mark.parametrize(
    "command", ["demo", "drives", "import", "inspect", "export", "replay", "run", "plans", "compare"]
)
def test_every_option_is_documented(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    documentation = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
    assert not {option for option in options if f"{option}" not in documentation}


def test_the_table_that_decides_fits_80_columns_whatever_came_of_the_drives() -> None:
    from rich.console import Console

    from testdrive.cli.tables import comparison_table

    codes: list[tuple[str | None, str | None]] = [
        (None, None),
        (None, "no_burst"),
        (None, "saturated"),
        ("unstable", None),
        ("never_recovered", "never_recovered"),
        ("not_recorded", "not_recorded"),
    ]
    rows = [
        {
            "name": "consumer-dramless",
            "role": "drive",
            "baseline_latency_ns": None if baseline else 123_456_789,
            "baseline_code": baseline,
            "peak_latency_ns": 123_456_789,
            "recovery_ns": None if recovery else 12_345_678_901,
            "recovery_code": recovery,
            "recovery_more_than_ns": 123_000_000_000,
            "service_p99_9_ns": 123_456_789,
            "fidelity_verdict": "not_faithful",
        }
        for baseline, recovery in codes
    ]
    console = Console(width=200, file=io.StringIO())
    console.print(comparison_table(rows))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 80
    assert "never, > 123 s" in console.file.getvalue()


def test_a_defect_is_one_message_with_a_status_of_its_own_and_a_traceback_on_request(
    run_recording: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("testdrive.metrics.summary.summarize_scan", fail)
    assert main(["inspect", str(run_recording)]) == 70
    message = "error: ZeroDivisionError: division by zero; this is a defect of testdrive"
    assert capsys.readouterr().err.startswith(message)
    monkeypatch.setenv("TESTDRIVE_DEBUG", "1")
    assert main(["inspect", str(run_recording)]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_help_needs_none_of_the_heavy_imports() -> None:
    code = (
        "import sys; from testdrive.cli import main; main(['--help']);"
        "print(sorted({'ibis', 'duckdb', 'numpy', 'matplotlib', 'plotly', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["drives"], "ibis duckdb matplotlib plotly"),
        (["replay", "prod.rec", "--drive", "null:", "-o", "none.rec"], "ibis duckdb matplotlib plotly"),
        # The summary of what was recorded needs the query engine, but nothing that draws.
        (["replay", "prod.rec", "--drive", "null:", "-o", "made.rec"], "matplotlib plotly"),
        (["import", "x.csv", "-o", "none.rec"], "ibis duckdb matplotlib plotly"),
    ],
)
def test_commands_that_draw_no_page_import_nothing_that_draws(
    arguments: list[str], heavy: str, scenario: SetScenario, run_recording: Path
) -> None:
    made = {"copy": str(run_recording)} if "made.rec" in arguments else {}
    scenario(answers={"drives": "[]"}, lines=[STARTED, COMPLETE], **made)
    code = (
        f"import sys; from testdrive.cli import main; status = main({arguments!r});"
        f"print(status, sorted(set({heavy.split()!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []", done.stderr


def test_a_reader_that_has_enough_is_no_error(run_recording: Path) -> None:
    command = f"{sys.executable} -m testdrive inspect {run_recording} --json | head -c 10"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
