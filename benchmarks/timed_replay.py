"""(b) Timed replay of seven schedules beside fio's: how much too long each is, and how late its I/Os were."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import engine, fio, places, schedules
from benchmarks.schedules import Trace
from benchmarks.section import Section, Table, Target
from benchmarks.sizes import Sizes
from benchmarks.spread import Spread, alternate

DRIFT_MAX = 0.001
LATENESS_P50_MAX_US = 2.0
_COLUMNS = [
    "schedule",
    "I/Os",
    "testdrive too long, %",
    "fio too long, %",
    "late p50, us",
    "late p99, us",
    "late max, us",
    "certificate",
]


@dataclass(frozen=True)
class Replay:
    """One replay. What fio does not tell is None."""

    drift: float
    lateness_us: dict[str, float] | None = None
    faithful: bool | None = None
    reasons: tuple[str, ...] = ()


def measure(sizes: Sizes, scratch: Path) -> Section:
    """Both targets: null, where only the pacing takes time, and a file in memory."""
    section = Section(
        "b",
        "Timed replay",
        [
            f"Each schedule is about {sizes.replay_seconds:g} s long and is replayed {sizes.replay_rounds}"
            " times by each tool, in turns. Too long: the time from the first to the last I/O as it was,"
            " against as it should be. Median (least..greatest); the greatest lateness is that of all"
            " replays. Lateness and certificate are testdrive's own, from `testdrive inspect`.",
        ],
    )
    target = places.filled_file(scratch / "replay.img", schedules.FILLED_BYTES)
    with target.open("r+b") as file:
        file.truncate(schedules.TARGET_BYTES)
    found: dict[str, dict[str, list[Replay]]] = {}
    paths = {
        "null path": f"null:?size={schedules.TARGET_BYTES}",
        "file on tmpfs": f"file:{target}",
    }
    rows: dict[str, list[list[str]]] = {path: [] for path in paths}
    for name in schedules.NAMES:
        directory = scratch / "schedule"
        directory.mkdir()
        trace = schedules.prepare(name, sizes.replay_seconds, directory, target)
        for path, uri in paths.items():
            null = path == "null path"
            samples = alternate(
                _contenders(uri, trace, scratch, None if null else target), sizes.replay_rounds
            )
            found[f"{path}: {name}"] = samples
            rows[path].append(_row(name, trace, samples))
            section.figures[f"{path}: {name}"] = _figures(trace, samples)
        places.remove(directory)
    places.remove(target)
    section.tables += [Table(f"On the {path}", _COLUMNS, rows[path]) for path in paths]
    for path in paths:
        ours = {name: both["testdrive"] for name, both in found.items() if name.startswith(path)}
        section.targets += _targets(path, ours)
    return section


def _contenders(
    uri: str, trace: Trace, scratch: Path, target: Path | None
) -> dict[str, Callable[[], Replay]]:
    def ours() -> Replay:
        output = scratch / "b.rec"
        try:
            engine.replay(uri, output, trace.recording, trace.window_ns, erase=target)
            return _certified(output)
        finally:
            places.remove(output)

    def theirs() -> Replay:
        run = fio.replay(trace.iolog, scratch, null=target is None, seconds=trace.span_s)
        return Replay(run.job_s / trace.span_s - 1)

    return {"testdrive": ours, "fio": theirs}


def _certified(output: Path) -> Replay:
    summary, _ = engine.inspect(output)
    certificate = summary["fidelity"]
    late_us = {name: certificate[f"lateness_{name}_ns"] / 1e3 for name in ("p50", "p99", "max")}
    reasons = tuple(reason["code"] for reason in certificate["reasons"])
    return Replay(certificate["drift"], late_us, certificate["verdict"] == "faithful", reasons)


def _row(name: str, trace: Trace, samples: dict[str, list[Replay]]) -> list[str]:
    ours = samples["testdrive"]
    late = [replay.lateness_us for replay in ours if replay.lateness_us]
    faithful = sum(bool(replay.faithful) for replay in ours)
    reasons = sorted({reason for replay in ours for reason in replay.reasons})
    return [
        name,
        f"{trace.ios:,}",
        _drift(ours).scaled(100).text(4),
        _drift(samples["fio"]).scaled(100).text(1),
        Spread([one["p50"] for one in late]).text(2),
        Spread([one["p99"] for one in late]).text(1),
        f"{max(one['max'] for one in late):,.0f}",
        f"faithful {faithful} of {len(ours)}" + (f": {', '.join(reasons)}" if reasons else ""),
    ]


def _drift(replays: list[Replay]) -> Spread:
    return Spread([replay.drift for replay in replays])


def _figures(trace: Trace, samples: dict[str, list[Replay]]) -> dict[str, object]:
    ours = samples["testdrive"]
    return {
        "ios": trace.ios,
        "span_s": trace.span_s,
        "drift": _drift(ours).json(),
        "fio_drift": _drift(samples["fio"]).json(),
        "lateness_us": [replay.lateness_us for replay in ours],
        "faithful": [replay.faithful for replay in ours],
        "reasons": [replay.reasons for replay in ours],
    }


def _targets(path: str, ours: dict[str, list[Replay]]) -> list[Target]:
    """Each on the worst schedule: the median of its rounds."""
    drift = max(abs(_drift(replays).median) for replays in ours.values())
    late_us = max(
        Spread([replay.lateness_us["p50"] for replay in replays if replay.lateness_us]).median
        for replays in ours.values()
    )
    runs = [replay for replays in ours.values() for replay in replays]
    faithful = sum(bool(replay.faithful) for replay in runs)
    return [
        Target(f"drift, worst schedule, {path}", "under 0.1 %", f"{100 * drift:.4f} %", drift < DRIFT_MAX),
        Target(
            f"lateness p50, worst schedule, {path}",
            f"under {LATENESS_P50_MAX_US:g} us",
            f"{late_us:.2f} us",
            late_us < LATENESS_P50_MAX_US,
        ),
        Target(
            f"certificate, {path}",
            "faithful",
            f"faithful {faithful} of {len(runs)}",
            faithful == len(runs),
        ),
    ]
