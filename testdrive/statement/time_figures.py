"""Figures against time: panels of each recording under each other, as PNG images."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm, to_rgba
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter

from testdrive.manifest import OPCODES
from testdrive.report import palette
from testdrive.report.figures import DENSITY, draw_mean, new_figure, plain
from testdrive.statement.timeline import Timeline
from testdrive.statement.view import View, Views


def stacked(
    views: Views,
    there: Callable[[View], Any],
    rows_each: int,
    height_inches: float,
    draw: Callable[..., None],
) -> Figure | None:
    """Panels of each recording under each other; ``draw`` gets a view and its panels."""
    shown = [view for view in views.views if there(view)]
    if not shown:
        return None
    figure = new_figure(height_inches * len(shown) + 0.6)
    panels = figure.subplots(rows_each * len(shown), 1, squeeze=False, sharex=views.one_time)[:, 0]
    for at, view in enumerate(shown):
        mine = panels[rows_each * at : rows_each * (at + 1)]
        draw(view, *mine)
        if len(views.views) > 1:
            mine[0].set_title(plain(view.subject.label), loc="left")
        mine[-1].set_xlabel(f"time since the start ({view.time.unit[1]})")
    return figure


def _edges(time: Timeline) -> Any:
    return np.arange(time.windows + 1) * time.width_ns / time.unit[0]


def _stack(panel: Axes, view: View, series: Iterable[tuple[str, Any]]) -> None:
    """Areas of each opcode on top of each other."""
    base = np.zeros(view.time.windows)
    for name, values in series:
        top = base + values
        panel.stairs(
            top,
            _edges(view.time),
            baseline=base,
            fill=True,
            color=palette.OPCODES[name].light,
            alpha=0.75,
            label=view.called(name),
        )
        base = top


def rates_figure(views: Views) -> Figure | None:
    """Return IOPS, bytes read and written, and bytes trimmed, over time."""
    maxima = views.rate_maxima()
    trims = maxima["trimmed"] > 0

    def draw(view: View, ios: Axes, moved: Axes, trimmed: Axes | None = None) -> None:
        assert view.rates is not None
        seconds = view.rates.lengths_s
        rates, size = view.rates.ios, view.rates.bytes
        _stack(ios, view, ((name, rates[name] / seconds) for name in OPCODES if name in rates))
        if view.rates.busiest_ios is not None:
            ios.stairs(
                view.rates.busiest_ios,
                _edges(view.time),
                color="#c84800",
                linewidth=0.8,
                label="busiest second",
            )
        _stack(moved, view, ((name, size[name] / seconds) for name in ("read", "write") if name in size))
        ios.set_ylim(0, (maxima["ios"] or 1) * 1.05)
        moved.set_ylim(0, (maxima["moved"] or 1) * 1.05)
        ios.set_ylabel("IOPS")
        moved.set_ylabel("read, written" if view.mix else "bytes")
        moved.yaxis.set_major_formatter(EngFormatter("B/s"))
        ios.yaxis.set_major_formatter(EngFormatter())
        ios.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=6, fontsize="small", frameon=False)
        if trimmed is not None:
            _stack(trimmed, view, [("trim", size["trim"] / seconds)] if "trim" in size else [])
            trimmed.set_ylim(0, maxima["trimmed"] * 1.05)
            trimmed.set_ylabel("trimmed")
            trimmed.yaxis.set_major_formatter(EngFormatter("B/s"))

    return stacked(views, lambda view: view.rates, 3 if trims else 2, 5.2 if trims else 4.0, draw)


def mix_figure(views: Views) -> Figure | None:
    """Return the shares of the operations over time."""

    def draw(view: View, ios: Axes, size: Axes) -> None:
        assert view.mix is not None
        for panel, counts, title in ((ios, view.mix.ios, "of I/Os"), (size, view.mix.bytes, "of bytes")):
            whole = np.maximum(sum(counts.values(), np.zeros(view.time.windows)), 1)
            _stack(panel, view, ((name, 100 * counts[name] / whole) for name in OPCODES if name in counts))
            panel.set_ylim(0, 100)
            panel.set_ylabel(title)
            panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
        ios.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=6, fontsize="small", frameon=False)

    return stacked(views, lambda view: view.mix, 2, 3.4, draw)


def latency_figure(views: Views) -> Figure | None:
    """Return service time against time."""
    most = views.latency_count_max()

    def draw(view: View, panel: Axes) -> None:
        found = view.latencies
        assert found is not None
        counts = sum(
            (raster for name, raster in found.rasters.items() if name in ("read", "write")),
            np.zeros((views.latency.cells, view.time.windows), np.int64),
        )
        mesh = panel.pcolormesh(
            _edges(view.time),
            views.latency.edges() / 1e9,
            np.ma.masked_equal(counts, 0),
            norm=LogNorm(1, max(most, 2)),
            cmap=DENSITY,
            rasterized=True,
        )
        middle = (np.arange(view.time.windows) + 0.5) * view.time.width_ns / view.time.unit[0]
        panel.plot(middle, found.max_ns / 1e9, color="#c84800", linewidth=0.6, label="max of each step")
        draw_mean(panel, middle, found.mean_ns / 1e9)
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter(EngFormatter("s"))
        panel.set_ylabel("service time")
        panel.legend(loc="upper right", ncols=2, fontsize="small")
        panel.figure.colorbar(mesh, ax=panel, label="reads and writes in a cell", pad=0.01)

    return stacked(views, lambda view: view.latencies, 1, 3.4, draw)


def trim_streams_figure(views: Views) -> Figure | None:
    """Return bytes trimmed by stream and time."""

    def draw(view: View, panel: Axes) -> None:
        assert view.trims is not None
        ink = palette.OPCODES["trim"].light
        shades = LinearSegmentedColormap.from_list("trims", [to_rgba(ink, 0.35), to_rgba(ink, 1.0)])
        rows = len(view.trims.streams)
        drawn = np.ma.masked_equal(view.trims.trimmed_bytes, 0)
        mesh = panel.pcolormesh(
            _edges(view.time), np.arange(rows + 1), drawn, cmap=shades, vmin=0, rasterized=True
        )
        panel.set_yticks(np.arange(rows) + 0.5, view.trims.streams)
        panel.set_ylabel("stream (CPU)")
        panel.figure.colorbar(mesh, ax=panel, label="trimmed in a step", format=EngFormatter("B"), pad=0.01)

    return stacked(views, lambda view: view.trims, 1, 2.4, draw)
