"""The curves and bars of a statement that have no axis of time, as PNG images."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter

from testdrive.manifest import OPCODES
from testdrive.report import palette
from testdrive.report.figures import new_figure, nines_axis, nines_of, plain
from testdrive.statement.latencies import points_of_poisson
from testdrive.statement.view import View, Views

_HOT_INKS = {
    "reads and writes": "black",
    "reads": palette.OPCODES["read"].light,
    "writes": palette.OPCODES["write"].light,
}
_PERCENT = FuncFormatter(lambda value, _: f"{value:g} %")


def _said(views: Views, view: View, words: str) -> str:
    return plain(f"{words}, {view.short}" if len(views.views) > 1 else words)


def _dash(views: Views, view: View) -> str:
    return "--" if views.views.index(view) else "-"


def hot_figure(views: Views) -> Figure | None:
    """Return the share of the I/Os that the hottest regions take."""
    shown = [view for view in views.views if view.hot]
    if not shown:
        return None
    figure = new_figure(4.2)
    panel: Axes = figure.subplots()
    for view in shown:
        for name, curve in view.hot.items():
            label = _said(views, view, name)
            panel.plot(
                curve.part * 100, curve.share * 100, _dash(views, view), color=_HOT_INKS[name], label=label
            )
    line = np.geomspace(0.01, 100, 50)
    panel.plot(line, line, ":", color="grey", label="all alike")
    panel.set_xscale("log")
    panel.set_xlim(left=min(100 * float(curve.part[0]) for view in shown for curve in view.hot.values()))
    panel.xaxis.set_major_formatter(_PERCENT)
    panel.yaxis.set_major_formatter(_PERCENT)
    panel.set_xlabel("hottest part of the regions in use")
    panel.set_ylabel("share of the I/Os")
    panel.legend(fontsize="small")
    panel.grid(alpha=0.3)
    return figure


def arrivals_figure(views: Views) -> Figure | None:
    """Return the distribution of the times between arrivals, with that of chance alone."""
    shown = [view for view in views.views if view.arrivals]
    if not shown:
        return None
    figure = new_figure(4.2)
    panel: Axes = figure.subplots()
    for view in shown:
        assert view.arrivals is not None
        curve, ink = view.arrivals.curve, view.subject.ink.light
        panel.step(
            np.maximum(curve.value_ns, 1) / 1e9,
            curve.io_share * 100,
            where="post",
            color=ink,
            linestyle=_dash(views, view),
            label=_said(views, view, "recorded"),
        )
        value, share = points_of_poisson(view.arrivals.mean_ns)
        panel.plot(value / 1e9, share * 100, ":", color=ink, label=_said(views, view, "by chance alone"))
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(EngFormatter("s"))
    panel.yaxis.set_major_formatter(_PERCENT)
    panel.set_xlabel("time between arrivals")
    panel.set_ylabel("share of the intervals at or below")
    panel.legend(fontsize="small")
    panel.grid(alpha=0.3)
    return figure


def in_flight_figure(views: Views) -> Figure | None:
    """Return the share of the time with so many I/Os in flight."""
    shown = [view for view in views.views if view.in_flight]
    if not shown:
        return None
    figure = new_figure(3.8)
    panel: Axes = figure.subplots()
    width = 0.8 / len(shown)
    labels: list[str] = []
    for at, view in enumerate(shown):
        assert view.in_flight is not None
        shares = 100 * np.array(view.in_flight.time_share)
        places = np.arange(len(shares)) + (at + 0.5) * width - 0.4
        panel.bar(places, shares, width, color=view.subject.ink.light, label=plain(view.subject.label))
        labels = max(labels, view.in_flight.labels, key=len)
    panel.set_xticks(range(len(labels)), labels)
    panel.yaxis.set_major_formatter(_PERCENT)
    panel.set_xlabel("I/Os in flight")
    panel.set_ylabel("share of the time")
    if len(shown) > 1:
        panel.legend(fontsize="small")
    return figure


def opcode_latency_figure(views: Views) -> Figure | None:
    """Return the distribution of service time of each operation."""
    shown = [view for view in views.views if view.latencies]
    if not shown:
        return None
    figure = new_figure(4.6)
    panel: Axes = figure.subplots()
    for view in shown:
        assert view.latencies is not None
        for name in (name for name in OPCODES if name in view.latencies.curves):
            curve = view.latencies.curves[name]
            panel.step(
                np.maximum(curve.value_ns, 1) / 1e9,
                nines_of(curve, curve.io_share),
                where="post",
                color=palette.OPCODES[name].light,
                linestyle=_dash(views, view),
                label=_said(views, view, view.called(name)),
            )
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(EngFormatter("s"))
    nines_axis(panel)
    panel.set_xlabel("service time")
    panel.set_ylabel("share of the operation's I/Os at or below")
    panel.legend(fontsize="small", loc="lower right")
    panel.grid(alpha=0.3)
    return figure
