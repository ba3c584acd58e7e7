"""A method's figures as PNG images, for documents and for browsers that cannot draw the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter

from testdrive.methods.drawing import Axis, Figure, Series
from testdrive.report import palette
from testdrive.report.figures import DPI, new_figure, plain

PANEL_INCHES = 3.2
#: So many points at most are drawn larger.
_FEW_POINTS = 100


def write_images(figures: Sequence[Figure], directory: Path) -> list[Path]:
    """Write each figure as ``KEY.png`` and return the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in figures:
        path = directory / f"{figure.key}.png"
        draw(figure).savefig(path, dpi=DPI)
        written.append(path)
    return written


def draw(figure: Figure) -> Canvas:
    """The figure on a canvas of the usual width, with its title and a legend."""
    canvas = new_figure(PANEL_INCHES * len(figure.y) + 1.0)
    panels = canvas.subplots(len(figure.y), 1, sharex=True, squeeze=False)[:, 0]
    seconds = [panel.twinx() for panel in panels] if figure.right else []
    for at, (panel, axis) in enumerate(zip(panels, figure.y, strict=True)):
        _draw_axis(panel, figure, [one for one in figure.series if one.panel == at and one.side == "left"])
        _dress(panel, axis, vertical=True)
        panel.grid(alpha=0.3)
        panel.set_axisbelow(True)
        if figure.headings:
            panel.set_title(plain(figure.headings[at]), loc="left", fontsize="medium")
    for at, (panel, axis) in enumerate(zip(seconds, figure.right, strict=True)):
        _draw_axis(panel, figure, [one for one in figure.series if one.panel == at and one.side == "right"])
        _dress(panel, axis, vertical=True)
    _dress(panels[-1], figure.x, vertical=False)
    if figure.headings:
        canvas.suptitle(plain(figure.full_title), x=0.01, ha="left")
    else:
        panels[0].set_title(plain(figure.full_title), loc="left")
    handles, labels = [], []
    for panel in [*panels, *seconds]:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            if label not in labels:
                handles.append(handle)
                labels.append(label)
    # Points are drawn too small for a legend.
    larger = 3 if any(series.style == "points" for series in figure.series) else 1
    canvas.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=4,
        fontsize="small",
        frameon=False,
        markerscale=larger,
    )
    return canvas


def _draw_axis(panel: Axes, figure: Figure, mine: Sequence[Series]) -> None:
    for order, series in enumerate(mine):
        _draw_series(panel, series.drawn(figure.x, figure.axis_of(series)), order, len(mine))


def _draw_series(panel: Axes, series: Series, order: int, many: int) -> None:
    x, y = series.x, series.y
    name, colour = plain(series.name), series.ink.light
    if series.style == "points":
        size = 3 if len(x) > _FEW_POINTS else 6
        panel.plot(x, y, ".", color=colour, markersize=size, label=name, markeredgewidth=0)
    elif series.style == "bars":
        width = 0.8 / many
        panel.bar(x + (order - (many - 1) / 2) * width, y, width * 0.92, color=colour, label=name)
    else:
        firm = len(x) if series.faint_from is None else series.faint_from
        parts = ((slice(0, firm), 1.0, name), (slice(max(firm - 1, 0), None), 0.4, "_faint"))
        for chosen, alpha, label in parts[: 1 if firm == len(x) else 2]:
            panel.plot(
                x[chosen],
                y[chosen],
                color=colour,
                alpha=alpha,
                linestyle=palette.MATPLOTLIB_DASHES[series.ink.dash],
                drawstyle="steps-post" if series.style == "steps" else "default",
                marker="o" if len(x) <= 32 and series.style == "line" else None,
                markersize=3.5,
                linewidth=1.3,
                label=label,
            )


def _dress(panel: Axes, axis: Axis, *, vertical: bool) -> None:
    ticks = panel.yaxis if vertical else panel.xaxis
    if axis.scale == "log":
        (panel.set_yscale if vertical else panel.set_xscale)("log")
        if axis.low and axis.high and axis.high / axis.low < 100:
            # Less than two decades may hold a single power of ten, from which nothing can be read.
            ticks.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            ticks.set_minor_formatter(NullFormatter())
    (panel.set_ylim if vertical else panel.set_xlim)(*axis.range)
    ticks.set_label_text(axis.title)
    if axis.ink is not None:
        ticks.label.set_color(axis.ink.light)
        ticks.set_tick_params(which="both", labelcolor=axis.ink.light)
    if axis.ticks:
        places, texts = zip(*axis.ticks, strict=True)
        ticks.set_ticks(list(places), list(texts))
    elif axis.si_unit == "IOPS":
        ticks.set_major_formatter(EngFormatter(sep=""))
    elif axis.si_unit:
        ticks.set_major_formatter(EngFormatter(axis.si_unit))
    else:
        ticks.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
