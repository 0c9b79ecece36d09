"""A publication, and where its results are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).resolve().parent

Result = Mapping[str, Any]

Basis = Literal["formula", "data", "stand-in", "not at hand"]
"""What a row rests on: a formula, the paper's own data, other data in their place; or the row is of
a part of the paper that is not at hand."""

EXPECTED = "expected"
"""How a statement begins that is not in the part of a paper that is at hand."""


@dataclass(frozen=True)
class Paper:
    """A publication.

    Attributes:
        name: of its folder.
        citation: authors, title, place and year.
        short: as people call it.
        words: what was done again, and with what instead.
        left_out: what is missing or replaced, in a few words.
        scripts: one for each table or figure, in the paper's order.
        formulas: what is computed from a formula: scripts, or beginnings of "script: claim".
        stand_ins: words by which a claim names data in the place of the paper's.
    """

    name: str
    citation: str
    short: str
    words: str
    left_out: str
    scripts: tuple[str, ...]
    formulas: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where its scripts are."""
        return HERE / self.name

    def basis(self, script: str, what: str, published: str) -> Basis:
        """What a claim of a script rests on."""
        if published.startswith(EXPECTED):
            return "not at hand"
        if script in self.formulas or f"{script}: {what}".startswith(
            tuple(each for each in self.formulas if ": " in each)
        ):
            return "formula"
        return "stand-in" if any(each in what for each in self.stand_ins) else "data"

    def results(self, *kinds: str) -> dict[str, Result]:
        """By script: of the full run, or of the quick one where there is no other.

        Args:
            kinds: ends of the files' names, the first that is there counts.
        """
        found: dict[str, Result] = {}
        for script in self.scripts:
            for name in (f"{script}{kind}.json" for kind in kinds or ("", "-quick")):
                path = self.folder / "results" / name
                if path.exists():
                    found[script] = json.loads(path.read_text())
                    break
        return found


def paper_of(script: Path) -> Paper | None:
    """The publication whose script this is."""
    name = f"papers.{script.parent.name}"
    if script.parent.parent != HERE or find_spec(name) is None:
        return None
    found: Paper = import_module(name).PAPER
    return found
