"""The sentences of card and report, each in one place: `sentences.toml`."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

SENTENCES: dict[str, dict[str, Any]] = tomllib.loads(
    files("dprime.show").joinpath("sentences.toml").read_text(encoding="utf-8")
)


def say(place: str, **values: object) -> str:
    """A sentence by its table and name, with the values that it asks for."""
    table, _, name = place.partition(".")
    return str(SENTENCES[table][name]).format(**values)
