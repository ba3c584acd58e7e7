"""Definitions of the metrics in the plainest form, to check the fast ones against."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def quantile(values, millionths):
    """The smallest x with F(x) >= p, by trying each value."""
    for x in sorted(values):
        if Fraction(sum(value <= x for value in values), len(values)) >= Fraction(millionths, 1_000_000):
            return x
    raise AssertionError("F of the greatest value is 1")


def weighted_quantile(values, millionths):
    """The smallest x with F_L(x) >= p, by trying each value."""
    for x in sorted(values):
        part = sum(value for value in values if value <= x)
        if Fraction(part, sum(values)) >= Fraction(millionths, 1_000_000):
            return x
    raise AssertionError("F_L of the greatest value is 1")


def stall_share(submit, latency, x):
    """The share of ns at which the oldest outstanding I/O is older than x, ns by ns."""
    first, last = min(submit), max(s + length for s, length in zip(submit, latency, strict=True))
    stalled = 0
    for now in range(first, last):
        ages = [now + 1 - s for s, length in zip(submit, latency, strict=True) if s <= now < s + length]
        stalled += bool(ages) and max(ages) > x
    return stalled / (last - first)


def depth_shares(submit, latency):
    """For each depth, for how many ns it lasts, ns by ns."""
    first, last = min(submit), max(s + length for s, length in zip(submit, latency, strict=True))
    depths = [
        sum(s <= now < s + length for s, length in zip(submit, latency, strict=True))
        for now in range(first, last)
    ]
    return np.bincount(depths)


def sequential(stream, opcode, offset, length):
    """Whether each I/O starts where one of the last 32 of its stream and opcode ended."""
    result = []
    history = {}
    for key, start, size in zip(zip(stream, opcode, strict=True), offset, length, strict=True):
        ends = history.setdefault(key, [])
        result.append(start in ends[-32:])
        ends.append(start + size)
    return result


def unique_bytes(offset, length):
    """How many bytes are touched, byte by byte."""
    touched = set()
    for start, size in zip(offset, length, strict=True):
        touched.update(range(start, start + size))
    return len(touched)


def overwrite_distances(offset, length):
    """Bytes written from the last write that started in the same 4 KiB block to each write."""
    result, last, written = [], {}, 0
    for start, size in zip(offset, length, strict=True):
        block = start // 4096
        if block in last:
            result.append(written - last[block])
        last[block] = written
        written += size
    return sorted(result)


def order_inversions(submit):
    """I/Os, in order of intention, that were submitted before one that stands earlier."""
    return sum(any(earlier > mine for earlier in submit[:i]) for i, mine in enumerate(submit))
