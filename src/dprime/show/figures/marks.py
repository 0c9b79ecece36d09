"""The parts that drawings are made of: axes with units, layers of one table, words beside them.

A layer shows the rows that name it. Words are rows too: their layer says on which side of its point
a word stands, so that a page which puts in new rows moves the words along.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dprime.show.figures.figure import LABEL, TABLE

if TYPE_CHECKING:
    import altair as alt

Kind = Literal["line", "area", "point", "rule", "rect", "bar"]

CHANNELS = ("x", "y", "x2", "y2", "color", "detail", "text")

PERCENT = "format(datum.value * 100, '~g') + ' %'"
THOUSANDS = "format(datum.value, ',~g')"
MANTISSA = "round(datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-9)))"


@dataclass(frozen=True)
class _Side:
    align: str
    baseline: str
    dx: float
    dy: float


SIDES = {
    "above": _Side("center", "bottom", 0, -9),
    "above-left": _Side("right", "bottom", -6, -6),
    "above-right": _Side("left", "bottom", 6, -6),
    "below": _Side("center", "top", 0, 9),
    "below-left": _Side("right", "top", -6, 8),
    "below-right": _Side("left", "top", 8, 6),
    "left": _Side("right", "middle", -10, 0),
    "middle": _Side("center", "middle", 0, 0),
    "right": _Side("left", "middle", 10, 0),
}


def label(side: str, ink: str = "ink") -> str:
    """The layer of words that stand on this side of their points, in the colour of what they name.

    >>> label("above-left", "first")
    'label first above-left'
    """
    return f"{LABEL} {ink} {side}"


def axis(
    field: str,
    title: str,
    *,
    share: bool = False,
    log: bool = False,
    domain: Sequence[float] | None = None,
    ticks: Sequence[float] | None = None,
    zero: bool = True,
    padding: float | None = None,
    nice: bool = True,
    live: bool = False,
    whole: bool = False,
    grid: bool | None = None,
) -> dict[str, Any]:
    """One axis, as the keywords of a channel.

    Args:
        field: the column.
        title: with the unit.
        share: whether the column is a share, shown in percent.
        log: whether the axis is logarithmic.
        domain: its ends; None takes them from the rows.
        ticks: where to put ticks; None leaves that to the width.
        zero: whether an axis that is not logarithmic begins at 0.
        padding: pixels that marks keep from its ends.
        nice: whether it may end at a round number beyond the rows.
        live: whether the ends come from the table as a whole rather than from each layer, some of
            which may be empty at times; for figures whose rows a page exchanges.
        whole: whether ticks stand at whole numbers only.
        grid: whether it has lines across; None draws them where ticks are round numbers.
    """
    scale: dict[str, Any] = {"type": "log", "nice": False} if log else {"zero": zero, "nice": nice}
    if domain is not None:
        scale |= {"domain": list(domain), "nice": False}
    if live:
        scale["domain"] = _ends(field, begin=None if log or not zero else 0.0)
    if padding is not None:
        scale["padding"] = padding
    shown = PERCENT if share else THOUSANDS
    if log and ticks is None:
        shown = f"indexof([1, 2, 5], {MANTISSA}) >= 0 ? {shown} : ''"
    lines: dict[str, Any] = {"labelExpr": shown, "labelOverlap": "greedy"}
    lines["grid"] = grid if grid is not None else not log or ticks is not None
    if whole:
        lines["tickMinStep"] = 1
    if ticks is not None:
        lines["values"] = list(ticks)
    return {
        "field": field, "type": "quantitative", "title": title, "scale": scale, "axis": lines
    }  # fmt: skip


def _ends(field: str, begin: float | None) -> list[Any]:
    """The smallest and the largest number in a column, or 1 while there are no rows."""
    least, most = (
        {"expr": f"length(data('{TABLE}')) ? extent(pluck(data('{TABLE}'), '{field}'))[{end}] : 1"}
        for end in (0, 1)
    )
    return [least if begin is None else begin, most]


def layer(name: str, kind: Kind, style: str, **options: Any) -> alt.Chart:
    """The rows of one layer as marks of one style; `options` are channels and the mark's own."""
    channels = {key: options.pop(key) for key in list(options) if key in CHANNELS}
    marked = getattr(_filtered(f"datum.layer === '{name}'"), f"mark_{kind}")(style=style, **options)
    drawn: alt.Chart = marked.encode(**{key: _channel(key, channels[key]) for key in channels})
    return drawn


def words(x: dict[str, Any], y: dict[str, Any], *inks: str) -> list[alt.Chart]:
    """All words in these colours, above a rim that keeps lines off."""
    places: dict[str, Any] = {
        name: {"expr": _by_side(name)} for name in ("align", "baseline", "dx", "dy")
    }
    text = {"field": "label", "type": "nominal"}
    channels = {"x": _channel("x", x), "y": _channel("y", y), "text": _channel("text", text)}
    named = [("rim", LABEL), *((f"word-{ink}", f"{LABEL} {ink} ") for ink in inks)]
    return [
        _filtered(f"indexof(datum.layer, '{start}') === 0")
        .mark_text(style=style, **places)
        .encode(**channels)
        for style, start in named
    ]


def _by_side(name: str) -> str:
    """An expression that looks up what a label's side means for one property of its text."""
    table = {side: getattr(at, name) for side, at in SIDES.items()}
    return f"({json.dumps(table)})[split(datum.layer, ' ')[2]]"


def stacked(data: alt.NamedData, layers: Sequence[alt.Chart]) -> alt.LayerChart:
    """Layers of one table, the first at the bottom."""
    import altair as alt  # noqa: PLC0415

    return alt.LayerChart(layer=list(layers), data=data)


def _filtered(test: str) -> alt.Chart:
    import altair as alt  # noqa: PLC0415

    return alt.Chart().transform_filter(test)


def _channel(key: str, options: dict[str, Any]) -> Any:
    import altair as alt  # noqa: PLC0415

    if "datum" in options:
        return getattr(alt, f"{key.capitalize()}Datum")(options["datum"])
    return getattr(alt, key.capitalize())(**options)
