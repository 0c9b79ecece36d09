"""One type of chart: series of numbers over two axes, with a title that states the finding.

    curves, records ──► show.charts ──► Chart ──┬──► rows(): one table, and a text alternative
                                                └──► spec(): Vega-Lite ──► SVG, PNG

The numbers need NumPy only; vl-convert is imported when something is drawn.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any, final

import dprime
from dprime import atomic, text, validate
from dprime.show import theme as look
from dprime.show import vega, wording
from dprime.show.series import Axis, Series
from dprime.show.theme import BASELINE, GAP, Theme, second_pencil
from dprime.show.vega import TABLE

Row = dict[str, float | str | None]
"""One line of a chart's table: numbers and words."""

FORMATS = ("svg", "png", "json")

TITLE_WIDTH = 66
"""Letters in a line of a title of the usual width."""

SMALLER = 1.4
"""How many more letters a line in small has."""

DOT = " · "
"""Stands between the parts of what a chart is of; a line is broken there first."""

NO_BREAK = "\u00a0"


@final
@dataclass(frozen=True)
class Chart:
    """Series over two axes.

    A page takes the specification once, without rows, and puts in the rows of other charts by the
    same function. Such functions give the same series whatever the numbers are; one without points
    is not drawn.

    Attributes:
        name: of files and addresses, such as "trade-off".
        title: the finding, in one sentence.
        about: what it shows, for somebody who does not see the drawing.
        x: the axis across.
        y: the other one.
        series: in the order of the key; the first one stands in front.
        of: what was run, at which conditions and adjacency; in small below the title.
        horizontal: whether `x` goes up instead, for names that need room.
        height: of the plot, or of each panel, in pixels; None takes the usual one.

    >>> from dprime.show.theme import CERTIFIED
    >>> line = Series("limit", CERTIFIED, (0, 1), (0.5, 1.0))
    >>> chart = Chart("a", "It rises.", "A line.", Axis("x", "x"), Axis("y", "y"), (line,))
    >>> chart.rows()
    [{'series': 'limit', 'x': 0, 'y': 0.5}, {'series': 'limit', 'x': 1, 'y': 1.0}]
    """

    name: str
    title: str
    about: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    of: str = ""
    horizontal: bool = False
    height: int | None = None

    def __post_init__(self) -> None:
        shown = {name: text.printable(getattr(self, name)) for name in ("title", "about")}
        vars(self).update(shown)  # which a frozen dataclass lets its own methods change

    def __repr__(self) -> str:
        return f"Chart({self.name}: {self.title})"

    def rows(self) -> list[Row]:
        """Everything that is drawn, as one table; finite numbers and words only."""
        parts = ("panel", "low", "high")
        named = [part for part in parts if any(getattr(each, part) for each in self.series)]
        if any(each.words is not None for each in self.series):
            named += ["words", "side"]
        columns = ("series", self.x.field, self.y.field, *named)
        return [
            dict(zip(columns, cells, strict=True))
            for each in self.series
            for cells in each.cells(named)
        ]

    @property
    def text(self) -> str:
        """The text alternative: what it shows, and readings of its series."""
        return " ".join([self.about, *(self._spoken(each) for each in self.series if each.says)])

    def _spoken(self, series: Series) -> str:
        name = f"{series.panel}, {series.name}" if series.panel else series.name
        told = []
        for place in series.places:
            side = "" if series.says == "about" else series.says
            y = f"{series.says} {self.y.say(series.y[place], side)}"
            low, high = (ends[place] if ends else None for ends in (series.low, series.high))
            if low is not None and high is not None:
                y += f" ({self.y.say(low, 'at least')} to {self.y.say(high, 'at most')})"
            x = self.x.say(series.x[place])
            words = f" ({series.words[place]})" if series.words and series.words[place] else ""
            told.append(f"{x}{words}: {y}")
        return f"{wording.sentence(name)}: {'; '.join(told) or 'none'}."

    def table(self) -> list[Row]:
        """The numbers alone, for people who would rather read them."""
        words = [each.name for each in self.series if each.kind == "words"]
        return [
            {name: value for name, value in row.items() if name not in ("words", "side")}
            for row in self.rows()
            if row["series"] not in words
        ]

    def spec(
        self, theme: Theme = "light", *, width: float | None = None, empty: bool = False
    ) -> dict[str, Any]:
        """The Vega-Lite specification.

        Args:
            theme: "light" or "dark".
            width: of the whole drawing, in pixels; None takes the usual one.
            empty: whether it is for a page: without rows and words of its own, and as wide as the
                element that holds it.
        """
        if empty:
            page = {"width": "container", "datasets": {TABLE: []}, "usermeta": self._meaning()}
            return vega.specification(self, theme, vega.NARROW) | page
        width = width or look.WIDTH
        title, caption = self.heading(width)
        return vega.specification(self, theme, width) | {
            "title": {"text": title, "subtitle": caption},
            "description": self.text,
            "datasets": {TABLE: self.rows()},
        }

    def heading(self, width: float) -> tuple[list[str], list[str]]:
        """The lines of the title, and in small below it: what it is of, and by which dprime."""
        letters = round(TITLE_WIDTH * width / look.WIDTH)
        parts = [*self.of.split(DOT), f"dprime {dprime.__version__}"]
        caption, most = [""], round(letters * SMALLER)
        for part in filter(None, parts):
            line = f"{caption[-1]}{DOT}{part}"
            caption[-1:] = [line] if len(line) <= most else [caption[-1], *wrapped(part, most)]
        return wrapped(self.title, letters), [line.removeprefix(DOT) for line in caption if line]

    def _meaning(self) -> dict[str, Any]:
        """What a page needs to read values aloud, and to draw two charts as one."""
        told = {
            name: {part: getattr(axis, part) for part in ("field", "title", "percent")}
            for name, axis in (("x", self.x), ("y", self.y))
        }
        says = {each.name: each.says for each in self.series if each.says}
        return {**told, "says": says, "drawn": [each.name for each in self.series]}

    def svg(self, theme: Theme = "light") -> str:
        """The drawing as SVG, without a browser; one image with a title and a description."""
        head, _, rest = vega.svg(self.spec(theme)).partition(">")
        words = f"<title>{escape(self.title)}</title><desc>{escape(self.text)}</desc>"
        return f'{head} role="img">{words}{rest}'

    def png(self, theme: Theme = "light", scale: float = 2.0) -> bytes:
        """The drawing as PNG, without a browser."""
        return vega.png(self.spec(theme), scale)

    def save(self, path: str | Path, theme: Theme = "light") -> Path:
        """Write the drawing as .svg or .png, or its specification as .json."""
        place = Path(path)
        kind = place.suffix.removeprefix(".")
        if kind not in FORMATS:
            remedy = f"end it in .{', .'.join(FORMATS)}"
            raise validate.invalid_value("path", str(path), "the name of a picture", remedy)
        atomic.write("path", place, self.drawn(kind, theme))
        return place

    def drawn(self, kind: str, theme: Theme = "light") -> str | bytes:
        """The content of a file of the kind "svg", "png" or "json"."""
        if kind == "json":
            return json.dumps(self.spec(theme), indent=1)
        return self.png(theme) if kind == "png" else self.svg(theme)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        """In a notebook: the drawing, and its text alternative."""
        drawing = vega.in_both_themes(self.svg())
        return {"image/svg+xml": drawing, "text/plain": f"{self.title}\n{self.text}"}


def beside(first: Chart, second: Chart, labels: tuple[str, str] = ("A", "B")) -> Chart:
    """Two charts of the same kind as one, on the same axes; each series has its chart's label.

    Areas, gaps and words that belong to no point are left out, and a baseline is drawn once.

    >>> from dprime.curve import TradeOff
    >>> from dprime.show.charts import trade_off
    >>> charts = [trade_off(TradeOff.gaussian(mu)) for mu in (0.5, 1.0)]
    >>> [each.name for each in beside(*charts).series if each.says]
    ['A: certified limit', 'B: certified limit']
    """
    series: list[Series] = []
    for number, (label, chart) in enumerate(zip(labels, (first, second), strict=True)):
        for each in chart.series:
            if each.kind in ("area", "words") or each.pencil == GAP:
                continue
            if each.pencil == BASELINE and each.kind == "line":
                series += [each] if number else []  # once, behind everything
                continue
            pencil = second_pencil(each.pencil) if number else each.pencil
            series.append(replace(each, name=f"{label}: {each.name}", pencil=pencil))
    told = [*zip(labels, (first, second), strict=True)]
    return replace(
        first,
        title=" ".join(f"{label}: {chart.title}" for label, chart in told),
        of=labelled({label: chart.of for label, chart in told}),
        series=tuple(series),
    )


def labelled(parts: Mapping[str, str]) -> str:
    """What several curves are of, each with its label; of one that does not say, nothing."""
    return DOT.join(f"{label}: {of}" for label, of in parts.items() if of)


def wrapped(title: str, letters: int = TITLE_WIDTH) -> list[str]:
    """The lines of a title; a number keeps its name and its unit.

    >>> [len(line) for line in wrapped("Nobody finds more than 4.03 % of the members. " * 2)]
    [63, 27]
    """
    kept = title.replace(" %", f"{NO_BREAK}%").replace(" = ", f"{NO_BREAK}={NO_BREAK}")
    kept = kept.replace("′ ", f"′{NO_BREAK}")
    return textwrap.wrap(kept, letters)
