"""Who trimmed when: bytes trimmed by each stream in each window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import TRIM
from testdrive.metrics.scans import Scan
from testdrive.statement.timeline import Timeline

#: The busiest streams have a row each; the others share the last one.
STREAMS_MAX = 31


@dataclass(frozen=True)
class TrimStreams:
    """Bytes trimmed in each window by the streams, the lowest number first; the rest of them in one row.

    ``streams`` names the rows, ``trimmed_bytes`` has the shape (rows, windows).
    """

    streams: list[str]
    trimmed_bytes: NDArray[np.float64]


def trim_streams(scan: Scan, time: Timeline) -> TrimStreams | None:
    """Count the trims; None where there are none, or streams or times were not recorded."""
    if "stream" in scan.absent_columns or not scan.timed or not len(scan.trim_streams["stream"]):
        return None
    found = scan.trim_streams
    busiest = found["stream"][np.argsort(-found["bytes"], kind="stable")][:STREAMS_MAX]
    shown = np.sort(busiest)
    rows = scan.rows.filter(scan.rows.opcode == TRIM)
    # What is summed up is bounded by the windows and the rows, however many streams there are.
    kept = rows.stream.isin([int(each) for each in shown])
    rows = rows.select(
        stream=kept.ifelse(rows.stream.cast("int64"), -2),
        window=time.window(rows.intended_ns),
        length_bytes=rows.length_bytes,
    )
    counted = scan.execute(rows.group_by("stream", "window").aggregate(bytes=rows.length_bytes.sum()))
    rest = counted["stream"] == -2
    index = np.where(rest, len(shown), np.searchsorted(shown, counted["stream"]))
    result = np.zeros((len(shown) + bool(rest.any()), time.windows))
    np.add.at(result, (index, counted["window"]), counted["bytes"])
    return TrimStreams([*(str(each) for each in shown), *(["others"] if rest.any() else [])], result)
