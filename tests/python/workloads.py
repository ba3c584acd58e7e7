"""A small workload that the engine itself can replay, for tests of both planes together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from builders import phase, this_process, write_recording
from numpy.typing import ArrayLike

SECOND_NS = 1_000_000_000


def write_workload(path: Path, seconds: int = 4, ios_per_s: int = 500, trims: int = 40) -> Path:
    """Random 8 KiB reads and writes over 1 GiB at about 300 us, with a burst of 1 MiB trims in the middle."""
    random = np.random.default_rng(1)
    ios = seconds * ios_per_s
    burst_ns = seconds * SECOND_NS // 2
    columns = {
        "submit_ns": np.r_[random.integers(0, seconds * SECOND_NS, ios), np.full(trims, burst_ns)],
        "latency_ns": np.r_[
            random.lognormal(np.log(300e3), 0.3, ios).astype(np.int64), np.full(trims, 200_000)
        ],
        "offset_bytes": np.r_[random.integers(0, 1 << 17, ios) * 8192, np.arange(trims) << 20],
        "length_bytes": np.r_[np.full(ios, 8192), np.full(trims, 1 << 20)],
        "opcode": np.r_[random.integers(0, 2, ios), np.full(trims, 2)],
        "stream": np.r_[random.integers(0, 4, ios), np.zeros(trims, int)],
    }
    return write_source(path, columns)


def write_source(path: Path, columns: Mapping[str, ArrayLike]) -> Path:
    """These I/Os, in whatever order, as a recording that the engine can replay: every column is there."""
    given = {name: np.asarray(values) for name, values in columns.items()}
    order = np.argsort(given["submit_ns"], kind="stable")
    columns = {"stream": np.zeros(len(order), int)} | {name: values[order] for name, values in given.items()}
    end_ns = int((given["submit_ns"] + given["latency_ns"]).max())
    drive = {"uri": "trace", "path": "trace", "model": "", "serial": "", "firmware": "", "modelled": False}
    sizes = {"capacity_bytes": 1 << 30, "logical_block_bytes": 512, "physical_block_bytes": 512}
    return write_recording(
        path,
        columns,
        phases=[{**phase(end_ns=end_ns), "accounting": {}}],
        writer=this_process(),
        source={"format": "workloads.py"},
        host={"hostname": "test", "kernel": "", "cpu_model": "", "cpus": 1, "memory_bytes": 1 << 30},
        drive={**drive, **sizes, "settings": {}},
        in_completion_order=True,
    )
