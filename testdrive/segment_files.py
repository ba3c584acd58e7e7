"""What a segment's file must be before a query engine may look at it: a file, with the footer it was given.

The footer says where the pages are and the ranges of their values. Its checksum stands in it, as
docs/recording-format.md has it.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

_KEY = b"testdrive.footer_crc32"
#: What follows the checksum where the engine itself wrote the footer: the end of the pair and of the list,
#: the next field's type, its value's length, and who wrote the file. Others pass on the checksum of the file
#: that they read, and may name its writer elsewhere.
_OWN = re.compile(rb"\x00\x18.testdrive-engine ", re.DOTALL)
_NO_DIGITS = b"00000000"
#: Between the key and its value: a field's type and the value's length, in Thrift's compact protocol.
_BETWEEN = bytes((0x18, len(_NO_DIGITS)))
#: What ends a Parquet file: the footer's length, and four letters.
_TAIL_BYTES = 8


def what_is_wrong(path: Path) -> str | None:
    """What makes a file no segment, or None.

    A pipe is never opened, since that could wait for ever. A footer without a checksum, as older segments
    have, is believed, and one that another program wrote.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return "is a directory, not a file"
        if not stat.S_ISREG(mode):
            return "is not a regular file"
        with path.open("rb") as file:
            return None if _is_sound(file) else "is damaged: its footer is not as it was written"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _footer(file: BinaryIO) -> bytes:
    """The footer of a Parquet file with its length and the letters after it; empty where it is none."""
    size_bytes = file.seek(0, os.SEEK_END)
    file.seek(max(size_bytes - _TAIL_BYTES, 0))
    tail = file.read(_TAIL_BYTES)
    start = size_bytes - _TAIL_BYTES - int.from_bytes(tail[:4], "little")
    if start < 0 or not tail.endswith(b"PAR1"):
        return b""
    file.seek(start)
    return file.read()


def _is_sound(file: BinaryIO) -> bool:
    footer = _footer(file)
    before, key, rest = footer.partition(_KEY + _BETWEEN)
    digits, after = rest[: len(_NO_DIGITS)], rest[len(_NO_DIGITS) :]
    if not key or len(after) < _TAIL_BYTES or not _OWN.match(after):
        return True
    return digits == b"%08x" % zlib.crc32(before + key + _NO_DIGITS + after)


#: A page's header as the engine writes it: Parquet's PageHeader in Thrift's compact protocol, of a data page
#: or of a dictionary's. Groups are the compressed size and the number of a data page's values.
_PAGE_HEADER = re.compile(
    rb"\x15(?:\x00\x15%(v)b\x15(%(v)b)\x15%(v)b\x1c\x15(%(v)b)\x15[\x00\x0a\x10]\x15\x06\x15\x06"
    rb"|\x04\x15%(v)b\x15(%(v)b)\x15%(v)b\x3c\x15%(v)b\x15[\x00\x04][\x11\x12])\x00\x00"
    % {b"v": rb"[\x80-\xff]*[\x00-\x7f]"},
    re.DOTALL,
)


def has_whole_chunks(path: Path, chunks: Iterable[tuple[int, int, int]]) -> bool:
    """Whether the pages of each column chunk hold as many values as the footer says.

    The checksum of a page does not cover its header, and the query engine believes a header that says that
    there are fewer. Of a file that the engine did not write with a checksum in its footer, and that may be
    laid out otherwise, nothing is asked.

    Parameters
    ----------
    path : pathlib.Path
        A segment whose footer is sound.
    chunks : iterable of (int, int, int)
        Of each chunk, by the footer: where it begins and how long it is, in bytes, and its values.
    """
    with path.open("rb") as file:
        footer = _footer(file)
        _, _, rest = footer.partition(_KEY + _BETWEEN)
        if not _OWN.match(rest, len(_NO_DIGITS)):
            return True
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return all(_values(content, start, start + length) == values for start, length, values in chunks)


def _values(content: mmap.mmap, at: int, end: int) -> int | None:
    """The values of the data pages between two places; None where something else stands there."""
    values = 0
    while at < end:
        header = _PAGE_HEADER.match(content, at, end)
        if header is None:
            return None
        of_data, data_values, of_dictionary = header.groups()
        values += _number(data_values or b"\x00")
        at = header.end() + _number(of_data or of_dictionary)
    return values if at == end else None


def _number(varint: bytes) -> int:
    """A number that is not negative, as Thrift's compact protocol writes it."""
    zigzag = sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(varint))
    return zigzag >> 1
