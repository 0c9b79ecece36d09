"""Reads files of strangers: regular files, up to a size, packed or not."""

from __future__ import annotations

import gzip
import io
import math
import os
import stat
from pathlib import Path

from dprime import validate

NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Opening a pipe would wait for somebody who writes."""

GZIP, CHUNK = b"\x1f\x8b", 1 << 20


def read_bytes(path: Path, most: int, remedy: str) -> bytes:
    """Read a whole file of at most `most` bytes; a device or a pipe is refused."""
    content = first_bytes(path, most + 1, remedy, most)
    if len(content) > most:  # it grew, or is no file of a disk
        raise _larger(path, f"a file of at most {most:,} bytes", remedy)
    return content


def first_bytes(path: Path, count: int, remedy: str, most: float = math.inf) -> bytes:
    """Read the first bytes of a file; a device, a pipe and a file of more bytes are refused."""
    try:
        if path.is_dir():
            raise validate.invalid_input(str(path), "a folder", "a file", remedy)
        with open(os.open(path, os.O_RDONLY | NO_WAIT), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise validate.invalid_input(str(path), "a device or a pipe", "a file", remedy)
            if found.st_size > most:
                raise _larger(path, f"a file of at most {most:,} bytes", remedy)
            return file.read(min(count, max(found.st_size + 1, CHUNK)))
    except FileNotFoundError:
        raise validate.invalid_input(str(path), "missing", "a file", remedy) from None
    except OSError as error:
        shown = f"not ({error.strerror})"
        raise validate.invalid_input(str(path), shown, "a file to read", remedy) from None


def unpacked(path: Path, most: int, remedy: str) -> bytes:
    """Read a file as `read_bytes` does, and unpack what is gzipped, to no more bytes than that."""
    content, parts, left = read_bytes(path, most, remedy), list[bytes](), most
    if not content.startswith(GZIP):
        return content
    with gzip.open(io.BytesIO(content)) as file:
        while part := file.read(CHUNK):
            parts.append(part)
            left -= len(part)
            if left < 0:
                raise _larger(path, f"a file of at most {most:,} bytes when unpacked", remedy)
    return b"".join(parts)


def _larger(path: Path, wanted: str, remedy: str) -> validate.InputError:
    return validate.invalid_input(str(path), "larger", wanted, remedy)
