"""The places of the plots in a page: headings, choices and captions; the page's script draws into them."""

from __future__ import annotations

from testdrive.report import html, units
from testdrive.report.html import Markup
from testdrive.report.power_tables import power_tables
from testdrive.report.subject import Subject
from testdrive.report.view import View, Views


def badge(subject: Subject) -> Markup | None:
    """Return the mark of a modelled drive, which stands beside its name everywhere."""
    if not subject.modelled:
        return None
    return html.tag("span", "modelled", class_="badge", title="A model in virtual time, not a drive")


def heading(subject: Subject) -> Markup:
    """Return the heading of a recording's plot."""
    return html.tag(
        "h3",
        subject.name,
        " " if subject.modelled else None,
        badge(subject),
        " " if subject.identity != subject.name else None,
        html.tag("span", subject.identity, class_="note") if subject.identity != subject.name else None,
    )


def latency_section(views: Views, *after: Markup | None) -> Markup:
    """Return latency against time for each recording, with the trims under it, and `after` at its end."""
    shown = [view for view in views.views if view.service or view.latency]
    missing = [view.subject.name for view in views.views if view not in shown]
    opcodes = {name for view in shown for name in view.latency}
    options = ["reads and writes"]
    options += [
        words
        for name, words in (
            ("read", "reads"),
            ("write", "writes"),
            ("trim", "trims"),
            ("flush", "flushes"),
            ("write_zeroes", "write zeroes"),
        )
        if name in opcodes
    ]
    intro = (
        "Shade is the number of I/Os in a cell of time and service time; the lines are over the reads and "
        "writes submitted in each "
        f"{views.scales.window_words}. Failed I/Os have no latency and are left out. "
    )
    intro += "All panels have the same scales; a zoom in one is made in all." if len(views.views) > 1 else ""
    if not views.has_trims and all(
        "opcode" not in view.subject.manifest.absent_columns for view in views.views
    ):
        intro += " The workload has no trims."
    return html.section(
        "latency",
        "Latency against time" + (", with the trims under it" if views.has_trims else ""),
        html.tag("p", intro),
        html.tag("p", f"No completions were recorded for: {', '.join(missing)}.") if missing else None,
        html.tag("div", choice("density", "Density of", options), class_="choices"),
        *(_latency_plot(view, views) for view in shown),
        *after,
        link="Latency",
    )


_OFFSETS_SHARED = {
    "all": "All panels have the same scales.",
    "drives": "All drives have the same scales; the original, with a footprint of another size, has its own.",
    "none": "The footprints differ too much for one scale of addresses: each panel has its own.",
}


def offsets_section(views: Views) -> Markup:
    """Return addresses against time, original and replayed, coloured by opcode."""
    shown = [view for view in views.views if view.offsets]
    if not shown:
        return html.section(
            "offsets", "Addresses against time", html.tag("p", "No offsets were recorded."), link="Addresses"
        )
    opcodes = {name for view in shown for name in view.offsets}
    named = (("read", "reads"), ("write", "writes"), ("trim", "trims"), ("write_zeroes", "write zeroes"))
    options = ["all", *(words for name, words in named if name in opcodes)]
    note = "Each I/O is drawn over all the addresses that it touches, so that a large trim shows its size. "
    if len(shown) > 1:
        note += _OFFSETS_SHARED[views.scales.offsets_shared]
    return html.section(
        "offsets",
        "Addresses against time",
        html.tag("p", note),
        html.tag("div", choice("opcodes", "Show", options), class_="choices"),
        *(
            html.tag(
                "figure",
                heading(view.subject),
                _plot("offsets", view.subject, f"Addresses against time, {view.subject.label}", "opcodes"),
                _capacity_note(view.subject),
            )
            for view in shown
        ),
        link="Addresses",
    )


def percentiles_section(views: Views) -> Markup:
    """Return the distributions of service time of all recordings, overlaid."""
    if not any(view.service for view in views.views):
        return html.section("percentiles", "Percentiles", html.tag("p", "No completions were recorded."))
    return html.section(
        "percentiles",
        "Percentiles of service time",
        html.tag(
            "p",
            "All I/Os that completed without an error. Weighted by I/O, a curve says which share of the "
            "I/Os was at least that fast; weighted by latency, which share "
            "of all the time spent waiting went to I/Os at most that slow: a few slow I/Os can be most of "
            "the wait. Where a line is "
            "faint, too few I/Os lie beyond it for the percentile to hold. Lower right is slower.",
        ),
        html.tag("div", choice("axis", "Vertical axis", ["nines", "0 to 100 %"]), class_="choices"),
        html.tag(
            "div",
            _curve("io-weighted", "IO-weighted", "service time (log)", "share of I/Os at or below"),
            _curve(
                "latency-weighted", "Latency-weighted", "service time (log)", "share of I/O time at or below"
            ),
            class_="pair",
        ),
        link="Percentiles",
    )


def power_section(views: Views) -> Markup | None:
    """Return power and temperature of each drive whose power was measured, or None where none was."""
    if not views.powers:
        return None
    return html.section(
        "power",
        "Power and temperature",
        html.tag(
            "p",
            "Mean power in steps of a second or more, by the source that the table names, "
            "and the temperature at the end of each step where the source tells it.",
        ),
        *power_tables([view.subject for view in views.views]),
        *(
            html.tag(
                "figure",
                heading(subject),
                _plot("power", subject, f"Power and temperature against time, {subject.label}", ""),
                html.tag(
                    "figcaption",
                    f"{lines.energy_j:,.1f} J in the measured phases"
                    + (", as far as they were measured" if lines.has_gaps else "")
                    + f", {lines.mean_w:.2f} W on average"
                    + (" (modelled)." if subject.modelled else "."),
                ),
            )
            for subject, lines in views.powers
        ),
        link="Power",
    )


def lateness_figure(views: Views) -> Markup | None:
    """Return the distribution of lateness of the replays, or None where there is none."""
    if not any(view.lateness for view in views.views):
        return None
    return _curve(
        "lateness",
        "How late I/Os were submitted",
        "lateness: submission less intended time (log)",
        "share of I/Os at or below",
    )


def _latency_plot(view: View, views: Views) -> Markup:
    words = f"Service time against time, {view.subject.label}"
    kind = "with-trims" if views.has_trims else ""
    caption = None
    if views.has_trims and view.trims is None:
        caption = html.tag("figcaption", "No trims in this recording.")
    return html.tag(
        "figure", heading(view.subject), _plot("latency", view.subject, words, "density", kind), caption
    )


def _capacity_note(subject: Subject) -> Markup | None:
    size = subject.drive.capacity_bytes
    return html.tag("figcaption", f"Capacity {units.capacity(size)}.") if size else None


def _plot(kind: str, subject: Subject, words: str, choices: str, class_: str = "") -> Markup:
    return html.tag(
        "div",
        class_=f"plot {kind} {class_}".strip(),
        data_plot=kind,
        data_subject=subject.key,
        data_file=f"{kind}-{subject.key}",
        data_choices=choices,
        role="img",
        aria_label=words,
    )


def _curve(kind: str, title: str, x_title: str, y_title: str) -> Markup:
    return html.tag(
        "figure",
        html.tag("h3", title),
        html.tag(
            "div",
            class_="plot curve",
            data_plot=kind,
            data_file=kind,
            data_choices="axis",
            data_x_title=x_title,
            data_y_title=y_title,
            role="img",
            aria_label=title,
        ),
    )


def choice(name: str, title: str, options: list[str]) -> Markup:
    """Return radio buttons; the first option is chosen."""
    return html.tag(
        "fieldset",
        html.tag("legend", title),
        *(
            html.tag(
                "label",
                html.tag("input", type="radio", name=name, value=option, checked=at == 0),
                f" {option}",
            )
            for at, option in enumerate(options)
        ),
        data_choice=name,
    )
