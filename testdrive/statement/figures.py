"""The figures of a statement as PNG images beside its page, for documents and for browsers that cannot draw
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm, to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import EngFormatter, FuncFormatter

from testdrive.manifest import OPCODES, opcode_name
from testdrive.report import palette, units
from testdrive.report.figures import DENSITY, DPI, new_figure, plain
from testdrive.statement.curve_figures import (
    arrivals_figure,
    hot_figure,
    in_flight_figure,
    opcode_latency_figure,
)
from testdrive.statement.timeline import Timeline
from testdrive.statement.view import View, Views

_COLUMNS, _ROWS = 1024, 256


def write_figures(views: Views, directory: Path) -> list[Path]:
    """Write `workload-*.png`, one for each figure that there is, and return their paths.

    One that an earlier statement left and that is absent now is removed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, draw in _FIGURES.items():
        path = directory / f"workload-{name}.png"
        figure = draw(views)
        if figure is None:
            path.unlink(missing_ok=True)
            continue
        _mark(figure, views)
        figure.savefig(path, dpi=DPI)
        written.append(path)
    return written


def _mark(figure: Figure, views: Views) -> None:
    """Say on a figure which of its drives are modelled: an image is shown without its page."""
    modelled = [view.subject.label for view in views.views if view.subject.modelled]
    if modelled:
        figure.suptitle(plain(", ".join(modelled)), x=0.995, horizontalalignment="right", fontsize="small")


def _stacked(
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

    return _stacked(views, lambda view: view.rates, 3 if trims else 2, 5.2 if trims else 4.0, draw)


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

    return _stacked(views, lambda view: view.mix, 2, 3.4, draw)


def sizes_figure(views: Views) -> Figure | None:
    """Return the histograms of sizes, by I/Os and by bytes."""
    shown = [view for view in views.views if view.sizes]
    if not shown:
        return None
    figure = new_figure(4.2)
    left, right = figure.subplots(1, 2)
    edges = sorted({edge for view in shown if view.sizes for edge in view.sizes.edges_bytes})
    bars = [(view, name) for view in shown if view.sizes for name in OPCODES if name in view.sizes.ios]
    width = 0.8 / max(len(bars), 1)
    for at, (view, name) in enumerate(bars):
        assert view.sizes is not None
        hatch = "//" if views.views.index(view) else None
        label = view.called(name) + (f", {view.short}" if len(shown) > 1 else "")
        for panel, counts in ((left, view.sizes.ios[name]), (right, view.sizes.bytes[name])):
            heights = dict(zip(view.sizes.edges_bytes, counts, strict=True))
            whole = sum(counts) or 1
            panel.bar(
                np.arange(len(edges)) + (at + 0.5) * width - 0.4,
                [100 * heights.get(edge, 0) / whole for edge in edges],
                width,
                color=palette.OPCODES[name].light,
                hatch=hatch,
                edgecolor="white" if hatch else None,
                label=plain(label),
            )
    for panel, title in ((left, "share of the operation's I/Os"), (right, "share of its bytes")):
        panel.set_xticks(
            range(len(edges)), [units.block(edge) for edge in edges], rotation=60, fontsize="small"
        )
        panel.set_xlabel("size of an I/O, at most")
        panel.set_ylabel(title)
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
    left.legend(fontsize="small")
    return figure


def places_figure(views: Views) -> Figure | None:
    """Return addresses against time."""

    def draw(view: View, panel: Axes) -> None:
        assert view.places is not None
        axis = view.places.addresses
        unit, name = _address_unit(axis.high_bytes)
        for code in view.places.opcodes:
            counts = view.places.raster(code, _COLUMNS, _ROWS)
            ink = palette.OPCODES[opcode_name(code)].light
            # Where hardly a cell is empty, few I/Os must be pale, or many of them would not stand out.
            pale = 0.1 if np.count_nonzero(counts) > 0.3 * counts.size else 0.45
            panel.imshow(
                np.ma.masked_equal(counts, 0),
                origin="lower",
                aspect="auto",
                interpolation="nearest",
                extent=(
                    0,
                    view.time.end_ns / view.time.unit[0],
                    0,
                    axis.length_bytes / unit,
                ),
                norm=LogNorm(1, max(int(counts.max()), 2)),
                cmap=LinearSegmentedColormap.from_list(name, [to_rgba(ink, pale), to_rgba(ink, 1.0)]),
            )
        panel.set_ylabel(f"address ({name})")
        for segment in axis.segments[1:]:
            panel.axhline(segment.at_bytes / unit, color="grey", linestyle="--", linewidth=0.7)
        if axis.cut:
            panel.yaxis.set_major_formatter(
                FuncFormatter(lambda value, _: f"{axis.address_at(value * unit) / unit:.4g}")
            )
        panel.legend(
            handles=[
                Patch(color=palette.OPCODES[opcode_name(code)].light, label=view.called(opcode_name(code)))
                for code in view.places.opcodes
            ],
            loc="lower right",
            ncols=4,
            bbox_to_anchor=(1.0, 1.0),
            fontsize="small",
            frameon=False,
        )

    return _stacked(views, lambda view: view.places, 1, 3.6, draw)


def _address_unit(high_bytes: float) -> tuple[int, str]:
    """The binary unit in which an axis of addresses reads best."""
    binary = ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB"))
    return next(((1 << bits, said) for bits, said in binary if high_bytes >= 1 << bits), (1, "B"))


def growth_figure(views: Views) -> Figure | None:
    """Return the growth of the footprint over the working set of each minute."""

    def draw(view: View, panel: Axes) -> None:
        growth, unit = view.growth, view.time.unit[0]
        assert growth is not None
        scale, name = _address_unit(max(growth["total"]))
        if view.working_sets:
            minutes = (np.arange(len(view.working_sets)) + 0.5) * 60e9 / unit
            panel.bar(
                minutes,
                np.array(view.working_sets) / scale,
                60e9 / unit,
                color="#cccccc",
                label="working set of a minute",
            )
        times = np.arange(len(growth["total"]) + 1) * growth["interval_ns"] / unit
        panel.plot(
            times,
            np.array([0, *growth["total"]]) / scale,
            color="black",
            linewidth=1.6,
            label="all operations",
        )
        for opcode, series in growth["by_opcode"].items():
            panel.plot(
                times,
                np.array([0, *series]) / scale,
                color=palette.OPCODES[opcode].light,
                linewidth=1.2,
                label=view.called(opcode),
            )
        panel.set_ylim(bottom=0)
        panel.set_ylabel(f"addresses touched ({name})")
        panel.legend(loc="upper left", fontsize="small")

    return _stacked(views, lambda view: view.growth, 1, 3.2, draw)


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
        panel.plot(
            middle,
            found.mean_ns / 1e9,
            color="black",
            linewidth=1.0,
            marker=".",
            markersize=1.5,
            label="mean",
        )
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter(EngFormatter("s"))
        panel.set_ylabel("service time")
        panel.legend(loc="upper right", ncols=2, fontsize="small")
        panel.figure.colorbar(mesh, ax=panel, label="reads and writes in a cell", pad=0.01)

    return _stacked(views, lambda view: view.latencies, 1, 3.4, draw)


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

    return _stacked(views, lambda view: view.trims, 1, 2.4, draw)


_FIGURES: dict[str, Callable[[Views], Figure | None]] = {
    "rates": rates_figure,
    "mix": mix_figure,
    "sizes": sizes_figure,
    "places": places_figure,
    "hot-regions": hot_figure,
    "footprint": growth_figure,
    "arrivals": arrivals_figure,
    "in-flight": in_flight_figure,
    "latency": latency_figure,
    "latency-by-operation": opcode_latency_figure,
    "trim-streams": trim_streams_figure,
}
