"""Files that commands write: what may be overwritten, and the line about each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dprime import atomic, bounded, validate
from dprime.show.card import MARK

OURS = {
    ".html": ('<meta name="generator" content="dprime ',),
    ".json": ('"schema": "urn:dprime:privacy-card:', '"$schema": "https://vega.github.io/'),
    ".md": (MARK,),
    ".svg": ('-title" aria-describedby="', 'role="img"><title>'),
}
"""What an earlier report, card or chart has in it, so that nothing else is overwritten."""

LONGEST = 100_000_000  # bytes of a file that is looked into, or that a section is put into


def check_ending(name: str, path: Path, endings: Sequence[str]) -> None:
    """Refuse a name of another kind of file."""
    if path.suffix.lower() not in endings:
        wanted = f"a file that ends in {' or '.join(endings)}"
        raise validate.invalid_value(name, str(path), wanted, f"end it in {endings[0]}")


def check_name(name: str, path: Path, endings: Sequence[str], *, force: bool) -> None:
    """Refuse a name of another kind of file, and a file that dprime has not written."""
    check_ending(name, path, endings)
    if path.exists() and not force and not _ours(path):
        wanted = "a new file or one that dprime has written"
        remedy = "give another name, or --force; a PDF or PNG does not tell who wrote it"
        raise validate.invalid_value(name, str(path), wanted, remedy)


def _ours(path: Path) -> bool:
    marks = OURS.get(path.suffix.lower(), ())
    try:
        content = bounded.read_bytes(path, LONGEST, "") if marks else b""
    except validate.InputError:
        return False
    return any(mark.encode() in content for mark in marks)


def written(name: str, path: Path, content: atomic.Content) -> str:
    """Write a file and make its folder, and say which."""
    said = f"Written{' over' if path.exists() else ''}: {path}"
    said += "" if path.parent.is_dir() else f", in the new folder {path.parent}"
    with atomic.placing(name, path):
        path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(name, path, content)
    return said
