"""Runs of the standard tests whose every second is given, for tables and figures with known answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from builders import SECOND_NS, MemoryRecording, fill_columns, manifest_of
from numpy.typing import NDArray

from testdrive.manifest import READ, WRITE, Manifest
from testdrive.methods.runs import Run
from testdrive.report.subject import subject

CAPACITY_BYTES = 100 * 4096 * 100


@dataclass
class BuiltPhase:
    """A phase: how many I/Os completed in each second, or the latencies of I/Os one after another."""

    name: str
    iops: Sequence[int] = ()
    latencies_ns: Sequence[int] = ()
    opcode: int | NDArray[Any] = WRITE
    latency_ns: int = 1000
    settings: Mapping[str, Any] = field(default_factory=dict)
    accounting: Mapping[str, Any] = field(default_factory=dict)
    #: By how much the drive's counters grew.
    counted: Mapping[str, int] | None = None

    def columns(self, index: int, start_ns: int) -> tuple[dict[str, NDArray[Any]], int]:
        """Its rows, and when it ends."""
        if len(self.latencies_ns):
            latency = np.asarray(self.latencies_ns, np.int64)
            submit = start_ns + np.concatenate([[0], np.cumsum(latency)[:-1]])
            end_ns = start_ns + int(latency.sum())
        else:
            ios = np.asarray(self.iops, np.int64)
            first = np.repeat(np.cumsum(ios) - ios, ios)
            within = (np.arange(ios.sum()) - first) * (SECOND_NS // 2) // max(int(ios.max(initial=1)), 1)
            submit = start_ns + np.repeat(np.arange(len(ios)), ios) * SECOND_NS + within
            latency = np.full(len(submit), self.latency_ns, np.int64)
            end_ns = start_ns + len(ios) * SECOND_NS
        rows = {"submit_ns": submit, "latency_ns": latency, "length_bytes": np.full(len(submit), 4096)}
        opcode = np.broadcast_to(np.asarray(self.opcode), (len(submit),))
        return {**rows, "opcode": opcode, "phase": np.full(len(submit), index)}, end_ns


def built_run(
    phases: Sequence[BuiltPhase], *, name: str = "d", at: int = 0, modelled: bool = False, **plan: Any
) -> Run:
    """A run with these phases, one after the other, in memory. ``plan`` are keys of the manifest's plan."""
    parts, described = [], []
    start_ns = 0
    for index, phase in enumerate(phases):
        columns, end_ns = phase.columns(index, start_ns)
        parts.append(columns)
        counters = None
        if phase.counted is not None:
            before = dict.fromkeys(phase.counted, 7)
            after = {key: 7 + grown for key, grown in phase.counted.items()}
            counters = {"before": before, "after": after}
        described.append(
            {
                "index": index,
                "name": phase.name,
                "kind": "synthetic",
                "measured": True,
                "start_ns": start_ns,
                "end_ns": end_ns,
                "settings": dict(phase.settings),
                "accounting": dict(phase.accounting),
                "drive_counters": counters,
            }
        )
        start_ns = end_ns
    together = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]} if parts else {}
    filled, absent = fill_columns(together)
    drive = {"uri": "/dev/null", "capacity_bytes": CAPACITY_BYTES, "modelled": modelled}
    content = manifest_of(filled, absent, phases=described, drive=drive, plan={"name": "test", **plan})
    recording = MemoryRecording(filled, Manifest.model_validate(content))
    return Run(subject(name, "drive", at, recording, {}))


def reads_and_writes(reads: int, writes: int) -> NDArray[Any]:
    """Opcodes: so many reads, then so many writes."""
    return np.repeat([READ, WRITE], [reads, writes])
