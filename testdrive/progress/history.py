"""The last minutes of a figure, in as many cells as a line of text has room for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

#: How long a cell of a sparkline is. Cells begin at fixed times, so that nothing that was drawn changes its
#: shape when the line moves on.
CELL_S = 2.0
#: More cells than any terminal has columns.
_CELLS_MAX = 400
_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII_BLOCKS = ".:-=+*#@"
_ZERO = "_"


class History:
    """A figure over time: one value for each cell, joined by a rule from the samples that fell into it.

    Parameters
    ----------
    join : callable
        What a cell shows of its samples: their mean for a rate, their maximum for a latency.
    """

    def __init__(self, join: Callable[[Sequence[float]], float]) -> None:
        self._join = join
        self._cells: deque[tuple[int, list[float]]] = deque(maxlen=_CELLS_MAX)

    def clear(self) -> None:
        """Forget everything: another phase begins."""
        self._cells.clear()

    def add(self, time_s: float, value: float) -> None:
        """Take a sample; times never go back."""
        cell = int(time_s // CELL_S)
        if self._cells and self._cells[-1][0] == cell:
            self._cells[-1][1].append(value)
        else:
            self._cells.append((cell, [value]))

    def last(self, columns: int) -> list[float | None]:
        """The last so many cells, oldest first; None where nothing was told in a cell between others."""
        if not self._cells or columns <= 0:
            return []
        newest = self._cells[-1][0]
        found: dict[int, float] = {
            cell: self._join(samples) for cell, samples in self._cells if cell > newest - columns
        }
        return [found.get(cell) for cell in range(min(found), newest + 1)]


def mean(samples: Sequence[float]) -> float:
    """The mean of samples, of which there is at least one."""
    return sum(samples) / len(samples)


def sparkline(values: Sequence[float | None], *, ascii_only: bool = False) -> str:
    """Values as blocks from zero to the greatest of them: a line for exactly zero, blank for none.

    The scale begins at zero, so that half the height is half the rate.
    """
    blocks = _ASCII_BLOCKS if ascii_only else _BLOCKS
    top = max((value for value in values if value is not None), default=0.0)
    drawn = []
    for value in values:
        if value is None:
            drawn.append(" ")
        elif value <= 0 or top <= 0:
            drawn.append(_ZERO)
        else:
            drawn.append(blocks[min(int(value / top * len(blocks)), len(blocks) - 1)])
    return "".join(drawn)
