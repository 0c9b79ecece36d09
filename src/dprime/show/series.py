"""What a chart is made of: axes, and series of numbers that are drawn alike."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal, Self, final

from dprime import validate
from dprime.show import wording
from dprime.show.theme import Pencil

Kind = Literal["line", "joined", "curve", "points", "area", "rule", "words"]


@final
@dataclass(frozen=True)
class Axis:
    """An axis.

    Attributes:
        field: the column of the table.
        title: with the unit.
        percent: whether the numbers are shares, shown in percent.
        unit: what stands behind each number of shares.
        log: whether the axis is logarithmic.
        domain: its ends; None takes them from the rows.
        zero: whether an axis that is not logarithmic begins at 0 where no domain is given.
        whole: whether ticks stand at whole numbers only.
        ticks: where ticks stand; none leaves that to the width.
        names: those that stand in the column instead of numbers, in their order.
    """

    field: str
    title: str
    percent: bool = False
    unit: str = " %"
    log: bool = False
    domain: tuple[float, float] | None = None
    zero: bool = True
    whole: bool = False
    ticks: tuple[float, ...] = ()
    names: tuple[str, ...] = ()

    def say(self, value: float | str, side: Literal["", "at most", "at least"] = "") -> str:
        """A number of this axis in words: "at most" rounds it up, "at least" down.

        >>> Axis("x", "x", percent=True).say(-0.12345, "at least"), Axis("x", "x").say(2.0)
        ('-12.35 %', '2')
        """
        if isinstance(value, str):
            return value
        if side:
            scaled = 100 * value if self.percent else value
            shown = wording.up(scaled) if side == "at most" else wording.down(scaled)
            return f"{shown} %" if self.percent else shown
        return wording.percent(value) if self.percent else wording.near(value, 4)


@final
@dataclass(frozen=True)
class Series:
    """Numbers that are drawn alike.

    Attributes:
        name: in the key and in the table.
        pencil: what it looks like.
        x: where its points stand across.
        y: how high; none for a rule that goes from the bottom to the top.
        kind: a "line", points that are "joined" or alone ("points"), a "curve" through the outer
            corners of its steps, an "area" between `y` and `low` (0 where there is none), a "rule"
            across the whole chart, or only "words".
        low: lower ends of intervals, None where one is not known; a line shows them as an area,
            points show them as bars.
        high: upper ends.
        step: to which side of a point its height holds; None draws straight lines between points. A
            "curve" must have one: it rises or falls all the way, and its line, straight from corner
            to corner of the steps, is nowhere on the wrong side of what the points say.
        words: what stands beside each point; None where the series never has words.
        side: where the words stand, one of `vega.SIDES`; one for all points, or one each.
        aside: pixels by which it is moved along `x`, off others with the same x.
        panel: the panel that shows it, where there are several.
        key: whether it has an entry in the key.
        says: what its numbers are, "at most", "at least" or "about", if the text alternative shall
            read them: ceilings are rounded up, floors down.
        aloud: where it reads them, at the next point each; none reads some evenly.
    """

    name: str
    pencil: Pencil
    x: Sequence[float | str]
    y: Sequence[float] = ()
    kind: Kind = "line"
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    step: Literal["before", "after"] | None = None
    words: Sequence[str] | None = None
    side: str | Sequence[str] = "above"
    aside: float = 0
    panel: str = ""
    key: bool = True
    says: Literal["", "at most", "at least", "about"] = ""
    aloud: Sequence[float] = ()

    @classmethod
    def of(
        cls, name: str, pencil: Pencil, points: Iterable[Sequence[Any]], kind: Kind = "line",
        **more: Any,
    ) -> Self:  # fmt: skip
        """A series of points: (x, y), or (x, y, low, high)."""
        x, y, low, high = (*zip(*points, strict=True), (), (), (), ())[:4]
        return cls(name, pencil, x, y, kind, low, high, **more)

    def cells(self, columns: Sequence[str]) -> Iterator[tuple[float | str | None, ...]]:
        """Its rows: name, x, y and these columns; None where it has nothing."""
        for place, x in enumerate(self.x):
            found = (getattr(self, name) or None for name in ("y", *columns))
            cells = (each if isinstance(each, str | None) else each[place] for each in found)
            yield self.name, x, *cells

    @property
    def places(self) -> list[int]:
        """The points that the text alternative reads."""
        if not self.aloud:
            return wording.some_of(len(self.x))
        across = [float(x) for x in self.x]
        found = {bisect_left(across, x * (1 - 1e-9)) for x in self.aloud}
        return sorted(place for place in found if place < len(across))

    def __post_init__(self) -> None:
        for column in (self.y, self.low, self.high, self.words):
            if column and len(column) != len(self.x):
                raise validate.invalid_input(
                    f"series {self.name}", f"{len(self.x)} and {len(column)} entries",
                    "columns of one length", "give one number for each point",
                )  # fmt: skip
        for value, *ends in zip_longest(self.y, self.low, self.high):
            low, high = (value if end is None else end for end in ends)
            if not (math.isfinite(value) and low <= value <= high):
                remedy = "give finite numbers, each between the ends of its interval"
                shown, wanted = f"{low}, {value}, {high}", "ascending: low, value, high"
                raise validate.invalid_input(f"series {self.name}", shown, wanted, remedy)
