"""Trials on a drive: prepared once, each trial a run, and before a confirming one it is settled again.

A modelled drive is saved once it is prepared, and every trial begins from that state. A real drive goes
through the trials one after the other, as it would with act_storage.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from testdrive.drive_names import drive_name
from testdrive.job import Phase
from testdrive.plans import BoundPlan, Plan, bind
from testdrive.running import Result, RunOptions, Show, Target, run_one
from testdrive.search.bisection import Found, Scale, Trial
from testdrive.search.early import EndedEarly, Watch, watched
from testdrive.search.history import remove_history, write_history
from testdrive.search.results import is_of_host, trials_of

#: Told of each trial once it is over: the drive's name, the load as people write it, and what it came to.
Tell = Callable[[str, str, Trial], None]


class Drive(ABC):
    """One drive through a search. What a load is, and which are tried, each kind of search says.

    Parameters
    ----------
    plan : Plan
        One with ``search``.
    given : mapping
        What the user set of its parameters.
    target : Target
        The drive; its recording is the directory for those of the trials.
    """

    #: What a load is called among results, with its unit.
    key: ClassVar[str]
    #: The plan's parameter that trials set, and what a user gives instead.
    sets: ClassVar[str]
    instead: ClassVar[str]
    #: The value of ``prepare`` by which a drive is settled.
    settled_by: ClassVar[str]

    def __init__(
        self,
        plan: Plan,
        given: Mapping[str, Any],
        target: Target,
        options: RunOptions,
        show: Show,
        tell: Tell,
        *,
        short: bool = False,
    ) -> None:
        self.short = short
        self.plan, self.given = plan, dict(given)
        self.target, self.options, self.show, self.tell = target, options, show, tell
        self.folder = target.recording
        self.state: Path | None = None
        self.trials = 0
        #: Trials that are over, and what is being done since.
        self.tried: list[Trial] = []
        self.doing = "preparing"
        #: Raises `Interrupted` where somebody wants the search to stop; called before each run.
        self.stop_if_asked: Callable[[], None] = lambda: None
        #: The search, once it is over or was stopped.
        self.found: Found | None = None
        self._kept: Path | None = None

    @property
    def name(self) -> str:
        """The drive's URI without its options."""
        return self.target.uri.partition("?")[0]

    @staticmethod
    @abstractmethod
    def shown(value: float) -> str:
        """A load as people write it."""

    @abstractmethod
    def load(self, value: float, confirming: bool) -> dict[str, Any]:
        """The plan's parameters that make a trial of a load."""

    @abstractmethod
    def judged(self, value: float, confirming: bool, name: str, result: Result) -> Trial:
        """What a run, whose recording has this name, came to as a trial."""

    @abstractmethod
    def scale(self) -> tuple[Scale, float]:
        """The loads that may be tried, and the first of them.

        Raises
        ------
        UsageError
            The parameters make no sense.
        """

    @abstractmethod
    def find(self, scale: Scale, start: float) -> Found:
        """Try loads until the highest that passes is found."""

    @abstractmethod
    def facts(self, found: Found) -> dict[str, Any]:
        """What else the history says of the search."""

    @abstractmethod
    def told(self, found: Found) -> str:
        """The result in a line or two."""

    def told_unfinished(self, found: Found) -> str:
        """What is known of a search that was stopped, in a line."""
        passed = max((trial.value for trial in found.history if trial.passes), default=None)
        failed = min((trial.value for trial in found.history if not trial.passes), default=None)
        parts = [f"unfinished after {trials_of(found)}, without a result"]
        if passed is not None:
            parts.append(f"the highest that passed is {self.shown(passed)}, not confirmed")
        if failed is not None:
            parts.append(f"the lowest that failed is {self.shown(failed)}")
        return "; ".join(parts)

    def foretold(self) -> str | None:
        """How long trials will take, in a line; None where nobody needs to know it before.

        Raises
        ------
        TestdriveError
            The parameters make no sense.
        """
        return None

    def watch(self, bound: BoundPlan, recording: Path) -> Watch | None:
        """What ends a trial early once it cannot pass; None where nothing does."""
        return None

    def fails(self, found: Found) -> bool:
        """Whether the verdict on what was found is fail."""
        return found.value is None

    def bound(self, **values: Any) -> BoundPlan:
        """The plan with the user's values and these."""
        return bind(self.plan, self.given | values, short=self.short)

    def prepare(self) -> None:
        """Bring the drive into the state from which trials begin.

        Raises
        ------
        TestdriveError
            The drive could not be prepared.
        """
        whole = self.bound()
        if whole.values["prepare"] == "none":
            return
        state = self.folder / "prepared.state" if self.target.uri.startswith("sim:") else None
        self._prepare(whole, "prepared.rec", state)
        self.state = state

    def _prepare(self, whole: BoundPlan, name: str, save_state: Path | None) -> None:
        phases: list[Phase] = [phase for phase in whole.phases if phase.kind == "prepare"]
        only = dataclasses.replace(whole, phases=phases, rules=[])
        options = dataclasses.replace(self.options, save_state=save_state)
        target = dataclasses.replace(self.target, recording=self.folder / name)
        self.stop_if_asked()
        result = run_one(only, target, options, self.show, f"{self.name} (preparing)")
        if result.error is not None:
            raise result.error

    def seed(self, confirming: bool) -> int:
        """What everything random of the trial that is made follows from; the same of the same search.

        A real drive has a seed for each trial, the plan's and the trial's number: written over in the same
        order again, its blocks would become free as a whole, and it would look faster than it is. Trials on
        a modelled drive all begin in one state and have the plan's, so that nothing but the load differs. A
        confirming run there has the next, or it would be the trial again to the last bit.
        """
        given = int(self.bound().values["seed"])
        if self.target.uri.startswith("sim:"):
            return given + 1 if confirming else given
        return given + self.trials - 1

    @property
    def settles(self) -> bool:
        """Whether a confirming run begins on a drive that the trials before it did not leave as it is."""
        return self.target.uri.startswith("sim:") or self.bound().values["prepare"] != "none"

    def settle(self) -> Path | None:
        """Bring a real drive back from the trials before it, by writing all of it once.

        Writes at random have another order than those before the first trial.

        Returns
        -------
        pathlib.Path or None
            The state in which a modelled drive begins the confirming run.
        """
        if self.state is None and self.bound().values["prepare"] != "none":
            again = self.bound(prepare=self.settled_by, seed=self.bound().values["seed"] + self.trials)
            self._prepare(again, f"settled-{self.trials + 1:02}.rec", None)
        return self.state

    def _uri(self, state: Path | None) -> str:
        """The drive in that state, of a modelled one."""
        uri = self.target.uri
        return uri if state is None else f"{uri}{'&' if '?' in uri else '?'}state={state}"

    def attempt(self, value: float, confirming: bool) -> Trial:
        """Run a load, and judge it.

        Raises
        ------
        TestdriveError
            The run failed for another reason than that the drive is too slow.
        """
        if confirming:
            self.doing = f"settling the drive before {self.shown(value)} is confirmed"
        state = self.settle() if confirming else self.state
        self.trials += 1
        values = {**self.load(value, confirming), "prepare": "none"}
        kind = "confirming" if confirming else "trial"
        name = f"{drive_name(self.target.uri)}-{self.trials:02}-{kind}-{self._file_label(value)}.rec"
        target = dataclasses.replace(self.target, uri=self._uri(state), recording=self.folder / name)
        self.doing = f"{kind} {self.trials} at {self.shown(value)}"
        result = self._run(self.bound(**values), target, f"{self.name} ({self.doing})")
        ended = result.error if isinstance(result.error, EndedEarly) else None
        if result.error is not None and ended is None:
            raise result.error
        trial = self.judged(value, confirming, name, result)
        if ended is not None:
            # Whoever was late is told first: what that says of the drive comes before what was measured.
            host = trial.reasons[:1] if is_of_host(trial) else []
            reasons = [*host, str(ended), *ended.reasons[1:]]
            trial = dataclasses.replace(trial, passes=False, ended_after=ended.slices, reasons=reasons)
        self.tried.append(trial)
        self.doing = f"after {self.doing}"
        # Whatever ends us, what was tried is told.
        self._keep(self._stopped("stopped without a word"))
        self.tell(self.name, self.shown(value), trial)
        return trial

    def _run(self, bound: BoundPlan, target: Target, title: str) -> Result:
        self.stop_if_asked()
        # In virtual time a trial's end costs little, and where it was ended would hang on this host's speed.
        modelled = self.target.uri.startswith("sim:")
        watch = None if modelled else self.watch(bound, target.recording)
        if watch is None:
            return run_one(bound, target, self.options, self.show, title)
        options = dataclasses.replace(self.options, segment_s=watch.segment_s)
        return run_one(bound, target, options, watched(self.show, watch), title)

    def _file_label(self, value: float) -> str:
        return self.shown(value).replace(",", "").replace(" ", "-")

    def search(self) -> Found:
        """Prepare the drive and search its load; the history is kept beside the run that decided.

        That of a search which is stopped stands beside the last trial that was over, and in ``found``.

        Raises
        ------
        TestdriveError
            The drive or a trial failed, or somebody stopped it.
        """
        scale, start = self.scale()
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self.prepare()
            self.found = self.find(scale, start)
        except BaseException as error:
            self.found = self._stopped(f"{self.doing}: {error}")
            self._keep(self.found)
            raise
        self._keep(self.found)
        return self.found

    def _stopped(self, why: str) -> Found:
        return Found(None, list(self.tried), self.bound().values.get("method", "bisection"), unfinished=why)

    def _keep(self, found: Found) -> None:
        if not found.history:
            return
        place = self.decisive(found)
        more = {"resolution": self.bound().values["resolution"], "settled": self.settles}
        write_history(place, found, {**self.facts(found), **more})
        if self._kept not in (None, place):
            remove_history(self._kept)
        self._kept = place

    def decisive(self, found: Found) -> Path:
        """The recording of the trial that decided: the confirming one, or the last that failed."""
        recording = found.deciding.recording
        assert recording is not None, "trials on drives are recorded"
        return self.folder / recording


def confirming_length(values: Mapping[str, Any], confirming: bool) -> dict[str, Any]:
    """How long a confirming run is judged, as the plan's parameter, where the user wants it otherwise."""
    length_ns = values["confirm-for"]
    return {"for": f"{length_ns}ns"} if confirming and length_ns is not None else {}


def lengths(values: Mapping[str, Any]) -> dict[str, Any]:
    """How long trials and confirming runs are judged, as the history says it."""
    return {"trial_ns": values["for"], "confirm_ns": values["confirm-for"] or values["for"]}
