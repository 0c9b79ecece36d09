"""What every figure is: numbers first, then a drawing of them.

    curves, runs, rows ──► Figure (numbers, a title that states the finding, a text alternative)
                              │
                              ├──► rows(): one table, which page, report and notebook share
                              └──► chart(): one Altair definition ──► spec, SVG, PNG, HTML

The numbers need NumPy only. Altair and vl-convert are imported when something is drawn.
"""

from __future__ import annotations

import json
import textwrap
from abc import ABC, abstractmethod
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dprime import validate
from dprime.show.look import Theme, themed
from dprime.show.needs import check_drawing

if TYPE_CHECKING:
    import altair as alt

Row = dict[str, float | str | None]
"""One line of a figure's table: numbers and words."""

TABLE = "rows"
"""The name of the one data set in a specification: a page puts new rows there, and it redraws."""

LABEL, OUTLINE = "label", "outline"
"""Layers that begin so hold words, or repeat numbers for the pencil; a table leaves them out."""

TITLE_WIDTH = 66
"""Letters in a line of a title."""

NO_BREAK = "\u00a0"

FORMATS = ("svg", "png", "json")


class Figure(ABC):
    """Numbers that people look at.

    Subclasses are frozen dataclasses of plain numbers, one file each, and final.

    Every row names the `layer` of the drawing that shows it, and all rows have the same columns.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Of files and addresses, such as "trade-off"."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The finding, in one sentence."""

    @property
    @abstractmethod
    def text(self) -> str:
        """What somebody who does not see the drawing needs to know."""

    @abstractmethod
    def rows(self) -> list[Row]:
        """Everything that is drawn, as one table; finite numbers and words only."""

    def table(self) -> list[Row]:
        """The rows that hold numbers, for people who would rather read them."""
        return [
            {column: value for column, value in row.items() if column != LABEL}
            for row in self.rows()
            if not str(row["layer"]).startswith((LABEL, OUTLINE))
        ]

    @abstractmethod
    def draw(self, data: alt.NamedData) -> alt.LayerChart:
        """The drawing of a table of that name, without title, size or colours of its own."""

    def spec(self, theme: Theme = "light", *, empty: bool = False) -> dict[str, Any]:
        """The Vega-Lite specification.

        An `empty` one is for a page: it has no rows and no words of its own, and it is as wide as
        the element that holds it.
        """
        check_drawing()
        import altair as alt  # noqa: PLC0415  only a drawing needs it

        spec = themed(self.draw(alt.NamedData(name=TABLE)).to_dict(validate=True), theme)
        if empty:
            return spec | {"width": "container", "datasets": {TABLE: []}}
        title = wrapped(self.title)
        return spec | {"title": title, "description": self.text, "datasets": {TABLE: self.rows()}}

    def svg(self, theme: Theme = "light") -> str:
        """The drawing as SVG, without a browser; one image with a title and a description."""
        spec = self.spec(theme)
        import vl_convert  # noqa: PLC0415

        drawn = str(vl_convert.vegalite_to_svg(spec))
        words = f"<title>{escape(self.title)}</title><desc>{escape(self.text)}</desc>"
        head, _, rest = drawn.partition(">")
        return f'{head} role="img">{words}{rest}'

    def png(self, theme: Theme = "light", scale: float = 2.0) -> bytes:
        """The drawing as PNG, without a browser."""
        spec = self.spec(theme)
        import vl_convert  # noqa: PLC0415

        return bytes(vl_convert.vegalite_to_png(spec, scale=scale))

    def save(self, path: str | Path, theme: Theme = "light") -> Path:
        """Write the drawing as .svg or .png, or its specification as .json."""
        place = Path(path)
        kind = place.suffix.removeprefix(".")
        if kind not in FORMATS:
            remedy = f"end it in .{', .'.join(FORMATS)}"
            raise validate.invalid_value("path", str(path), "the name of a picture", remedy)
        if kind == "png":
            place.write_bytes(self.png(theme))
        elif kind == "svg":
            place.write_text(self.svg(theme), encoding="utf-8")
        else:
            place.write_text(json.dumps(self.spec(theme), indent=1), encoding="utf-8")
        return place

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        """In a notebook: the drawing, and its text alternative."""
        return {"image/svg+xml": self.svg(), "text/plain": f"{self.title}\n{self.text}"}


def wrapped(title: str) -> list[str]:
    """The lines of a title; a number keeps its name and its unit.

    >>> [len(line) for line in wrapped("Nobody finds more than 4.03 % of the members. " * 2)]
    [63, 27]
    """
    kept = title.replace(" %", f"{NO_BREAK}%").replace(" = ", f"{NO_BREAK}={NO_BREAK}")
    return textwrap.wrap(kept, TITLE_WIDTH)
