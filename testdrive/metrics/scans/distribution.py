"""Exact distributions of a value over all rows, in two passes and bounded memory.

The first pass counts and sums the values in logarithmic buckets of relative width below 1/128. The second
looks only at the few buckets that hold a wanted percentile or threshold, and counts each single value there.
So every figure is exact, although most buckets were never looked into.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ibis
import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import READ, WRITE
from testdrive.recording import Arrays, Recording

_BUCKETS_PER_E = 130
#: The relative width of a bucket: exp(1 / 130) - 1 = 0.77 %, below 1/128.
RELATIVE_ERROR_MAX = 0.0078
#: A key is a bucket times this, plus the opcode: one number is faster to group by than two.
_KEY_STEP = 8

#: The percentiles of a summary, by key, in millionths: whole numbers, so that ranks are exact.
QUANTILES: dict[str, int] = {
    "p50": 500_000,
    "p90": 900_000,
    "p99": 990_000,
    "p99_9": 999_000,
    "p99_99": 999_900,
    "p99_999": 999_990,
    "p99_9999": 999_999,
}


def rank(millionths: int, n: int) -> int:
    """The rank of a quantile among ``n`` values: ceil(p n), at least 1."""
    return max(-(-millionths * n // 1_000_000), 1)


@dataclass(frozen=True)
class Distribution:
    """Values in ascending order with how often each occurs and what they add up to.

    Where a bucket was not looked into, one entry stands for it with its greatest value; quantiles and
    thresholds that were asked for never fall into one.
    """

    value: NDArray[np.int64]
    count: NDArray[np.int64]
    total: NDArray[np.int64]

    @property
    def n(self) -> int:
        """The number of values."""
        return int(self.count.sum())

    @property
    def sum(self) -> int:
        """The sum of the values."""
        return int(self.total.sum())

    @property
    def max(self) -> int | None:
        """The greatest value, or None of none."""
        return int(self.value[-1]) if len(self.value) else None

    def quantile(self, millionths: int) -> int | None:
        """The smallest x with F(x) >= p: the value of rank ceil(p n). None without values."""
        if not self.n:
            return None
        return int(self.value[np.searchsorted(np.cumsum(self.count), rank(millionths, self.n))])

    def weighted_quantile(self, millionths: int) -> int | None:
        """The smallest x with F_L(x) >= p, each value weighing what it is. None if they add up to nothing."""
        if self.sum <= 0:
            return None
        return int(self.value[np.searchsorted(np.cumsum(self.total), rank(millionths, self.sum))])

    def count_at(self, x: int) -> int:
        """How many values are at most x."""
        return int(self.count[: np.searchsorted(self.value, x, side="right")].sum())

    def share_at(self, x: int) -> float | None:
        """F(x): the share of values that are at most x. None of no values."""
        if not self.n:
            return None
        return self.count_at(x) / self.n

    def weighted_share_at(self, x: int) -> float | None:
        """F_L(x): the share of the sum that values of at most x make. None if they add up to nothing."""
        if self.sum <= 0:
            return None
        return int(self.total[: np.searchsorted(self.value, x, side="right")].sum()) / self.sum


@dataclass(frozen=True)
class Distributions:
    """The distribution of a value for each opcode: entries of opcode (``code``), value, count and sum."""

    code: NDArray[np.int64]
    value: NDArray[np.int64]
    count: NDArray[np.int64]
    total: NDArray[np.int64]

    @property
    def codes(self) -> list[int]:
        """The opcodes that occur."""
        return [int(code) for code in np.unique(self.code)]

    @cached_property
    def whole(self) -> Distribution:
        """Of all opcodes together."""
        return self._collected(np.ones(len(self.code), bool))

    def of(self, *codes: int) -> Distribution:
        """Of some opcodes together; exact for a single one and for reads with writes."""
        return self._collected(np.isin(self.code, codes))

    def _collected(self, chosen: NDArray[np.bool_]) -> Distribution:
        values, index = np.unique(self.value[chosen], return_inverse=True)
        counts, totals = np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
        np.add.at(counts, index, self.count[chosen])
        np.add.at(totals, index, self.total[chosen])
        return Distribution(values.astype(np.int64), counts, totals)


def distributions(
    recording: Recording,
    rows: Any,
    value: str,
    *,
    thresholds: Iterable[int] = (),
    weighted: bool = True,
    exact: bool = True,
) -> Distributions:
    """The distribution of column ``value`` for each opcode, exact at quantiles and thresholds.

    Parameters
    ----------
    recording : Recording
        Where expressions are executed.
    rows : ibis table
        With the columns ``value`` (integers of any sign) and ``opcode``.
    thresholds : iterable of int
        Where ``share_at`` and ``weighted_share_at`` have to be exact.
    weighted : bool
        Whether ``weighted_quantile`` has to be exact; it is meaningless where values are negative.
    exact : bool
        False leaves the second pass out: quantiles are then the greatest value of their bucket, at most
        :data:`RELATIVE_ERROR_MAX` above the exact ones.
    """
    code, bucket = rows.opcode.cast("int64"), bucket_of(rows[value])
    keyed = rows.select(code=code, value=rows[value], key=bucket * _KEY_STEP + code)
    coarse = recording.execute(
        keyed.group_by("key").aggregate(
            count=keyed.count(), total=keyed.value.sum(), low=keyed.value.min(), high=keyed.value.max()
        )
    )
    coarse["code"], coarse["bucket"] = coarse["key"] % _KEY_STEP, coarse["key"] // _KEY_STEP
    wanted = _wanted_keys(coarse, list(thresholds), weighted) if exact else []
    kept = ~np.isin(coarse["key"], wanted)
    parts = [(coarse["code"][kept], coarse["high"][kept], coarse["count"][kept], coarse["total"][kept])]
    if wanted:
        chosen = keyed.filter(keyed.key.isin(wanted))
        fine = recording.execute(chosen.group_by("code", "value").aggregate(count=chosen.count()))
        parts.append((fine["code"], fine["value"], fine["count"], fine["value"] * fine["count"]))
    codes, values, count, total = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Distributions(codes, values, count, total)


def bucket_of(value: Any) -> Any:
    """A number that never falls as ``value`` rises, the same for values within 0.77 % of each other."""
    magnitude = (ibis.greatest(value.abs(), 1).ln() * _BUCKETS_PER_E).floor().cast("int64") + 1
    # By multiplication: a choice between branches would take the logarithm once in each.
    return magnitude * value.sign().cast("int64")


def _wanted_keys(coarse: Arrays, thresholds: list[int], weighted: bool) -> list[int]:
    """The keys whose bucket holds a quantile or threshold, of one opcode or several, and more than one
    value.
    """
    wanted: set[int] = set()
    present = np.unique(coarse["code"])
    for codes in (present, np.array([READ, WRITE]), *present.reshape(-1, 1)):
        bucket, count, total, low, high = _by_bucket(coarse, codes)
        places: list[int] = []
        weights = [count, total] if weighted else [count]
        for weight in weights:
            whole = int(weight.sum())
            if whole > 0:
                ranks = [rank(millionths, whole) for millionths in QUANTILES.values()]
                places += np.searchsorted(np.cumsum(weight), ranks).tolist()
        for x in thresholds:
            places += np.flatnonzero((low <= x) & (x < high)).tolist()
        # A bucket of a single value needs no second look.
        buckets = np.array([bucket[place] for place in places if low[place] != high[place]], np.int64)
        mine = np.isin(coarse["bucket"], buckets) & np.isin(coarse["code"], codes)
        wanted.update(coarse["key"][mine].tolist())
    return sorted(wanted)


def _by_bucket(coarse: Arrays, codes: NDArray[Any]) -> tuple[NDArray[np.int64], ...]:
    chosen = np.isin(coarse["code"], codes)
    bucket, index = np.unique(coarse["bucket"][chosen], return_inverse=True)
    count, total = np.zeros(len(bucket), np.int64), np.zeros(len(bucket), np.int64)
    low = np.full(len(bucket), np.iinfo(np.int64).max)
    high = np.full(len(bucket), np.iinfo(np.int64).min)
    np.add.at(count, index, coarse["count"][chosen])
    np.add.at(total, index, coarse["total"][chosen])
    np.minimum.at(low, index, coarse["low"][chosen])
    np.maximum.at(high, index, coarse["high"][chosen])
    return bucket, count, total, low, high
