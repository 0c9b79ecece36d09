"""Reads files of strangers: regular files, up to a size."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dprime import validate

NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Opening a pipe would wait for somebody who writes."""


def read_bytes(path: Path, most: int, remedy: str) -> bytes:
    """Read a whole file of at most `most` bytes; a device or a pipe is refused."""
    content = first_bytes(path, most + 1, remedy)
    if len(content) > most:
        wanted = f"a file of at most {most:,} bytes"
        raise validate.invalid_input(str(path), "larger", wanted, remedy)
    return content


def first_bytes(path: Path, count: int, remedy: str) -> bytes:
    """Read the first bytes of a file; a device or a pipe is refused."""
    if path.is_dir():
        raise validate.invalid_input(str(path), "a folder", "a file", remedy)
    try:
        with open(os.open(path, os.O_RDONLY | NO_WAIT), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise validate.invalid_input(str(path), "a device or a pipe", "a file", remedy)
            return file.read(count)
    except FileNotFoundError:
        raise validate.invalid_input(str(path), "missing", "a file", remedy) from None
    except OSError as error:
        shown = f"not ({error.strerror})"
        raise validate.invalid_input(str(path), shown, "a file to read", remedy) from None
