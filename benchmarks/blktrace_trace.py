"""Binary traces as blktrace leaves them, of any length: a file for each CPU, in the kernel's own layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

#: The name before `.blktrace.CPU`.
NAME = "made"
CPUS = 8
_BATCH_IOS = 1 << 19
_DEVICE = (259 << 20) | 0
_MAGIC_V7 = 0x65617407
_READ, _WRITE, _SYNC, _NOTE = 1 << 0, 1 << 1, 1 << 3, 1 << 10
_QUEUED, _GOT, _INSERTED, _ISSUED, _COMPLETED = 1, 4, 12, 7, 8

RECORD = np.dtype(
    [
        ("magic", "<u4"),
        ("sequence", "<u4"),
        ("time_ns", "<u8"),
        ("sector", "<u8"),
        ("bytes", "<u4"),
        ("action", "<u4"),
        ("pid", "<u4"),
        ("device", "<u4"),
        ("cpu", "<u4"),
        ("error", "<u2"),
        ("pdu_bytes", "<u2"),
    ]
)


@dataclass(frozen=True)
class Kind:
    """Which events a trace has, after how many nanoseconds each."""

    name: str
    events: tuple[tuple[int, int], ...]


#: What blktrace records where it is not told what to: with an I/O scheduler, five events of each I/O.
ALL = Kind("all events", ((_QUEUED, 0), (_GOT, 200), (_INSERTED, 500), (_ISSUED, 1_200), (_COMPLETED, 0)))
#: `blktrace -a issue -a complete`: two events of each I/O, so that most is to be done for each event.
FEWEST = Kind("issue and completion only", ((_ISSUED, 0), (_COMPLETED, 0)))


def write(directory: Path, kind: Kind, ios: int) -> int:
    """Write a trace of 70 % reads at random places, some 40 under way at once; how many events it has.

    The submitting process moves between CPUs, and completions come on another CPU than submissions as often
    as not. Nothing of this is read by the programs that are measured but what a real trace has as well.
    """
    random = np.random.default_rng(7)
    sequences = np.zeros(CPUS, dtype=np.uint64)
    files = [(directory / f"{NAME}.blktrace.{cpu}").open("wb") for cpu in range(CPUS)]
    try:
        files[0].write(_process_names())
        held = np.empty(0, dtype=RECORD)
        for first in range(0, ios, _BATCH_IOS):
            count = min(_BATCH_IOS, ios - first)
            events = np.concatenate([held, _events(kind, first, count, random)])
            events.sort(order="time_ns", kind="stable")
            # The next batch may begin before the last of this one completed.
            until_ns = _queued_ns(first + count) if first + count < ios else np.iinfo(np.uint64).max
            held = events[events["time_ns"] >= until_ns]
            _append(files, events[events["time_ns"] < until_ns], sequences)
    finally:
        for file in files:
            file.close()
    return ios * len(kind.events)


def repeat(files: Sequence[Path], directory: Path, events_least: int) -> int:
    """Write a real trace again and again, times and sequences going on; how many events that makes.

    Parameters
    ----------
    files
        The trace's files, one a CPU, of version 7 and little-endian.
    events_least
        As often as it takes to have so many.
    """
    read = [_RealFile(path) for path in files]
    first_ns = min(int(file.times_ns.min()) for file in read if len(file.times_ns))
    last_ns = max(int(file.times_ns.max()) for file in read if len(file.times_ns))
    events = sum(len(file.times_ns) for file in read)
    times = -(-events_least // events)
    for file in read:
        path = directory / f"{NAME}.blktrace.{file.cpu}"
        with path.open("wb") as out:
            for number in range(times):
                out.write(file.shifted(number, number * (last_ns - first_ns + 1_000)))
    # blkparse stops looking for files at the first CPU that has none.
    for cpu in range(max(file.cpu for file in read)):
        (directory / f"{NAME}.blktrace.{cpu}").touch()
    return times * events


class _RealFile:
    """The bytes of one CPU's file, and where in it what changes from one repetition to the next."""

    def __init__(self, path: Path) -> None:
        self.content = np.fromfile(path, dtype=np.uint8)
        starts, at, cpu = [], 0, None
        while at < len(self.content):
            record = self.content[at : at + RECORD.itemsize].view(RECORD)[0]
            if not int(record["action"]) >> 16 & _NOTE:
                starts.append(at)
                cpu = int(record["cpu"])
            at += RECORD.itemsize + int(record["pdu_bytes"])
        #: As the records say; the name may say another. Of a file without events, as the name says.
        self.cpu = int(path.suffix[1:]) if cpu is None else cpu
        place = np.array(starts, dtype=np.int64)[:, None]
        fields = RECORD.fields
        assert fields is not None, "the type has named fields"
        self._times = place + fields["time_ns"][1] + np.arange(8)
        self._sequences = place + fields["sequence"][1] + np.arange(4)
        self.times_ns = self.content[self._times].view("<u8").ravel()

    def shifted(self, number: int, by_ns: int) -> bytes:
        """The file, later, and numbered on."""
        count = len(self.times_ns)
        sequences = np.arange(1, count + 1, dtype="<u4") + np.uint32(number * count)
        content = self.content.copy()
        content[self._times] = (self.times_ns + np.uint64(by_ns)).view(np.uint8).reshape(count, 8)
        content[self._sequences] = sequences.view(np.uint8).reshape(count, 4)
        return content.tobytes()


def _queued_ns(number: int) -> int:
    return 1_000_000_000 + number * 2_000


def _events(kind: Kind, first: int, count: int, random: np.random.Generator) -> npt.NDArray[np.void]:
    number = np.arange(first, first + count, dtype=np.uint64)
    queued_ns = np.uint64(_queued_ns(0)) + number * np.uint64(2_000)
    latency_ns = random.lognormal(np.log(60_000), 0.5, count).astype(np.uint64) + np.uint64(10_000)
    reads = random.random(count) < 0.7
    submitting = random.integers(0, CPUS, count)
    completing = np.where(random.random(count) < 0.5, submitting, random.integers(0, CPUS, count))
    batch = np.zeros((len(kind.events), count), dtype=RECORD)
    for records, (act, after_ns) in zip(batch, kind.events, strict=True):
        ends = act == _COMPLETED
        records["magic"] = _MAGIC_V7
        # So few of a device's places are under way at once that no two of them are ever the same.
        records["sector"] = (number * np.uint64(7_919) % np.uint64(1 << 20)) * np.uint64(2_048)
        records["bytes"] = np.where(number % np.uint64(8) == 0, 131_072, 4_096)
        records["action"] = (np.where(reads, _READ, _WRITE | _SYNC) << 16) | act
        records["pid"] = np.where(ends, 0, 4_000 + submitting)
        records["device"] = _DEVICE
        records["time_ns"] = queued_ns + (np.uint64(1_500) + latency_ns if ends else np.uint64(after_ns))
        records["cpu"] = completing if ends else submitting
    flat: npt.NDArray[np.void] = batch.reshape(-1)
    return flat


def _append(
    files: Sequence[BinaryIO], events: npt.NDArray[np.void], sequences: npt.NDArray[np.uint64]
) -> None:
    for cpu, file in enumerate(files):
        own = events[events["cpu"] == cpu]
        own["sequence"] = sequences[cpu] + np.arange(1, len(own) + 1, dtype=np.uint64)
        sequences[cpu] += np.uint64(len(own))
        own.tofile(file)


def _process_names() -> bytes:
    """The notes that tell blkparse what the processes are called."""
    notes = b""
    for pid in [0, *range(4_000, 4_000 + CPUS)]:
        name = f"process-{pid}".encode().ljust(16, b"\0")
        note = np.zeros(1, dtype=RECORD)
        note["magic"], note["action"], note["pid"] = _MAGIC_V7, _NOTE << 16, pid
        note["device"], note["pdu_bytes"] = _DEVICE, len(name)
        notes += note.tobytes() + name
    return notes
