"""Small charts of characters, for a terminal: lines of bars over time, and bars of shares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_LEVELS = "▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉"


def spark(values: Sequence[float], top: float | None = None) -> str:
    """One character for each value, as high as its share of ``top`` (of the greatest without it).

    Zero is a blank, so that a little is told apart from nothing.
    """
    top = top or max(values, default=0)
    if not top:
        return " " * len(values)
    return "".join(
        _LEVELS[min(int(value / top * len(_LEVELS)), len(_LEVELS) - 1)] if value > 0 else " "
        for value in values
    )


def bar(share: float, width: int) -> str:
    """A bar of a share of ``width`` characters, exact to an eighth of one; anything above nothing shows."""
    eighths = round(max(min(share, 1.0), 0.0) * width * 8)
    if share > 0:
        eighths = max(eighths, 1)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def resampled(values: Sequence[float], edges: Sequence[float], width: int) -> list[float]:
    """Counts between edges as rates of ``width`` equal parts of the whole, or of fewer where there are fewer
    counts.
    """
    width = min(width, len(values))
    reached = np.concatenate(([0.0], np.cumsum(values)))
    cuts = np.linspace(edges[0], edges[-1], width + 1)
    rates: list[float] = (np.diff(np.interp(cuts, edges, reached)) / np.diff(cuts)).tolist()
    return rates
