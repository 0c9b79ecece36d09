"""Numbers of trials in two worlds, counted in bins and drawn over each other."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from dprime.show.figures import marks
from dprime.show.figures.figure import OUTLINE, Row
from dprime.show.figures.trials import Floats

if TYPE_CHECKING:
    import altair as alt

RIGHT, LEFT = marks.label("above-left", "second"), marks.label("above-right", "first")
"""The names of the worlds stand in the upper corners."""

ROOM = 1.1
"""So much higher than the highest bar are the names."""


@final
@dataclass(frozen=True)
class Histogram:
    """Shares of the trials between neighbouring edges, with the record and without it."""

    edges: tuple[float, ...]
    inside: tuple[float, ...]
    outside: tuple[float, ...]

    @classmethod
    def of(cls, inside: Floats, outside: Floats, edges: Floats) -> Histogram:
        """What lies beyond the edges is counted in the outermost bins."""
        shares = [
            np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / len(values)
            for values in (inside, outside)
        ]
        return cls(tuple(edges.tolist()), *(tuple(share.tolist()) for share in shares))

    @property
    def highest(self) -> float:
        """The largest share."""
        return max(*self.inside, *self.outside)

    def rows(self) -> list[Row]:
        """Each bin in each world, the outline of the world without the record, both names."""
        rows = [
            bin_row(layer, low, high, share)
            for layer, shares in (("with", self.inside), ("without", self.outside))
            for (low, high), share in zip(itertools.pairwise(self.edges), shares, strict=True)
        ]
        closed = (*self.outside, self.outside[-1])
        outline = zip(self.edges, closed, strict=True)
        above = ROOM * self.highest
        return [
            *rows,
            *(bin_row(OUTLINE, edge, None, share) for edge, share in outline),
            bin_row(RIGHT, self.edges[-1], None, above, "with the record"),
            bin_row(LEFT, self.edges[0], None, above, "without it (dashed)"),
        ]


def bin_row(
    layer: str, start: float, end: float | None, share: float | None, label: str | None = None
) -> Row:
    """One row of a histogram's table."""
    return {"layer": layer, "from": start, "to": end, "share": share, "label": label}


def layers(x: dict[str, Any], y: dict[str, Any]) -> list[alt.Chart]:
    """The world with the record as filled bars, the other as a dashed outline over them."""
    to = {"field": "to"}
    return [
        marks.layer("with", "rect", "with-bar", x=x, x2=to, y=y, y2={"datum": 0}),
        marks.layer(OUTLINE, "line", "without", x=x, y=y, interpolate="step-after"),
    ]
