"""A bounded, ordered part of the rows, for measures that need the I/Os one after the other.

Sequentiality, time-weighted queue depth and the like cannot be had from sums. A recording of at most
:data:`SAMPLE_IOS_MAX` I/Os is taken whole, so that they are exact. Of a longer one, :data:`SLICES` contiguous
slices of time at equal distances are taken, and every value from them is published with ``sampled_ios``
beside it.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.recording import Arrays, Recording

#: Longest recording that is taken whole, and about how many I/Os are taken of a longer one.
SAMPLE_IOS_MAX = 2_000_000
#: Into how many slices of time the sample of a longer recording falls.
SLICES = 64

#: What is taken at most where many I/Os have the same time, as all have where a source had no times: the
#: first of them.
_ROWS_MAX = 2 * SAMPLE_IOS_MAX

_COLUMNS = (
    "intended_ns",
    "submit_ns",
    "latency_ns",
    "offset_bytes",
    "length_bytes",
    "opcode",
    "stream",
    "status",
)


@dataclass(frozen=True)
class Sample:
    """I/Os in the order of issue: ascending ``intended_ns``, ties in file order.

    Attributes
    ----------
    rows : dict of str to ndarray
        Every I/O that was outstanding at some time of a slice.
    slice_index : ndarray of int64
        The slice that each I/O was submitted in, or -1 if it was submitted before the slice that it reached
        into.
    starts_ns, ends_ns : ndarray of int64
        The slices, from the first submission to the last completion of the recording.
    whole : bool
        True if this is the whole recording.
    """

    rows: Arrays
    slice_index: NDArray[np.int64]
    starts_ns: NDArray[np.int64]
    ends_ns: NDArray[np.int64]
    whole: bool

    @property
    def sampled_ios(self) -> int | None:
        """The number of I/Os submitted in the slices, or None if they are all."""
        return None if self.whole else int((self.slice_index >= 0).sum())


def take_sample(
    recording: Recording, rows: Any, ios: int, *, first_ns: int, last_ns: int, reach_ns: int
) -> Sample:
    """Take the whole recording or slices of it.

    ``first_ns`` is the first submission, ``last_ns`` the last event, ``reach_ns`` the longest latency of any
    I/O.
    """
    rows = rows.select(*_COLUMNS)
    if ios <= SAMPLE_IOS_MAX:
        found = _in_order(recording.rows_in_file_order(rows))
        index = np.zeros(ios, np.int64)
        return Sample(found, index, np.array([first_ns]), np.array([last_ns]), whole=True)
    span_ns = max(last_ns - first_ns, SLICES)
    period_ns = -(-span_ns // SLICES)
    width_ns = max(period_ns * SAMPLE_IOS_MAX // ios, 1)
    starts = first_ns + period_ns * np.arange(SLICES, dtype=np.int64)
    touching = rows.filter(_touches(rows, starts, width_ns, reach_ns)).limit(_ROWS_MAX)
    found = _in_order(recording.rows_in_file_order(touching))
    if len(found["submit_ns"]) == _ROWS_MAX:
        # What comes after the last row that was taken is not known, and must not look idle.
        last_ns = int(found["submit_ns"].max())
        starts = starts[starts <= last_ns]
    since = found["submit_ns"] - first_ns
    index = np.where(since % period_ns < width_ns, since // period_ns, -1)
    return Sample(found, index, starts, np.minimum(starts + width_ns, last_ns), whole=False)


def _touches(rows: Any, starts: NDArray[np.int64], width_ns: int, reach_ns: int) -> Any:
    """Whether an I/O is outstanding at some time of a slice, or submitted in one.

    What reaches into a slice was submitted at most the longest latency before it. Ranges of submission times
    let whole row groups be left out unread; they come first, and what they let through is looked at exactly.
    """
    submit, first_ns, period_ns = rows.submit_ns, int(starts[0]), int(starts[1] - starts[0])
    place = (submit - first_ns) % period_ns
    exact = (place < width_ns) | (place + rows.latency_ns > period_ns)
    if reach_ns + width_ns > period_ns // 2:
        return exact
    ranges = [(submit >= int(start) - reach_ns) & (submit < int(start) + width_ns) for start in starts]
    return functools.reduce(operator.or_, ranges) & exact


def _in_order(found: Arrays) -> Arrays:
    order = np.argsort(found["intended_ns"], kind="stable")
    return {name: values[order] for name, values in found.items()}
