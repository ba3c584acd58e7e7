"""What the plots of a page show: rasters, lines and curves of every recording, on the same scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from testdrive.report import palette, units
from testdrive.report.axes import Axis, latency_axis
from testdrive.report.distribution import Curve, lateness_curve, service_curve
from testdrive.report.pack import pack
from testdrive.report.power import PowerLines, power_lines
from testdrive.report.rasters import Raster, extent, latency_rasters, offset_rasters
from testdrive.report.subject import Subject
from testdrive.report.windows import LatencyLines, TrimLines, latency_lines, trim_lines, window_ns

ROWS = 200
COLUMNS = 600
# A page of more recordings than this starts with half the columns, for the time that drawing them all takes.
_FULL_RASTERS_MAX = 6
# Plotly takes 2 MB of a page; with this for the data, and the text, it stays below 5 MB.
DATA_BYTES_MAX = 2_700_000
# Drives whose footprints differ by more than this cannot be read on one scale of addresses.
_SCALE_SPREAD_MAX = 4
#: Which recordings have the same scale of addresses: all, the drives but not the original, or each its own.
OffsetsShared = Literal["all", "drives", "none"]


@dataclass(frozen=True)
class View:
    """What is drawn of one recording; None or empty where it was not recorded."""

    subject: Subject
    latency: dict[str, Raster]
    offsets: dict[str, Raster]
    offset_axis: Axis
    lines: LatencyLines
    trims: TrimLines | None
    service: Curve | None
    lateness: Curve | None
    power: PowerLines | None


@dataclass(frozen=True)
class Scales:
    """Axes that all recordings of the page share."""

    time: Axis
    latency: Axis
    window_ns: int
    windows: int
    offsets_shared: OffsetsShared

    @property
    def window_words(self) -> str:
        """Width of a window for people, e.g. `100 ms`."""
        return units.time(self.window_ns).replace(".00", "").replace(".0 ", " ")


@dataclass(frozen=True)
class Views:
    """All that a page draws."""

    scales: Scales
    views: list[View]

    @property
    def has_trims(self) -> bool:
        """Whether any recording has trims."""
        return any(view.trims is not None for view in self.views)

    @property
    def powers(self) -> list[tuple[Subject, PowerLines]]:
        """What each drive that measures itself drew."""
        return [(view.subject, view.power) for view in self.views if view.power]

    def payload(self) -> dict[str, Any]:
        """Return the document that the page's script reads (see `pack`)."""
        lines = [view.trims for view in self.views if view.trims]
        scales = {
            "time": self.scales.time.payload(),
            "latency": self.scales.latency.payload(),
            "window_ns": self.scales.window_ns,
            "window_words": self.scales.window_words,
            "trims": self.has_trims,
            "trimmed_bytes_max": max((int(line.trimmed_bytes.max()) for line in lines), default=0) or 1,
            "trims_outstanding_max": max((int(line.outstanding_max.max()) for line in lines), default=0) or 1,
            "latency_count_max": self.latency_count_max(),
            "offset_count_max": {name: self.offset_count_max(name) for name in palette.OPCODES},
        }
        return {
            "scales": scales,
            "opcodes": {name: ink.payload() for name, ink in palette.OPCODES.items()},
            "subjects": {view.subject.key: _subject_payload(view) for view in self.views},
        }

    def packed(self, limit_bytes: int = DATA_BYTES_MAX) -> str:
        """Return the document packed, with rasters made coarser in time until it is within `limit_bytes`."""
        views = self
        while len(text := pack(views.payload())) > limit_bytes and views.scales.time.cells % 2 == 0:
            views = views.coarser()
        return text

    def coarser(self) -> Views:
        """Return the same with each two columns of the rasters added up: no I/O is lost, only detail."""
        time = replace(self.scales.time, cells=self.scales.time.cells // 2)
        views = [
            replace(view, latency=_halved(view.latency), offsets=_halved(view.offsets)) for view in self.views
        ]
        return Views(replace(self.scales, time=time), views)

    def latency_count_max(self) -> int:
        """Return the greatest number of reads and writes in a cell, over all recordings."""
        return max((int(reads_and_writes(view, self.scales).max()) for view in self.views), default=1)

    def offset_count_max(self, opcode: str) -> int:
        """Return the greatest number of I/Os of the opcode in a cell, over all recordings."""
        return max(
            (int(view.offsets[opcode].max()) for view in self.views if opcode in view.offsets), default=1
        )


def reads_and_writes(view: View, scales: Scales) -> Raster:
    """Return the latency raster of reads and writes together."""
    total = np.zeros((scales.latency.cells, scales.time.cells), np.int64)
    for name in ("read", "write"):
        if name in view.latency:
            total += view.latency[name]
    return total


def _halved(rasters: dict[str, Raster]) -> dict[str, Raster]:
    return {name: raster[:, 0::2] + raster[:, 1::2] for name, raster in rasters.items()}


def offset_unit(axis: Axis) -> tuple[int, str]:
    """Return the bytes and the name of the binary unit in which the axis reads best."""
    return next(
        (
            (1 << shift, name)
            for shift, name in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB"))
            if axis.high >= 1 << shift
        ),
        (1, "B"),
    )


def look(subjects: Sequence[Subject]) -> Views:
    """Compute everything that the page draws.

    Each plot is a grouped count in the query engine, so that memory and the page's size do not depend on the
    number of I/Os.
    """
    extents = [extent(subject.recording) for subject in subjects]

    def greatest(key: str, default: int) -> int:
        return max((found for bounds in extents if (found := bounds[key]) is not None), default=default)

    span_ns = max(greatest("submit_max_ns", 1), 1)
    low_ns = min(
        (found for bounds in extents if (found := bounds["latency_min_ns"]) is not None), default=1000
    )
    width_ns = window_ns(span_ns)
    windows = -(-span_ns // width_ns)
    columns = COLUMNS if len(subjects) <= _FULL_RASTERS_MAX else COLUMNS // 2
    ends = [bounds["end_max_bytes"] for bounds in extents]
    tops, shared = _offset_tops(subjects, ends)
    scales = Scales(
        # Whole windows, so that the lines under a raster end where it ends.
        time=Axis(0, windows * width_ns, columns),
        latency=latency_axis(low_ns, greatest("latency_max_ns", 1_000_000), ROWS),
        window_ns=width_ns,
        windows=windows,
        offsets_shared=shared,
    )
    return Views(scales, [_view(one, scales, top) for one, top in zip(subjects, tops, strict=True)])


def _offset_tops(subjects: Sequence[Subject], ends: Sequence[int | None]) -> tuple[list[int], OffsetsShared]:
    """The greatest address of each recording's panel. Scaled to larger drives, a workload has a footprint
    that the original's panel cannot show beside its own; the drives are compared on one scale all the same.
    """
    drives = [end for one, end in zip(subjects, ends, strict=True) if end and one.role == "drive"]
    for shared, known in (("all", [end for end in ends if end]), ("drives", drives)):
        if known and max(known) <= _SCALE_SPREAD_MAX * min(known):
            alone = shared == "drives"
            tops = [
                max(known) if one.role == "drive" or not alone else end or 1
                for one, end in zip(subjects, ends, strict=True)
            ]
            return tops, "drives" if alone else "all"
    return [end or 1 for end in ends], "none"


def _view(subject: Subject, scales: Scales, end_max_bytes: int) -> View:
    recording = subject.recording
    absent = set(recording.manifest.absent_columns)
    offset_axis = Axis(0, max(end_max_bytes, ROWS), ROWS)
    service = service_curve(recording)
    # An import's submissions are its intentions: only a run has lateness of its own.
    late = recording.manifest.kind == "run" and not absent & {"intended_ns", "submit_ns"}
    return View(
        subject,
        latency_rasters(recording, scales.time, scales.latency),
        offset_rasters(recording, scales.time, offset_axis),
        offset_axis,
        latency_lines(recording, scales.window_ns, scales.windows),
        trim_lines(recording, scales.window_ns, scales.windows),
        service if service.ios else None,
        lateness_curve(recording) if late else None,
        power_lines(recording),
    )


def _subject_payload(view: View) -> dict[str, Any]:
    unit_bytes, unit_name = offset_unit(view.offset_axis)
    return {
        "key": view.subject.key,
        "name": view.subject.label,
        "ink": view.subject.ink.payload(),
        "latency": view.latency,
        "offsets": view.offsets,
        "offset_axis": view.offset_axis.payload(),
        "offset_unit": {"bytes": unit_bytes, "name": unit_name},
        "has_p99": bool(np.isfinite(view.lines.p99_ns).any()),
        "lines": {"mean": view.lines.mean_ns, "p99": view.lines.p99_ns, "max": view.lines.max_ns},
        "trims": view.trims
        and {"bytes": view.trims.trimmed_bytes.astype(float), "outstanding": view.trims.outstanding_max},
        "service": _curve_payload(view.service),
        "lateness": _curve_payload(view.lateness),
        "power": view.power and view.power.payload(),
    }


def _curve_payload(curve: Curve | None) -> dict[str, Any] | None:
    if curve is None or not curve.ios:
        return None
    # Shares near 1 differ by less than 4-byte floats hold, and the nines axis shows just those: so as text
    # numbers.
    return {
        "value": curve.value_ns.astype(float),
        "io_share": [float(f"{share:.10g}") for share in curve.io_share],
        "time_share": [float(f"{share:.10g}") for share in curve.time_share],
        "supported_share": curve.supported_share,
        "ios": curve.ios,
    }
