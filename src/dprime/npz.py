"""Reads .npy and .npz files of strangers: no objects, no more memory than is allowed."""

from __future__ import annotations

import io
import math
import struct
import tokenize
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

PACKINGS = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
UNREADABLE = (
    *(ValueError, TypeError, LookupError, SyntaxError, RuntimeError, MemoryError, OSError),
    *(ArithmeticError, EOFError, tokenize.TokenError, struct.error, zipfile.BadZipFile, zlib.error),
)
"""What NumPy, zipfile and the parser of headers raise on files that are damaged or forged."""


def archived(content: bytes, most: int) -> tuple[dict[str, NDArray[Any]], bool]:
    """The arrays of an npz file, of at most `most` bytes together, and whether any is compressed.

    What cannot be read is a `ValueError`.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            if not {each.compress_type for each in entries} <= {*PACKINGS}:
                raise ValueError("it is packed as NumPy packs nothing")
            if sum(each.file_size for each in entries) > most:
                raise ValueError(f"it unpacks to more than {most:,} bytes")
            found = {
                each.filename.removesuffix(".npy"): array_of(archive.read(each)) for each in entries
            }
            return found, any(each.compress_type for each in entries)
    except UNREADABLE as error:
        raise ValueError(str(error)[:200] or "it is cut off") from None


def array_of(content: bytes) -> NDArray[Any]:
    """The array of an npy file, which has as many bytes as its header says, and no objects."""
    file = io.BytesIO(content)
    try:
        version = npy.read_magic(file)
        if version == (3, 0):  # as 2.0, but in UTF-8
            content = _with_ascii_header(content, file.tell())
            file = io.BytesIO(content)
            npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, by_columns, kind = read(file)
        start, size = file.tell(), math.prod(shape) * kind.itemsize
        if kind.hasobject or not kind.itemsize or size != len(content) - start:
            raise ValueError(f"it declares {kind} of the shape {shape}")
        return np.ndarray(shape, kind, content, start, order="F" if by_columns else "C")
    except UNREADABLE as error:
        raise ValueError(str(error)[:200] or "it is cut off") from None


def _with_ascii_header(content: bytes, start: int) -> bytes:
    """A file whose header has escapes in place of letters beyond ASCII."""
    (length,) = struct.unpack_from("<I", content, start)
    end = start + 4 + length
    header = content[start + 4 : end].decode().encode("ascii", "backslashreplace")
    return content[:start] + struct.pack("<I", len(header)) + header + content[end:]
