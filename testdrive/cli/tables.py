"""What commands print for people: tables that fit 80 columns, in human units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from testdrive.events import ImportedVolume
from testdrive.plans import Plan
from testdrive.plans.judgement import Outcome, metric_at
from testdrive.report import units, words

if TYPE_CHECKING:
    from testdrive.methods.drawing import Table as MethodTable

Entry = Mapping[str, Any]
#: What of a standard test's table a terminal shows: the matrix of one drive, or the headline of a dozen.
METHOD_ROWS_MAX = 16
#: A longer cell of it is a sentence, and no figure.
_FIGURE_LENGTH_MAX = 32
#: As the metrics have it; their package would bring the query engine with it.
_ROWS_NOT_KEPT = "rows_not_kept"


def table(*columns: str, right: Sequence[str] = ()) -> Table:
    """An empty table; the columns named in ``right`` hold numbers."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return made


def drives_table(drives: Sequence[Entry]) -> Group:
    """The drives with their identity, each followed by what stands against erasing it."""
    made = table("drive", "model", "serial", "firmware", "capacity", "block", right=("capacity", "block"))
    for drive in drives:
        made.add_row(
            str(drive.get("uri", "")),
            *(str(drive.get(key) or units.ABSENT) for key in ("model", "serial", "firmware")),
            # Of a drive that the kernel's driver does not have nothing is known.
            units.capacity(drive.get("capacity_bytes") or None),
            units.size(drive.get("logical_block_bytes") or None),
        )
    ways = [_other_paths(drive) for drive in drives if len(drive.get("paths") or []) > 1]
    return Group(made, *(_erasing(drive) for drive in drives), *ways)


def _other_paths(drive: Entry) -> Text:
    first, *others = (str(path.get("uri")) for path in drive["paths"])
    return Text(f"{first}: also reached as {', '.join(others)} (docs/direct-paths.md)")


def _erasing(drive: Entry) -> Text:
    uri = f"{drive.get('uri', '')}: "
    if drive.get("erasable"):
        return Text.assemble(uri, ("can be erased", "green"), f" with --erase {drive.get('erase_name')}")
    refusals = "; ".join(str(refusal) for refusal in drive.get("refusals") or ["no reason was given"])
    return Text.assemble(uri, ("is not erased", "yellow"), f": {refusals}")


def models_table(models: Sequence[Entry]) -> Group:
    """The modelled drives with what they were held against; a name follows ``sim:`` in a URI."""
    numbers = ("capacity", "spare", "dies", "kIOPS r/w", "MB/s r/w")
    made = table("drive", *numbers, right=numbers)
    told = []
    for model in models:
        parameters = model.get("parameters") or {}
        figures = model.get("figures") or {}
        capacity_bytes = model.get("capacity_bytes", parameters.get("capacity_bytes"))
        made.add_row(
            f"sim:{model.get('name')}",
            units.capacity(capacity_bytes),
            _spare(parameters),
            _dies(parameters),
            _pair(figures, "random_read_iops", "random_write_iops", 1e3),
            _pair(figures, "sequential_read_bytes_per_s", "sequential_write_bytes_per_s", 1e6),
        )
        told.append(Text.assemble((f"{model.get('name')}: ", "bold"), str(model.get("description", ""))))
    return Group(made, *told)


def _spare(parameters: Entry) -> str:
    """The over-provisioning in percent; memory that is written in place needs none."""
    share = parameters.get("over_provisioning")
    if share is None or parameters.get("translation") == "in-place":
        return units.ABSENT
    return f"{share * 100:.3g}%"


def _dies(parameters: Entry) -> str:
    channels, dies = parameters.get("channels"), parameters.get("dies_per_channel")
    return units.ABSENT if channels is None or dies is None else f"{channels}x{dies}"


def _pair(figures: Entry, read: str, write: str, scale: float) -> str:
    """A reading and a writing figure, of 4 KiB at random or 128 KiB in order."""
    values = (figures.get(read), figures.get(write))
    return "/".join(units.ABSENT if value is None else f"{value / scale:.4g}" for value in values)


def formats_table(formats: Sequence[Entry]) -> Group:
    """The trace formats: what each is, what its traces can hold, and how it is found."""
    held = {
        "Q": "has_queue_events",
        "C": "has_completions",
        "T": "has_trims",
        "V": "has_volumes",
    }
    made = table("format", *held, "found by", "what it is")
    made.columns[-1].max_width = 33
    for each in formats:
        marks = ("x" if each.get(key) else units.ABSENT for key in held.values())
        made.add_row(
            str(each.get("name")), *marks, str(each.get("found_by", "")), str(each.get("description"))
        )
    legend = (
        "Q: when I/Os were queued, apart from when they were issued. C: when they completed. T: trims."
        " V: volumes, of which each becomes a recording."
        "\nFound by content, or by the file's name where no content speaks; of those found by asking, several"
        " look alike: --format says which it is."
    )
    return Group(made, Text(legend))


def recordings_table(recordings: Sequence[ImportedVolume]) -> Table:
    """The recordings of one import, one row a volume."""
    made = table("volume", "I/Os", "bytes", "recording", right=("I/Os", "bytes"))
    for each in recordings:
        made.add_row(
            each.volume or units.ABSENT,
            units.count(each.counts.get("ios")),
            units.size(each.counts.get("bytes")),
            str(each.output),
        )
    return made


def plans_table(plans: Sequence[Plan]) -> Table:
    """The plans, the question of each, and what has to be given."""
    made = table("plan", "the question it answers", "needs")
    for plan in plans:
        needs = [name for name, parameter in plan.parameters.items() if parameter.required]
        made.add_row(plan.name, plan.question, " ".join(needs) or units.ABSENT)
    return made


def method_table(found: MethodTable) -> Group:
    """A standard test's table; of a long one the beginning, with the place of the rest."""
    head, *columns = found.head
    figures = [
        name
        for at, name in enumerate(columns, start=1)
        if all(len(row[at]) <= _FIGURE_LENGTH_MAX for row in found.rows)
    ]
    made = table(head, *columns, right=figures)
    for row in found.rows[:METHOD_ROWS_MAX]:
        made.add_row(*row)
    left_out = len(found.rows) - METHOD_ROWS_MAX
    more = [Text(f"and {words.plural(left_out, 'row')} more on the page")] if left_out > 0 else []
    return Group(Text(found.title, style="bold"), made, *more)


def comparison_table(rows: Sequence[Entry]) -> Table:
    """The table that decides, one row a recording, in what fits a terminal; the page has the rest."""
    right = ("baseline", "peak", "p99.9")
    made = table("drive", "baseline", "peak", "recovery", "p99.9", "replay", right=right)
    for row in rows:
        late = row.get("service_p99_9_ns")
        made.add_row(
            str(row["name"]),
            _baseline(row),
            _peak(row),
            _recovery(row),
            units.time(late) if late is not None else words.code(row.get("service_p99_9_code")),
            _fidelity(row.get("fidelity_verdict"), str(row.get("role"))),
        )
    return made


def _peak(row: Entry) -> str:
    """The largest latency, at least what a lost I/O was waited for."""
    at_least = row.get("peak_at_least_ns")
    return units.time(row["peak_latency_ns"]) if at_least is None else f"≥ {units.time(at_least)}"


def run_table(title: str, summary: Entry, *, together: bool = False) -> Group:
    """What came of one run: the figures that averages hide, and whether it was the same workload.

    ``together`` says that several phases were measured, which a page tells apart and these figures do not.
    """
    made = Table(box=None, show_header=False, pad_edge=False)
    made.add_column()
    made.add_column(justify="right")
    counts = summary.get("io_counts") or {}
    made.add_row("I/Os recorded", units.count(counts.get("ios")))
    made.add_row("errors", units.count(counts.get("errors")))
    if metric_at(summary, "lost_ios.ios"):
        made.add_row("of them lost", units.count(metric_at(summary, "lost_ios.ios")))
        at_least = metric_at(summary, "lost_ios.percentiles_at_least_ns.max")
        made.add_row("longest I/O, with those", f"≥ {units.time(at_least)}")
    if summary.get("baseline_code") == _ROWS_NOT_KEPT:
        for name, key in (("mean of all seconds", "mean"), ("1 % of seconds below", "p1"), ("least", "min")):
            value = metric_at(summary, f"consistency.iops_{key}")
            code = metric_at(summary, "consistency.iops_code")
            made.add_row(f"IOPS, {name}", units.number(value) if value is not None else words.code(code))
    else:
        made.add_row("baseline latency", _or_code(summary, "baseline_latency_ns", "baseline_code"))
        # A flush may take longer, and then the percentiles of all I/Os are above it.
        made.add_row("peak of reads, writes", units.time(summary.get("peak_latency_ns")))
        made.add_row("peak recovery", words.recovery(summary))
    for name in ("p50", "p99", "p99_9"):
        value = metric_at(summary, f"percentiles_ns.io_weighted.{name}")
        made.add_row(f"{name.replace('_', '.')} of all I/Os", units.time(value))
    if metric_at(summary, "fidelity.verdict"):
        made.add_row("replay", words.code(metric_at(summary, "fidelity.verdict")))
    reasons = metric_at(summary, "fidelity.reasons") or []
    heading = Text.assemble((title, "bold"), " (all measured phases together)" if together else "")
    return Group(
        heading,
        made,
        *(Text(f"  {_reason(reason)}", style="yellow") for reason in reasons),
        *(warning_line(warning) for warning in summary.get("warnings") or []),
    )


def warning_line(warning: Entry) -> Text:
    """What makes figures less valid than they look, and what to do."""
    said = "; ".join(
        str(part).rstrip(".") for part in (warning.get("message"), warning.get("remedy")) if part
    )
    return Text.assemble(("warning: ", "yellow"), said)


#: What a verdict of pass is, by the metric that has it.
_PASSED = {
    "act.verdict": "every slice holds the limits, and the load was kept up with",
    "qos.verdict": "every rule holds in every interval",
    "headroom.verdict": "every rule holds in every interval",
}


def outcome_line(outcome: Outcome, summary: Entry) -> Text:
    """One rule of the verdict and what it came to: of a verdict of its own the reasons."""
    mark = ("pass", "green") if outcome.holds else ("fail", "red")
    if outcome.metric in _PASSED:
        reasons = metric_at(summary, f"{outcome.metric.partition('.')[0]}.reasons") or []
        if outcome.holds or reasons:
            said = "; ".join(reasons) if not outcome.holds else _PASSED[outcome.metric]
            return Text.assemble(mark, f"  {said}")
    found = outcome.value if outcome.value is not None else f"absent ({words.code(outcome.code)})"
    return Text.assemble(mark, f"  {outcome.metric} is {found}, wanted {outcome.rule}")


def _or_code(summary: Entry, key: str, code: str) -> str:
    value = summary.get(key)
    return units.time(value) if value is not None else words.code(summary.get(code))


def _baseline(row: Entry) -> str:
    value_ns, code = row["baseline_latency_ns"], row.get("baseline_code")
    if value_ns is not None:
        return units.time(value_ns)
    # Every other reason stands under recovery too, where there is room for it.
    return "unstable" if code == "unstable" else "absent"


def _recovery(row: Entry) -> str:
    code = row.get("recovery_code")
    if code == "never_recovered":
        limit_ns = row.get("recovery_more_than_ns")
        return "never" if limit_ns is None else f"never, > {units.time(limit_ns)}"
    return "saturated" if code == "saturated" else words.recovery(dict(row))


def _fidelity(verdict: object, role: str) -> str:
    if role == "original":
        return "the original"
    return words.code(str(verdict)) if verdict else units.ABSENT


def _reason(reason: object) -> str:
    if isinstance(reason, Mapping):
        return str(reason.get("message") or words.code(str(reason.get("code"))))
    return words.code(str(reason))
