"""Recordings of the plan qos with known latencies, without an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from builders import phase, write_recording

SECOND_NS = 1_000_000_000
US = 1_000
START_NS = 5 * SECOND_NS


def qos_trial(
    path: Path,
    intervals_us: Sequence[Sequence[float]],
    rules: str,
    *,
    opcodes: Sequence[str] = ("read",),
    opcode: int = 0,
    waited_us: float = 0.0,
    planned: int | None = None,
    accounting: Mapping[str, Any] | None = None,
    ended_s: float | None = None,
    modelled: bool = True,
    in_flight: int = 4_096,
    **manifest: Any,
) -> Path:
    """A trial with an interval of a second for each list, whose I/Os took these times after they waited."""
    submit, latency = [], []
    for second, took_us in enumerate(intervals_us):
        for at, each in enumerate(took_us):
            submit.append(START_NS + second * SECOND_NS + round(waited_us * US) + at)
            latency.append(round(each * US))
    planned_ns = (planned or len(intervals_us)) * SECOND_NS
    ended_ns = planned_ns if ended_s is None else round(ended_s * SECOND_NS)
    load = phase(
        kind="synthetic",
        start_ns=START_NS,
        end_ns=START_NS + ended_ns,
        settings={"duration_ns": planned_ns, "max_in_flight": in_flight},
        accounting=accounting,
    )
    columns = {
        "intended_ns": np.array(submit, np.int64) - round(waited_us * US),
        "submit_ns": np.array(submit, np.int64),
        "latency_ns": np.array(latency, np.int64),
        "opcode": opcode,
        "offset_bytes": 0,
        "length_bytes": 4096,
        "status": 0,
    }
    parameters = {"interval": SECOND_NS, "for": planned_ns, "rules": rules, "opcodes": list(opcodes)}
    plan = {"name": "qos", "figures": ["qos"], "parameters": parameters}
    drive = {"uri": f"sim:{path.stem}?capacity=1GiB", "path": "sim", "modelled": modelled}
    return write_recording(
        path, columns, kind="run", phases=[load | {"name": "load"}], plan=plan, drive=drive, **manifest
    )
