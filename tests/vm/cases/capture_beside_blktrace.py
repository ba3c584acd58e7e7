"""Capture and blktrace watch the same drive at once, and agree I/O by I/O.

blktrace hangs on the same points of the kernel, but writes through buffers and in a format of its own, and
blkparse takes it apart. Each captured row must have the queue event that blkparse prints, with the same
place, length, operation and flags; the issue and the completion that follow it must be those of the row.
"""

from __future__ import annotations

import dataclasses
import math
import re
import statistics
import subprocess
from collections import Counter, defaultdict, deque
from pathlib import Path

import duckdb
from guest import nvme

#: Both are told of an event one after the other, by the same function of the kernel. In between an emulated
#: processor may be taken away from the guest, which is rare, but takes as long as this machine is busy.
TOLERANCE_MEDIAN_NS = 50_000
#: Times further apart than a hundred times the usual, and those that blktrace does not have, of all.
LATE_SHARE_MAX = 0.01

GUEST = dataclasses.replace(nvme("256M"), programs=("blktrace", "dd", "blkdiscard"))

SCRIPT = """
set -eu
cd /tmp
drive=/dev/nvme0n1
job='{"version": 1, "drive": {"uri": "/dev/nvme0n1", "erase": "VM0"}, "output": "/tmp/run.rec", "phases":
      [{"kind": "synthetic", "block_bytes": 4096, "depth": 8, "read_share": 0.5, "ios": 3001}]}'

/usr/bin/blktrace -d $drive -D /tmp/trace -b 1024 -n 8 &
blktrace=$!
wait_until [ -e /sys/kernel/debug/block/nvme0n1/trace0 ]
testdrive-engine capture nvme0n1 -o /tmp/capture.rec >/tmp/capture.json &
capture=$!
wait_until tells /tmp/capture.json started

# Reads and writes at random places, eight at a time.
echo "$job" | testdrive-engine run >/tmp/run.json || { cat /tmp/run.json; exit 1; }
# With FUA; with flushes; trims; zeroes; through the page cache, which reads ahead and writes back merged.
/usr/bin/dd if=/dev/zero of=$drive bs=8k count=31 oflag=direct,dsync
/usr/bin/dd if=/dev/zero of=$drive bs=64k count=29 oflag=direct
for n in 1 2 3 4 5 6 7; do
    /usr/bin/dd if=/dev/zero of=$drive bs=4k count=1 seek=$((n * 100)) conv=notrunc,fsync
done
/usr/bin/blkdiscard -o 16M -l 8M -p 64K $drive
/usr/bin/blkdiscard -z -o 32M -l 2M -p 128K $drive
/usr/bin/dd if=$drive of=/dev/null bs=1M count=16
/usr/bin/dd if=/dev/zero of=$drive bs=4k count=500 seek=5000 conv=notrunc,fsync

kill -INT $capture
wait $capture
kill -INT $blktrace
wait $blktrace
cp -r /tmp/capture.rec /tmp/trace /job
"""

#: For instance `259,0    1       17     0.001234567   230  Q  WS 2048 + 8 [dd]`.
LINE = re.compile(
    r"\s*\d+,\d+\s+(?P<cpu>\d+)\s+\d+\s+(?P<seconds>\d+)\.(?P<nanoseconds>\d{9})\s+\d+\s+(?P<action>[QDC])"
    r"\s+(?P<letters>[A-Z]+)\s+(?:(?P<sector>\d+)(?:\s\+\s(?P<sectors>\d+))?\s)?"
)
FUA, PREFLUSH, SYNC, METADATA, READ_AHEAD = 1, 2, 4, 8, 16
READ, WRITE, TRIM, FLUSH, WRITE_ZEROES = range(5)


@dataclasses.dataclass(frozen=True)
class Event:
    """An event as blkparse prints it. Bytes, and the recording's numbers for operations and flags."""

    time_ns: int
    action: str
    opcode: int
    flags: int
    offset: int
    length: int


def check(job: Path) -> None:
    """Compare every row of the capture with blktrace's events."""
    events = blkparse(job / "trace")
    rows = captured(job / "capture.rec")
    queued = [event for event in events if event.action == "Q"]
    kinds = Counter(row["opcode"] for row in rows)
    assert min(kinds[READ], kinds[WRITE]) > 1500, kinds
    assert kinds[TRIM] == 128, kinds
    assert kinds[FLUSH] >= 38, kinds
    assert sum(1 for row in rows if row["flags"] & FUA) == 31
    pairs = paired(rows, queued)
    # blktrace's clock is the same, less its own start.
    shift = statistics.median(row["intended_ns"] - event.time_ns for row, event in pairs)
    near("queued", [abs(row["intended_ns"] - event.time_ns - shift) for row, event in pairs])
    near("issued and completed", later_times(rows, events, shift))


def paired(rows: list[dict[str, int]], queued: list[Event]) -> list[tuple[dict[str, int], Event]]:
    """Each row with the event of what it tells; of several that tell the same, in the order of time.

    The order of all rows need not be blktrace's: between the two a processor may be away while the other goes
    on.
    """
    of_kind: dict[tuple[int, int, int, int], deque[Event]] = defaultdict(deque)
    for event in queued:
        of_kind[event.opcode, event.flags, event.offset, event.length].append(event)
    more = Counter(map(told, rows))
    more.subtract({kind: len(found) for kind, found in of_kind.items()})
    differing = {kind: count for kind, count in more.items() if count}
    assert not differing, f"operation, flags, offset, length, and how many more the capture has: {differing}"
    return [(row, of_kind[told(row)].popleft()) for row in rows]


def near(what: str, apart: list[float]) -> None:
    """Hold differences of time against the tolerance; those that are not to be had are infinite."""
    late = sum(1 for each in apart if each > 100 * TOLERANCE_MEDIAN_NS)
    print(
        f"       {what}: {len(apart)} times, apart by {statistics.median(apart) / 1e3:.0f} us in the median,"
        f" {max(apart) / 1e6:.1f} ms at most, {late} late"
    )
    assert statistics.median(apart) <= TOLERANCE_MEDIAN_NS
    assert late <= LATE_SHARE_MAX * len(apart)


def told(row: dict[str, int]) -> tuple[int, int, int, int]:
    """What blktrace can tell of a row: of 48-byte records it cannot tell write-zeroes from writes."""
    opcode = WRITE if row["opcode"] == WRITE_ZEROES else row["opcode"]
    return opcode, row["flags"], row["offset_bytes"], row["length_bytes"]


def later_times(rows: list[dict[str, int]], events: list[Event], shift: float) -> list[float]:
    """How far issue and completion of each row are from blktrace's.

    The issue is the first one after the queueing that covers the I/O's first byte, the completion the first
    after that which covers its last: nothing else is under way over the same bytes, but for a few of the
    random I/Os, whose times could then be each other's and are left out. There need be none in the order of
    time: where a processor was away in between, one tracer's stamp of an event may lie behind the next event.
    """
    apart = []
    under_way = busy_places(rows)
    for row in rows:
        if row["opcode"] == FLUSH or row["intended_ns"] in under_way:
            continue
        first, last = row["offset_bytes"], row["offset_bytes"] + row["length_bytes"] - 1
        opcode = told(row)[0]
        issue_ns = next_over(events, "D", opcode, first, row["intended_ns"] - shift)
        complete_ns = next_over(events, "C", opcode, last, issue_ns)
        apart.append(abs(row["submit_ns"] - issue_ns - shift))
        apart.append(abs(row["submit_ns"] + row["latency_ns"] - complete_ns - shift))
    assert len(apart) > 2 * 0.9 * (len(rows) - sum(1 for row in rows if row["opcode"] == FLUSH))
    return apart


def busy_places(rows: list[dict[str, int]]) -> set[int]:
    """When rows were queued that touch bytes of another that was under way."""
    busy: set[int] = set()
    open_rows: list[dict[str, int]] = []
    for row in rows:
        now = row["intended_ns"]
        open_rows = [other for other in open_rows if other["submit_ns"] + other["latency_ns"] >= now]
        for other in open_rows:
            apart = (
                other["offset_bytes"] + other["length_bytes"] <= row["offset_bytes"]
                or row["offset_bytes"] + row["length_bytes"] <= other["offset_bytes"]
            )
            if not apart:
                busy |= {now, other["intended_ns"]}
        open_rows.append(row)
    return busy


def next_over(events: list[Event], action: str, opcode: int, byte: int, from_ns: float) -> float:
    """When the first event over a byte comes from a time on, less what clocks are apart; infinite: never."""
    for event in events[index_from(events, from_ns - TOLERANCE_MEDIAN_NS) :]:
        over = event.offset <= byte < event.offset + event.length
        if event.action == action and event.opcode == opcode and over:
            return event.time_ns
    return math.inf


def index_from(events: list[Event], time_ns: float) -> int:
    """The place of the first event from a time on, in a list in the order of time."""
    low, high = 0, len(events)
    while low < high:
        middle = (low + high) // 2
        if events[middle].time_ns < time_ns:
            low = middle + 1
        else:
            high = middle
    return low


def captured(recording: Path) -> list[dict[str, int]]:
    """The rows of a recording, in the order of queueing."""
    relation = duckdb.sql(f"select * from '{recording}/ios/*.parquet' order by intended_ns")
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


def blkparse(trace: Path) -> list[Event]:
    """The queue, issue and completion events that blkparse prints, in the order of time."""
    command = ["blkparse", "-D", trace, "-i", "nvme0n1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    events = [parsed(line) for line in done.stdout.splitlines()]
    found = [event for event in events if event is not None]
    assert found, done.stdout[:1000]
    return sorted(found, key=lambda event: event.time_ns)


def parsed(line: str) -> Event | None:
    match = LINE.match(line)
    if match is None:
        return None
    sectors = int(match["sectors"] or 0)
    opcode, flags = meaning(match["letters"], sectors)
    # A flush has no place, whatever stands there.
    sector = int(match["sector"] or 0) if sectors else 0
    time_ns = int(match["seconds"]) * 10**9 + int(match["nanoseconds"])
    return Event(time_ns, match["action"], opcode, flags, sector * 512, sectors * 512)


def meaning(letters: str, sectors: int) -> tuple[int, int]:
    """Operation and flags of blkparse's letters: flush, operation, FUA, and others behind."""
    flags = 0
    if letters[0] == "F" and len(letters) > 1:
        letters, flags = letters[1:], PREFLUSH
    operations = {"R": READ, "W": WRITE, "D": TRIM, "F": FLUSH, "N": FLUSH if flags else WRITE_ZEROES}
    opcode = operations[letters[0]]
    for letter in letters[1:]:
        flags |= {"F": FUA, "S": SYNC, "M": METADATA, "A": READ_AHEAD}[letter]
    if sectors == 0 and flags & PREFLUSH:
        # The preflush of an empty write is the whole of it.
        return FLUSH, flags & ~PREFLUSH
    return opcode, flags
