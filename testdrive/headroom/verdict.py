"""The verdict of a trial at one speed: every rule in every interval of the workload, by response time.

Response time counts from when an I/O was due at this speed. An interval has the I/Os that were due in it, by
the recording's own clock: the same ones at every speed. It is judged once all of them have gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import ibis
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from testdrive.headroom.intervals import Window, called, joined
from testdrive.manifest import OPCODES, Phase
from testdrive.metrics.scans.distribution import Distribution, bucket_of
from testdrive.qos.rules import Rule, parse_rules
from testdrive.qos.verdict import LOAD_PHASE, Held, broken, cut_short, value_of
from testdrive.recording import Arrays, Recording
from testdrive.report import units
from testdrive.segments import RESPONSE, SERVICE

#: The figures' name by which a plan says that it is judged so.
FIGURES = "headroom"


@dataclass(frozen=True)
class Break:
    """Where a workload breaks first: an interval, and what of it in short."""

    start_ns: int
    end_ns: int
    what: str

    @property
    def text(self) -> str:
        """As a result line has it."""
        return f"interval {called(self.start_ns, self.end_ns)} {self.what}"


@dataclass(frozen=True)
class Verdict:
    """What a trial came to; ``reasons`` are sentences, none for a pass."""

    verdict: Literal["pass", "fail"]
    reasons: list[str]
    speed: float
    held: list[Held]
    #: From when to when each judged interval is, on the recording's clock, and its I/Os of any opcode.
    bounds_ns: list[tuple[int, int]]
    ios: list[int]
    breaks_first: Break | None
    cannot_keep_up: dict[str, Any] | None

    def to_json_object(self) -> dict[str, Any]:
        """As ``summary.json`` has it, under ``headroom``."""
        first = self.breaks_first
        return {
            "verdict": self.verdict,
            "reasons": self.reasons,
            "speed": self.speed,
            "intervals": {
                "start_ns": [start_ns for start_ns, _ in self.bounds_ns],
                "end_ns": [end_ns for _, end_ns in self.bounds_ns],
                "ios": self.ios,
            },
            "breaks_first": None
            if first is None
            else {"start_ns": first.start_ns, "end_ns": first.end_ns, "what": first.what},
            "cannot_keep_up": self.cannot_keep_up,
            "rules": [_told(one) for one in self.held],
        }


def _told(held: Held) -> dict[str, Any]:
    return held.to_json_object() | {
        "values": [None if value is None else float(value) for value in held.values],
        "service_values": [None if value is None else float(value) for value in held.service],
    }


def is_headroom(recording: Recording) -> bool:
    """Whether a recording is a trial that is judged so."""
    plan = recording.manifest.plan
    return plan is not None and FIGURES in plan.figures and {"rules", "opcodes", "to"} <= set(plan.parameters)


def judge(recording: Recording) -> Verdict:
    """The verdict of a trial, whatever became of it. Only for a recording that :func:`is_headroom`."""
    manifest = recording.manifest
    assert manifest.plan is not None
    parameters = manifest.plan.parameters
    window = Window(int(parameters.get("from", 0)), int(parameters["to"]), int(parameters["interval"]))
    speed = float(parameters["speed"])
    rules = parse_rules(str(parameters["rules"]))
    opcodes = [str(name) for name in parameters["opcodes"]]
    phase = next((phase for phase in manifest.phases if phase.name == LOAD_PHASE), None)
    behind = next(
        (found for each in manifest.phases if (found := (each.accounting or {}).get("cannot_keep_up"))), None
    )
    trial = _Trial(recording, window, speed, rules, opcodes)
    complete = manifest.status == "complete"
    bounds_ns: list[tuple[int, int]] = []
    held: list[Held] = []
    ios: list[int] = []
    if phase is not None:
        mine = (phase.accounting or {}).get("cannot_keep_up")
        gone = window.pieces if complete else trial.pieces_gone(_gone_until_ns(recording, phase, mine))
        held, bounds_ns, ios = trial.judged(phase, gone, complete=complete)
    reasons = cut_short(manifest.status, manifest.status_reason, behind)
    if manifest.counts.errors:
        reasons.append(f"{manifest.counts.errors:,} I/Os failed or were never answered")
    names = [called(*each) for each in bounds_ns]
    reasons += [reason for one in held for reason in broken(one, lambda at: f"interval {names[at]}")]
    if complete and not held:
        reasons.append("nothing was judged")
    first = _breaks_first(held, bounds_ns)
    if first is None and phase is not None and (lag := (phase.accounting or {}).get("cannot_keep_up")):
        first = trial.late_in(lag)
    return Verdict("fail" if reasons else "pass", reasons, speed, held, bounds_ns, ios, first, behind)


def _gone_until_ns(recording: Recording, phase: Phase, behind: dict[str, Any] | None) -> int:
    """Until when everything that was due has gone, from the phase's start."""
    if behind is not None:
        return int(behind["at_ns"]) - int(behind["lag_ns"])
    rows = recording.all_rows()
    rows = rows.filter(rows.phase == phase.index)
    last_ns = recording.execute(rows.aggregate(last_ns=rows.intended_ns.max()))["last_ns"]
    # Of no rows it is no number.
    return int(last_ns[0]) - phase.start_ns if len(last_ns) and np.isfinite(last_ns[0]) else 0


def _breaks_first(held: Sequence[Held], bounds_ns: Sequence[tuple[int, int]]) -> Break | None:
    """The earliest interval in which a rule does not hold, with the values of all that do not."""
    for at, (start_ns, end_ns) in enumerate(bounds_ns):
        over = [one for one in held if (value := one.values[at]) is not None and not one.rule.holds(value)]
        if over:
            several = len({one.opcode for one in held}) > 1
            return Break(start_ns, end_ns, ", ".join(_short(one, at, several=several) for one in over))
    return None


def _short(held: Held, at: int, *, several: bool) -> str:
    value = held.values[at]
    assert value is not None
    shown = units.percent(float(value)) if held.rule.is_share else units.time(float(value))
    whose = f" of {held.opcode}s" if several else ""
    return f"{held.rule.quantity}{whose} {shown}"


@dataclass(frozen=True)
class _Trial:
    recording: Recording
    window: Window
    speed: float
    rules: Sequence[Rule]
    opcodes: Sequence[str]

    def pieces_gone(self, until_ns: int) -> int:
        """How many pieces have no I/O that was due later than that."""
        edges = [self.window.due_ns(piece + 1, self.speed) for piece in range(self.window.pieces)]
        return int(np.searchsorted(np.array(edges), until_ns, side="right"))

    def late_in(self, behind: dict[str, Any]) -> Break:
        """The interval in which the I/O was due that was too late."""
        due_ns = int(behind["at_ns"]) - int(behind["lag_ns"])
        piece = min(self.pieces_gone(due_ns), self.window.pieces - 1)
        what = f"falls {behind['lag_ns'] / 1e9:.3g} s behind"
        return Break(*self.window.bounds_ns(piece, piece + 1), what)

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
        taken = _Taken(self._values(phase, intervals))
        held = [
            self._held(taken, rule, opcode, len(intervals)) for opcode in self.opcodes for rule in self.rules
        ]
        ios = [int(every[first:after].sum()) for first, after in intervals]
        return held, [self.window.bounds_ns(*one) for one in intervals], ios

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

    def _held(self, taken: _Taken, rule: Rule, opcode: str, intervals: int) -> Held:
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


class _Taken:
    """What :meth:`_Trial._values` found, in an order in which each distribution is found at once."""

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
