"""Two workloads beside each other: every figure of both, and how many times the one is the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from testdrive.manifest import OPCODES
from testdrive.report import units, words
from testdrive.report.rows import dig
from testdrive.statement.operations import told
from testdrive.statement.sentences import share_of

Summary = Mapping[str, Any]


@dataclass(frozen=True)
class Contrast:
    """One figure of two recordings.

    Attributes
    ----------
    group, name : str
        What it is about, and what it is called.
    key : str
        Its place in the summary, or a name where it is derived.
    a, b : float or None
        The values, in the units of the summary; None where absent.
    shown : tuple of str
        The values as people read them; where one is absent, its code in words.
    """

    group: str
    name: str
    key: str
    a: float | None
    b: float | None
    shown: tuple[str, str]

    @property
    def ratio(self) -> float | None:
        """How many times the first the second is; None where either is absent or the first is zero."""
        return self.b / self.a if self.a and self.b is not None else None

    @property
    def ratio_words(self) -> str:
        """The ratio for people."""
        return units.number(self.ratio)


@dataclass(frozen=True)
class _Figure:
    group: str
    name: str
    key: str
    scale: Callable[[float | None], str]
    code: str = ""
    #: Where the reason stands if not at `code`.
    second_code: str = ""
    derive: Callable[[Summary], float | None] | None = None

    @property
    def of_opcode(self) -> bool:
        """Whether it is of a single operation, which a source that did not tell them has not."""
        return any(f".{name}." in f"{self.key}." for name in OPCODES)


def contrasts(a: Summary, b: Summary) -> list[Contrast]:
    """Every figure that at least one of two summaries has, in the order of the statement."""
    found = []
    for figure in _figures():
        values = [_value(figure, one) for one in (a, b)]
        if not any(values) and (values == [None, None] or figure.group == "Operations"):
            continue
        shown = [
            figure.scale(value)
            if value is not None
            else words.code(dig(one, figure.code) or dig(one, figure.second_code))
            for value, one in zip(values, (a, b), strict=True)
        ]
        key = figure.key
        found.append(Contrast(figure.group, figure.name, key, values[0], values[1], (shown[0], shown[1])))
    return found


def _value(figure: _Figure, summary: Summary) -> float | None:
    if figure.of_opcode and not told(summary):
        return None
    value: float | None = figure.derive(summary) if figure.derive else dig(summary, figure.key)
    return value


def _figures() -> Iterator[_Figure]:
    yield _Figure("Recording", "I/Os", "io_counts.ios", units.count)
    yield _Figure("Recording", "span", "workload.span_ns", units.duration, "workload.rates_code")
    yield _Figure("Recording", "errors", "io_counts.errors", units.count, "io_counts.errors_code")
    yield _Figure("Recording", "events dropped", "workload.events_dropped", units.count)
    yield from _rates()
    yield from _operations()
    yield from _arrivals()
    yield from _places()
    yield from _trims()
    yield from _latencies()


def _rates() -> Iterator[_Figure]:
    codes = {"mean": "workload.rates_code", "peak_1s": "workload.peak_code"}
    said = {"mean": "mean", "peak_1s": "busiest second"}
    for which, code in codes.items():
        yield _Figure("Rates", f"IOPS, {said[which]}", f"workload.iops_{which}", units.number, code)
    for kind, name in (("transfer", "reads and writes"), ("trim", "trimmed")):
        for which, code in codes.items():
            key = f"workload.{kind}_throughput_bytes_per_s_{which}"
            yield _Figure(
                "Rates",
                f"{name}, {said[which]}",
                key,
                units.rate,
                code,
                second_code="workload.throughput_code",
            )
    key = "workload.busiest_minute.iops"
    yield _Figure("Rates", "IOPS, busiest minute", key, units.number, "workload.busiest_minute_code")
    key = "workload.sizing.written_bytes_per_day"
    yield _Figure("Rates", "written a day (extrapolated)", key, units.capacity, "workload.sizing_code")


def _operations() -> Iterator[_Figure]:
    yield _Figure(
        "Operations",
        "reads of reads and writes",
        "read_share",
        units.percent,
        derive=lambda one: share_of(one, "read"),
    )
    for name in OPCODES:
        said = name.replace("_", " ")
        yield _Figure("Operations", f"{said}: I/Os", f"io_counts.by_opcode.{name}.ios", units.count)
        yield _Figure("Operations", f"{said}: bytes", f"io_counts.by_opcode.{name}.bytes", units.size)
    sizes = "workload.sizes_code"
    yield _Figure(
        "Operations",
        "mean size of reads and writes",
        "workload.transfer_size_mean_bytes",
        units.size,
        sizes,
        second_code="workload.sizes_of_operations_code",
    )
    for name in ("read", "write"):
        key = f"workload.sizes_by_opcode.{name}.most_frequent_bytes"
        yield _Figure("Operations", f"most frequent {name}", key, units.block, sizes)
    for name in ("read", "write"):
        key = f"workload.sequential_share_by_opcode.{name}"
        yield _Figure(
            "Operations", f"{name}s that are sequential", key, units.percent, "workload.sequential_code"
        )
    yield _Figure(
        "Operations",
        "aligned to 4 KiB",
        "workload.alignment_share.4096",
        units.percent,
        "workload.alignment_code",
    )


def _arrivals() -> Iterator[_Figure]:
    code = "workload.interarrival_code"
    yield _Figure("Arrivals", "between arrivals, mean", "workload.interarrival.mean_ns", units.time, code)
    yield _Figure("Arrivals", "between arrivals, p99", "workload.interarrival.p99_ns", units.time, code)
    yield _Figure("Arrivals", "between arrivals, CV", "workload.interarrival.cv", units.number, code)
    for name, key in (
        ("busiest second over mean", "peak_to_mean_1s"),
        ("dispersion at 1 s", "index_of_dispersion_1s"),
        ("dispersion at 10 s", "index_of_dispersion_10s"),
    ):
        yield _Figure(
            "Arrivals", name, f"workload.burstiness.{key}", units.number, "workload.burstiness_code"
        )
    for name in ("mean", "p50", "p99", "max"):
        key, scale = f"workload.queue_depth.{name}", units.number if name == "mean" else units.count
        yield _Figure("Arrivals", f"in flight, {name}", key, scale, "workload.queue_depth_code")


def _places() -> Iterator[_Figure]:
    code = "workload.footprint_code"
    yield _Figure("Addresses", "touched in all", "workload.footprint_bytes.total", units.size, code)
    for name in ("read", "write", "trim"):
        yield _Figure(
            "Addresses", f"{name}: touched", f"workload.footprint_bytes.by_opcode.{name}", units.size, code
        )
    key = "workload.working_set_bytes.max"
    yield _Figure(
        "Addresses", "largest working set of a minute", key, units.size, "workload.working_set_code"
    )
    key = "workload.hot_regions.share_of_ios.0.1"
    yield _Figure(
        "Addresses",
        "I/Os in the hottest tenth",
        key,
        units.percent,
        "workload.hot_regions_code",
        derive=lambda one: (dig(one, "workload.hot_regions.share_of_ios") or {}).get("0.1"),
    )
    code = "workload.overwrite_distance_code"
    yield _Figure(
        "Addresses", "writes that overwrite", "workload.overwrite_distance.share", units.percent, code
    )
    key = "workload.overwrite_distance.p50_bytes"
    yield _Figure("Addresses", "written before, median", key, units.size, code)


def _trims() -> Iterator[_Figure]:
    yield _Figure("Trims", "median size", "workload.trims.length_bytes.p50", units.block)
    yield _Figure(
        "Trims", "bursts of trims", "workload.trim_bursts.bursts", units.count, "workload.trim_bursts_code"
    )
    yield _Figure(
        "Trims",
        "CPUs that trim",
        "workload.trim_streams",
        units.count,
        "workload.trim_streams_code",
        derive=lambda one: len(found) if (found := dig(one, "workload.trim_streams")) is not None else None,
    )


def _latencies() -> Iterator[_Figure]:
    yield _Figure("Latency", "baseline", "baseline_latency_ns", units.time, "baseline_code")
    yield _Figure("Latency", "peak", "peak_latency_ns", units.time, "baseline_code")
    yield _Figure("Latency", "recovery from the peak's burst", "recovery_ns", units.time, "recovery_code")
    for opcode in ("read", "write", "trim", "flush"):
        for name in ("p50", "p99", "p99_9"):
            key = f"percentiles_ns.by_opcode.{opcode}.io_weighted.{name}"
            code = f"percentile_codes.by_opcode.{opcode}.io_weighted.{name}"
            said = "flushes" if opcode == "flush" else f"{opcode}s"
            yield _Figure("Latency", f"{said}, {name.replace('_', '.')}", key, units.time, code)
    yield _Figure(
        "Latency",
        "time stalled over 10 ms",
        "stall_time.10000000",
        units.percent,
        "stall_time_code",
    )
