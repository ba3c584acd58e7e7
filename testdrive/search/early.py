"""Ending a trial early: every slice must hold, so that a trial of which a whole one did not cannot pass.

The recording of a running trial is read once a slice is over, by a thread of a lower priority, since what
measures must not disturb what is measured. Nothing is ended on a guess: the slice is judged as the finished
trial would be, once later rows show that all of it is there, or that what is not there took so long that it
can only make the slice worse.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from types import TracebackType

from testdrive.errors import TestdriveError
from testdrive.events import Event, PhaseBegun, Progress
from testdrive.manifest import Phase
from testdrive.progress import Display
from testdrive.recording import Recording, warm_up
from testdrive.running import Show

SECOND_NS = 1_000_000_000
#: A recording must reach so far beyond a slice: histograms are of whole seconds.
MARGIN_NS = 2 * SECOND_NS
#: The engine's own.
SEGMENT_MAX_S = 30.0
#: Of a thread that gives way to those which measure; with the lowest it would never end on a busy host.
NICE = 5

#: Why a trial cannot pass, of its first whole slices; empty where it still can.
Judge = Callable[[Recording, int], list[str]]


class EndedEarly(TestdriveError):  # noqa: N818 - it is what was wanted
    """A trial was ended because it could not pass any more.

    Attributes
    ----------
    slices : int
        How many whole slices it had when it was judged.
    reasons : list of str
        Why it could not.
    """

    def __init__(self, slices: int, where: str, reasons: list[str]) -> None:
        super().__init__(f"ended early after {where}: {reasons[0]}")
        self.slices, self.reasons = slices, reasons


class Watch:
    """Looks at the recording of a trial whenever a slice is over.

    Parameters
    ----------
    recording : path-like
        The trial's.
    phase : str
        The name of the phase that is judged.
    ends_ns : sequence of int
        When each slice ends, from the phase's start: after the last one nothing is ended early.
    judge : callable
        What tells whether the first whole slices hold.
    called : str
        What people call a slice.
    margin_ns : int
        How far beyond a slice the recording must reach before it is judged.
    """

    def __init__(
        self,
        recording: Path,
        phase: str,
        ends_ns: Sequence[int],
        judge: Judge,
        *,
        called: str = "slice",
        margin_ns: int = MARGIN_NS,
    ) -> None:
        self.recording, self.phase, self.called = recording, phase, called
        self.ends_ns, self.judge, self.margin_ns = ends_ns, judge, margin_ns
        self._index: int | None = None
        #: Slices that hold.
        self._held = 0
        self._looking: threading.Thread | None = None
        self._found: EndedEarly | None = None

    def follow(self, event: Event) -> None:
        """Take note of where the run stands.

        Raises
        ------
        EndedEarly
            The trial cannot pass any more.
        """
        if isinstance(event, PhaseBegun):
            self._index = event.index if event.name == self.phase else None
        # A run that is over is judged as a whole.
        if not isinstance(event, Progress) or event.phase != self._index or self._looking is not None:
            return
        if self._found is not None:
            raise self._found
        whole = self._whole(event.elapsed_ns)
        if self._held < whole < len(self.ends_ns):
            self._looking = threading.Thread(target=self._look, args=(whole,), daemon=True)
            self._looking.start()

    def _whole(self, seen_ns: int) -> int:
        """How many slices may be judged, of a recording that reaches so far into the phase."""
        return bisect_right(self.ends_ns, seen_ns - self.margin_ns)

    @property
    def segment_s(self) -> float:
        """How old a segment of the recording may get, so that a slice is soon there to be read."""
        # The last slice is judged with the whole recording, and may be shorter than the others.
        shortest_ns = min(end_ns - start_ns for start_ns, end_ns in pairwise([0, *self.ends_ns[:-1]]))
        return max(1.0, min(SEGMENT_MAX_S, shortest_ns / SECOND_NS / 10))

    def end(self) -> None:
        """Wait until nobody reads the recording any more."""
        looking = self._looking
        if looking is not None:
            looking.join()

    def _look(self, whole: int) -> None:
        # A thread's own number stands for a process there, and has a priority of its own.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        try:
            with Recording.open(self.recording, threads=1) as recording:
                phase = next((each for each in recording.manifest.phases if each.name == self.phase), None)
                if phase is None:
                    return
                # What is on disk lags behind the run, by more than a slice where slices are short.
                whole = min(whole, self._whole(self._seen_ns(recording, phase)))
                if whole <= self._held:
                    return
                reasons = self.judge(recording, whole)
            self._held = whole
            if reasons:
                self._found = EndedEarly(whole, f"{self.called} {whole} of {len(self.ends_ns)}", reasons)
        except TestdriveError:
            # What cannot be read now is read after the next progress, or with the whole recording at last.
            return
        finally:
            self._looking = None

    @staticmethod
    def _seen_ns(recording: Recording, phase: Phase) -> int:
        """How far the recording reaches into the phase, as far as it is on disk."""
        if recording.manifest.kept is not None:
            table = recording.intervals()
            last = table.start_ns
        else:
            table = recording.all_rows()
            last = table.submit_ns
        found = recording.execute(table.filter(table.phase == phase.index).aggregate(last=last.max()))["last"]
        # No rows have no greatest.
        return int(found[0]) - phase.start_ns if len(found) and found[0] == found[0] else -1


def equal(slice_ns: int, slices: int) -> Sequence[int]:
    """When each of so many slices ends that are equally long."""
    return range(slice_ns, slice_ns * slices + 1, slice_ns)


def watched(show: Show, watch: Watch) -> Show:
    """The displays that another one makes, with each event told to a watch as well."""
    return lambda title: _Watched(show(title), watch)


class _Watched:
    """A display that a watch stands beside."""

    def __init__(self, shown: Display, watch: Watch) -> None:
        self.shown, self.watch = shown, watch

    def __call__(self, event: Event) -> None:
        self.shown(event)
        self.watch.follow(event)

    def __enter__(self) -> Display:
        self.shown.__enter__()
        # Before the run, not beside it.
        warm_up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shown.__exit__(kind, error, trace)
        self.watch.end()
