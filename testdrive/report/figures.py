"""The page's plots as PNG images beside it, for documents and for browsers that cannot draw the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Colormap, LinearSegmentedColormap, LogNorm, to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import EngFormatter, FuncFormatter
from numpy.typing import NDArray

from testdrive.report import palette
from testdrive.report.axes import Axis
from testdrive.report.distribution import Curve
from testdrive.report.power import draw_power
from testdrive.report.view import View, Views, offset_unit, reads_and_writes

WIDTH_INCHES = 11.0
DPI = 130
DENSITY = LinearSegmentedColormap.from_list("density", ["#d3e3f1", "#08306b"])
_NINES = (0.0, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)


def write_figures(views: Views, directory: Path) -> list[Path]:
    """Write `latency.png`, `offsets.png`, `percentiles.png`, for replays `lateness.png`, and where drives
    measure themselves `power.png`; return their paths.
    """
    directory.mkdir(parents=True, exist_ok=True)
    figures = {"latency": latency_figure(views), "offsets": offsets_figure(views)}
    figures["percentiles"] = percentiles_figure(views)
    if any(view.lateness for view in views.views):
        figures["lateness"] = lateness_figure(views)
    figures["power"] = power_figure(views)
    written = []
    for name, figure in figures.items():
        if figure is None:
            (directory / f"{name}.png").unlink(missing_ok=True)
            continue
        path = directory / f"{name}.png"
        figure.savefig(path, dpi=DPI)
        written.append(path)
    return written


def latency_figure(views: Views) -> Figure:
    """Return service time against time for each recording, with its trims under it, on the same scales."""
    rows_each = 2 if views.has_trims else 1
    ratios = ([3.0, 0.8] if views.has_trims else [3.0]) * len(views.views)
    figure = new_figure(sum(ratios) * 0.95 + 0.6)
    panels = figure.subplots(
        rows_each * len(views.views), 1, sharex=True, squeeze=False, height_ratios=ratios
    )[:, 0]
    for at, view in enumerate(views.views):
        _draw_latency(panels[rows_each * at], view, views)
        if views.has_trims:
            _draw_trims(panels[rows_each * at + 1], view, views)
    panels[0].legend(loc="upper right", ncols=3, fontsize="small")
    panels[-1].set_xlabel("time since the start (s)")
    return figure


def offsets_figure(views: Views) -> Figure | None:
    """Return addresses against time for each recording, coloured by opcode, or None where no offset is
    known.
    """
    shown = [view for view in views.views if view.offsets]
    if not shown:
        return None
    figure = new_figure(2.6 * len(shown) + 0.6)
    panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for panel, view in zip(panels, shown, strict=True):
        unit_bytes, unit_name = offset_unit(view.offset_axis)
        for name, ink in palette.OPCODES.items():
            if name in view.offsets:
                colours = LinearSegmentedColormap.from_list(
                    name, [to_rgba(ink.light, 0.45), to_rgba(ink.light, 1.0)]
                )
                _mesh(
                    panel,
                    view.offsets[name],
                    views.scales.time,
                    (view.offset_axis, unit_bytes),
                    colours,
                    views.offset_count_max(name),
                )
        panel.set_title(plain(view.subject.label), loc="left")
        panel.set_ylabel(f"offset ({unit_name})")
    present = [name for name in palette.OPCODES if any(name in view.offsets for view in shown)]
    panels[0].legend(
        handles=[Patch(color=palette.OPCODES[name].light, label=name.replace("_", " ")) for name in present],
        loc="lower right",
        ncols=len(present),
        bbox_to_anchor=(1.0, 1.0),
        fontsize="small",
        frameon=False,
    )
    panels[-1].set_xlabel("time since the start (s)")
    return figure


def percentiles_figure(views: Views) -> Figure | None:
    """Return the distributions of service time, weighted by I/O and by latency, or None where there is
    none.
    """
    curves = [(view, view.service) for view in views.views if view.service]
    if not curves:
        return None
    figure = new_figure(5.0)
    left, right = figure.subplots(1, 2)
    _draw_curves(left, [(view, curve, curve.io_share) for view, curve in curves], nines=True)
    _draw_curves(right, [(view, curve, curve.time_share) for view, curve in curves], nines=False)
    left.set_ylabel("share of I/Os at or below")
    right.set_ylabel("share of I/O time at or below")
    left.set_title("IO-weighted", loc="left")
    right.set_title("latency-weighted", loc="left")
    for panel in (left, right):
        panel.set_xlabel("service time of all I/Os without an error")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize="small", frameon=False)
    return figure


def lateness_figure(views: Views) -> Figure:
    """Return the distribution of lateness of each replay."""
    figure = new_figure(4.5)
    panel = figure.subplots()
    late = [(view, view.lateness, view.lateness.io_share) for view in views.views if view.lateness]
    _draw_curves(panel, late, nines=True)
    panel.set_xlabel("lateness: submission less intended time")
    panel.set_ylabel("share of I/Os at or below")
    panel.legend(loc="lower right", fontsize="small")
    return figure


def power_figure(views: Views) -> Figure | None:
    """Return power and temperature of each drive that measures itself, or None where none does."""
    if not views.powers:
        return None
    figure = new_figure(1.9 * len(views.powers) + 0.9)
    draw_power(figure, views.powers)
    return figure


def new_figure(height_inches: float) -> Figure:
    """Return an empty figure of the usual width."""
    figure = Figure(figsize=(WIDTH_INCHES, height_inches), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def plain(text: str) -> str:
    """Return `text` so that matplotlib draws it as it stands, without reading formulas between dollar
    signs.
    """
    return text.replace("$", r"\$")


def _mesh(
    panel: Axes,
    counts: NDArray[np.int64],
    time: Axis,
    vertical: tuple[Axis, int],
    colours: Colormap,
    most: int,
) -> Any:
    axis, unit = vertical
    drawn = np.ma.masked_equal(counts, 0)
    # As pixels: a PDF or PNG of 120,000 vector cells would be slow to draw and large.
    return panel.pcolormesh(
        time.edges() / 1e9,
        axis.edges() / unit,
        drawn,
        norm=LogNorm(1, max(most, 2)),
        cmap=colours,
        rasterized=True,
    )


def _draw_latency(panel: Axes, view: View, views: Views) -> None:
    scales = views.scales
    counts = reads_and_writes(view, scales)
    mesh = _mesh(
        panel, counts, scales.time, (scales.latency, 1_000_000_000), DENSITY, views.latency_count_max()
    )
    middle = (np.arange(scales.windows) + 0.5) * scales.window_ns / 1e9
    panel.plot(
        middle,
        view.lines.max_ns / 1e9,
        color="#c84800",
        linewidth=0.6,
        label=f"max of each {scales.window_words}",
    )
    if np.isfinite(view.lines.p99_ns).any():
        panel.plot(
            middle, view.lines.p99_ns / 1e9, color="#7a5200", linewidth=0.7, linestyle=":", label="p99"
        )
    draw_mean(panel, middle, view.lines.mean_ns / 1e9)
    panel.set_yscale("log")
    panel.set_ylim(scales.latency.low / 1e9, scales.latency.high / 1e9)
    panel.yaxis.set_major_formatter(EngFormatter("s"))
    panel.set_ylabel("service time (log)")
    panel.set_title(plain(view.subject.label), loc="left")
    panel.figure.colorbar(mesh, ax=panel, label="I/Os in a cell", pad=0.01)


def draw_mean(panel: Axes, middle: NDArray[Any], mean_s: NDArray[Any]) -> None:
    """Draw mean latencies over the middles of their windows; a window alone between empty ones is a dot."""
    panel.plot(middle, mean_s, color="black", linewidth=1.0, marker=".", markersize=1.5, label="mean")


def _draw_trims(panel: Axes, view: View, views: Views) -> None:
    ink = palette.OPCODES["trim"].light
    most = max((int(one.trims.trimmed_bytes.max()) for one in views.views if one.trims), default=1)
    edges = np.arange(views.scales.windows + 1) * views.scales.window_ns / 1e9
    if view.trims:
        panel.stairs(view.trims.trimmed_bytes, edges, color=ink, fill=True)
    panel.set_ylim(0, max(most, 1) * 1.05)
    panel.yaxis.set_major_formatter(EngFormatter("B"))
    panel.set_ylabel(f"trimmed in\n{views.scales.window_words}")


def _draw_curves(panel: Axes, curves: list[tuple[View, Curve, NDArray[np.float64]]], *, nines: bool) -> None:
    for view, curve, share in curves:
        height = nines_of(curve, share) if nines else share * 100
        panel.step(
            np.maximum(curve.value_ns, 1) / 1e9,
            height,
            where="post",
            color=view.subject.ink.light,
            linestyle=palette.MATPLOTLIB_DASHES[view.subject.ink.dash],
            label=plain(view.subject.label),
        )
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(EngFormatter("s"))
    panel.grid(alpha=0.3)
    if nines:
        nines_axis(panel)
    else:
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
        panel.set_ylim(0, 101)


def nines_of(curve: Curve, share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the heights of a curve on an axis of nines."""
    # The last point, 100 %, has no place among the nines: it is drawn half an I/O short of it.
    top = max(1 - 0.5 / curve.ios, float(share[-2]) if len(share) > 1 else 0.0)
    height: NDArray[np.float64] = -np.log10(1 - np.minimum(share, min(top, 1 - 1e-12)))
    return height


def nines_axis(panel: Axes) -> None:
    """Give a panel an axis of nines, up to the highest point drawn: more would take the room for nothing."""
    panel.set_yticks([-np.log10(1 - share) for share in _NINES], [f"{share * 100:.6g} %" for share in _NINES])
    panel.set_ylim(0, max(panel.dataLim.y1, 2) * 1.02)
