"""How often each region of the address space is read and written: what is hot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.recording import Recording

#: Regions are made large enough that the addresses fall into at most this many.
REGIONS_MAX = 1 << 18
#: No page of a database or file system is smaller.
REGION_BYTES_MIN = 4096


@dataclass(frozen=True)
class Regions:
    """I/Os counted by opcode (``code``) and by the ``region`` that they start in.

    A region is ``region_bytes``, a power of two; only those in which any starts are there. ``start_bytes``
    and ``end_bytes`` bound what its I/Os touch.
    """

    code: NDArray[np.int64]
    region: NDArray[np.int64]
    ios: NDArray[np.int64]
    start_bytes: NDArray[np.int64]
    end_bytes: NDArray[np.int64]
    region_bytes: int

    def counts(self, *codes: int) -> NDArray[np.int64]:
        """The I/Os of some opcodes in each region in which any starts, the hottest first."""
        chosen = np.isin(self.code, codes)
        _, index = np.unique(self.region[chosen], return_inverse=True)
        counts = np.zeros(int(index.max(initial=-1)) + 1, np.int64)
        np.add.at(counts, index, self.ios[chosen])
        return np.sort(counts)[::-1]


def count_regions(recording: Recording, rows: Any, end_last_bytes: int) -> Regions:
    """Count the I/Os of each region of the addresses up to ``end_last_bytes``."""
    bits = (REGION_BYTES_MIN - 1).bit_length()
    while end_last_bytes > REGIONS_MAX << bits:
        bits += 1
    rows = rows.filter((rows.length_bytes > 0) & (rows.offset_bytes >= 0))
    rows = rows.select(
        code=rows.opcode.cast("int64"),
        region=rows.offset_bytes >> bits,
        offset=rows.offset_bytes,
        end=rows.offset_bytes + rows.length_bytes,
    )
    found = recording.execute(
        rows.group_by("code", "region").aggregate(
            ios=rows.count(), start_bytes=rows.offset.min(), end_bytes=rows.end.max()
        )
    )
    return Regions(**found, region_bytes=1 << bits)
