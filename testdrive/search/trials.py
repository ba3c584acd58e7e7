"""Trials on a drive: prepared once, each trial a run, and before a confirming one it is settled again.

A modelled drive is saved once it is prepared, and every trial begins from that state. A real drive goes
through the trials one after the other, as it would with act_storage.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from testdrive.cli.naming import drive_name
from testdrive.errors import UsageError
from testdrive.job import Phase
from testdrive.plans import BoundPlan, Plan, bind
from testdrive.running import Result, RunOptions, Show, Target, run_one
from testdrive.search.bisection import Found, Scale, Trial, bisect, step_down

HISTORY_NAME = "search.json"
HISTORY_VERSION = 1
#: Where a search begins without a word from the user.
START = {"bisection": 32, "step-down": 150}

#: Told of each trial once it is over: the drive's name, the load as people write it, and what it came to.
Tell = Callable[[str, str, Trial], None]


class Drive:
    """One drive through the search of its rating; another kind of load says in its own class what differs.

    Parameters
    ----------
    plan : Plan
        One with ``search``.
    given : mapping
        What the user set of its parameters.
    target : Target
        The drive; its recording is the directory for those of the trials.
    """

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

    @property
    def name(self) -> str:
        """The drive's URI without its options."""
        return self.target.uri.partition("?")[0]

    #: What a load is called among results, and the values of ``prepare`` that settle a drive.
    key = "rating"
    settled_by = "salt"

    @staticmethod
    def shown(value: float) -> str:
        """A load as people write it."""
        return f"{value:g}x"

    def load(self, value: float, confirming: bool) -> dict[str, Any]:
        """The plan's parameters that make a trial of a load."""
        return {"rating": int(value)}

    def judged(self, value: float, confirming: bool, name: str, result: Result) -> Trial:
        """What a run came to as a trial."""
        return _trial(int(value), confirming, name, result)

    def scale(self) -> tuple[Scale, float]:
        """The loads that may be tried, and the first of them.

        Raises
        ------
        UsageError
            The parameters make no sense.
        """
        values = self.bound().values
        start = values["from"] or START[values["method"]]
        scale = Scale(1, values["highest"], values["resolution"], whole=True)
        if not scale.lowest <= start <= scale.highest:
            raise UsageError(f"from is {start}; give a rating from 1 to highest, which is {scale.highest:g}")
        if scale.resolution < 1 or values["step"] < 1:
            raise UsageError("resolution and step are ratings; give at least 1")
        return scale, start

    def find(self, scale: Scale, start: float) -> Found:
        """Try loads until the highest that passes is found."""
        values = self.bound().values
        if values["method"] == "bisection":
            return bisect(self.attempt, scale, start)
        return step_down(self.attempt, scale, start, values["step"])

    def facts(self, found: Found) -> dict[str, Any]:
        """What else the history says of the search."""
        return {"slice_ns": self.bound().values["slice"]}

    def told(self, found: Found) -> str:
        """The result in a line."""
        rating = "none that passes" if found.value is None else self.shown(found.value)
        slice_s = self.bound().values["slice"] / 1e9
        return f"rating {rating}, slices of {slice_s:,g} s, {len(found.history)} trials"

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

    def _prepare(self, whole: BoundPlan, name: str, state: Path | None) -> None:
        phases: list[Phase] = [phase for phase in whole.phases if phase.kind == "prepare"]
        only = dataclasses.replace(whole, phases=phases, rules=[])
        options = dataclasses.replace(self.options, save_state=state)
        target = dataclasses.replace(self.target, recording=self.folder / name)
        result = run_one(only, target, options, self.show, f"{self.name} (preparing)")
        if result.error is not None:
            raise result.error

    def settle(self) -> None:
        """Bring a real drive back from the trials before it, by writing all of it once."""
        if self.state is None and self.bound().values["prepare"] != "none":
            self._prepare(self.bound(prepare=self.settled_by), f"settled-{self.trials + 1:02}.rec", None)

    def attempt(self, value: float, confirming: bool) -> Trial:
        """Run a load, and judge it.

        Raises
        ------
        TestdriveError
            The run failed for another reason than that the drive is too slow.
        """
        if confirming:
            self.settle()
        self.trials += 1
        values: dict[str, Any] = {**self.load(value, confirming), "prepare": "none"}
        if confirming and self.bound().values["confirm-for"] is not None:
            values["for"] = f"{self.bound().values['confirm-for']}ns"
        kind = "confirming" if confirming else "trial"
        name = f"{drive_name(self.target.uri)}-{self.trials:02}-{kind}-{self._file_label(value)}.rec"
        uri = self.target.uri
        if self.state is not None:
            uri += f"{'&' if '?' in uri else '?'}state={self.state}"
        target = dataclasses.replace(self.target, uri=uri, recording=self.folder / name)
        title = f"{self.name} ({kind} {self.trials} at {self.shown(value)})"
        result = run_one(self.bound(**values), target, self.options, self.show, title)
        if result.error is not None:
            raise result.error
        trial = self.judged(value, confirming, name, result)
        self.tell(self.name, self.shown(value), trial)
        return trial

    def _file_label(self, value: float) -> str:
        return self.shown(value).replace(",", "").replace(" ", "-")

    def search(self) -> Found:
        """Prepare the drive and search its load; the history is kept beside the run that decided."""
        self.folder.mkdir(parents=True, exist_ok=True)
        scale, start = self.scale()
        self.prepare()
        found = self.find(scale, start)
        write_history(self.decisive(found), found, self.bound().values, self.facts(found))
        return found

    def decisive(self, found: Found) -> Path:
        """The recording of the trial that decided: the confirming one, or the last that failed."""
        assert found.history[-1].recording is not None, "trials on drives are recorded"
        return self.folder / found.history[-1].recording


def _trial(rating: int, confirming: bool, name: str, result: Result) -> Trial:
    act = (result.summary or {}).get("act") or {}
    shown = {key: value for key, value in act.items() if key.startswith(("above_", "response_"))}
    return Trial(
        value=float(rating),
        passes=act.get("verdict") == "pass",
        confirming=confirming,
        cannot_keep_up=bool(act.get("cannot_keep_up")),
        reasons=list(act.get("reasons") or ["nothing was judged"]) if act.get("verdict") != "pass" else [],
        recording=name,
        figures=shown,
    )


def write_history(recording: Path, found: Found, values: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Keep a search beside the recording that decided it, for its page and for scripts."""
    content = {
        "version": HISTORY_VERSION,
        "value": found.value,
        "method": found.method,
        "is_monotone": found.is_monotone,
        **facts,
        "trial_ns": values["for"],
        "confirm_ns": values["confirm-for"] or values["for"],
        "resolution": values["resolution"],
        "history": [dataclasses.asdict(trial) for trial in found.history],
    }
    (recording / HISTORY_NAME).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def read_history(recording: Path) -> dict[str, Any] | None:
    """The search that a recording decided; None where it is of none, or of a newer version."""
    path = recording / HISTORY_NAME
    if not path.is_file():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    return content if isinstance(content, dict) and content.get("version", 0) <= HISTORY_VERSION else None
