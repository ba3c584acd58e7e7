"""What the figures of a statement show: everything of one recording or two, on the same scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from testdrive.manifest import OPCODES, UNKNOWN
from testdrive.metrics.scans import Scan
from testdrive.report import palette, units
from testdrive.report.axes import Axis
from testdrive.report.distribution import Curve
from testdrive.report.pack import pack
from testdrive.report.rows import dig
from testdrive.report.subject import Subject
from testdrive.statement import spreads
from testdrive.statement.addresses import Addresses, addresses, stretches
from testdrive.statement.latencies import Latencies, bounds_ns, latencies, points_of_poisson, shared_axis
from testdrive.statement.operations import in_summary, many, told
from testdrive.statement.places import Places, places
from testdrive.statement.rates import Rates, rates
from testdrive.statement.spreads import Arrivals, Hot, InFlight, Sizes
from testdrive.statement.timeline import Timeline, timelines
from testdrive.statement.trims import TrimStreams, trim_streams

#: Cells of addresses and time that a page holds at most, of all recordings together.
PLACES_MAX = 600_000
# Plotly takes 2 MB of a page; with this for the data, and the text, it stays below 5 MB.
DATA_BYTES_MAX = 2_700_000
#: Recordings whose addresses reach this much further than those of the other have an axis each.
_ADDRESSES_SPREAD_MAX = 8


@dataclass(frozen=True)
class View:
    """What is drawn of one recording; None or empty where it was not recorded.

    It reaches into the first ``used`` windows of the axis of time, which may be that of a longer recording.
    """

    subject: Subject
    time: Timeline
    used: int
    rates: Rates | None
    sizes: Sizes | None
    places: Places | None
    hot: dict[str, Hot]
    arrivals: Arrivals | None
    in_flight: InFlight | None
    latencies: Latencies | None
    trims: TrimStreams | None

    @property
    def short(self) -> str:
        """The name for a legend: of two recordings, their letter."""
        letter, colon, _ = self.subject.name.partition(": ")
        return letter if colon else self.subject.label

    def called(self, opcode: str) -> str:
        """What I/Os of an opcode are called; just that where the source did not tell them apart."""
        return many(self.subject.summary, opcode)

    @property
    def mix(self) -> Rates | None:
        """The rates, where the source told operations apart."""
        return self.rates if told(self.subject.summary) else None

    def key(self, opcode: str) -> str:
        """The name of an opcode in tables: `unknown` where the source did not tell I/Os apart."""
        return in_summary(self.subject.summary, opcode)

    @property
    def growth(self) -> Mapping[str, Any] | None:
        """The footprint as it grows, from the summary."""
        found: Mapping[str, Any] | None = dig(self.subject.summary, "workload.footprint_growth")
        if not found or not found["total"] or not found["total"][-1]:
            return None
        # I/Os that were not told apart are all of them.
        apart = {name: each for name, each in found["by_opcode"].items() if name != UNKNOWN}
        return {**found, "by_opcode": apart}

    @property
    def working_sets(self) -> list[int]:
        """The working set of each minute, empty where there is only one or too many to be told."""
        found = dig(self.subject.summary, "workload.working_set_per_minute_bytes") or []
        return found if len(found) > 1 else []


@dataclass(frozen=True)
class Views:
    """All that a page draws."""

    views: list[View]
    latency: Axis

    @property
    def one_time(self) -> bool:
        """Whether all recordings have the same axis of time."""
        return len({view.time for view in self.views}) == 1

    @property
    def one_address(self) -> bool:
        """Whether all recordings have the same axis of addresses."""
        return len({view.places.addresses for view in self.views if view.places}) <= 1

    def packed(self, limit_bytes: int = DATA_BYTES_MAX) -> str:
        """Return the page's data, packed, with places made coarser until it is within ``limit_bytes``."""
        views = self
        while len(text := pack(views.payload())) > limit_bytes and any(
            view.places and view.places.column_bits for view in views.views
        ):
            views = replace(views, views=[_coarser(view) for view in views.views])
        return text

    def payload(self) -> dict[str, Any]:
        """Return the document that the page's script reads (see `testdrive.report.pack`)."""
        timed = [view.time for view in self.views]
        return {
            "scales": {
                "latency": self.latency.payload(),
                "latency_count_max": self.latency_count_max(),
                "rates": self.rate_maxima(),
                "trims": False,
            },
            "opcodes": {name: ink.payload() for name, ink in palette.OPCODES.items()},
            "subjects": {
                view.subject.key: _payload(view, time) for view, time in zip(self.views, timed, strict=True)
            },
        }

    def latency_count_max(self) -> int:
        """Return the greatest number of reads and writes in a cell, over all recordings."""
        found = [view.latencies.rasters for view in self.views if view.latencies]
        sums = [
            sum((raster for name, raster in rasters.items() if name in ("read", "write")), np.zeros(1))
            for rasters in found
        ]
        return max((int(each.max()) for each in sums), default=1) or 1

    def rate_maxima(self) -> dict[str, float]:
        """The heights that the figures of rates share: I/Os, bytes read and written, bytes trimmed, a
        second.
        """
        result = {"ios": 0.0, "moved": 0.0, "trimmed": 0.0}
        for view in self.views:
            if view.rates is None:
                continue
            found = view.rates
            tops = {
                "ios": max(float(found.total("ios").max()), *_most(found.busiest_ios)),
                "moved": float(found.total("bytes", "read", "write").max()),
                "trimmed": float(found.total("bytes", "trim").max()),
            }
            result = {name: max(top, tops[name]) for name, top in result.items()}
        return result


def _most(values: Any) -> list[float]:
    return [0.0] if values is None else [float(values.max())]


def _coarser(view: View) -> View:
    return replace(view, places=view.places and view.places.coarser())


def look(subjects: Sequence[Subject], scans: Sequence[Scan]) -> Views:
    """Compute everything that the page draws, by grouped counts, so that neither memory nor the page's size
    depends on the number of I/Os or on the time that was recorded.
    """
    ends = [max(scan.extent.complete_last_ns, scan.extent.intended_last_ns) for scan in scans]
    times = timelines(ends)
    axis = shared_axis([bounds for scan in scans if (bounds := bounds_ns(scan))])
    axes = _addresses(scans)
    cells_max = PLACES_MAX // len(subjects)
    views = [
        View(
            subject,
            time,
            min(end_ns // time.width_ns + 1, time.windows),
            rates(scan, time),
            spreads.sizes(scan),
            places(scan, time, cells_max, along),
            spreads.hot(scan),
            spreads.arrivals(scan),
            spreads.in_flight(scan),
            latencies(scan, time, axis),
            trim_streams(scan, time),
        )
        for subject, scan, time, end_ns, along in zip(subjects, scans, times, ends, axes, strict=True)
    ]
    return Views(views, axis)


def _addresses(scans: Sequence[Scan]) -> list[Addresses]:
    """The axes of addresses: one for all, unless one of them would have hardly any of its own in it."""
    if any(scan.absent_columns & {"offset_bytes", "length_bytes"} for scan in scans):
        return [addresses([stretches(scan)]) for scan in scans]
    found = [stretches(scan) for scan in scans]
    own = [addresses([each]) for each in found]
    shared = addresses(found)
    if shared.length_bytes <= _ADDRESSES_SPREAD_MAX * min(each.length_bytes for each in own):
        return [shared] * len(scans)
    return own


def _payload(view: View, time: Timeline) -> dict[str, Any]:
    ns, unit = time.unit
    return {
        "key": view.subject.key,
        "name": view.subject.label,
        "short": view.short,
        "told": told(view.subject.summary),
        "words": {name: view.called(name) for name in OPCODES},
        "ink": view.subject.ink.payload(),
        "time": {
            **time.axis().payload(),
            "width_ns": time.width_ns,
            "used": view.used,
            "unit_ns": ns,
            "unit": unit,
        },
        "window_words": units.duration(time.width_ns),
        "rates": view.rates and view.rates.payload(),
        "sizes": view.sizes
        and {
            "labels": [units.block(edge) for edge in view.sizes.edges_bytes],
            "ios": view.sizes.ios,
            "bytes": view.sizes.bytes,
        },
        "places": view.places and view.places.payload(),
        "hot": spreads.payload(view.hot),
        "growth": view.growth and _growth(view.growth),
        "working_sets": [float(each) for each in view.working_sets],
        "arrivals": view.arrivals and _arrivals(view.arrivals),
        "in_flight": view.in_flight and {"labels": view.in_flight.labels, "share": view.in_flight.time_share},
        "latency": view.latencies.rasters if view.latencies else {},
        "lines": view.latencies and {"mean": view.latencies.mean_ns, "max": view.latencies.max_ns},
        "curves": {name: _curve(each) for name, each in view.latencies.curves.items()}
        if view.latencies
        else {},
        "trims": view.trims and {"streams": view.trims.streams, "bytes": view.trims.trimmed_bytes},
    }


def _growth(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "interval_ns": found["interval_ns"],
        "total": np.array(found["total"], float),
        "by_opcode": {name: np.array(values, float) for name, values in found["by_opcode"].items()},
    }


def _arrivals(found: Arrivals) -> dict[str, Any]:
    value, share = points_of_poisson(found.mean_ns)
    return {**_curve(found.curve), "poisson": {"value": value, "share": share}, "mean_ns": found.mean_ns}


def _curve(curve: Curve) -> dict[str, Any]:
    # Shares near 1 differ by less than 4-byte floats hold, and the nines axis shows just those: so as
    # numbers.
    return {
        "value": curve.value_ns.astype(float),
        "io_share": [float(f"{share:.10g}") for share in curve.io_share],
        "supported_share": curve.supported_share,
        "ios": curve.ios,
    }
