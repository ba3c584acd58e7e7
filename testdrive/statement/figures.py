"""The figures of a statement as PNG images beside its page, for documents and for browsers that cannot draw
it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from testdrive.manifest import OPCODES
from testdrive.report import palette, units
from testdrive.report.figures import DPI, new_figure, plain
from testdrive.statement.curve_figures import (
    arrivals_figure,
    hot_figure,
    in_flight_figure,
    opcode_latency_figure,
)
from testdrive.statement.place_figures import growth_figure, places_figure
from testdrive.statement.time_figures import latency_figure, mix_figure, rates_figure, trim_streams_figure
from testdrive.statement.view import Views


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
