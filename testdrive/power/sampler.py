"""The sampler: reads meters beside a run, at a low rate, and never gets in the run's way.

Each meter is read by a thread of its own in the control plane's process, which the engine is not part of: one
that hangs holds up neither the run nor another meter. What is read is written at once, line by line. A meter
that fails is tried again and again, and is a warning in the recording; it never ends a run.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from testdrive.errors import TestdriveError, UsageError
from testdrive.events import Event, Started, Warned
from testdrive.manifest import read_manifest
from testdrive.power.attaching import Attachment, attach, attachment_of
from testdrive.power.choice import Choice, open_meter
from testdrive.power.clock import ClockWatch, Tie
from testdrive.power.files import MeterWriter
from testdrive.power.integral import GAP_INTERVALS
from testdrive.power.meter import Meter, Source

#: After so many failures one after the other a meter is only tried once a second.
_FAILURES_MAX = 10
_RETRY_S = 1.0
#: How long the end waits for a meter that does not answer.
_END_PATIENCE_S = 3.0
#: Meters are read behind whatever else wants the processors.
_NICENESS = 5
#: A meter that is read as seldom as this is told of at its first failure.
_SLOW_NS = 1_000_000_000
FAILED_CODE = "meter_failed"


class Sampler:
    """Meters that were opened, to be read beside one run.

    Use it as a context manager around the run: reading begins at once, so that what stands before the
    recording's time zero is from before the run. Hand it every event of the engine with :meth:`follow`. The
    meters of `choices` were asked for; those of `wanted` are read if they can be.

    Raises
    ------
    UsageError
        On making it: a meter cannot be opened. Nothing was written, and none is left open.
    """

    def __init__(self, choices: Sequence[Choice], wanted: Sequence[Choice] = ()) -> None:
        self._meters: list[Meter] = []
        self._logs: list[Attachment] = []
        self._recording: Path | None = None
        self._writer = MeterWriter()
        self._watch = ClockWatch()
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._troubles: list[Warned] = []
        #: The meters that are told of already, each once.
        self._failed: set[str] = set()
        self._told = 0
        self._threads: list[threading.Thread] = []
        try:
            for choice in choices:
                if choice.kind == "csv":
                    self._logs.append(attachment_of(choice))
                else:
                    self._meters.append(open_meter(choice))
            for choice in wanted:
                with contextlib.suppress(UsageError):
                    self._meters.append(open_meter(choice))
        except BaseException:
            self._close()
            raise

    @property
    def sources(self) -> list[Source]:
        """What each meter says of itself."""
        return [meter.source for meter in self._meters]

    @property
    def logs(self) -> list[Attachment]:
        """The logs of other meters that are brought in when the run has ended."""
        return list(self._logs)

    @property
    def has_drive_meter(self) -> bool:
        """Whether the drive's power is among what is measured."""
        read = any(meter.source.of == "drive" and meter.source.kind != "nvme" for meter in self._meters)
        return read or any(log.of == "drive" for log in self._logs)

    @property
    def has_meters(self) -> bool:
        """Whether anything is read at all."""
        return bool(self._meters or self._logs)

    def __enter__(self) -> Sampler:
        for number, meter in enumerate(self._meters):
            self._writer.source(number, meter.source)
            thread = threading.Thread(target=self._sample, args=(number, meter), daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        patience_until = time.monotonic() + _END_PATIENCE_S
        for thread, meter in zip(self._threads, self._meters, strict=True):
            thread.join(max(patience_until - time.monotonic(), 0.0))
            if thread.is_alive():
                self._trouble(meter, "does not answer any more")
        last = self._watch.last()
        for tie in self._ties_of_capture() if last is None else [last]:
            self._writer.tie(tie)
        self._writer.close()
        self._attach_logs()
        for trouble in self._troubles:
            self._writer.warning(trouble.code, trouble.message, trouble.remedy or "")
        self._close()

    def _ties_of_capture(self) -> list[Tie]:
        """A capture's clock is the kernel's monotonic one, less the whole seconds that its manifest tells.

        That holds at its zero and now alike: both are told, so that nobody takes one word for a late one.
        """
        if self._recording is None:
            return []
        try:
            manifest = read_manifest(self._recording)
        except TestdriveError:
            return []
        zero_ns = manifest.clock.shift_ns
        if manifest.kind != "capture" or manifest.clock.source != "clock_monotonic" or not zero_ns:
            return []
        now_ns, unix_ns = time.monotonic_ns(), time.time_ns()
        return [Tie(0, zero_ns, unix_ns - now_ns + zero_ns), Tie(now_ns - zero_ns, now_ns, unix_ns)]

    def _attach_logs(self) -> None:
        """Bring in what other meters logged; what cannot be is a warning with the way to do it later."""
        for log in self._logs if self._recording is not None and self._recording.is_dir() else []:
            assert self._recording is not None
            try:
                attach(self._recording, log)
            except Exception as error:
                # Whatever is wrong with somebody's file, the run has ended and its recording stands.
                remedy = f"bring it in later: testdrive power attach {self._recording} {log.file}"
                self._troubles.append(
                    Warned(event="warning", code=FAILED_CODE, message=str(error), remedy=remedy)
                )

    def close(self) -> None:
        """Let go of the meters of a run that is not made."""
        self._close()

    def follow(self, event: Event) -> list[Warned]:
        """Take an event of the engine as it arrives; return what went wrong with meters meanwhile."""
        monotonic_ns, unix_ns = time.monotonic_ns(), time.time_ns()
        if isinstance(event, Started) and event.output is not None:
            self._recording = event.output
            self._writer.begin(event.output)
        tie = self._watch.observe(event, monotonic_ns, unix_ns)
        if tie is not None:
            self._writer.tie(tie)
        return self.news()

    def news(self) -> list[Warned]:
        """What went wrong with meters and was not told yet."""
        with self._lock:
            failure = self._writer.failure
            if failure is not None:
                self._writer.failure = None
                message = f"what the meters show cannot be written: {failure.strerror or failure}"
                self._troubles.append(
                    Warned(event="warning", code=FAILED_CODE, message=message, remedy="make room on the disk")
                )
            fresh = self._troubles[self._told :]
            self._told = len(self._troubles)
        return fresh

    def _sample(self, number: int, meter: Meter) -> None:
        with contextlib.suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        interval_s = meter.source.interval_ns / 1e9
        due_s = time.monotonic()
        failures = 0
        while True:
            ending = self._ending.is_set()
            failures = 0 if self._read(number, meter, failures) else failures + 1
            # The last reading is made after the end, so that the end lies within what was read.
            if ending:
                return
            due_s += interval_s if failures < _FAILURES_MAX else max(interval_s, _RETRY_S)
            now_s = time.monotonic()
            if due_s < now_s:
                # Readings that were missed are missing: making up for them would only be a burst.
                due_s = now_s
            self._ending.wait(due_s - now_s)

    def _read(self, number: int, meter: Meter, failures: int) -> bool:
        before_ns = time.monotonic_ns()
        try:
            values = meter.read()
        except Exception as error:
            # A reading that failed once is told by the share that was measured; a meter that fails is told.
            if failures + 1 == (GAP_INTERVALS if meter.source.interval_ns < _SLOW_NS else 1):
                self._trouble(meter, f"could not be read: {error or type(error).__name__}")
            return False
        self._writer.sample(number, (before_ns + time.monotonic_ns()) // 2, values)
        return True

    def _trouble(self, meter: Meter, what: str) -> None:
        with self._lock:
            if meter.source.name in self._failed:
                return
            self._failed.add(meter.source.name)
            self._troubles.append(
                Warned(
                    event="warning",
                    code=FAILED_CODE,
                    message=f"the meter {meter.source.name} {what}",
                    remedy="look at the meter; what it missed is not in this recording's figures of power",
                )
            )

    def _close(self) -> None:
        self._writer.close()
        for meter in self._meters:
            with contextlib.suppress(Exception):
                meter.close()
