"""The box that stands above everything else on a page: what its reader must know before any figure."""

from __future__ import annotations

from collections.abc import Iterable

from testdrive.report import html
from testdrive.report.html import Markup


def alert_box(title: str, items: Iterable[tuple[str, str]], *, alone: bool, label: str) -> Markup:
    """Return a box with a list.

    Parameters
    ----------
    title
        What is said above the list.
    items
        Names and sentences.
    alone
        Whether the page is about one thing only, whose name need not be said.
    label
        What screen readers call the box.
    """
    lines = (html.tag("li", None if alone else html.tag("strong", f"{name}: "), said) for name, said in items)
    return html.tag(
        "section",
        html.tag("h2", title),
        html.tag("ul", *lines),
        class_="alert",
        role="alert",
        aria_label=label,
    )
