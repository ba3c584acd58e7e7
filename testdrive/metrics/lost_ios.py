"""I/Os of a run that the drive never answered for themselves, and how long they were waited for at least.

An I/O is lost if it ended without an answer of the drive to it: it was waited for in vain (``timed_out``,
ETIMEDOUT, by testdrive's ``io_timeout_s`` or by the kernel's own limit), the drive ended it because it was
told to (``aborted``: Command Abort Requested, aborted due to SQ deletion, and those of a path that failed),
it went with a reset of the controller or was given up by the kernel (``cancelled``: ECANCELED, ENOLINK, and
EIO by the user-space driver), or there was no drive any more (``drive_gone``: ENODEV, ENXIO, ESHUTDOWN,
ENOMEDIUM, EBADF). An I/O that the drive answered with an error is none. By the block path EIO may
stand for either, since the kernel says no more, and is not counted here.

Lost I/Os are no part of any latency figure. But what each was waited for is a lower bound of the latency that
it would have had (it is censored on the right: Kaplan and Meier, J. Am. Stat. Assoc. 53, 1958), so that every
quantile over the I/Os that completed and the lost ones together, with that bound in the place of a latency,
is a lower bound of the true one: ``percentiles_at_least_ns``, by nearest rank, for each percentile that has
the samples that the metric percentiles asks for, and ``max``. An I/O that no answer came for before the run
ended was waited for from its submission to the end of its phase. ``first_ns`` is when the first of them was
submitted, ``last_ns`` until when the last of them was waited for. None lost: zeros and nulls. Of a recording
that keeps histograms only ``max`` is told. Code: ``not_a_run``, since a trace does not tell lost I/Os apart.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any

import ibis

from testdrive.metrics.metric import Metric, Values
from testdrive.metrics.percentiles import SAMPLES_MIN
from testdrive.metrics.scans import QUANTILES, Scan
from testdrive.metrics.scans.distribution import distributions

NOT_A_RUN = "not_a_run"
#: From here on a status is the drive's own (docs/recording-format.md).
_NVME = 65_536
#: Type and code of a status, without what else is in its field.
_TYPE_AND_CODE = 0x7FF
#: Command Abort Requested, Aborted due to SQ Deletion; Host Pathing Error, Command Aborted By Host.
_ABORTED = (0x007, 0x008, 0x370, 0x371)
#: As the engine has it (``is_gone``).
_GONE = (errno.ENODEV, errno.ENXIO, errno.ESHUTDOWN, errno.ENOMEDIUM, errno.EBADF)
_KINDS = ("timed_out", "aborted", "cancelled", "drive_gone")
_NONE_LOST: dict[str, Any] = {
    "ios": 0,
    **dict.fromkeys(_KINDS, 0),
    "statuses": {},
    **dict.fromkeys(("first_ns", "last_ns", "waited_max_ns", "percentiles_at_least_ns")),
}


def compute(scan: Scan) -> Values:
    """``lost_ios``: counts by what became of them, by status, when, and lower bounds of the latencies."""
    if scan.recording.manifest.kind != "run":
        return METRIC.absent(NOT_A_RUN)
    if not scan.tallies["ios"][scan.tallies["failed"]].sum():
        return {"lost_ios": _NONE_LOST, "lost_ios_code": None}
    rows = _waited(scan)
    lost = rows.filter(rows.lost != "")
    found = scan.execute(
        lost.group_by("lost", "status").aggregate(
            ios=lost.count(),
            first_ns=lost.submit_ns.min(),
            last_ns=(lost.submit_ns + lost.waited_ns).max(),
            waited_max_ns=lost.waited_ns.max(),
        )
    )
    if not len(found["ios"]):
        return {"lost_ios": _NONE_LOST, "lost_ios_code": None}
    order = found["status"].argsort()
    values = {
        "ios": int(found["ios"].sum()),
        **{kind: int(found["ios"][found["lost"] == kind].sum()) for kind in _KINDS},
        "statuses": {str(int(found["status"][at])): int(found["ios"][at]) for at in order},
        "first_ns": int(found["first_ns"].min()),
        "last_ns": int(found["last_ns"].max()),
        "waited_max_ns": int(found["waited_max_ns"].max()),
        "percentiles_at_least_ns": _at_least(scan, rows, found),
    }
    return {"lost_ios": values, "lost_ios_code": None}


def _waited(scan: Scan) -> Any:
    """The rows of measured phases with what became of those that were lost (``lost``, empty for others) and
    how long they were waited for (``waited_ns``).
    """
    spans = scan.recording.measured_spans()
    rows = scan.rows
    if scan.recording.manifest.kept is not None:
        rows = scan.recording.slowest_rows()
        rows = rows.filter(rows.phase.isin([span.phase for span in spans] or [-1]))
        shift_ns = _by_phase(rows, {span.phase: span.shift_ns for span in spans})
        rows = rows.mutate(submit_ns=rows.submit_ns - shift_ns)
    status, own = rows.status, (rows.status & _TYPE_AND_CODE).isin(_ABORTED)
    drive = scan.recording.manifest.drive
    cancelled = [errno.ECANCELED, errno.ENOLINK]
    if drive is not None and drive.path == "userspace":
        cancelled.append(errno.EIO)
    lost = ibis.cases(
        (status == errno.ETIMEDOUT, "timed_out"),
        ((status >= _NVME) & own, "aborted"),
        (status.isin(cancelled), "cancelled"),
        (status.isin(_GONE), "drive_gone"),
        else_="",
    )
    end_ns = _by_phase(rows, {span.phase: span.end_ns - span.shift_ns for span in spans})
    to_the_end_ns = ibis.greatest(end_ns - rows.submit_ns, 0)
    return rows.mutate(lost=lost, waited_ns=(rows.latency_ns >= 0).ifelse(rows.latency_ns, to_the_end_ns))


def _by_phase(rows: Any, values: Mapping[int, int]) -> Any:
    """A value for each phase, and 0 for others."""
    none = ibis.literal(0, type="int64")
    cases = [(rows.phase == phase, ibis.literal(value, type="int64")) for phase, value in values.items()]
    return ibis.cases(*cases, else_=none) if cases else none


def _at_least(scan: Scan, rows: Any, found: Any) -> dict[str, int | None]:
    """Lower bounds of the percentiles over the I/Os that completed and those that were lost."""
    longest = max(int(found["waited_max_ns"].max()), scan.latency.whole.max or 0)
    if scan.recording.manifest.kept is not None:
        return {**dict.fromkeys(QUANTILES), "max": longest}
    known = rows.filter((rows.lost != "") | ((rows.status == 0) & (rows.latency_ns >= 0)))
    known = known.mutate(opcode=ibis.literal(0, type="int32"))
    whole = distributions(scan.recording, known, "waited_ns", weighted=False).whole
    values = {
        name: whole.quantile(millionths) if whole.n >= SAMPLES_MIN.get(name, 1) else None
        for name, millionths in QUANTILES.items()
    }
    return {**values, "max": longest}


METRIC = Metric(
    "lost I/Os",
    ("lost_ios", "lost_ios_code"),
    ("status", "submit_ns"),
    compute,
    needs="histograms",
)
