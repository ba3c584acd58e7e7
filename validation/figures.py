"""How every curve is drawn: what is expected in black with what is allowed in grey, what was modelled in
colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from testdrive.report import palette

#: A page shows a figure at two thirds of its pixels: fewer inches make letters that can still be read there.
WIDTH_INCHES = 8.5
DPI = 130
BYTES_MAX = 150_000
EXPECTED = "#1A1A1A"
ALLOWED = "#C8C8C8"
_MARKS = ("o", "s", "^", "D", "v", "P")


def new_figure(title: str, height_inches: float) -> Figure:
    """Return an empty figure that says that it is of a modelled drive."""
    figure = Figure(figsize=(WIDTH_INCHES, height_inches), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(f"{title} (modelled drive)", x=0.01, ha="left", fontsize=12, fontweight="bold")
    return figure


def panels(figure: Figure, rows: int = 1, columns: int = 1, **options: Any) -> list[Axes]:
    """Return the panels of a figure, row by row, with a quiet grid."""
    made: list[Axes] = list(figure.subplots(rows, columns, squeeze=False, **options).flat)
    for panel in made:
        panel.set_axisbelow(True)
        panel.grid(True, color="#E6E6E6", linewidth=0.7)
        panel.spines[["top", "right"]].set_visible(False)
    return made


def expected_line(panel: Axes, x: ArrayLike, y: ArrayLike, allowed: float, label: str) -> None:
    """Draw what is expected, and around it the share of it that is allowed."""
    values = np.asarray(y, float)
    low, high = values * (1 - allowed), values * (1 + allowed)
    allowed_area(panel, x, low, high, f"±{100 * allowed:g} %")
    panel.plot(x, values, color=EXPECTED, linewidth=1.1, label=label, zorder=3)


def allowed_area(panel: Axes, x: ArrayLike, low: ArrayLike, high: ArrayLike, label: str) -> None:
    """Fill what is allowed, behind everything else."""
    panel.fill_between(x, low, high, color=ALLOWED, linewidth=0, zorder=0.5, label=label)


def modelled_points(panel: Axes, points: Iterable[tuple[float, float]], index: int, label: str) -> None:
    """Draw points of a modelled drive, told apart by colour and shape."""
    x, y = zip(*points, strict=True)
    panel.plot(x, y, linestyle="none", marker=_MARKS[index], markersize=6, color=colour(index), label=label)


def colour(index: int) -> str:
    """Return the colour of what was modelled."""
    return palette.drive(index).light


def legend(panel: Axes, **options: Any) -> None:
    """Name what is drawn in a panel, each once."""
    handles, labels = panel.get_legend_handles_labels()
    named: dict[str, Any] = {}
    for label, handle in zip(labels, handles, strict=True):
        named.setdefault(label, handle)
    panel.legend(named.values(), named.keys(), fontsize="small", framealpha=0.9, **options)


def plain_log(panel: Axes, axis: str, ticks: Sequence[float]) -> None:
    """Make an axis logarithmic with these numbers on it, written out."""
    chosen = panel.xaxis if axis == "x" else panel.yaxis
    (panel.set_xscale if axis == "x" else panel.set_yscale)("log")
    chosen.set_ticks(list(ticks), labels=[f"{tick:g}" for tick in ticks])
    chosen.set_ticks([], minor=True)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, the same bytes for the same figure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI, metadata={"Software": None})
