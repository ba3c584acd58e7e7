"""The page's data: one JSON head and one body of little-endian arrays, gzipped, as base64 text.

A raster as JSON numbers costs a parser's time and five times the bytes. Here an array stands in the head as
`{"array": [start, length, type, shape]}` and the page's script makes a typed view of the body.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
import struct
from typing import Any

import numpy as np

_TYPES = {"u1": np.uint8, "u2": np.uint16, "u4": np.uint32, "f4": np.float32}


def pack(document: dict[str, Any]) -> str:
    """Return `document`, which may hold numpy arrays anywhere, as text that is safe within a script element.

    Arrays of non-negative integers are kept exactly, in 1, 2 or 4 bytes each (greater values are cut to 4
    bytes' maximum);
    arrays of floats in 4 bytes. The order of the head's keys is kept.
    """
    body = bytearray()
    head = json.dumps(_without_arrays(document, body), allow_nan=False).encode()
    # Views of 4-byte types must start at a multiple of 4.
    head += b" " * (-(len(head) + 4) % 4)
    return base64.b64encode(gzip.compress(struct.pack("<I", len(head)) + head + body, 9, mtime=0)).decode()


def compressed(data: bytes) -> str:
    """Return gzipped `data` as base64 text."""
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


def _without_arrays(value: Any, body: bytearray) -> Any:
    if isinstance(value, np.ndarray):
        kind = _type(value)
        body.extend(b"\0" * (-len(body) % 4))
        start = len(body)
        limited = np.minimum(value, 0xFFFFFFFF) if kind != "f4" and value.dtype.itemsize > 4 else value
        body.extend(np.ascontiguousarray(limited, dtype=np.dtype(_TYPES[kind]).newbyteorder("<")).tobytes())
        return {"array": [start, value.size, kind, list(value.shape)]}
    if isinstance(value, dict):
        return {str(key): _without_arrays(item, body) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_arrays(item, body) for item in value]
    if isinstance(value, np.generic):
        return _without_arrays(value.item(), body)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _type(array: np.ndarray[Any, Any]) -> str:
    if array.dtype.kind == "f":
        return "f4"
    assert array.dtype.kind in "iub", array.dtype
    assert array.size == 0 or array.min() >= 0, "counts are never negative"
    greatest = int(array.max()) if array.size else 0
    return "u1" if greatest < 1 << 8 else "u2" if greatest < 1 << 16 else "u4"
