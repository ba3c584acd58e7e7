"""(a) What recording every I/O costs: IOPS and CPU time at 4 KiB random read, queue depth 32, beside fio."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from benchmarks import engine, fio, places
from benchmarks.section import Section, Table, Target
from benchmarks.sizes import Sizes, each
from benchmarks.spread import Spread, alternate

Run = engine.Run | fio.Run
Contenders = dict[str, Callable[[], Run]]

RECORDING, NOT_RECORDING = "testdrive, every I/O recorded", "testdrive, not recording"
AGAIN = "testdrive, not recording, once more"
NO_LOG, LOG = "fio", "fio, latency log of every I/O"
PLAIN_NO_LOG, PLAIN_LOG = "fio as it comes", "fio as it comes, latency log of every I/O"

COST_MAX = 0.05

#: What is divided by what, and what the quotient says.
RATIOS = {
    "recording / not recording": (RECORDING, NOT_RECORDING),
    "recording / fio without log": (RECORDING, NO_LOG),
    "recording / fio with log": (RECORDING, LOG),
    "recording / fio as it comes, without log": (RECORDING, PLAIN_NO_LOG),
    "fio with log / fio without log": (LOG, NO_LOG),
    "noise: not recording, once more / not recording": (AGAIN, NOT_RECORDING),
}


def measure(sizes: Sizes, scratch: Path) -> Section:
    """Both paths: null, where only the tools cost anything, and a loop device over memory."""
    section = Section(
        "a",
        "IOPS and CPU time for each I/O",
        [
            f"4 KiB random reads at queue depth 32, {each(sizes.iops_seconds, sizes.iops_ios)}, in"
            f" {sizes.iops_rounds} rounds of everything once, in turns forwards and backwards. Median"
            " (least..greatest); ratios are taken within a round. CPU time is that of the whole process, from"
            " start to end.",
        ],
    )
    _measure_path("null", "null path", _null(sizes, scratch), sizes, section)
    if places.can_make_loop_devices():
        file = places.filled_file(scratch / "loop.img", sizes.loop_bytes)
        with places.loop_device(file) as device:
            _measure_path("loop", "loop device over tmpfs", _loop(sizes, scratch, device), sizes, section)
        places.remove(file)
    else:
        section.how.append("The loop device was not measured: making one needs root.")
    return section


def _null(sizes: Sizes, scratch: Path) -> Contenders:
    peer = functools.partial(fio.synthetic, None, scratch, seconds=sizes.iops_seconds, ios=sizes.iops_ios)
    return _ours("null:", sizes, scratch) | {
        NO_LOG: peer,
        LOG: functools.partial(peer, log=True),
    }


def _loop(sizes: Sizes, scratch: Path, device: Path) -> Contenders:
    peer = functools.partial(fio.synthetic, device, scratch, seconds=sizes.iops_seconds, ios=sizes.iops_ios)
    return _ours(str(device), sizes, scratch) | {
        NO_LOG: peer,
        LOG: functools.partial(peer, log=True),
        PLAIN_NO_LOG: functools.partial(peer, tuned=False),
        PLAIN_LOG: functools.partial(peer, tuned=False, log=True),
    }


def _ours(uri: str, sizes: Sizes, scratch: Path) -> Contenders:
    def run(record: bool) -> engine.Run:
        output = scratch / "a.rec"
        try:
            return engine.synthetic(
                uri, output, seconds=sizes.iops_seconds, ios=sizes.iops_ios, record=record
            )
        finally:
            places.remove(output)

    return {
        RECORDING: functools.partial(run, True),
        NOT_RECORDING: functools.partial(run, False),
        AGAIN: functools.partial(run, False),
    }


def _measure_path(key: str, name: str, contenders: Contenders, sizes: Sizes, section: Section) -> None:
    samples = alternate(contenders, sizes.iops_rounds)
    iops = {who: Spread([run.iops for run in runs]) for who, runs in samples.items()}
    cpu = {who: Spread([run.cpu_us_per_io for run in runs]) for who, runs in samples.items()}
    rows = [[who, iops[who].scaled(1e-3).text(0), cpu[who].text(3)] for who in contenders]
    section.tables.append(Table(f"On the {name}", ["", "thousand IOPS", "CPU us for each I/O"], rows))
    ratios = {
        what: (iops[one] / iops[other], cpu[one] / cpu[other])
        for what, (one, other) in RATIOS.items()
        if one in samples and other in samples
    }
    section.tables.append(
        Table(
            f"Ratios on the {name}",
            ["", "IOPS", "CPU time for each I/O"],
            [[what, of_iops.text(3), of_cpu.text(3)] for what, (of_iops, of_cpu) in ratios.items()],
        )
    )
    section.figures[key] = {
        "iops": {who: spread.json() for who, spread in iops.items()},
        "cpu_us_per_io": {who: spread.json() for who, spread in cpu.items()},
        "iops_ratios": {what: of_iops.json() for what, (of_iops, _) in ratios.items()},
        "cpu_ratios": {what: of_cpu.json() for what, (_, of_cpu) in ratios.items()},
    }
    cost, beside_fio = ratios["recording / not recording"][0], ratios["recording / fio without log"][0]
    section.targets += [
        Target(
            f"IOPS that recording costs, {name}",
            f"at most {100 * COST_MAX:g} %",
            _percent_lost(cost),
            cost.median >= 1 - COST_MAX,
        ),
        Target(
            f"IOPS with recording, beside fio without a log, {name}",
            "at least 1",
            beside_fio.text(3),
            beside_fio.median >= 1,
        ),
    ]


def _percent_lost(ratio: Spread) -> str:
    lost = Spread([100 * (1 - value) for value in ratio.values])
    return lost.text(1, " %")
