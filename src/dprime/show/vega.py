"""Series and axes as a Vega-Lite specification, with its own legend, facets and layers.

Each series has layers of its own, which show the rows that name it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dprime import text
from dprime.show import theme as look
from dprime.show.needs import check_drawing
from dprime.show.series import Axis, Series
from dprime.show.theme import Theme

TABLE = "rows"
"""The name of the one data set in a specification: a page puts new rows there, and it redraws."""

NARROW = 340
"""The width that a drawing must fit in whose page decides its width, in pixels."""

LETTER, SYMBOL = 6.5, 58
"""Pixels for a letter of a key, and for its symbol with the space around it."""

PANEL, ALONE, COLUMNS, SPACE, AXIS_ROOM = 115, 1.5, 3, 22, 62
"""Of charts with panels: the least width and the height of one in pixels, how much higher a single
row is, how many stand side by side at most, and pixels between them and for the axis."""

SIDES: Mapping[str, tuple[str, str, int, int]] = {
    "above": ("center", "bottom", 0, -9),
    "above-left": ("right", "bottom", -6, -6),
    "above-right": ("left", "bottom", 6, -6),
    "below-left": ("right", "top", -6, 8),
    "below-right": ("left", "top", 8, 6),
    "left": ("right", "middle", -10, 0),
    "middle": ("center", "middle", 0, 0),
    "right": ("left", "middle", 10, 0),
    "corner": ("left", "middle", 46, -9),
}
"""Where words stand beside their point: align, baseline, dx and dy."""

ROUND_NUMBERS = tuple(float(f"{m}e{power}") for power in range(-9, 10) for m in (1, 2, 5))
"""Where a logarithmic axis has its ticks."""


def svg(spec: Mapping[str, Any]) -> str:
    """A specification as SVG, without a browser."""
    check_drawing()
    import vl_convert  # noqa: PLC0415  only a drawing needs it

    return str(vl_convert.vegalite_to_svg(text.in_print(spec)))


INKED = re.compile(r'(fill|stroke)="(#[0-9a-f]{6})([0-9a-f]{2})?"')


def in_both_themes(drawing: str) -> str:
    """A drawing in light colours as one that turns dark on a screen where its reader asked for it.

    >>> in_both_themes('<svg><path stroke="#0a5a8f"/></svg>').count("#6fb8ee")
    1
    """
    light, dark = look.COLOURS["light"], look.COLOURS["dark"]
    inks = {light[name]: dark[name] for name in light}  # background and paper are both white
    rules = "".join(
        f'svg [{part}="{ink}{alpha}"]{{{part}:{inks[ink]}{alpha}}}'
        for part, ink, alpha in sorted(set(INKED.findall(drawing)))
        if ink in inks
    )
    style = f"<style>@media screen and (prefers-color-scheme:dark){{{rules}}}</style>"
    return re.sub(r"(<svg[^>]*>)", rf"\1{style}", drawing, count=1)


def png(spec: Mapping[str, Any], scale: float) -> bytes:
    """A specification as PNG, without a browser."""
    check_drawing()
    import vl_convert  # noqa: PLC0415  only a drawing needs it

    return bytes(vl_convert.vegalite_to_png(text.in_print(spec), scale=scale))


def channel(axis: Axis, field: str | None = None) -> dict[str, Any]:
    """The channel of a column on an axis, its own unless another one is named."""
    if axis.names:
        plain = {"ticks": False, "labelLimit": 160, "labelOverlap": False, "grid": False}
        kind = {"type": "nominal", "sort": list(axis.names), "axis": plain}
        return {"field": field or axis.field, "title": axis.title or None, **kind}
    free = axis.domain is None
    scale: dict[str, Any] = {"type": "log"} if axis.log else {"zero": axis.zero and free}
    scale |= {"nice": not axis.log} if free else {"nice": False, "domain": list(axis.domain or ())}
    lines: dict[str, Any] = {"format": "~%" if axis.percent else ",~r", "tickCount": 6}
    if axis.percent:
        lines["labelExpr"] = f"replace(datum.label, '%', '{axis.unit}')"
    if axis.whole:
        lines["tickMinStep"] = 1
    if ticks := axis.ticks or (ROUND_NUMBERS if axis.log else ()):
        # Vega drops every other tick of those given where there are more than tickCount
        lines |= {"values": list(ticks), "tickCount": len(ticks)}
    return {
        "field": field or axis.field, "type": "quantitative", "title": axis.title,
        "scale": scale, "axis": lines,
    }  # fmt: skip


@dataclass(frozen=True)
class Drawing:
    """Series over two axes in a theme."""

    x: Axis
    y: Axis
    series: tuple[Series, ...]
    theme: Theme
    horizontal: bool
    height: int | None

    def spec(self, width: float | None) -> dict[str, Any]:
        """The specification of a whole drawing of this width, without data and words."""
        config, whole = look.config(self.theme), width or look.WIDTH
        back_to_front = reversed(self._named)
        layers = [layer for series in back_to_front for layer in self._layers(series)]
        drawn: dict[str, Any] = {"layer": [*layers, *self._words()]}
        panels = dict.fromkeys(each.panel for each in self.series if each.panel)
        drawn["layer"] += self._key(whole)
        if panels:
            drawn = self._facets(drawn, len(panels), whole)
        else:
            size = {"width": whole, "height": self.height or look.HEIGHT}
            drawn |= {**size, "autosize": {"type": "fit-x", "contains": "padding"}}
        background = look.COLOURS[self.theme]["background"]
        return drawn | {
            "data": {"name": TABLE}, "config": config, "padding": look.PADDING,
            "background": background,
        }  # fmt: skip

    @cached_property
    def _named(self) -> list[Series]:
        """The first series of each name: others of that name look the same."""
        named: dict[str, Series] = {}
        for each in self.series:
            named.setdefault(each.name, each)
        return list(named.values())

    def _facets(self, drawn: dict[str, Any], count: int, width: float) -> dict[str, Any]:
        """Panels that share both axes; four stand two by two."""
        room = width - 2 * look.PADDING - AXIS_ROOM + SPACE
        fitting = max(1, min(COLUMNS, int(room // (PANEL + SPACE))))
        columns = min(2 if count == 4 else count, fitting)
        higher = ALONE if count <= columns else 1.0
        size = {"width": room / columns - SPACE, "height": self.height or round(PANEL * higher)}
        panel = {"field": "panel", "type": "nominal", "title": None, "sort": None}
        spacing = {"row": SPACE, "column": SPACE}
        return {"facet": panel, "columns": columns, "spacing": spacing, "spec": drawn | size}

    def _layers(self, series: Series) -> Iterator[dict[str, Any]]:
        """The marks of a series, from the back to the front."""
        pencil, kind = series.pencil, series.kind
        colour = {"color": pencil.colour(self.theme)}
        stroke = {**colour, "strokeWidth": pencil.width, "strokeDash": list(pencil.dash)}
        stepped = {"interpolate": f"step-{series.step}"} if series.step else {}
        line = {"type": "line", **stroke, **stepped}
        area = {"type": "area", **colour, **stepped, "opacity": pencil.opacity, "clip": True}
        dot = {
            "type": "point", **colour, "size": pencil.size, "filled": pencil.filled, "opacity": 1,
            "strokeWidth": 2, "shape": pencil.shape,
        }  # fmt: skip
        bar = {"type": "rule", **colour, "strokeWidth": 2.25}
        if kind == "area":
            yield self._layer(series, area, self.y.field, "low" if series.low else None)
        if series.low and series.high:
            yield self._layer(series, area if kind == "line" else bar, "low", "high")
            if pencil.edges:
                edge = {**line, "strokeWidth": 1}
                yield from (self._layer(series, edge, end) for end in ("low", "high"))
        if kind in ("line", "joined"):
            yield self._layer(series, line)
        if kind == "curve":
            yield self._corners(series, {"type": "line", **stroke})
        if kind == "rule":
            yield self._layer(series, {"type": "rule", **stroke})
        if kind in ("points", "joined"):
            yield self._layer(series, dot)

    def _layer(
        self, series: Series, mark: dict[str, Any], low: str = "", high: str | None = None
    ) -> dict[str, Any]:
        """The rows of a series as marks of one kind; from `low` to `high`, where they are named."""
        x, y = ("y", "x") if self.horizontal else ("x", "y")
        channels: dict[str, Any] = {}
        if series.kind != "rule" or not series.y:
            channels[x] = channel(self.x)
        if series.kind != "rule" or series.y:
            channels[y] = channel(self.y, low or None)
        if mark["type"] == "area" or high:
            channels[f"{y}2"] = {"field": high} if high else {"datum": 0}
        aside = {f"{x}Offset": series.aside} if series.aside else {}
        test = f"datum.series === {json.dumps(series.name, ensure_ascii=False)}"
        return {"transform": [{"filter": test}], "mark": mark | aside, "encoding": channels}

    def _corners(self, series: Series, mark: dict[str, Any]) -> dict[str, Any]:
        """A line through the outer corners of the steps: at each point the next one's height."""
        y = self.y.field
        held = {"op": "lead" if series.step == "before" else "lag", "field": y, "as": "next"}
        drawn = self._layer(series, mark, "held")
        drawn["transform"] += [
            {"window": [held], "sort": [{"field": self.x.field}]},
            {"calculate": f"isValid(datum.next) ? datum.next : datum.{y}", "as": "held"},
        ]
        return drawn

    def _words(self) -> list[dict[str, Any]]:
        """All words that stand beside points, above a rim that keeps lines off."""
        if all(each.words is None for each in self.series):
            return []
        places = {
            part: {
                "expr": f"({json.dumps({side: at[n] for side, at in SIDES.items()})})[datum.side]"
            }
            for n, part in enumerate(("align", "baseline", "dx", "dy"))
        }
        x, y = ("y", "x") if self.horizontal else ("x", "y")
        channels = {x: channel(self.x), y: channel(self.y), "text": {"field": "words"}}
        test = [{"filter": "isValid(datum.words)"}]
        return [
            {
                "transform": test,
                "mark": {"type": "text", "style": style, **places},
                "encoding": channels,
            }
            for style in ("rim", "word")
        ]

    def _key(self, width: float) -> list[dict[str, Any]]:
        """The legend, on a mark without rows; one series alone needs none.

        Its columns are fixed: Vega cuts a legend off that grows when a page gets narrower.
        """
        shown = [each for each in self._named if each.key]
        if len(shown) < 2:
            return []
        names = [each.name for each in shown]
        fitting = int((width - AXIS_ROOM) // (SYMBOL + LETTER * max(map(len, names))))
        legend = {"title": None, "symbolOpacity": 1, "columns": max(1, fitting)}
        looks = zip(*(_symbol(each, self.theme) for each in shown), strict=True)
        channels = {
            name: {
                "field": "series", "type": "nominal", "sort": names, "legend": legend,
                "scale": {"type": "ordinal", "domain": names, "range": list(values)},
            }
            for name, values in zip(
                ("shape", "stroke", "fill", "strokeDash", "size"), looks, strict=True
            )
        }  # fmt: skip
        none = {"transform": [{"filter": "false"}], "mark": {"type": "point"}}
        return [{**none, "encoding": channels}]


def _symbol(series: Series, theme: Theme) -> tuple[str, str, str, list[int], float]:
    """What stands for a series in the key: shape, stroke, fill, dash and size."""
    pencil, colour, none = series.pencil, series.pencil.colour(theme), "transparent"
    if series.kind == "points":
        fill = colour if pencil.filled else none
        return pencil.shape, colour, fill, list(look.SOLID), max(pencil.size, 60)
    if series.kind == "area":
        return "square", none, f"{colour}{round(255 * pencil.opacity):02x}", list(look.SOLID), 180
    return "stroke", colour, none, list(pencil.dash), 900
