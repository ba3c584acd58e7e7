"""Recordings of the plan act with known latencies, without an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from builders import phase, write_recording

SECOND_NS = 1_000_000_000
MS = 1_000_000
#: Every key of the plan that the log and the verdict look at.
PARAMETERS: dict[str, Any] = {
    "slice": SECOND_NS,
    "stress": False,
    "read-reqs-per-sec": 2000,
    "write-reqs-per-sec": 1000,
    "record-bytes": 1536,
    "record-bytes-range-max": 0,
    "large-block-op-kbytes": 128,
    "replication-factor": 1,
    "update-pct": 0,
    "defrag-lwm-pct": 50,
    "no-defrag-reads": False,
    "commit-to-device": False,
    "report-interval-sec": 1,
    "microsecond-histograms": False,
}


def act_run(
    path: Path,
    slices_ms: Sequence[Sequence[float]],
    *,
    parameters: Mapping[str, Any] | None = None,
    ended_s: float | None = None,
    planned_s: float | None = None,
    accounting: Mapping[str, Any] | None = None,
    reads: Mapping[str, Any] | None = None,
    small: Mapping[str, Any] | None = None,
    lateness_ms: float = 0.0,
    status: Sequence[int] | int = 0,
    **manifest: Any,
) -> Path:
    """A run whose reads took these times (ms), a list for each second; one large write beside them each.

    ``reads`` are the arrivals that the job asked for, of small reads. ``small`` is more of the stream of
    small I/Os; where it has a share of reads, every second I/O of it is a write.
    """
    start_ns = 5 * SECOND_NS
    submit, latency, stream, opcode = [], [], [], []
    for second, took_ms in enumerate(slices_ms):
        for at, each in enumerate([*took_ms, 0.5]):
            large = at == len(took_ms)
            submit.append(start_ns + second * SECOND_NS + at)
            latency.append(round(each * MS))
            stream.append(2 if large else 0)
            opcode.append(1 if large or ("read_share" in (small or {}) and at % 2) else 0)
    planned_ns = round((len(slices_ms) if planned_s is None else planned_s) * SECOND_NS)
    ended_ns = planned_ns if ended_s is None else round(ended_s * SECOND_NS)
    streams = ["reads", "large-block-reads", "large-block-writes"]
    asked: list[dict[str, Any]] = [{"name": name} for name in streams]
    if reads is not None:
        asked[0] |= {"arrivals": dict(reads), "threads": 1}
    asked[0] |= small or {}
    streams[0] = asked[0]["name"]
    load = phase(
        kind="synthetic",
        start_ns=start_ns,
        end_ns=start_ns + ended_ns,
        settings={"duration_ns": planned_ns, "streams": asked},
        accounting={"streams": streams, **(accounting or {})},
    )
    columns = {
        "intended_ns": np.array(submit) - round(lateness_ms * MS),
        "submit_ns": submit,
        "latency_ns": latency,
        "stream": stream,
        "opcode": opcode,
        "offset_bytes": 0,
        "length_bytes": 1536,
        "status": status,
    }
    plan = {"name": "act", "figures": ["act"], "parameters": PARAMETERS | dict(parameters or {})}
    drive = {"uri": f"sim:{path.stem}?capacity=1GiB", "path": "sim", "modelled": True}
    return write_recording(
        path, columns, kind="run", phases=[load | {"name": "load"}], plan=plan, drive=drive, **manifest
    )
