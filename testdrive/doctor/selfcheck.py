"""What the engine does here, now: the cost of an I/O, and how late it is on a schedule."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.doctor.finding import Finding, ok, problem, warning
from testdrive.errors import TestdriveError
from testdrive.job import DriveRequest, Job, Phase, RateArrivals, SyntheticPhase
from testdrive.report import units

_DRIVE = "null:?size=1TiB"
_RATE_IOPS = 20_000.0
_CLOSED_NS = 300_000_000
_PACED_NS = 1_000_000_000
#: A schedule that is kept within this adds nothing that can be seen to the response times of any drive.
LATENESS_GOOD_NS = 20_000
#: Beyond this, the tail of response times in an open loop is the host's and not the drive's.
LATENESS_BAD_NS = 1_000_000
#: Above half of what the generator does with nothing to wait for, it is no longer a small part of the cost.
_SHARE_USED = 0.5


@dataclass(frozen=True)
class Measured:
    """What a short run of the engine came to on the null path, which completes everything at once.

    Attributes
    ----------
    cost_ns : float
        Of an I/O that is issued, completed and recorded, on one thread in a closed loop.
    lateness_p50_ns, lateness_p99_ns, lateness_max_ns : int
        Submission less schedule, nearest rank, of an open loop of 20,000 I/Os per second over a second.
    build : str
        ``release`` or ``debug``.
    """

    cost_ns: float
    lateness_p50_ns: int
    lateness_p99_ns: int
    lateness_max_ns: int
    build: str


def findings(directory: Path) -> Iterator[Finding]:
    """The engine's build, its cost and its pacing; one problem where it does not run."""
    try:
        measured = measure(directory)
    except (TestdriveError, OSError) as error:
        yield problem(
            "engine",
            f"it does not run: {error}",
            "nothing can be tested",
            "`make install` builds engine and package",
            prevents_runs=True,
        )
        return
    yield from judged(measured)


def judged(measured: Measured) -> Iterator[Finding]:
    """What was measured, as findings."""
    if measured.build == "debug":
        yield problem(
            "engine",
            "a debug build",
            "an I/O costs ten times as much, and is late: figures are the engine's",
            "`make install` makes a release build",
        )
    else:
        yield ok("engine", f"a {measured.build} build, which runs")
    rate_iops = 1e9 / measured.cost_ns
    yield ok(
        "generator_cost",
        f"{units.time(measured.cost_ns)} for an I/O: one thread issues and records"
        f" {units.number(rate_iops, 2)} IOPS at most, without a kernel and a drive. Closed loops up to about"
        f" {units.number(rate_iops * _SHARE_USED, 2)} IOPS a thread are the drive's own",
    )
    shown = (
        f"p50 {units.time(measured.lateness_p50_ns)}, p99 {units.time(measured.lateness_p99_ns)},"
        f" max {units.time(measured.lateness_max_ns)} late at {units.iops(_RATE_IOPS)}"
    )
    if measured.lateness_p99_ns <= LATENESS_GOOD_NS:
        yield ok("generator_pacing", f"{shown}: this host keeps a schedule")
    else:
        late = measured.lateness_p99_ns > LATENESS_BAD_NS
        meaning = (
            "this host cannot keep a schedule: response times of open loops and timed replays are its own."
            " Closed loops, and service times, still hold"
            if late
            else "one I/O in a hundred is late by as much as fast drives take: p99 of response times is"
            " partly the host's"
        )
        yield (problem if late else warning)(
            "generator_pacing",
            shown,
            meaning,
            "mend what is said of CPUs above, stop other work, and run the doctor again",
        )


def measure(directory: Path) -> Measured:
    """Run the engine for a little over a second, with a recording beside those that will be made.

    Raises
    ------
    TestdriveError
        The engine is not there, or does not do what it is asked.
    OSError
        No recording can be made in the directory.
    """
    from testdrive.engine import run_job
    from testdrive.recording import Recording

    paced = RateArrivals(process="constant", rate_iops=_RATE_IOPS)
    phases: list[Phase] = [
        SyntheticPhase(kind="synthetic", name="closed", duration_ns=_CLOSED_NS),
        SyntheticPhase(kind="synthetic", name="paced", duration_ns=_PACED_NS, arrivals=paced),
    ]
    with tempfile.TemporaryDirectory(prefix=".testdrive-doctor-", dir=directory) as scratch:
        output = Path(scratch, "check.rec")
        run_job(Job(drive=DriveRequest(uri=_DRIVE), output=output, phases=phases))
        with Recording.open(output) as recording:
            closed = recording.manifest.phases[0]
            rows = recording.all_rows()
            closed_rows, paced_rows = rows.filter(rows.phase == 0), rows.filter(rows.phase == 1)
            ios = recording.execute(closed_rows.aggregate(ios=closed_rows.count()))["ios"][0]
            # As many as the rate says, which is few enough to look at them all.
            late = paced_rows.select(late_ns=paced_rows.submit_ns - paced_rows.intended_ns)
            late_ns = np.sort(recording.execute(late)["late_ns"])
            span_ns = (closed.end_ns or 0) - closed.start_ns
            return Measured(
                cost_ns=span_ns / max(int(ios), 1),
                lateness_p50_ns=_nearest_rank(late_ns, 0.5),
                lateness_p99_ns=_nearest_rank(late_ns, 0.99),
                lateness_max_ns=_nearest_rank(late_ns, 1.0),
                build=recording.manifest.tool.build,
            )


def _nearest_rank(ascending: NDArray[Any], quantile: float) -> int:
    """The least value that at least this share of the values do not exceed."""
    return int(ascending[max(math.ceil(quantile * len(ascending)) - 1, 0)])
