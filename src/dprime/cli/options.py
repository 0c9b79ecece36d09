"""Options that several commands have."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from dprime import validate

INTERRUPTED = 130
"""Exit code after Ctrl-C."""


def number_option(help_text: str) -> Any:
    """A number, which may be a fraction such as 256/60000."""
    return typer.Option(help=help_text, show_default=False, metavar="NUMBER")


def text_option(help_text: str) -> Any:
    """A name or a text; help texts name the defaults themselves."""
    return typer.Option(help=help_text, show_default=False)


def whole(name: str, text: str) -> int:
    """A whole number to its last digit, which a seed needs; 1e3 counts as 1000."""
    if text.isascii() and text.isdecimal():
        return int(text)
    value = validate.parse(name, text)
    if value >= 0 and value.is_integer():
        return int(value)
    raise validate.refusal(name, text, "a whole number, 0 or more", "give for example 10")


def look_here() -> None:
    """Let Python find the user's own modules in the folder where the command is called."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)


def check_torch(work: str) -> None:
    """Say what is missing before an import fails with less to go on."""
    if find_spec("torch") is None:
        remedy = "pip install 'dprime[train]'"
        raise validate.misfit("PyTorch", "missing", f"installed for {work}", remedy)


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
