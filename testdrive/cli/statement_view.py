"""`testdrive inspect` on a terminal: the workload statement in 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from testdrive.cli.charts import bar, resampled, spark
from testdrive.cli.summary_view import origin, pairs, summary_parts
from testdrive.manifest import UNKNOWN, Manifest, Warning_
from testdrive.report import incidents, units
from testdrive.report.losses import TITLE, gathered, is_loss
from testdrive.report.rows import dig
from testdrive.statement.needs import drive_writes_per_day, needs
from testdrive.statement.operations import many, told
from testdrive.statement.sentences import sentences

Summary = Mapping[str, Any]

COLUMNS = 80
#: Columns of the charts, beside their labels and figures.
_CHART = 44
_SIZES_MAX = 8
_BAR = 18
#: What is counted in the last interval, short as it may be, is spread over at least this part of one.
_TAIL = 2


def statement_view(
    summary: Summary, manifest: Manifest, recording: Path, capacities_bytes: Sequence[int] = ()
) -> RenderableType:
    """Everything that `inspect` shows of one recording, in the order in which someone asks."""
    parts: list[RenderableType] = [pairs(origin(summary, manifest))]
    parts += losses_lines([(recording.stem, manifest, recording)])
    parts += incident_lines([(recording.stem, summary)])
    parts.append(Text())
    parts += [Padding(Text(said), (0, 0, 0, 2)) for said in sentences(summary)]
    parts += _titled("What a drive needs for it", needs_table(summary, capacities_bytes))
    if len(dig(summary, "workload.mix_over_time.time_ns") or []) > 1:
        parts += _titled(*_over_time(summary))
    if any((dig(summary, "workload.size_histogram") or {}).get(name) for name in ("read", "write", UNKNOWN)):
        parts += _titled("Sizes: share of the I/Os with at most", _sizes(summary))
    parts += summary_parts(summary)
    parts += [
        Text.assemble(
            ("warning: ", "yellow"), f"{warning.message.rstrip('.')}; {warning.remedy}".rstrip("; ")
        )
        for warning in map(Warning_.model_validate, summary["warnings"])
        if not is_loss(warning) and not incidents.is_incident(warning)
    ]
    return Constrain(Group(*parts), COLUMNS)


def losses_lines(recordings: Iterable[tuple[str, Manifest, Path]]) -> list[RenderableType]:
    """What recordings lost, which stands before everything that is counted from them."""
    given = list(recordings)
    found = gathered(given)
    if not found:
        return []
    alone = len(given) == 1 and all(name == given[0][0] for name, _ in found)
    lines = (Text(said if alone else f"{name}: {said}", style="red") for name, said in found)
    return [Text(TITLE, style="bold red"), *(Padding(line, (0, 0, 0, 2)) for line in lines)]


def incident_lines(summaries: Iterable[tuple[str, Summary]]) -> list[RenderableType]:
    """What happened to the drives of runs, which stands before every figure of them."""
    given = list(summaries)
    found = incidents.told_incidents(given)
    if not found:
        return []
    lines = (Text(said if len(given) == 1 else f"{name}: {said}", style="red") for name, said in found)
    return [Text(incidents.TITLE, style="bold red"), *(Padding(line, (0, 0, 0, 2)) for line in lines)]


def _titled(title: str, part: RenderableType) -> list[RenderableType]:
    return [Text(), Text(title, style="bold"), part]


def needs_table(summary: Summary, capacities_bytes: Sequence[int]) -> Table:
    """The figures that a drive is bought by; with capacities, how often each would be written a day."""
    made = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    made.add_column(style="dim", no_wrap=True)
    made.add_column()
    made.add_column(style="dim")
    for need in needs(summary):
        made.add_row(f"  {'  ' if need.part else ''}{need.name}", need.value, need.note)
    span = dig(summary, "workload.sizing.extrapolated_from_ns")
    for capacity, times in drive_writes_per_day(summary, capacities_bytes):
        value = f"{units.number(times)} a day"
        note = f"of {units.capacity(capacity)}, extrapolated from {units.duration(span)}"
        made.add_row("  Drive writes", value, note)
    return made


def _over_time(summary: Summary) -> tuple[str, Table]:
    """A line of bars for the rates of each kind."""
    mix, span_ns = dig(summary, "workload.mix_over_time"), dig(summary, "workload.span_ns") or 0
    starts = mix["time_ns"]
    # The last interval is cut short by the end of the recording, and must not look like a decline.
    end_ns = max(starts[0] + span_ns, starts[-1] + mix["interval_ns"] // _TAIL)
    edges_s = [at / 1e9 for at in (*starts, end_ns)]
    made = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    made.add_column(style="dim", no_wrap=True)
    made.add_column(no_wrap=True)
    made.add_column()
    columns = 1
    for name, values, scale in _series(mix, told(summary)):
        rates = resampled(values, edges_s, _CHART)
        columns = len(rates)
        made.add_row(f"  {name}", spark(rates), f"up to {scale(max(rates))}" if any(rates) else "none")
    each = units.duration(round((edges_s[-1] - edges_s[0]) * 1e9 / columns, -6))
    return f"Over {units.duration(span_ns)}, each column the mean of {each}", made


def _series(mix: Mapping[str, Any], apart: bool) -> Iterator[tuple[str, list[float], Any]]:
    whole = [sum(values) for values in zip(*mix["ios"].values(), strict=True)]
    yield "I/Os", whole, units.iops
    for name, title in (("read", "reads"), ("write", "writes"), ("trim", "trims"), ("flush", "flushes")):
        if apart and name in mix["ios"]:
            yield title, mix["ios"][name], units.iops
    moved = (
        {"read": "bytes read", "write": "bytes written", "trim": "bytes trimmed"}
        if apart
        else {UNKNOWN: "bytes"}
    )
    for name, title in moved.items():
        if name in mix["bytes"]:
            yield title, mix["bytes"][name], units.rate


def _sizes(summary: Summary) -> Table:
    """Bars of the histogram of sizes of reads and writes."""
    histogram = dig(summary, "workload.size_histogram")
    names = [name for name in ("read", "write", UNKNOWN) if histogram.get(name)]
    counts: dict[int, list[int]] = {}
    for at, name in enumerate(names):
        for edge, ios in histogram[name].items():
            counts.setdefault(int(edge), [0] * len(names))[at] += ios
    whole = [sum(column) for column in zip(*counts.values(), strict=True)]
    made = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    made.add_column(style="dim", justify="right", no_wrap=True)
    for width in (_BAR, 7) * len(names):
        made.add_column(no_wrap=True, min_width=width, justify="right" if width == 7 else "left")
    made.add_row("", *(text for name in names for text in (many(summary, name), "")))
    for edge in sorted(sorted(counts, key=lambda each: -sum(counts[each]))[:_SIZES_MAX]):
        cells = []
        for mine, total in zip(counts[edge], whole, strict=True):
            share = mine / total if total else 0.0
            told = "<0.1 %" if 0 < share < 0.001 else units.percent(share, 2)
            cells += [bar(share, _BAR), told if mine else ""]
        made.add_row(f"  {units.block(edge)}", *cells)
    return made
