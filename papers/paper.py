"""A publication, and where its results are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

Result = Mapping[str, Any]


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
    """

    name: str
    citation: str
    short: str
    words: str
    left_out: str
    scripts: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where its scripts are."""
        return HERE / self.name

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
