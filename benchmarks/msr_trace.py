"""CSV as the MSR Cambridge traces have it, made at random and faster than it is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

#: 2007-02-22, when the published traces begin, in ticks of 100 ns since 1601.
FIRST_TICKS = 128_166_372_000_000_000
BLOCK_ROWS = 1_000_000
#: In ticks: about ten thousand I/Os a second.
GAP_MEAN_TICKS = 1000
CAPACITY_PAGES = 50_000_000
_SIZES_BYTES = np.array([512, 4096, 4096, 8192, 16384, 65536])


def write(path: Path, rows: int) -> int:
    """Write a trace of one volume; the bytes that it takes."""
    with path.open("wb") as file:
        for block in blocks(rows):
            file.write(block)
    return path.stat().st_size


def blocks(rows: int, seed: int = 1) -> Iterator[bytes]:
    """A trace of one volume, two thirds of it reads, piece by piece."""
    random = np.random.default_rng(seed)
    ticks = FIRST_TICKS
    for begin in range(0, rows, BLOCK_ROWS):
        count = min(BLOCK_ROWS, rows - begin)
        times = ticks + np.cumsum(random.exponential(GAP_MEAN_TICKS, count).astype(np.int64))
        ticks = int(times[-1])
        yield _lines(
            times,
            random.random(count) < 2 / 3,
            random.integers(0, CAPACITY_PAGES, count) * 4096,
            random.choice(_SIZES_BYTES, count),
            (random.lognormal(8, 1, count)).astype(np.int64) + 1,
        )


def _lines(
    times: NDArray[np.int64],
    reads: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    sizes: NDArray[np.int64],
    responses: NDArray[np.int64],
) -> bytes:
    """Rows of characters, of which those that are zero are left out."""
    host = np.broadcast_to(np.frombuffer(b",hm,0,", np.uint8), (len(times), 6))
    words = np.frombuffer(b"WriteRead\0", np.uint8).reshape(2, 5)[reads.astype(np.intp)]
    comma = np.full((len(times), 1), ord(","), np.uint8)
    end = np.full((len(times), 1), ord("\n"), np.uint8)
    cells = [_digits(times), host, words, comma, _digits(offsets), comma, _digits(sizes)]
    characters = np.hstack([*cells, comma, _digits(responses), end]).ravel()
    return characters[characters != 0].tobytes()


def _digits(values: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Decimal digits, with zeros (not the digit) before the first."""
    width = len(str(int(values.max())))
    digits = np.empty((len(values), width), np.uint8)
    rest = values
    for place in range(width - 1, -1, -1):
        digits[:, place] = np.where((rest > 0) | (place == width - 1), rest % 10 + ord("0"), 0)
        rest = rest // 10
    return digits
