"""What act_storage's configuration comes to: rates and sizes of each stream of I/Os."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: What one drive is asked for at a rating of 1.
READS_PER_S_AT_1X, WRITES_PER_S_AT_1X = 2_000, 1_000
#: Records are stored in multiples of this.
STORED_GRAIN_BYTES = 16
KIB = 1_024
#: No drive has shorter blocks.
BLOCK_MIN_BYTES = 512
SECOND_NS = 1_000_000_000
#: Outstanding I/Os beyond which further ones wait, and are late.
IN_FLIGHT_MAX = 1_024
#: The most memory that refilled buffers take, in the engine.
BUFFERS_MAX_BYTES = 1 << 30

READS, LARGE_READS, LARGE_WRITES, WRITES, TOMB_RAIDER = (
    "reads",
    "large-block-reads",
    "large-block-writes",
    "writes",
    "tomb-raider",
)
#: Small reads and committed writes of the same threads, which draw which of the two comes next.
TRANSACTIONS = "reads-and-writes"


@dataclass(frozen=True)
class Load:
    """The derived load of all drives together, in act_storage's own terms.

    Attributes
    ----------
    reads_per_s : int
        Small reads: the clients' and those that updates make.
    writes_per_s : int
        Small writes, which only ``commit-to-device`` makes.
    stored_bytes, stored_max_bytes : int
        Sizes of the smallest and the largest record, rounded up to 16 bytes.
    large_reads_per_s, large_writes_per_s : float
        Large blocks, of writes and of the defragmentation that they cause.
    """

    reads_per_s: int
    writes_per_s: int
    stored_bytes: int
    stored_max_bytes: int
    large_reads_per_s: float
    large_writes_per_s: float


def derive_load(values: Mapping[str, Any]) -> Load:
    """The load of a configuration, by the keys of act_storage.

    Notes
    -----
    Small reads are ``read-reqs-per-sec`` plus the share ``update-pct`` of ``write-reqs-per-sec``. Writes are
    ``replication-factor`` times those, of records whose mean size is that of the stored ends (rounded down).
    They fill large blocks, of which ``defrag-lwm-pct`` makes ``100 / (100 - pct)`` times as many.
    """
    reads, writes = values["read-reqs-per-sec"], values["write-reqs-per-sec"]
    stored = _stored(values["record-bytes"])
    stored_max = _stored(values["record-bytes-range-max"]) or stored
    large_bytes = values["large-block-op-kbytes"] * KIB
    inner_writes = values["replication-factor"] * writes
    filled_per_s = inner_writes / (large_bytes // ((stored + stored_max) // 2))
    amplification = 100 / (100 - values["defrag-lwm-pct"])
    commits = values["commit-to-device"]
    return Load(
        reads_per_s=reads + writes * values["update-pct"] // 100,
        writes_per_s=inner_writes if commits else 0,
        stored_bytes=stored,
        stored_max_bytes=stored_max,
        large_reads_per_s=0.0 if values["no-defrag-reads"] else filled_per_s * amplification,
        large_writes_per_s=filled_per_s * (amplification - (1 if commits else 0)),
    )


def _stored(size_bytes: int) -> int:
    return -(-size_bytes // STORED_GRAIN_BYTES) * STORED_GRAIN_BYTES


def streams(values: Mapping[str, Any], drives: int = 1) -> list[dict[str, Any]]:
    """The streams of one of several drives that share the load, as the job has them (docs/job.md).

    A stream with nothing to do is left out. Large blocks come from one thread each, which is evenly spread by
    itself; in phase it begins with the others, and has one I/O outstanding at most. There, committed writes
    come from the threads that read, too, unless ``commit-min-bytes`` gives them sizes of their own.
    """
    load = derive_load(values)
    large_bytes = values["large-block-op-kbytes"] * KIB
    lag = {"max_lag_ns": values["max-lag-sec"] * SECOND_NS} if values["max-lag-sec"] else {}
    record: dict[str, Any] = {"from": load.stored_bytes, "to": load.stored_max_bytes}
    in_phase = values["arrivals"] == "act"
    small: dict[str, Any] = lag | ({"threads": values["service-threads"]} if in_phase else {})
    blocks_process = "act" if in_phase else "constant"
    least = _least_written_bytes(values)
    written = record | {"step": least} if least else record
    large = {"block_bytes": large_bytes, **lag}
    # act_storage opens its devices with O_DSYNC.
    write = {"read_share": 0.0} | ({} if values["disable-odsync"] else {"fua": True})
    rates = rates_of_threads(values)
    if len(rates) == 1:
        mix = {**write, "read_share": load.reads_per_s / rates[0], "block_bytes": record, **small}
        small_ios = [(TRANSACTIONS, rates[0], mix)]
    else:
        small_ios = [
            (READS, rates[0], {"block_bytes": record, **small}),
            (WRITES, rates[1], {**write, "block_bytes": written, **small}),
        ]
    first, *rest = [(name, _sent(values, rate), values["arrivals"], keys) for name, rate, keys in small_ios]
    wanted = [
        first,
        (LARGE_READS, load.large_reads_per_s, blocks_process, large),
        (LARGE_WRITES, load.large_writes_per_s, blocks_process, {**write, **large}),
        *rest,
    ]
    made = [
        {"name": name, **rest, "arrivals": {"process": process, "rate_iops": rate / drives}}
        for name, rate, process, rest in wanted
        if rate
    ]
    if values["tomb-raider"]:
        think = {"think_ns": values["tomb-raider-sleep-usec"] * 1_000}
        scan = {"pattern": "sequential", "block_bytes": large_bytes}
        made.append({"name": TOMB_RAIDER, **scan, "arrivals": {"process": "after_completion", **think}})
    return made


def rates_of_threads(values: Mapping[str, Any]) -> tuple[int, ...]:
    """Small I/Os a second, by sets of service threads: of all together, or of reads and of writes."""
    load = derive_load(values)
    shared = values["arrivals"] == "act" and load.reads_per_s and load.writes_per_s
    if shared and not _least_written_bytes(values):
        return (load.reads_per_s + load.writes_per_s,)
    return (load.reads_per_s, load.writes_per_s)


def _least_written_bytes(values: Mapping[str, Any]) -> int:
    """Of it and the drive's block the larger counts, and no block is shorter."""
    least: int = values["commit-min-bytes"]
    return least if least >= BLOCK_MIN_BYTES else 0


def _sent(values: Mapping[str, Any], rate: int) -> int:
    """What goes of a rate of small I/Os: each of act_storage's threads has a whole number a second."""
    if values["arrivals"] != "act":
        return rate
    threads: int = values["service-threads"]
    return rate // threads * threads


def in_flight_max(values: Mapping[str, Any]) -> int:
    """Outstanding I/Os at most: fewer where their buffers would not fit."""
    large_bytes = int(values["large-block-op-kbytes"]) * KIB
    return max(1, min(IN_FLIGHT_MAX, BUFFERS_MAX_BYTES // large_bytes))
