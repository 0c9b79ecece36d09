"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def number_option(help_text: str) -> Any:
    """A number, which may be a fraction such as 256/60000."""
    return typer.Option(help=help_text, show_default=False, metavar="NUMBER")


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
