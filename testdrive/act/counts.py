"""I/Os by stretches of time and power-of-two buckets of latency, from rows or from histograms alike.

Bucket 0 holds what is below one unit, bucket b what is from ``2^(b-1)`` up to but not with ``2^b`` units, as
act_storage counts. Both kinds of recording have exact counts there: the engine's histograms have edges at
every power of two of a microsecond and of a millisecond.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ibis
import numpy as np
from numpy.typing import NDArray

from testdrive.act.load import READS, TRANSACTIONS, WRITES
from testdrive.manifest import READ, Phase
from testdrive.recording import Recording
from testdrive.segments import RESPONSE, SERVICE

MS_NS, US_NS = 1_000_000, 1_000
#: Up to 2^35 ms, or 2^35 us: nine hours.
BUCKETS = 36

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Counts:
    """I/Os of one stream: each row is a stretch of time, each column a bucket.

    ``service`` is by the time that the drive took, ``response`` by that from the scheduled time on.
    ``failed`` I/Os, with those that were never answered, are in neither.
    """

    service: Ints
    response: Ints
    failed: Ints

    def above(self, power: int, *, response: bool = False) -> Ints:
        """How many of each stretch took ``2^power`` units or more."""
        counted = self.response if response else self.service
        return np.asarray(counted[:, power + 1 :].sum(axis=1), np.int64)

    @property
    def ios(self) -> Ints:
        """How many of each stretch completed without an error."""
        return np.asarray(self.service.sum(axis=1), np.int64)


def count(
    recording: Recording, phase: Phase, width_ns: int, stretches: int, unit_ns: int = MS_NS
) -> dict[str, Counts]:
    """Count a phase's I/Os by the stretch in which they completed.

    What completed after the last stretch counts in it, so that no stall hides behind the end.

    Parameters
    ----------
    recording : Recording
        With rows, or with histograms of each second; then ``width_ns`` is whole seconds.
    phase : Phase
        One with streams.
    width_ns, stretches : int
        How long a stretch is, and how many there are; at least one.
    unit_ns : int
        The unit of the buckets: :data:`MS_NS` or :data:`US_NS`.

    Returns
    -------
    dict of str to Counts
        By stream, in their order, those without an I/O too. Reads and writes of the same threads are two.
    """
    kept = recording.manifest.kept is not None
    found = recording.execute((_of_histograms if kept else _of_rows)(recording, phase, width_ns, unit_ns))
    names = [str(name) for name in (phase.accounting or {}).get("streams") or stream_names(phase)]
    places = np.clip(found["stretch"], 0, stretches - 1)
    counted: dict[str, Counts] = {}
    for name, mine in _parts(names, found):
        counted[name] = Counts(
            np.zeros((stretches, BUCKETS), np.int64),
            np.zeros((stretches, BUCKETS), np.int64),
            np.zeros(stretches, np.int64),
        )
        for quantity, target in ((SERVICE, counted[name].service), (RESPONSE, counted[name].response)):
            chosen = mine & (found["quantity"] == quantity) & (found["bucket"] >= 0)
            np.add.at(target, (places[chosen], found["bucket"][chosen]), found["ios"][chosen])
        chosen = mine & (found["bucket"] < 0)
        np.add.at(counted[name].failed, places[chosen], found["ios"][chosen])
    return counted


def _parts(names: list[str], found: dict[str, Any]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Each stream with its rows of what was found."""
    for index, name in enumerate(names):
        mine = found["stream"] == index
        if name != TRANSACTIONS:
            yield name, mine
            continue
        is_read = found["opcode"] == READ
        yield READS, mine & is_read
        yield WRITES, mine & ~is_read


def stream_names(phase: Phase) -> list[str]:
    """The names of a phase's streams, as the job gave them."""
    asked = (phase.settings or {}).get("streams") or []
    return [str(stream.get("name") or index) for index, stream in enumerate(asked)]


def _bucket(value: Any, unit_ns: int) -> Any:
    edges = [(value >= unit_ns << power).cast("int64") for power in range(BUCKETS - 1)]
    total = edges[0]
    for edge in edges[1:]:
        total = total + edge
    return total


def _of_rows(recording: Recording, phase: Phase, width_ns: int, unit_ns: int) -> Any:
    rows = recording.all_rows()
    rows = rows.filter(rows.phase == phase.index)
    good = (rows.status == 0) & (rows.latency_ns >= 0)
    # One that was never answered counts where it was submitted.
    end_ns = rows.submit_ns + ibis.greatest(rows.latency_ns, 0)
    placed = rows.mutate(
        stretch=(end_ns - phase.start_ns) // width_ns,
        service_bucket=ibis.ifelse(good, _bucket(rows.latency_ns, unit_ns), -1),
        response_bucket=_bucket(end_ns - ibis.least(rows.intended_ns, rows.submit_ns), unit_ns),
        good=good,
    )
    keys = ["stretch", "stream", "opcode"]
    service = placed.group_by(*keys, bucket=placed.service_bucket).aggregate(ios=placed.count())
    fine = placed.filter(placed.good)
    response = fine.group_by(*keys, bucket=fine.response_bucket).aggregate(ios=fine.count())
    return service.mutate(quantity=SERVICE).union(response.mutate(quantity=RESPONSE))


def _of_histograms(recording: Recording, phase: Phase, width_ns: int, unit_ns: int) -> Any:
    entries = recording.intervals()
    entries = entries.filter(entries.phase == phase.index)
    entries = entries.mutate(
        stretch=(entries.start_ns - phase.start_ns) // width_ns,
        # The longest of a bucket tells its power of two, since no bucket reaches over one.
        bucket=ibis.ifelse(entries.latency_ceiling_ns < 0, -1, _bucket(entries.max_ns, unit_ns)),
        ios=entries["count"],
    )
    keys = ["start_ns", "opcode", "stream"]
    service = entries.filter(entries.quantity == SERVICE)
    response = entries.filter(entries.quantity == RESPONSE)
    # Seconds in which no I/O was late have no histogram of response times, which are the service times then.
    on_time = service.filter(service.bucket >= 0).anti_join(response.select(*keys).distinct(), keys)
    columns = ["stretch", "stream", "opcode", "bucket", "ios"]
    parts = (
        service.select(*columns).mutate(quantity=SERVICE),
        response.select(*columns).mutate(quantity=RESPONSE),
        on_time.select(*columns).mutate(quantity=RESPONSE),
    )
    table = parts[0].union(parts[1]).union(parts[2])
    return table.group_by("stretch", "stream", "opcode", "bucket", "quantity").aggregate(
        ios=table.ios.sum().cast("int64")
    )
