"""The page's own files, and the bundle of Vega that it draws with. Nothing else of the disk.

A file is found by its name in a list that is made here, never by a path that somebody sent.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PAGE = Path(__file__).parent / "page"

INDEX = "index.html"
VEGA = "vega.js"

KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
"""What is served beside the page itself, by how the name ends."""


@dataclass(frozen=True)
class File:
    """Contents with their type and a tag that changes with them."""

    contents: bytes
    kind: str

    @property
    def tag(self) -> str:
        """For a browser that asks whether what it has is still right."""
        return f'"{hashlib.blake2b(self.contents, digest_size=12).hexdigest()}"'


def index() -> File:
    """The page."""
    return File((PAGE / INDEX).read_bytes(), "text/html; charset=utf-8")


def static(name: str) -> File | None:
    """A file of the page by its plain name, or None."""
    if name == VEGA:
        return File(vega(), KINDS[".js"])
    path = next((path for path in PAGE.iterdir() if path.name == name), None)
    return File(path.read_bytes(), KINDS[path.suffix]) if path and path.suffix in KINDS else None


def vega() -> bytes:
    """Vega, Vega-Lite and vega-embed in one script that asks nobody for more.

    Putting it together takes more memory than the rest of the server, so a process does it that
    ends then.
    """
    with _ONE:
        return _bundle()


_ONE = threading.Lock()


@cache
def _bundle() -> bytes:
    made = "vl_convert.javascript_bundle().encode()"
    command = [sys.executable, "-c", f"import sys, vl_convert; sys.stdout.buffer.write({made})"]
    return subprocess.run(command, capture_output=True, check=True).stdout
