"""The rows of a trial at one speed, by the intervals of the workload in which they were due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from testdrive.headroom.intervals import Window, joined
from testdrive.manifest import OPCODES, Phase
from testdrive.metrics.scans.distribution import Distribution, bucket_of
from testdrive.qos.held import Held, value_of
from testdrive.qos.rules import Rule
from testdrive.recording import Arrays, Recording
from testdrive.segments import RESPONSE, SERVICE


@dataclass(frozen=True)
class Trial:
    """The I/Os of a trial at one speed, by intervals of the recording's clock."""

    recording: Recording
    window: Window
    speed: float
    rules: Sequence[Rule]
    opcodes: Sequence[str]

    def pieces_gone(self, until_ns: int) -> int:
        """How many pieces have no I/O that was due later than that."""
        edges = [self.window.due_ns(piece + 1, self.speed) for piece in range(self.window.pieces)]
        return int(np.searchsorted(np.array(edges), until_ns, side="right"))

    def judged(
        self, phase: Phase, gone: int, *, complete: bool
    ) -> tuple[list[Held], list[tuple[int, int]], list[int]]:
        """The rules in every interval of which all has gone, the intervals, and the I/Os of each."""
        if not gone:
            return [], [], []
        counts, every = self._counts(phase)
        needed = max(rule.samples_min for rule in self.rules)
        intervals = joined(counts[:gone], needed, whole=complete)
        if not intervals:
            return [], [], []
        held = self.held(phase, intervals)
        ios = [int(every[first:after].sum()) for first, after in intervals]
        return held, [self.window.bounds_ns(*one) for one in intervals], ios

    def held(self, phase: Phase, intervals: Sequence[tuple[int, int]]) -> list[Held]:
        """Each rule on each judged opcode, in intervals of these pieces, of the I/Os that are recorded."""
        taken = Taken(self._values(phase, intervals))
        return [
            self._held(taken, rule, opcode, len(intervals)) for opcode in self.opcodes for rule in self.rules
        ]

    def _placed(self, phase: Phase, places: NDArray[np.int64]) -> Any:
        """The rows of the phase with the place of their piece in ``places``, which has one for each.

        The piece is guessed by the speed, which may be one off at a border, and settled by when the border
        was due.
        """
        pieces = self.window.pieces
        edges = np.array([self.window.due_ns(piece, self.speed) for piece in range(pieces)], np.int64)
        table = pa.table(
            {
                "piece": np.arange(pieces, dtype=np.int64),
                "low_ns": edges,
                "high_ns": np.append(edges[1:], np.iinfo(np.int64).max),
                "before": np.append(places[:1], places[:-1]),
                "own": places,
                "after": np.append(places[1:], places[-1:]),
            }
        )
        rows = self.recording.all_rows()
        rows = rows.filter(rows.phase == phase.index)
        rows = rows.mutate(due_ns=rows.intended_ns - phase.start_ns)
        guess = (rows.due_ns.cast("float64") * self.speed / self.window.interval_ns).floor().cast("int64")
        rows = rows.mutate(piece=guess.clip(0, pieces - 1)).join(ibis.memtable(table), "piece")
        place = ibis.cases(
            (rows.due_ns < rows.low_ns, rows.before),
            (rows.due_ns >= rows.high_ns, rows.after),
            else_=rows.own,
        )
        return rows.mutate(place=place)

    def _counts(self, phase: Phase) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The I/Os of each judged opcode in each piece, whatever became of them, and those of all."""
        rows = self._placed(phase, np.arange(self.window.pieces, dtype=np.int64))
        found = self.recording.execute(rows.group_by("place", "opcode").aggregate(ios=rows.count()))
        place, ios = found["place"].astype(np.int64), found["ios"].astype(np.int64)
        counts = np.zeros((self.window.pieces, len(self.opcodes)), np.int64)
        for at, name in enumerate(self.opcodes):
            mine = found["opcode"] == OPCODES.index(name)
            counts[place[mine], at] = ios[mine]
        every = np.zeros(self.window.pieces, np.int64)
        np.add.at(every, place, ios)
        return counts, every

    def _values(self, phase: Phase, intervals: Sequence[tuple[int, int]]) -> Arrays:
        """How many I/Os took how long, by interval, opcode and quantity.

        Times are counted in buckets at most 0.8 % wide, each told by its longest, and no bucket reaches over
        a limit or a threshold: whether a rule holds is exact.
        """
        places = np.full(self.window.pieces, -1, np.int64)
        for place, (first, after) in enumerate(intervals):
            places[first:after] = place
        rows = self._placed(phase, places)
        rows = rows.filter((rows.place >= 0) & (rows.status == 0) & (rows.latency_ns >= 0))
        rows = rows.filter(rows.opcode.isin([OPCODES.index(name) for name in self.opcodes]))
        cuts = sorted({cut for rule in self.rules for cut in _cuts(rule)})
        parts = []
        for quantity, value in (
            (SERVICE, rows.latency_ns),
            (RESPONSE, rows.submit_ns + rows.latency_ns - ibis.least(rows.intended_ns, rows.submit_ns)),
        ):
            taken = rows.mutate(took_ns=value)
            level = sum(((taken.took_ns >= cut).cast("int64") for cut in cuts), ibis.literal(0, "int64"))
            grouped = taken.group_by("place", "opcode", bucket=bucket_of(taken.took_ns), level=level)
            counted = grouped.aggregate(
                value=taken.took_ns.max(), ios=taken.count(), total=taken.took_ns.sum().cast("int64")
            )
            parts.append(counted.mutate(quantity=ibis.literal(quantity, "int64")))
        return self.recording.execute(parts[0].union(parts[1]))

    def _held(self, taken: Taken, rule: Rule, opcode: str, intervals: int) -> Held:
        response = [taken.of(at, opcode, RESPONSE) for at in range(intervals)]
        service = [taken.of(at, opcode, SERVICE) for at in range(intervals)]
        values: list[Fraction | float | None] = [value_of(rule, one) for one in response]
        return Held(
            rule,
            opcode,
            values,
            [value_of(rule, one) for one in service],
            [one.n for one in response],
            [one.max for one in response],
        )


class Taken:
    """What :meth:`Trial._values` found, in an order in which each distribution is found at once."""

    def __init__(self, found: Arrays) -> None:
        key = self._key(found["place"].astype(np.int64), found["opcode"], found["quantity"])
        order = np.lexsort((found["value"], key))
        self.keys = key[order]
        self.parts = [found[name][order].astype(np.int64) for name in ("value", "ios", "total")]

    @staticmethod
    def _key(place: Any, opcode: Any, quantity: Any) -> Any:
        return (place * len(OPCODES) + opcode) * 2 + (quantity == RESPONSE)

    def of(self, at: int, opcode: str, quantity: int) -> Distribution:
        """The times of an interval's I/Os of one opcode."""
        key = self._key(at, OPCODES.index(opcode), quantity)
        first, after = np.searchsorted(self.keys, [key, key + 1])
        return Distribution(*(part[first:after] for part in self.parts))


def _cuts(rule: Rule) -> list[int]:
    """The times at which what a rule says of an I/O may change."""
    if rule.is_share:
        return [rule.threshold_ns]
    return [int(rule.limit) + 1 if rule.inclusive else int(rule.limit)]
