"""The sections of a statement's page on rates, sizes, arrivals and trims."""

from __future__ import annotations

from testdrive.report import html, units, words
from testdrive.report.html import Markup
from testdrive.report.plots import choice
from testdrive.report.rows import dig
from testdrive.statement.facts import sizes_tables, trim_table
from testdrive.statement.frames import any_there, code_at, each, overlay, read_it, shared_note
from testdrive.statement.view import Views


def rates_section(views: Views) -> Markup:
    """Return rates over time and the mix of operations."""
    code, there = code_at("workload.rates_code"), lambda view: view.rates
    rates = each(views, "rates", "Rates over time", there, code)
    if not any_there(views, there):
        return html.section("rates", "Rates and mix over time", *rates, link="Rates")
    apart, mixed = any_there(views, lambda view: view.mix), code_at("io_counts.by_opcode_code")
    windows = words.listed(sorted({units.duration(view.time.width_ns) for view in views.views}))
    seconds = any(view.rates is not None and view.rates.busiest_ios is not None for view in views.views)
    return html.section(
        "rates",
        "Rates and mix over time",
        read_it(
            f"each step is the mean of {windows}; the areas stand on each other, so that the top is the sum.",
            "The line above is the busiest second within each step, which the mean hides." if seconds else "",
            "Bytes of reads and writes are what the drive transfers; trims only name bytes, and have a"
            " scale of their own."
            if apart
            else "",
            shared_note(views, views.one_time, "axis of time"),
        ),
        *rates,
        html.tag("h3", "Mix of operations"),
        read_it(
            "the share of each operation in the I/Os, and in the bytes, of each step. A step without I/Os is"
            " empty."
        )
        if apart
        else None,
        *each(views, "mix", "Mix over time", lambda view: view.mix, mixed),
        link="Rates",
    )


def sizes_section(views: Views) -> Markup:
    """Return the histogram of sizes and the tables beside it."""
    code, there = code_at("workload.sizes_code"), lambda view: view.sizes
    bars = overlay(views, "sizes", "Sizes of I/Os", there, code, "sizes")
    if not any_there(views, there):
        return html.section("sizes", "Sizes and alignment", bars, link="Sizes")
    return html.section(
        "sizes",
        "Sizes and alignment",
        read_it(
            "a bar is the share of an operation's I/Os that are larger than the size to its left and at most"
            " its own; by bytes, large I/Os weigh more. Flushes have no size."
        ),
        html.tag(
            "div", choice("sizes", "Height of a bar", ["share of I/Os", "share of bytes"]), class_="choices"
        ),
        bars,
        sizes_tables([view.subject for view in views.views]),
        link="Sizes",
    )


def arrivals_section(views: Views) -> Markup:
    """Return the intervals between arrivals and the I/Os in flight."""
    intervals = overlay(
        views,
        "arrivals",
        "Time between arrivals",
        lambda view: view.arrivals,
        code_at("workload.interarrival_code"),
        "arrivals",
        read_it(
            "which share of the I/Os came at most so long after the one before. The dotted line is chance"
            " alone with the same mean: above it at the left, I/Os come in bunches; below it at the right,"
            " with pauses between. A line that rises at once is a rhythm."
        ),
    )
    depth = overlay(
        views,
        "in-flight",
        "I/Os in flight",
        lambda view: view.in_flight,
        code_at("workload.queue_depth_code"),
        reading=read_it(
            "a bar is the share of the time with so many I/Os in flight (≤8: 5 to 8), from submission to"
            " completion; at 0 the drive has nothing to do. It tells of workload and drive together: had the"
            " drive been slower, more would have been in flight."
        ),
    )
    axis = choice("arrivals", "Vertical axis of the intervals", ["0 to 100 %", "nines"])
    return html.section(
        "arrivals",
        "Arrivals and I/Os in flight",
        html.tag("div", axis, class_="choices") if any_there(views, lambda view: view.arrivals) else None,
        html.tag("div", intervals, depth, class_="pair"),
        link="Arrivals",
    )


def trims_section(views: Views) -> Markup | None:
    """Return the trims by stream; None where no recording has trims."""
    if not any(dig(view.subject.summary, "io_counts.by_opcode.trim.ios") for view in views.views):
        return None
    code = code_at("workload.trim_bursts_code", "workload.trim_streams_code")
    return html.section(
        "trims",
        "Trims by stream",
        read_it(
            "a row is a CPU (or worker) that submitted trims, a cell the bytes that it trimmed in a step."
            " Few rows mean that they all come from few places, stripes at a distance that they come by"
            " the clock."
        ),
        *each(views, "trim-streams", "Trims by stream", lambda view: view.trims, code),
        trim_table([view.subject for view in views.views]),
        link="Trims",
    )
