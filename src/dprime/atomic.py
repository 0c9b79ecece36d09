"""Writes files whole or not at all: each beside its place first, which is renamed at the end."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import BinaryIO

from dprime import validate

Content = str | bytes | Callable[[BinaryIO], object]
"""A text, bytes, or a function that writes to a file."""


def write(name: str, path: Path, content: Content) -> None:
    """Write one file, which the parameter names; an obstacle is an `InputError`."""
    write_together({name: path}, {name: content})


def write_together(
    paths: Mapping[str, Path], contents: Mapping[str, Content], private: Container[str] = ()
) -> None:
    """Write all files or none, each to the path of the same name.

    What is private can only be read by its owner, from its first byte on. Other files have the
    permissions of the file before them, or those of every new file, and links are followed.
    """
    parts: dict[str, tuple[Path, Path]] = {}
    try:
        for name, content in contents.items():
            with placing(name, paths[name]):
                place = paths[name] if name in private else Path(os.path.realpath(paths[name]))
                parts[name] = place.with_name(f".{secrets.token_hex(8)}.part"), place
                _write(*parts[name], content, private=name in private)
        for name, (part, place) in parts.items():
            with placing(name, paths[name]):
                part.replace(place)
                sync(place.parent)
    finally:
        for part, _ in parts.values():
            part.unlink(missing_ok=True)


def _write(part: Path, place: Path, content: Content, *, private: bool) -> None:
    there = place.stat().st_mode if place.exists() else None
    if there is not None and not stat.S_ISREG(there):
        raise OSError("it is a folder, a device or a pipe")
    opener = partial(os.open, mode=0o600 if private else 0o666)
    with open(part, "xb", opener=opener) as file:
        if callable(content):
            content(file)
        else:
            file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    if there is not None and not private:
        part.chmod(stat.S_IMODE(there))


@contextlib.contextmanager
def placing(name: str, path: Path) -> Iterator[None]:
    """Turn what the system objects to into one sentence about the parameter."""
    try:
        yield
    except OSError as error:
        wanted = f"a place to write to ({error.strerror or error})"
        raise validate.invalid_value(name, str(path), wanted, "give another place") from None


def sync(folder: Path) -> None:
    """Put new names in a folder on the disk too; systems other than POSIX sync no folder."""
    if os.name == "posix" and os.access(folder, os.R_OK):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
