"""How many I/Os of a phase took how long, by the stretch of time in which they completed."""

from __future__ import annotations

from typing import Any

import ibis

from testdrive.manifest import Phase
from testdrive.recording import Arrays, Recording
from testdrive.segments import RESPONSE, SERVICE


def times(recording: Recording, phase: Phase, stretch_ns: int) -> Arrays:
    """Count a phase's I/Os that succeeded, from rows or from histograms of each second alike.

    Parameters
    ----------
    recording : Recording
        With rows, or with histograms; then ``stretch_ns`` is whole seconds.
    phase : Phase
        Whose I/Os.
    stretch_ns : int
        How long a stretch is, from the phase's start.

    Returns
    -------
    dict of arrays
        ``place`` of the stretch, ``opcode``, ``quantity`` (service or response), ``value`` in ns, and of the
        I/Os that took so long ``ios``, how many they are, and ``total``, the exact sum of their times in ns.
    """
    kept = recording.manifest.kept is not None
    return recording.execute((_of_histograms if kept else _of_rows)(recording, phase, stretch_ns))


def _of_rows(recording: Recording, phase: Phase, interval_ns: int) -> Any:
    rows = recording.all_rows()
    rows = rows.filter((rows.phase == phase.index) & (rows.status == 0) & (rows.latency_ns >= 0))
    end_ns = rows.submit_ns + rows.latency_ns
    place = (end_ns - phase.start_ns) // interval_ns
    parts = []
    for quantity, value in (
        (SERVICE, rows.latency_ns),
        (RESPONSE, end_ns - ibis.least(rows.intended_ns, rows.submit_ns)),
    ):
        grouped = rows.group_by(place=place, opcode=rows.opcode, value=value)
        counted = grouped.aggregate(ios=rows.count(), total=value.sum().cast("int64"))
        parts.append(counted.mutate(quantity=ibis.literal(quantity, "int64")))
    return parts[0].union(parts[1])


def _of_histograms(recording: Recording, phase: Phase, interval_ns: int) -> Any:
    entries = recording.intervals()
    entries = entries.filter((entries.phase == phase.index) & (entries.latency_ceiling_ns >= 0))
    keys = ["start_ns", "opcode", "stream"]
    service = entries.filter(entries.quantity == SERVICE)
    response = entries.filter(entries.quantity == RESPONSE)
    # Seconds in which no I/O was late have no histogram of response times, which are the service times then.
    on_time = service.anti_join(response.select(*keys).distinct(), keys)
    parts = [
        part.select("start_ns", "opcode", "max_ns", "count", "sum_ns").mutate(
            quantity=ibis.literal(quantity, "int64")
        )
        for quantity, part in ((SERVICE, service), (RESPONSE, response), (RESPONSE, on_time))
    ]
    table = parts[0].union(parts[1]).union(parts[2])
    # The longest of a bucket stands for all in it: what holds for it holds for them.
    return table.group_by(
        "opcode", "quantity", place=(table.start_ns - phase.start_ns) // interval_ns, value=table.max_ns
    ).aggregate(ios=table["count"].sum().cast("int64"), total=table.sum_ns.sum().cast("int64"))
