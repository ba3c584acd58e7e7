"""Whether a run's load was delivered: I/Os that were due and did not go, and who held them back.

Latencies of a load that did not go say nothing about the load that was asked for. I/Os wait for one of two
reasons: as many were outstanding as may be, so that the drive held them back, or the host had no time for
them. Which it was follows from the outstanding I/Os (Little's law: in a second, the sum of the times that the
drive took). Buckets of powers of two give that sum to a factor of 2, from above, so that the host is blamed
only where fewer than half of those that may be outstanding were, in every second. Threads that wait for their
I/O are full where each has one outstanding, whatever the other streams do. One of them alone is held up by an
I/O of its own that takes as long as the thread is late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from testdrive.act.counts import BUCKETS, US_NS, Counts, count
from testdrive.act.load import (
    IN_FLIGHT_MAX,
    READS,
    SECOND_NS,
    TOMB_RAIDER,
    TRANSACTIONS,
    WRITES,
)
from testdrive.manifest import Phase
from testdrive.recording import Recording

#: What may be missing of a load, or of a slice's small reads.
MISSING_MAX_SHARE = 0.001
#: What is due in so short a time before the end may be missing at any rate: no host is more exact.
END_NS = 10_000_000
#: Standard deviations by which a Poisson count may lie below its mean.
_DEVIATIONS = 5
#: Of the outstanding I/Os that are allowed; below it they held nothing back.
_FULL_SHARE = 0.5

LimitedBy = Literal["drive", "host"]


@dataclass(frozen=True)
class Missing:
    """What was not delivered.

    ``slice`` counts from 1 and is that with the fewest reads for its time. ``planned_reads_per_s`` is None
    where the recording does not say what was asked for.
    """

    arrivals_not_issued: int
    slice: int
    reads_per_s: float
    planned_reads_per_s: float | None
    limited_by: LimitedBy

    @property
    def reason(self) -> str:
        """A sentence of what is missing and who held it back."""
        if self.planned_reads_per_s is None:
            what = f"{self.arrivals_not_issued:,} I/Os that were due did not go"
        else:
            what = (
                f"{self.reads_per_s:,.0f} of {self.planned_reads_per_s:,.0f} reads/s in slice {self.slice},"
                f" and at the end {self.arrivals_not_issued:,} I/Os that were due had not gone"
            )
        return f"the load was not delivered: {what}; {WHO[self.limited_by]}"

    def to_json_object(self) -> dict[str, Any]:
        """As ``summary.json`` has it, in ``act.not_delivered``."""
        return asdict(self)


WHO: dict[str, str] = {
    "drive": "the drive held it back, with as many I/Os outstanding as may be",
    "host": "this host held it back, which says nothing about the drive (see testdrive doctor)",
}


def missing(recording: Recording, phase: Phase, reads: Sequence[int], slice_ns: int) -> Missing | None:
    """What is missing of a load that went on to its end; None where all but a thousandth of it went.

    Parameters
    ----------
    recording : Recording
        With rows or histograms.
    phase : Phase
        That of the load.
    reads : sequence of int
        The small reads of each whole slice.
    slice_ns : int
        How long a slice is.
    """
    settings = phase.settings or {}
    not_issued = int((phase.accounting or {}).get("arrivals_not_issued") or 0)
    rate = planned_reads_per_s(settings)
    slice_s = slice_ns / SECOND_NS
    scarce = min(range(len(reads)), key=lambda at: reads[at], default=None)
    short = rate is not None and scarce is not None and reads[scarce] < _least(settings, rate * slice_s)
    if not short and not_issued <= _may_be_missing(recording, phase, not_issued, slice_ns):
        return None
    return Missing(
        not_issued,
        (scarce or 0) + 1,
        reads[scarce] / slice_s if scarce is not None else 0.0,
        rate,
        limited_by(recording, phase),
    )


def planned_reads_per_s(settings: dict[str, Any]) -> float | None:
    """The small reads that a load asks for; None where it has none, or does not say."""
    stream = _reads(settings)
    arrivals = (stream or {}).get("arrivals") or {}
    rate = arrivals.get("rate_iops")
    if stream is None or rate is None:
        return None
    return float(rate) * float(stream.get("read_share", 1.0))


def _reads(settings: dict[str, Any]) -> dict[str, Any] | None:
    named = (READS, TRANSACTIONS)
    return next((each for each in settings.get("streams") or [] if each.get("name") in named), None)


def _in_flight_max(settings: dict[str, Any]) -> int:
    return int(settings.get("max_in_flight") or IN_FLIGHT_MAX)


def _least(settings: dict[str, Any], planned: float) -> float:
    """The fewest reads that complete in a slice whose reads all went: the outstanding ones come later."""
    stream = _reads(settings) or {}
    # Threads that read and write draw which comes next: no count of those varies more than a Poisson count.
    drawn = (stream.get("arrivals") or {}).get("process") == "poisson" or stream.get("name") == TRANSACTIONS
    varies = _DEVIATIONS * float(np.sqrt(planned)) if drawn else 0.0
    outstanding = min([_in_flight_max(settings), *_waiting_threads({"streams": [stream]}).values()])
    return planned * (1 - MISSING_MAX_SHARE) - varies - outstanding


def _may_be_missing(recording: Recording, phase: Phase, not_issued: int, slice_ns: int) -> float:
    """How many of the load's arrivals, which went or did not, may be missing."""
    if not not_issued:
        return 0.0
    counted = count(recording, phase, slice_ns, 1)
    due = not_issued + sum(
        int(each.ios[0] + each.failed[0]) for name, each in counted.items() if name != TOMB_RAIDER
    )
    planned_ns = int((phase.settings or {}).get("duration_ns") or 0)
    return due * max(MISSING_MAX_SHARE, END_NS / planned_ns if planned_ns else 0.0)


def limited_by(recording: Recording, phase: Phase) -> LimitedBy:
    """Who held back what did not go in time.

    A model has no host that could; and what a drive never answered is outstanding, and in no sum.
    """
    drive = recording.manifest.drive
    if (drive is not None and drive.modelled) or recording.manifest.counts.no_completion:
        return "drive"
    ran_ns = max((phase.end_ns or phase.start_ns) - phase.start_ns, 0)
    counted = count(recording, phase, SECOND_NS, max(-(-ran_ns // SECOND_NS), 1), US_NS)
    longest_us = 2.0 ** np.arange(BUCKETS)
    if _waited_for_one(counted, phase):
        return "drive"
    outstanding = {name: each.service @ longest_us / 1e6 for name, each in counted.items()}
    if TRANSACTIONS in _waiting_threads(phase.settings or {}):
        # The reads and the writes of the same threads.
        both = [outstanding.pop(name) for name in (READS, WRITES) if name in outstanding]
        outstanding[TRANSACTIONS] = np.sum(both, axis=0)
    full = [np.max(sum(outstanding.values())) >= _FULL_SHARE * _in_flight_max(phase.settings or {})]
    for name, threads in _waiting_threads(phase.settings or {}).items():
        full.append(name in outstanding and np.max(outstanding[name]) >= _FULL_SHARE * threads)
    return "drive" if any(full) else "host"


def _waited_for_one(counted: Mapping[str, Counts], phase: Phase) -> bool:
    """Whether a thread that was too late had waited for a single I/O of its own: for half of that time.

    All other threads may have had none outstanding.
    """
    behind = (phase.accounting or {}).get("cannot_keep_up") or {}
    name = behind.get("stream")
    if name not in _waiting_threads(phase.settings or {}):
        return False
    own = [READS, WRITES] if name == TRANSACTIONS else [name]
    found = [np.flatnonzero(counted[each].service.any(axis=0)) for each in own if each in counted]
    longest_ns = max((US_NS << int(buckets[-1]) for buckets in found if len(buckets)), default=0)
    return longest_ns >= _FULL_SHARE * int(behind["lag_ns"])


def _waiting_threads(settings: dict[str, Any]) -> dict[str, int]:
    """The threads of each stream whose threads have a schedule, and wait for their I/O."""
    return {
        str(each.get("name")): int(each.get("threads") or 1)
        for each in settings.get("streams") or []
        if (each.get("arrivals") or {}).get("process") == "act"
    }
