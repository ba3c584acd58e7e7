"""Putting a page together: template, style, script, data and Plotly, in one file that needs nothing else."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from importlib import resources
from pathlib import Path
from string import Template

from testdrive import __version__
from testdrive.report import html
from testdrive.report.html import Markup, Section
from testdrive.report.pack import compressed

# The order matters only in that main.js starts the page.
SCRIPTS = (
    "data.js",
    "theme.js",
    "rasters.js",
    "curves.js",
    "power.js",
    "statement.js",
    "places.js",
    "method.js",
    "main.js",
)


def write_page(path: Path, title: str, body: Markup, data: str) -> Path:
    """Write a self-contained page, replacing an older one only once the new one is whole.

    Parameters
    ----------
    path
        The HTML file.
    title
        Of the browser's tab; escaped here.
    body
        What the page says.
    data
        What its script draws, packed (see `pack`).
    """
    text = Template(_asset("page.html")).substitute(
        version=html.escape(__version__),
        title=html.escape(title),
        style=_asset("page.css"),
        body=body,
        data=data,
        plotly=_plotly(),
        script="\n".join(_asset(name) for name in SCRIPTS),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        # mkstemp makes files that only their owner can read; a page is for showing.
        Path(temporary).chmod(0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def frame(title: str, lead: Markup, *parts: Markup | None) -> Markup:
    """Return a page's body: heading, lead, links to those of its parts that are sections, the parts, and the
    footer.
    """
    sections = [part for part in parts if isinstance(part, Section)]
    return html.join(
        html.tag(
            "header",
            html.tag("h1", title),
            html.tag("p", lead, class_="lead"),
            html.tag(
                "nav",
                *(html.tag("a", one.link, href=f"#{one.identity}") for one in sections),
                aria_label="Sections",
            ),
        ),
        html.tag(
            "main",
            html.tag("noscript", html.tag("p", _NO_SCRIPT, class_="failure")),
            *parts,
        ),
        html.tag("p", "Drawing the plots …", id="status", class_="note", role="status"),
        html.tag("footer", html.tag("p", f"Made by testdrive {__version__}. {_FOOTER}")),
    )


_NO_SCRIPT = (
    "The plots need JavaScript. The tables below are complete, and the figures folder beside this page "
    "has the plots as images."
)
_FOOTER = (
    "Service time is completion less submission; response time is completion less the time at which the "
    "workload wanted the I/O, "
    "so it holds the wait before a late submission too. Percentile p is the element of rank ceil(p n), "
    "without interpolation. "
    "The plots are drawn by plotly.js (MIT licence), which this page carries; it loads nothing from "
    "elsewhere."
)


def _asset(name: str) -> str:
    return resources.files("testdrive.report").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    """Return the bundle that the plotly package carries: the page then works wherever and whenever it is
    opened.
    """
    source = resources.files("plotly").joinpath("package_data", "plotly.min.js")
    return compressed(source.read_bytes())
