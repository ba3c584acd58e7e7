"""What a figure of a statement stands in: a place to draw, how it is read, or why it is absent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from testdrive.report import html, words
from testdrive.report.html import Markup
from testdrive.report.plots import badge, heading
from testdrive.report.rows import dig
from testdrive.report.subject import Subject
from testdrive.statement.view import View, Views

Code = Callable[[Subject], str | None]
There = Callable[[View], Any]

#: What a code means for a figure.
_REASONS = {
    "not_recorded": "the source did not record what it needs",
    "no_ios": "there is no I/O that it could be drawn from",
    "no_completions": "no completion was recorded",
    "too_few_samples": "there are too few I/Os",
    "no_trims": "there are no trims",
}
#: Figures with an axis of time, which are zoomed together.
_TIMED = ("rates", "mix", "places", "growth", "statement-latency", "trim-streams")


def code_at(*keys: str) -> Code:
    """Return what finds the first code that a summary has at some keys."""

    def code(subject: Subject) -> str | None:
        found = (dig(subject.summary, key) for key in keys)
        return next((str(each) for each in found if each), None)

    return code


def absent(figure: str, code: str | None, name: str | None = None) -> Markup:
    """Return what stands in the place of a figure that is absent: that it is, and the code that says why."""
    code = code or "no_ios"
    who = f" of {name}" if name else ""
    reason = _REASONS.get(code, words.code(code))
    return html.tag(
        "p", f"{figure}{who} is absent: {reason} (", html.tag("code", code), ").", class_="absent"
    )


def each(
    views: Views,
    kind: str,
    title: str,
    there: There,
    code: Code,
    choices: str = "",
    after: Callable[[View], Markup | None] = lambda view: None,
) -> list[Markup]:
    """Return a plot for each recording, or why it has none; several stand under each other on one scale."""
    several = len(views.views) > 1
    parts = []
    for view in views.views:
        one = view.subject
        if not there(view):
            parts.append(absent(title, code(one), one.name if several else None))
            continue
        time = ("shared" if views.one_time else one.key) if kind in _TIMED else None
        made = _plot(kind, f"{title}, {one.label}", one.key, choices, time)
        named = several or one.modelled
        parts.append(html.tag("figure", heading(one) if named else None, made, after(view)))
    return parts


def any_there(views: Views, there: There) -> bool:
    """Return whether a figure is there for any recording."""
    return any(bool(there(view)) for view in views.views)


def overlay(
    views: Views,
    kind: str,
    title: str,
    there: There,
    code: Code,
    choices: str = "",
    reading: Markup | None = None,
) -> Markup:
    """Return one plot that holds all recordings, with a line for each that it lacks, and how it is read."""
    shown = [view for view in views.views if there(view)]
    several = len(views.views) > 1
    missing = [
        absent(title, code(view.subject), view.subject.name if several else None)
        for view in views.views
        if view not in shown
    ]
    made = _plot(kind, title, None, choices, None) if shown else None
    mark = _mark([view.subject for view in shown])
    named = html.tag("h3", title, " " if mark else None, mark)
    return html.tag("figure", named, made, *missing, reading if shown else None)


def _mark(shown: list[Subject]) -> Markup | None:
    """Return the mark of a figure of modelled drives: where there are others in it, with whose it is."""
    modelled = [one for one in shown if one.modelled]
    if not modelled or len(modelled) == len(shown):
        return badge(modelled[0]) if modelled else None
    return html.join(words.listed([one.name for one in modelled]), " ", badge(modelled[0]))


def _plot(kind: str, label: str, subject: str | None, choices: str, time: str | None) -> Markup:
    """Return the place that the page's script draws a figure into."""
    return html.tag(
        "div",
        class_=f"plot {'curve' if subject is None else kind}",
        data_plot=kind,
        data_subject=subject,
        data_file=f"{kind}-{subject}" if subject else kind,
        data_choices=choices or None,
        data_time=time,
        role="img",
        aria_label=label,
    )


def read_it(*sentences: str) -> Markup:
    """Return how a figure is read."""
    return html.tag("p", html.tag("strong", "How to read it: "), " ".join(each for each in sentences if each))


def shared_note(views: Views, shared: bool, what: str) -> str:
    """Return whether two recordings have the same scales."""
    if len(views.views) < 2:
        return ""
    if shared:
        return "Both recordings have the same scales."
    return f"The recordings are too different for one {what}: each has its own; other scales are the same."
