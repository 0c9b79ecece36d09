"""What went wrong, in a line."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

LONGEST_MESSAGE = 400  # characters of an error's message that are kept
LIBRARIES = (
    str(Path(__file__).parents[1]),
    *(sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib")),
)
"""Where code lies that the user did not write."""


def describe(error: Exception) -> str:
    """An error in one line: its type, its message, and the last line of the user's own code."""
    message = " ".join(str(error).split())
    if len(message) > LONGEST_MESSAGE:
        message = message[: LONGEST_MESSAGE - 1] + "…"
    what = f"{type(error).__name__}: {message}" if message else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(LIBRARIES)] or frames
    if not own:
        return what
    line = f": {own[-1].line}" if own[-1].line else ""
    return f"{what} ({Path(own[-1].filename).name}, line {own[-1].lineno}{line})"
