"""Figures of where a workload reads, writes and trims, as PNG images."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm, to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from testdrive.manifest import opcode_name
from testdrive.report import palette
from testdrive.statement.time_figures import stacked
from testdrive.statement.view import View, Views

_COLUMNS, _ROWS = 1024, 256


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

    return stacked(views, lambda view: view.places, 1, 3.6, draw)


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

    return stacked(views, lambda view: view.growth, 1, 3.2, draw)
