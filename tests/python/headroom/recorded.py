"""Workloads with known times, and their replays at a speed, without an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from builders import phase, write_recording
from numpy.typing import ArrayLike, NDArray

SECOND_NS = 1_000_000_000
US = 1_000
#: When a trial's load begins on its own clock.
START_NS = 3 * SECOND_NS


def workload(path: Path, times_ns: ArrayLike, opcode: ArrayLike = 0, **options: Any) -> Path:
    """A recording with an I/O at each of these times, without latencies, as many imports have none."""
    submit = np.sort(np.asarray(times_ns, np.int64))
    columns = {"submit_ns": submit, "opcode": opcode, "offset_bytes": 0, "length_bytes": 4096}
    return write_recording(path, columns, **options)


def replayed_ns(times_ns: NDArray[np.int64], from_ns: int, speed: float) -> NDArray[np.int64]:
    """When I/Os are due in a replay, from its start: as the engine has it, in doubles, without fractions."""
    return ((times_ns - from_ns).astype(np.float64) / speed).astype(np.int64)


def trial(
    path: Path,
    times_ns: Sequence[int] | NDArray[np.int64],
    took_us: ArrayLike,
    rules: str,
    *,
    speed: float = 1.0,
    interval_ns: int = SECOND_NS,
    from_ns: int = 0,
    waited_us: ArrayLike = 0.0,
    opcode: ArrayLike = 0,
    opcodes: Sequence[str] = ("read",),
    accounting: Mapping[str, Any] | None = None,
    issued: int | None = None,
    modelled: bool = True,
    **manifest: Any,
) -> Path:
    """A trial of the plan headroom: these I/Os of the workload took so long, after they waited so long."""
    times = np.asarray(times_ns, np.int64)
    intended = START_NS + replayed_ns(times, from_ns, speed)
    submit = intended + (np.broadcast_to(waited_us, times.shape) * US).astype(np.int64)
    latency = (np.broadcast_to(took_us, times.shape) * US).astype(np.int64)
    every = {"intended_ns": intended, "submit_ns": submit, "latency_ns": latency}
    every["opcode"] = np.broadcast_to(opcode, times.shape)
    columns: dict[str, Any] = {name: values[:issued] for name, values in every.items()}
    columns |= {"offset_bytes": 0, "length_bytes": 4096, "status": 0}
    load = phase(
        kind="replay", start_ns=START_NS, end_ns=int(intended[-1]) + SECOND_NS, accounting=accounting
    )
    parameters = {
        "rules": rules,
        "interval": interval_ns,
        "opcodes": list(opcodes),
        "speed": speed,
        "from": from_ns,
        "to": int(times[-1]) + 1,
    }
    plan = {"name": "headroom", "figures": ["headroom"], "parameters": parameters}
    drive = {"uri": f"sim:{path.stem}?capacity=1GiB", "path": "sim", "modelled": modelled}
    return write_recording(
        path, columns, kind="run", phases=[load | {"name": "load"}], plan=plan, drive=drive, **manifest
    )
