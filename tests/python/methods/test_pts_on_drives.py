"""The PTS-style plans at full length on small modelled drives.

What is shown is computed again from the histograms that were recorded. Short forms are in the tests of pages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import run_testdrive

from testdrive.methods.method import all_methods
from testdrive.methods.pts_iops import MIXES
from testdrive.methods.runs import Run
from testdrive.recording import Recording
from testdrive.report.subject import subject
from testdrive.segments import SERVICE

#: One die, so slow that hours of its time are few I/Os.
SLOW = (
    "sim:{model}?capacity=1GiB&channels=1&dies_per_channel=1&superblocks=500&nand_read=1ms&program=16ms"
    "&write_buffer=4MiB"
)
pytestmark = pytest.mark.slow


def full_length(folder: Path, plan: str, model: str = "sata", more: str = "") -> Path:
    """The recording of a plan with its own parameters on a slow modelled drive."""
    path = folder / f"{plan}.rec"
    # With 128 large writes before it an I/O waits for half a minute there.
    options = ("--drive", SLOW.format(model=model) + more, "--io-timeout", "120s")
    done = run_testdrive("run", plan, *options, "-o", path, timeout_s=600)
    assert done.returncode == 0, done.stderr
    return path


def rates(recording: Recording) -> dict[int, tuple[float, float, float]]:
    """By phase: I/Os and bytes a second, and mean latency in ns, from the recorded histograms."""
    entries = recording.intervals()
    entries = entries.filter((entries.quantity == SERVICE) & (entries.latency_ceiling_ns >= 0))
    found = recording.execute(
        entries.group_by("phase").aggregate(
            ios=entries["count"].sum(), bytes=entries.bytes.sum(), sum_ns=entries.sum_ns.sum()
        )
    )
    lengths = {
        phase.index: ((phase.end_ns or 0) - phase.start_ns) / 1e9 for phase in recording.manifest.phases
    }
    return {
        int(index): (ios / lengths[int(index)], size / lengths[int(index)], total / ios)
        for index, ios, size, total in zip(
            found["phase"], found["ios"], found["bytes"], found["sum_ns"], strict=True
        )
    }


def steady(values: list[float]) -> bool:
    """PTS's criteria, spelled out."""
    window = np.array(values)
    slope = np.polyfit(np.arange(5), window, 1)[0]
    return bool(np.ptp(window) <= 0.2 * window.mean() and abs(slope) * 4 <= 0.1 * window.mean())


def rounds_of(recording: Recording, group: str) -> dict[str, list[int]]:
    """The phases of a group by name, in the order of their rounds."""
    found: dict[str, list[int]] = {}
    for phase in recording.manifest.phases:
        settings = phase.settings or {}
        if settings.get("rounds") == group:
            assert settings["round"] == len(found.setdefault(phase.name, []))
            found[phase.name].append(phase.index)
    return found


def judged(recording: Recording, group: str) -> dict[str, Any]:
    """What the engine found of a group."""
    return [
        phase.accounting["rounds"]
        for phase in recording.manifest.phases
        if phase.accounting and phase.accounting.get("rounds", {}).get("name") == group
    ][-1]


def table_of(recording: Recording, plan: str, key: str) -> list[list[str]]:
    findings = all_methods()[plan].look([Run(subject("d", "drive", 0, recording, {}))])
    assert findings.figures
    assert findings.notes == []
    return next(table for table in findings.tables if table.key == key).rows


def number(cell: str) -> float:
    return float(cell.replace(",", "").split()[0])


def check_first_steady_window(recording: Recording, group: str, figure: dict[str, int]) -> int:
    """The engine's values are those of the histograms, and no window before the last one was steady in all.

    ``figure`` is the place of each measure in :func:`rates`. Returns the number of rounds.
    """
    of_phase, phases, found = rates(recording), rounds_of(recording, group), judged(recording, group)
    done = found["done"]
    assert {len(indices) for indices in phases.values()} == {done}
    windows = np.ones(max(done - 4, 0), bool)
    for tracked in found["tracked"]:
        values = [of_phase[index][figure[tracked["measure"]]] for index in phases[tracked["phase"]]]
        np.testing.assert_allclose(tracked["values"], values, rtol=1e-9)
        windows &= [steady(values[first : first + 5]) for first in range(done - 4)]
        assert tracked["fit"]["mean"] == pytest.approx(np.mean(values[-5:]))
    assert found["achieved"]
    assert list(np.flatnonzero(windows)) == [done - 5]
    return int(done)


FIGURE = {"iops": 0, "throughput": 1, "latency": 2}


def test_iops_are_measured_for_56_combinations_in_rounds_of_56_minutes(tmp_path: Path) -> None:
    with Recording.open(full_length(tmp_path, "pts-iops")) as recording:
        phases = recording.manifest.phases
        assert [phase.name for phase in phases[:2]] == ["purge", "preconditioning"]
        assert phases[1].accounting["issued"]["write"]["bytes"] == 2 << 30
        done = check_first_steady_window(recording, "iops", FIGURE)
        of_phase, members = rates(recording), rounds_of(recording, "iops")
        assert len(members) == 56
        assert len(phases) == 2 + 56 * done
        sizes = [512, 4096, 8192, 16384, 32768, 65536, 131072, 1048576]
        assert list(members)[:9] == [
            *(f"reads-1.0-block-{size}" for size in reversed(sizes)),
            "reads-0.95-block-1048576",
        ]
        lengths = [phase.end_ns - phase.start_ns for phase in phases[2:]]
        assert min(lengths) >= 60_000_000_000
        # What is in flight at the end of a minute takes its time on such a drive, most of all large writes.
        assert np.median(lengths) < 61_000_000_000
        rows = table_of(recording, "pts-iops", "pts-iops-1-d")
        assert [row[0] for row in rows] == [
            *(f"{size} KiB" if size else "512 B" for size in (0, 4, 8, 16, 32, 64, 128)),
            "1 MiB",
        ]
        for size, row in zip(sizes, rows, strict=True):
            for share, cell in zip(MIXES, row[1:], strict=True):
                window = [of_phase[index][0] for index in members[f"reads-{share}-block-{size}"][-5:]]
                assert number(cell) == pytest.approx(np.mean(window), rel=0.006)
        seeds = {phase.settings["seed"] for phase in phases[2:]}
        assert len(seeds) == 56 * done


def test_throughput_and_latency_are_the_means_of_the_window(tmp_path: Path) -> None:
    with Recording.open(full_length(tmp_path, "pts-throughput")) as recording:
        (row,) = table_of(recording, "pts-throughput", "pts-throughput")
        of_phase, cells = rates(recording), iter(row[1:])
        for size in (131072, 1048576):
            check_first_steady_window(recording, f"throughput-{size}", FIGURE)
            members = rounds_of(recording, f"throughput-{size}")
            for share in (1.0, 0.0):
                window = [of_phase[index][1] for index in members[f"reads-{share}-block-{size}"][-5:]]
                assert number(next(cells)) == pytest.approx(np.mean(window) / 1e6, rel=0.006)
    with Recording.open(full_length(tmp_path, "pts-latency")) as recording:
        check_first_steady_window(recording, "latency", FIGURE)
        of_phase, members = rates(recording), rounds_of(recording, "latency")
        rows = table_of(recording, "pts-latency", "pts-latency")
        assert len(rows) == 9
        units = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
        cells = {row[0]: row[1] for row in rows}
        for name, words in ((4096, "4 KiB"), (8192, "8 KiB"), (512, "512 B")):
            for share, mix in ((1.0, "100/0"), (0.65, "65/35"), (0.0, "0/100")):
                window = [of_phase[index][2] for index in members[f"reads-{share}-block-{name}"][-5:]]
                value, unit = cells[f"d (modelled), {words}, {mix}"].split()
                assert float(value) * units[unit] == pytest.approx(np.mean(window), rel=0.006)


def test_saturation_ends_after_four_fills_and_shows_the_cliff(tmp_path: Path) -> None:
    with Recording.open(full_length(tmp_path, "pts-saturation")) as recording:
        (row,) = table_of(recording, "pts-saturation", "pts-saturation")
        written = recording.manifest.phases[1].accounting["issued"]["write"]["bytes"]
    assert written == 4 << 30
    start, end = number(row[1]), number(row[5])
    assert start > 3 * end
    # What falls is where the erased blocks are used up: the capacity and a little more.
    assert row[2] != "no cliff"
    assert number(row[3]) == pytest.approx(4, abs=0.1)


def test_rests_bring_more_to_a_drive_with_a_cache_and_the_gain_is_lost_again(tmp_path: Path) -> None:
    with Recording.open(
        full_length(tmp_path, "pts-idle", "consumer-qlc", "&slc_static_share=0.05")
    ) as recording:
        phases = {phase.name: phase for phase in recording.manifest.phases}
        assert len(phases) == 13
        for number, rest_s in enumerate((5, 10, 15, 25, 50), start=1):
            phase = phases[f"idle-{number}"]
            assert phase.end_ns - phase.start_ns == 360 * (5 + rest_s) * 1_000_000_000
            back = phases[f"return-{number}"]
            assert back.end_ns - back.start_ns >= 1_800_000_000_000
        rows = table_of(recording, "pts-idle", "pts-idle")
    gains = [float(row[5]) for row in rows]
    assert [row[1] for row in rows] == ["360"] * 5
    assert gains[-1] >= gains[0] > 1.1
    assert all(row[6].endswith(" s") and not row[6].startswith("not") for row in rows)
