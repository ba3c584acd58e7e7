"""A run as the methods see it: each phase by seconds and as a distribution, from rows or from histograms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import Phase
from testdrive.metrics.scans import Distribution
from testdrive.power import Power, power_of
from testdrive.recording import Arrays, Recording
from testdrive.report.subject import Subject
from testdrive.segments import SERVICE

SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Seconds:
    """A phase second by second, over the I/Os of some opcodes that completed in it without an error.

    Seconds are counted from the phase's start. ``whole`` of them are whole; what remains at the end is left
    out. All arrays have one entry for each whole second.
    """

    ios: NDArray[np.int64]
    bytes: NDArray[np.int64]
    sum_ns: NDArray[np.float64]
    max_ns: NDArray[np.int64]

    @property
    def whole(self) -> int:
        """How many whole seconds there are."""
        return len(self.ios)

    @property
    def ends_s(self) -> NDArray[np.float64]:
        """When each second ends, in seconds since the phase's start: where its rate is drawn."""
        return np.arange(1, self.whole + 1, dtype=np.float64)

    @property
    def mean_ns(self) -> NDArray[np.float64]:
        """The mean service time of each second; NaN where nothing completed."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.ios > 0, self.sum_ns / self.ios, np.nan)


@dataclass(frozen=True)
class Totals:
    """A whole phase, over the I/Os that completed without an error."""

    ios: int
    bytes: int
    sum_ns: float = 0.0
    max_ns: int = 0


class Run:
    """One recording of a method."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    @property
    def recording(self) -> Recording:
        """Its recording."""
        return self.subject.recording

    @property
    def phases(self) -> list[Phase]:
        """Its phases, in order, without those that were set aside when the run was resumed."""
        manifest = self.recording.manifest
        aside = {index for gap in manifest.gaps for index in gap.set_aside}
        return [phase for phase in manifest.phases if phase.index not in aside]

    def phase(self, name: str) -> Phase | None:
        """The phase of this name, or None if the run did not reach it."""
        return next((phase for phase in self.phases if phase.name == name), None)

    def parameter(self, name: str, default: Any = None) -> Any:
        """A parameter of the plan."""
        plan = self.recording.manifest.plan
        return default if plan is None else plan.parameters.get(name, default)

    @cached_property
    def _seconds(self) -> Arrays:
        if self.recording.manifest.kept is not None:
            entries = self.recording.intervals()
            entries = entries.filter((entries.quantity == SERVICE) & (entries.latency_ceiling_ns >= 0))
            grouped = entries.group_by("phase", start_ns=entries.start_ns, code=entries.opcode)
            return self.recording.execute(
                grouped.aggregate(
                    ios=entries["count"].sum(),
                    bytes=entries.bytes.sum(),
                    sum_ns=entries.sum_ns.sum(),
                    max_ns=entries.max_ns.max(),
                )
            )
        rows = self.recording.all_rows()
        rows = rows.filter((rows.status == 0) & (rows.latency_ns >= 0))
        starts = self._start_of(rows)
        second = (rows.submit_ns + rows.latency_ns - starts) // SECOND_NS
        grouped = rows.group_by("phase", start_ns=starts + second * SECOND_NS, code=rows.opcode)
        return self.recording.execute(
            grouped.aggregate(
                ios=rows.count(),
                bytes=rows.length_bytes.sum(),
                sum_ns=rows.latency_ns.sum(),
                max_ns=rows.latency_ns.max(),
            )
        )

    def _start_of(self, rows: Any) -> Any:
        import ibis

        cases = [(rows.phase == phase.index, ibis.literal(phase.start_ns, "int64")) for phase in self.phases]
        return ibis.cases(*cases, else_=0) if cases else ibis.literal(0, "int64")

    def seconds(self, phase: Phase, *codes: int) -> Seconds:
        """A phase by its seconds, over some opcodes or without any over all."""
        found = self._seconds
        whole = max((phase.end_ns or phase.start_ns) - phase.start_ns, 0) // SECOND_NS
        chosen = found["phase"] == phase.index
        if codes:
            chosen &= np.isin(found["code"], codes)
        place = (found["start_ns"][chosen] - phase.start_ns) // SECOND_NS
        inside = (place >= 0) & (place < whole)
        place = place[inside]
        parts: dict[str, NDArray[Any]] = {}
        for key, kind in (("ios", np.int64), ("bytes", np.int64), ("sum_ns", np.float64)):
            parts[key] = np.zeros(whole, kind)
            np.add.at(parts[key], place, found[key][chosen][inside].astype(kind))
        parts["max_ns"] = np.zeros(whole, np.int64)
        np.maximum.at(parts["max_ns"], place, found["max_ns"][chosen][inside].astype(np.int64))
        return Seconds(**parts)

    def totals(self, phase: Phase) -> Totals:
        """What completed of a phase without an error, what ended after its last whole second too."""
        found = self._seconds
        chosen = found["phase"] == phase.index
        return Totals(
            int(found["ios"][chosen].sum()),
            int(found["bytes"][chosen].sum()),
            float(found["sum_ns"][chosen].sum()),
            int(found["max_ns"][chosen].max(initial=0)),
        )

    @cached_property
    def power(self) -> Power | None:
        """The power of its drive, from whichever source; None where nothing measured it."""
        return power_of(self.recording)

    def power_w(self, phase: Phase) -> float:
        """The mean power of a phase; NaN where it was not measured."""
        mean_w = self.power.of_phase(phase).mean_w if self.power else None
        return math.nan if mean_w is None else mean_w

    def latencies(self, phase: Phase, *codes: int) -> Distribution:
        """The service times of a phase: exact where every row is kept, else each bucket by its longest."""
        kept = self.recording.manifest.kept is not None
        table = self.recording.intervals() if kept else self.recording.all_rows()
        table = table.filter(table.phase == phase.index)
        if codes:
            table = table.filter(table.opcode.isin(codes))
        if kept:
            table = table.filter((table.quantity == SERVICE) & (table.latency_ceiling_ns >= 0))
            sums = {"count": table["count"].sum(), "total": table.sum_ns.sum(), "value": table.max_ns.max()}
            found = self.recording.execute(table.group_by(ceiling=table.latency_ceiling_ns).aggregate(**sums))
        else:
            table = table.filter((table.status == 0) & (table.latency_ns >= 0))
            grouped = table.group_by(value=table.latency_ns)
            found = self.recording.execute(
                grouped.aggregate(count=table.count(), total=table.latency_ns.sum())
            )
        order = np.argsort(found["value"])
        value, count, total = (found[key][order].astype(np.int64) for key in ("value", "count", "total"))
        return Distribution(value, count, total)
