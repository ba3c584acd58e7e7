"""The search of the highest speed of a recorded workload at which a user's rules on latencies hold."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from testdrive.errors import UsageError
from testdrive.headroom.host import host_lateness_ns
from testdrive.headroom.intervals import called
from testdrive.headroom.verdict import broken_intervals, proved_after_ns
from testdrive.headroom.workload import Workload, read_workload
from testdrive.manifest import read_manifest
from testdrive.plans import BoundPlan
from testdrive.qos.rules import parse_rules
from testdrive.qos.verdict import LOAD_PHASE
from testdrive.report import units
from testdrive.running import Result
from testdrive.search.bisection import Found, Scale, Trial, bisect
from testdrive.search.early import MARGIN_NS, Watch
from testdrive.search.results import failing_trial, is_of_host, trials_of
from testdrive.search.trials import Drive

#: The speed at which a search begins: as recorded.
START = 1.0


class SpeedDrive(Drive):
    """One drive through the search of its headroom."""

    key = "speed"
    sets, instead = "speed", "say with lowest and highest which are tried"
    settled_by = "random"

    @cached_property
    def workload(self) -> Workload:
        """What is replayed, read once.

        Raises
        ------
        UsageError, RecordingError
            It makes no workload whose headroom could be told.
        """
        return read_workload(self.bound().values)

    @staticmethod
    def shown(value: float) -> str:
        """A speed as people write it."""
        return f"{value:.3g}x"

    def load(self, value: float, confirming: bool) -> dict[str, Any]:
        """The plan's parameters for a speed; the window and the opcodes are settled by the recording."""
        window = self.workload.window
        return {
            "speed": value,
            "from": f"{window.from_ns}ns",
            "to": f"{window.to_ns}ns",
            "opcodes": self.workload.opcodes,
        }

    @property
    def settles(self) -> bool:
        """Reads alone leave nothing behind that would have to be settled."""
        return super().settles or not self.workload.writes

    def settle(self) -> Path | None:
        """Write the drive at random once more; on a real one reads alone leave nothing behind.

        A modelled drive would do in the confirming run what it did in the trial, to the last bit: so it is
        prepared anew with other random numbers, even if the workload only reads. Written once more, it would
        be older than in the trials, and another drive.
        """
        values = self.bound().values
        by, again = values["prepare"], f"settled-{self.trials + 1:02}"
        if self.repeats or by == "none":
            return self.state
        seed = values["seed"] + self.trials
        if self.state is not None:
            state = self.folder / f"{again}.state"
            self._prepare(self.bound(seed=seed), f"{again}.rec", state)
            return state
        if self.workload.writes:
            how = "sequential" if by == "sequential" else "random"
            self._prepare(self.bound(prepare=how, seed=seed), f"{again}.rec", None)
        return None

    @property
    def repeats(self) -> bool:
        """Whether a confirming run is its trial again, so that it says nothing new.

        A replay has no random numbers of its own, and a modelled drive that is not prepared, or in order,
        has none that could be others.
        """
        return self.target.uri.startswith("sim:") and self.bound().values["prepare"] in ("none", "sequential")

    def scale(self) -> tuple[Scale, float]:
        """The speeds that may be tried, from the recording's own on."""
        if self.options.keep == "slowest":
            raise UsageError(
                "--keep slowest counts I/Os by when they completed, and headroom is judged by when they were"
                " due; leave it away"
            )
        values = self.bound().values
        # Whatever is wrong with the recording is told before the drive is written to.
        _ = self.workload
        scale = Scale(values["lowest"], values["highest"], 1 + values["resolution"], whole=False)
        return scale, scale.clamp(START)

    def foretold(self) -> str | None:
        """How long a trial takes at the speeds between which it will mostly be; virtual time is no matter."""
        scale, start = self.scale()
        if self.target.uri.startswith("sim:"):
            return None
        values, window = self.bound().values, self.workload.window
        length_ns = window.to_ns - window.from_ns
        settling_ns = min(values["settle"], length_ns)
        at_start, at_lowest = (
            units.duration(round((length_ns + settling_ns) / speed)) for speed in (start, scale.lowest)
        )
        told = f"a trial at {times(start)} takes {at_start}"
        if scale.lowest < start:
            told += f", one at {times(scale.lowest)}, the lowest that may be tried, {at_lowest}"
        return f"{told}; there are about a dozen"

    def find(self, scale: Scale, start: float) -> Found:
        """Bisect."""
        return bisect(self.attempt, scale, start)

    def judged(self, value: float, confirming: bool, name: str, result: Result) -> Trial:
        """What a run came to: whether every rule held in every interval, and whose fault it was if not."""
        summary = result.summary or {}
        verdict = summary.get("headroom") or {}
        passes = verdict.get("verdict") == "pass"
        reasons = [] if passes else list(verdict.get("reasons") or ["nothing was judged"])
        late_ns = None if passes else host_lateness_ns(summary, read_manifest(self.folder / name))
        if late_ns is not None:
            reasons.insert(0, _of_host(late_ns))
        limit = "host" if late_ns is not None else verdict.get("limited_by")
        figures = {key: verdict.get(key) for key in ("rules", "intervals", "breaks_first")}
        return Trial(
            value=value,
            passes=passes,
            confirming=confirming,
            cannot_keep_up=bool(verdict.get("cannot_keep_up")),
            reasons=reasons,
            recording=name,
            figures={**figures, "host_late_ns": late_ns, "limited_by": limit, "left_out": _left_out(summary)},
        )

    def watch(self, bound: BoundPlan, recording: Path) -> Watch | None:
        """A trial of several intervals ends with the first in which a rule does not hold."""
        values, intervals = bound.values, self.workload.intervals
        if not values["early-end"] or len(intervals) < 2:
            return None
        window = self.workload.window
        return Watch(
            recording,
            LOAD_PHASE,
            [window.due_ns(after, values["speed"]) for _, after in intervals],
            lambda running, whole: broken_intervals(running, intervals[:whole]),
            called="interval",
            margin_ns=max(MARGIN_NS, proved_after_ns(parse_rules(values["rules"]))),
        )

    def facts(self, found: Found) -> dict[str, Any]:
        """The rules, the workload, the failing speed next above and what broke there."""
        values = self.bound().values
        workload = self.workload
        failing = failing_trial(found)
        window = workload.window
        return {
            "failing_speed": failing.value if failing else None,
            "breaks_first": failing.figures["breaks_first"] if failing else None,
            "host_limited": is_of_host(failing),
            "rules": values["rules"],
            "opcodes": workload.opcodes,
            "interval_ns": values["interval"],
            "intervals": len(workload.intervals),
            "interval_longest_ns": workload.longest_ns,
            "interval_last_ns": workload.last_ns,
            "source": str(values["recording"]),
            "from_ns": window.from_ns,
            "to_ns": window.to_ns,
            "ios": sum(workload.by_opcode.values()),
            "recorded_mean_iops": workload.mean_iops,
            "recorded_peak_iops": workload.peak_iops,
            "lowest": values["lowest"],
            "highest": values["highest"],
            "at_least": values["at-least"],
            "confirming_repeats": self.repeats,
        }

    def told(self, found: Found) -> str:
        """The result in a line or two."""
        values = self.bound().values
        failing = failing_trial(found)
        every = f"{values['rules']} in every interval"
        parts = []
        if found.value is None and failing is not None and is_of_host(failing):
            said = (
                f"nothing is known of it; even {times(failing.value)} this workload is too much for the host"
            )
        elif found.value is None:
            said = f"does not take this workload even at {times(values['lowest'])} its speed ({every})"
        elif found.value < START:
            said = f"does not take this workload as recorded, only {times(found.value)} its speed ({every})"
        else:
            said = f"takes {times(found.value)} this workload ({every})"
        if failing is None and found.value is not None:
            parts.append(f"{times(values['highest'])} is the most that may be tried (highest)")
        elif failing is not None:
            parts.append(self._failing(failing))
        parts += self._load(found.value)
        parts.append(trials_of(found))
        if found.value is not None and self.fails(found):
            parts.append(f"fail: it must be at least {times(values['at-least'])}")
        return "; ".join([said, *parts])

    def _failing(self, failing: Trial) -> str:
        late_ns = failing.figures["host_late_ns"]
        if late_ns is not None:
            return f"at {times(failing.value)} {_of_host(late_ns)}"
        if is_of_host(failing):
            return f"at {times(failing.value)} {failing.reasons[0]}"
        first = failing.figures["breaks_first"]
        why = failing.reasons[0]
        if first is not None:
            why = f"interval {called(first['start_ns'], first['end_ns'])} {first['what']}"
        return f"{times(failing.value)} does not hold: {why}"

    def _load(self, speed: float | None) -> list[str]:
        if speed is None:
            return []
        mean, peak = self.workload.mean_iops * speed, self.workload.peak_iops * speed
        return [f"that is {mean:,.0f} IOPS on average and {peak:,.0f} in its busiest second"]

    def fails(self, found: Found) -> bool:
        """Whether no speed holds, or one that is too low."""
        wanted = self.bound().values["at-least"]
        return found.value is None or (wanted is not None and found.value < wanted)


def times(speed: float) -> str:
    """A speed in words: `3.2 times`."""
    return f"{speed:.3g} times"


def _of_host(late_ns: int) -> str:
    return (
        f"this host sends late itself (p99 {units.time(late_ns)} after the time), which says nothing about"
        " the drive"
    )


def _left_out(summary: dict[str, Any]) -> dict[str, int]:
    """What of the workload the drive could not be given, by operation."""
    unsupported = ((summary.get("fidelity") or {}).get("accounting") or {}).get("unsupported") or {}
    return {name: int(each["ios"]) for name, each in unsupported.items() if each.get("ios")}
