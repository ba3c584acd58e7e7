"""What a workload is, in plain words: sentences by rules from the summary, never more than it shows.

Each rule says something only where its figures are there, and words that judge ("mostly", "random", "bursts")
have their thresholds here. What a source did not record is said at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testdrive.manifest import UNKNOWN
from testdrive.report import units, words
from testdrive.report.rows import dig
from testdrive.statement.needs import moved_at
from testdrive.statement.operations import many, told

Summary = Mapping[str, Any]

#: With fewer I/Os nothing is said to be usual.
_IOS_MIN = 30
#: From here on nearly all, and from here on most; below the counterpart of most it is the other's turn.
_NEARLY_ALL, _MOST = 0.95, 0.65
#: A share that is too small to be told exactly.
_SLIGHT = 0.001
#: A share so near to all that it needs a digit more.
_NEAR = 0.01
#: A share of sequential I/Os up to which they are called random, and from which sequential.
_RANDOM_MAX, _SEQUENTIAL_MIN = 0.2, 0.8
#: A share from which a size is that of most, and from which it is worth naming.
_SIZE_MOST, _SIZE_OFTEN = 0.6, 0.3
#: Opcodes with less than this share of the reads and writes are not described on their own.
_SHARE_MIN = 0.1
#: The busiest second over the mean of all from which arrivals are uneven, and come in bursts.
_UNEVEN, _BURSTY = 1.5, 3.0
#: The fewest seconds of which evenness can be said.
_SECONDS_MIN = 10
#: With fewer I/Os for a region chance makes hot ones; and what share of the I/Os makes a tenth hot.
_IOS_PER_REGION_MIN, _HOT_SHARE = 5, 0.5
#: Trims that take less of the time than this come in bursts; more bursts than this with so little spread of
#: the time from one to the next come at an interval.
_BURST_TIME_MAX, _CLOCKWORK_MIN, _CLOCKWORK_CV = 0.5, 3, 0.25
#: Rarer flushes, for a write, are not worth a sentence.
_FLUSHES_MIN = 0.001
#: A footprint that grew by this share in the last quarter of the time has not been seen whole.
_GROWING = 0.1
_QUARTER = 4
#: Less than this share of I/Os that are aligned is worth saying.
_ALIGNED = 0.9
_MINUTE_NS = 60_000_000_000


def sentences(summary: Summary) -> list[str]:
    """The statement of a workload.

    Parameters
    ----------
    summary : mapping
        What :func:`testdrive.metrics.summarize` gives.

    Returns
    -------
    list of str
        Sentences in the order of weight, each a paragraph of its own or part of one.
    """
    ios = dig(summary, "io_counts.ios") or 0
    if not ios:
        return ["There is no I/O in this recording."]
    if ios < _IOS_MIN:
        return [f"Only {words.plural(ios, 'I/O')}: too few to say what is usual.", *_unknown(summary)]
    said = [
        *_transfers(summary),
        *_rates(summary),
        *_trims(summary),
        *_durability(summary),
        *_places(summary),
        *_concurrency(summary),
        *_latency(summary),
        *_writes_a_day(summary),
    ]
    return [*said, *_unknown(summary)]


def share_of(summary: Summary, opcode: str) -> float | None:
    """An opcode's share of the reads and writes; None where there are none, or they were not told apart."""
    if not told(summary):
        return None
    ios = {name: dig(summary, f"io_counts.by_opcode.{name}.ios") or 0 for name in ("read", "write")}
    whole = sum(ios.values())
    return ios[opcode] / whole if whole else None


def _share(share: float) -> str:
    """A share for people, never rounded to nothing or to all."""
    if 0 < share < _SLIGHT:
        return f"<{units.percent(_SLIGHT, 1)}"
    if 1 - _SLIGHT < share < 1:
        return f">{units.percent(1 - _SLIGHT)}"
    return units.percent(share, 3 if 1 - _NEAR <= share < 1 else 2)


def _transfers(summary: Summary) -> list[str]:
    """Reads and writes, by share, size and pattern: together where they are alike, else each."""
    if not told(summary):
        described = _described(summary, UNKNOWN)[1]
        said = "Whether they read or write is not known"
        return [f"I/Os: {', '.join(described)}. {said}." if described else f"{said}."]
    reads = share_of(summary, "read")
    if reads is None:
        present = [
            name.replace("_", " ")
            for name, counts in (dig(summary, "io_counts.by_opcode") or {}).items()
            if counts["ios"]
        ]
        return [f"There are no reads or writes, only I/Os of {words.listed(present)}."]
    each = {name: _described(summary, name) for name in ("read", "write")}
    if min(reads, 1 - reads) < _SHARE_MIN or each["read"][0] == each["write"][0]:
        main = "read" if reads >= 1 - reads else "write"
        return [f"{_mix(reads)}: {', '.join(each[main][1])}." if each[main][1] else f"{_mix(reads)}."]
    parts = [
        f"{name}s ({_share(share)}) {', '.join(each[name][1])}"
        for name, share in (("read", reads), ("write", 1 - reads))
    ]
    return [f"{_mix(reads, shares=False)}: {'; '.join(parts)}."]


def _mix(reads: float, *, shares: bool = True) -> str:
    greater, name, other = (reads, "reads", "writes") if reads >= 0.5 else (1 - reads, "writes", "reads")
    if greater == 1:
        return f"Only {name}, no {other}"
    said = "Reads and writes alike"
    if greater >= _NEARLY_ALL:
        said = f"Nearly all {name}"
    elif greater >= _MOST:
        said = f"Mostly {name}"
    if not shares:
        return said
    return f"{said} ({_share(reads)} reads, {_share(1 - reads)} writes)"


def _described(summary: Summary, opcode: str) -> tuple[tuple[str, int | None], list[str]]:
    """What tells an opcode's I/Os apart from others', and the words for it."""
    sequential = dig(summary, f"workload.sequential_share_by_opcode.{opcode}")
    sizes = dig(summary, f"workload.sizes_by_opcode.{opcode}")
    pattern, said = "", []
    if sequential is not None:
        pattern = "random" if sequential <= _RANDOM_MAX else "sequential"
        if _RANDOM_MAX < sequential < _SEQUENTIAL_MIN:
            pattern = "part sequential"
            said.append(f"{_share(sequential)} sequential")
        else:
            said.append(pattern)
    if not sizes:
        return (pattern, None), said
    share, size = sizes["most_frequent_share"], units.block(sizes["most_frequent_bytes"])
    mean = units.size(sizes["mean_bytes"])
    if share == 1:
        said.append(f"all of {size}")
    elif share >= _SIZE_MOST:
        said.append(f"mostly of {size} ({_share(share)})")
    elif share >= _SIZE_OFTEN:
        said.append(f"most often of {size} ({_share(share)}), {mean} on average")
    else:
        said.append(f"of many sizes, {mean} on average")
    return (pattern, sizes["most_frequent_bytes"] if share >= _SIZE_OFTEN else None), said


def _rates(summary: Summary) -> list[str]:
    workload = dig(summary, "workload") or {}
    mean, peak = workload.get("iops_mean"), workload.get("iops_peak_1s")
    if mean is None:
        return []
    said = f"{_rate(mean, moved_at(summary, 'mean'))} on average over {units.duration(workload['span_ns'])}"
    if peak is None:
        return [f"{said}, which is too short to tell its busiest second."]
    said += f"; {_rate(peak, moved_at(summary, 'peak_1s'))} in the busiest seconds"
    ratio = dig(workload, "burstiness.peak_to_mean_1s")
    if ratio is None or workload["span_ns"] < _SECONDS_MIN * 1e9:
        return [f"{said}."]
    if ratio >= _BURSTY:
        return [f"{said}: arrivals come in bursts."]
    return [f"{said}: arrivals are {'uneven' if ratio >= _UNEVEN else 'even'}."]


def _rate(iops: float, moved_bytes_per_s: float | None) -> str:
    return units.iops(iops) + (
        f" and {units.rate(moved_bytes_per_s)}" if moved_bytes_per_s is not None else ""
    )


def _trims(summary: Summary) -> list[str]:
    found, sizes = dig(summary, "workload.trims") or {}, dig(summary, "workload.sizes_by_opcode.trim")
    ios = dig(summary, "io_counts.by_opcode.trim.ios")
    if not ios:
        return []
    if ios == 1:
        return [f"1 trim of {units.block(found.get('bytes'))}{_trim_streams(summary)}."]
    said = f"{words.plural(ios, 'trim')}"
    if sizes:
        most = "all" if sizes["most_frequent_share"] == 1 else "mostly"
        if sizes["most_frequent_share"] >= _SIZE_MOST:
            said += f", {most} of {units.block(sizes['most_frequent_bytes'])}"
        else:
            said += f" of {units.size(sizes['mean_bytes'])} on average"
        said += f", {units.size(found.get('bytes'))} in all"
    return [said + _trim_pattern(summary) + _trim_streams(summary) + "."]


def _trim_pattern(summary: Summary) -> str:
    bursts, trims = dig(summary, "workload.trim_bursts"), dig(summary, "workload.trims.ios") or 0
    if not bursts or trims < _IOS_MIN:
        return ""
    if bursts["time_share"] > _BURST_TIME_MAX:
        return ", most of the time"
    if bursts["bursts"] == 1:
        return f", in one burst of {units.duration(bursts['length_ns_p50'])}"
    said = f", in {bursts['bursts']:,} bursts of about {units.duration(bursts['length_ns_p50'])}"
    least, most = bursts["interval_ns_min"], bursts["interval_ns_max"]
    if least == most:
        return f"{said}, {units.duration(least)} apart"
    if bursts["bursts"] > _CLOCKWORK_MIN and bursts["interval_cv"] <= _CLOCKWORK_CV:
        return f"{said}, one about every {units.duration(bursts['interval_ns_p50'])}"
    return f"{said}, {units.duration(least)} to {units.duration(most)} apart"


def _trim_streams(summary: Summary) -> str:
    streams = dig(summary, "workload.trim_streams")
    if not streams:
        return ""
    name = "worker" if dig(summary, "recording.kind") == "run" else "CPU"
    if len(streams) > 1 and sum(each["ios"] for each in streams) < _IOS_MIN:
        return f", from {len(streams)} {name}s"
    if len(streams) == 1:
        every = "all " if streams[0]["ios"] > 1 else ""
        return f", {every}from {name} {streams[0]['stream']}"
    whole, first = sum(each["ios"] for each in streams), streams[0]
    return f", from {len(streams)} {name}s ({_share(first['ios'] / whole)} from {name} {first['stream']})"


def _durability(summary: Summary) -> list[str]:
    counts = dig(summary, "io_counts.by_opcode") or {}
    flushes, writes = ((counts.get(name) or {}).get("ios", 0) for name in ("flush", "write"))
    marked = dig(summary, "workload.flags") or {}
    said = []
    if flushes and writes and flushes >= _FLUSHES_MIN * writes:
        a_second = dig(summary, "workload.rates_by_opcode.flush.iops_mean")
        rate = f", {units.iops(a_second).removesuffix(' IOPS')} a second" if a_second else ""
        said.append(f"a flush for every {units.number(writes / flushes)} writes{rate}")
    for name, text in (("fua", "FUA"), ("preflush", "preflush")):
        if writes and marked.get(name, 0) >= _FLUSHES_MIN * writes:
            said.append(f"{_share(marked[name] / writes)} of the writes with {text}")
    if not said:
        return []
    return [f"For durability: {words.listed(said)}."]


def _places(summary: Summary) -> list[str]:
    total = dig(summary, "workload.footprint_bytes.total")
    if not total:
        return []
    estimated = dig(summary, "workload.footprint_bytes.sampled_one_in")
    said = f"It touches {'about ' if estimated else ''}{units.size(total)} of addresses"
    largest = dig(summary, "workload.working_set_bytes.max")
    if largest is not None and (dig(summary, "workload.span_ns") or 0) >= _MINUTE_NS:
        said += f", and reads and writes at most {units.size(largest)} of them within a minute"
    growth = dig(summary, "workload.footprint_growth.total") or []
    if growth and growth[-1] and growth[-1] - growth[-len(growth) // _QUARTER] > _GROWING * growth[-1]:
        said += "; new ones were still coming when the recording ended"
    hot = dig(summary, "workload.hot_regions")
    if hot and hot["ios_per_region"] >= _IOS_PER_REGION_MIN and hot["share_of_ios"]["0.1"] >= _HOT_SHARE:
        part = _share(hot["share_of_ios"]["0.1"])
        said += f". The hottest tenth of what is read and written takes {part} of the reads and writes"
    return [f"{said}.", *_alignment(summary)]


def _alignment(summary: Summary) -> list[str]:
    aligned = dig(summary, "workload.alignment_share") or {}
    if aligned.get("4096") is None or aligned["4096"] >= _ALIGNED:
        return []
    slight = 0 < aligned["4096"] < _SLIGHT
    share = f"Less than {units.percent(_SLIGHT, 1)}" if slight else f"Only {_share(aligned['4096'])}"
    return [f"{share} of the I/Os begin and end at multiples of 4 KiB."]


def _where(summary: Summary) -> str:
    ran = dig(summary, "recording.kind") == "run"
    return "On this drive" if ran else "On the drive that it was recorded on"


def _concurrency(summary: Summary) -> list[str]:
    depth = dig(summary, "workload.queue_depth")
    if not depth:
        return []
    return [
        f"{_where(summary)}, {units.number(depth['mean'])} I/Os were in flight on average, at most"
        f" {units.count(depth['p99'])} for 99 % of the time, {units.count(depth['max'])} at once."
    ]


def _latency(summary: Summary) -> list[str]:
    said = []
    for opcode in ("read", "write", "trim", UNKNOWN):
        found = dig(summary, f"percentiles_ns.by_opcode.{opcode}.io_weighted") or {}
        samples = dig(summary, f"io_counts.by_opcode.{opcode}.ios") or 0
        if found.get("p50") is None or samples < _IOS_MIN:
            continue
        tail = f", 99 % within {units.time(found['p99'])}" if found.get("p99") is not None else ""
        said.append(f"half of the {many(summary, opcode)} took at most {units.time(found['p50'])}{tail}")
    return [f"{'There' if _concurrency(summary) else _where(summary)}, {'; '.join(said)}."] if said else []


def _writes_a_day(summary: Summary) -> list[str]:
    sizing = dig(summary, "workload.sizing")
    if not sizing or not sizing["written_bytes_per_day"]:
        return []
    return [
        f"If it went on like that, {units.capacity(sizing['written_bytes_per_day'])} would be written a day"
        f" (extrapolated from {units.duration(sizing['extrapolated_from_ns'])})."
    ]


_ABSENT = {
    "opcode": "what each I/O was, so nothing is known of reads, writes and trims",
    "latency_ns": "completions, so nothing is known of latency and of I/Os in flight",
    "offset_bytes": "offsets, so nothing is known of where it reads and writes",
    "length_bytes": "lengths, so nothing is known of sizes and throughput",
    "stream": "the CPU of each I/O",
    "flags": "flags such as FUA",
}


def _unknown(summary: Summary) -> list[str]:
    absent = set(dig(summary, "recording.absent_columns") or [])
    if not absent:
        return []
    said = [text for column, text in _ABSENT.items() if column in absent]
    if {"intended_ns", "submit_ns"} <= absent:
        said.insert(0, "times, so nothing is known of rates, bursts and intervals")
    elif "intended_ns" in absent:
        said.append("when I/Os were queued, so arrivals are the times at which they were issued")
    return [f"The source did not record {'; '.join(said)}."] if said else []
