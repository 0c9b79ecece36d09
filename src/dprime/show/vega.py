"""A chart as a Vega-Lite specification, with its own legend, facets and layers.

Each series has separate layers, which show the rows with its name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dprime import text
from dprime.show import theme as look
from dprime.show.needs import check_drawing
from dprime.show.series import Axis, Series
from dprime.show.theme import Theme

if TYPE_CHECKING:
    from dprime.show.chart import Chart

TABLE = "rows"
"""The name of the one data set in a specification: a page puts new rows there, and it redraws."""

NARROW = 340
"""The width that a drawing must fit in whose page decides its width, in pixels."""

LETTER, SYMBOL = 6.5, 58
"""Pixels for a letter of a key, and for its symbol with the space around it."""

PANEL, ALONE, COLUMNS, SPACE, AXIS_ROOM = 115, 1.5, 3, 22, 62
"""Charts with panels: the least width and the height of a panel in pixels, how much higher a single
row is, the most panels side by side, and pixels between them and for the axis."""

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


def png(spec: Mapping[str, Any], scale: float) -> bytes:
    """A specification as PNG, without a browser."""
    check_drawing()
    import vl_convert  # noqa: PLC0415  only a drawing needs it

    return bytes(vl_convert.vegalite_to_png(text.in_print(spec), scale=scale))


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


def specification(chart: Chart, theme: Theme, width: float) -> dict[str, Any]:
    """The specification of a whole drawing of this width, without data and words."""
    config = look.config(theme)
    named = {each.name: each for each in reversed(chart.series)}  # those of one name look the same
    layers = [layer for each in named.values() for layer in _layers(chart, each, theme)]
    layers += [*_words(chart), *_key([*reversed(named.values())], theme, width)]
    panels = {each.panel for each in chart.series if each.panel}
    size = {"width": width, "height": chart.height or look.HEIGHT}
    return {
        **(
            _facets(chart, layers, len(panels), width)
            if panels
            else {"layer": layers, **size, "autosize": {"type": "fit-x", "contains": "padding"}}
        ),
        "data": {"name": TABLE}, "config": config, "padding": look.PADDING,
        "background": look.COLOURS[theme]["background"],
    }  # fmt: skip


def _facets(chart: Chart, layers: list[Any], count: int, width: float) -> dict[str, Any]:
    """Panels that share both axes; four stand two by two."""
    room = width - 2 * look.PADDING - AXIS_ROOM + SPACE
    fitting = max(1, min(COLUMNS, int(room // (PANEL + SPACE))))
    columns = min(2 if count == 4 else count, fitting)
    higher = ALONE if count <= columns else 1.0
    size = {"width": room / columns - SPACE, "height": chart.height or round(PANEL * higher)}
    panel = {"field": "panel", "type": "nominal", "title": None, "sort": None}
    spacing = {"row": SPACE, "column": SPACE}
    plot = {"layer": layers, **size}
    return {"facet": panel, "columns": columns, "spacing": spacing, "spec": plot}


def _layers(chart: Chart, series: Series, theme: Theme) -> Iterator[dict[str, Any]]:
    """The marks of a series, from the back to the front."""
    pencil, kind, y = series.pencil, series.kind, chart.y.field
    colour = {"color": pencil.colour(theme)}
    stroke = {**colour, "strokeWidth": pencil.width, "strokeDash": list(pencil.dash)}
    stepped = {"interpolate": f"step-{series.step}"} if series.step else {}
    line = {"type": "line", **stroke, **stepped}
    area = {"type": "area", **colour, **stepped, "opacity": pencil.opacity, "clip": True}
    if kind == "area":
        yield _layer(chart, series, area, y, "low" if series.low else None)
    if series.low and series.high:
        bar = {"type": "rule", **colour, "strokeWidth": 2.25}
        yield _layer(chart, series, area if kind == "line" else bar, "low", "high")
        for end in ("low", "high") if pencil.edges else ():
            yield _layer(chart, series, {**line, "strokeWidth": 1}, end)
    if kind in ("line", "joined"):
        yield _layer(chart, series, line)
    if kind == "curve":  # through the outer corners of the steps: at each point the next height
        held = {"op": "lead" if series.step == "before" else "lag", "field": y, "as": "next"}
        drawn = _layer(chart, series, {"type": "line", **stroke}, "held")
        drawn["transform"] += [
            {"window": [held], "sort": [{"field": chart.x.field}]},
            {"calculate": f"isValid(datum.next) ? datum.next : datum.{y}", "as": "held"},
        ]
        yield drawn
    if kind == "rule":
        yield _layer(chart, series, {"type": "rule", **stroke})
    if kind in ("points", "joined"):
        filled = {"filled": pencil.filled, "opacity": 1, "strokeWidth": 2}
        dot = {"type": "point", **colour, "size": pencil.size, **filled, "shape": pencil.shape}
        yield _layer(chart, series, dot)


def _layer(
    chart: Chart, series: Series, mark: dict[str, Any], low: str = "", high: str | None = None
) -> dict[str, Any]:
    """The rows of a series as marks of one kind; from `low` to `high`, where they are named."""
    x, y = ("y", "x") if chart.horizontal else ("x", "y")
    channels: dict[str, Any] = {}
    if series.kind != "rule" or not series.y:
        channels[x] = channel(chart.x)
    if series.kind != "rule" or series.y:
        channels[y] = channel(chart.y, low or None)
    if mark["type"] == "area" or high:
        channels[f"{y}2"] = {"field": high} if high else {"datum": 0}
    aside = {f"{x}Offset": series.aside} if series.aside else {}
    test = f"datum.series === {json.dumps(series.name, ensure_ascii=False)}"
    return {"transform": [{"filter": test}], "mark": mark | aside, "encoding": channels}


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


def _words(chart: Chart) -> Iterator[dict[str, Any]]:
    """All words that stand beside points, above a rim that keeps lines off."""
    if all(each.words is None for each in chart.series):
        return
    places = {
        part: {"expr": f"({json.dumps({side: at[n] for side, at in SIDES.items()})})[datum.side]"}
        for n, part in enumerate(("align", "baseline", "dx", "dy"))
    }
    x, y = ("y", "x") if chart.horizontal else ("x", "y")
    channels = {x: channel(chart.x), y: channel(chart.y), "text": {"field": "words"}}
    for style in ("rim", "word"):
        mark = {"type": "text", "style": style, **places}
        yield {
            "transform": [{"filter": "isValid(datum.words)"}], "mark": mark, "encoding": channels,
        }  # fmt: skip


def _key(named: Sequence[Series], theme: Theme, width: float) -> Iterator[dict[str, Any]]:
    """The legend, on a mark without rows; one series alone needs none.

    Its columns are fixed: Vega cuts a legend off that grows when a page gets narrower.
    """
    shown = [each for each in named if each.key]
    if len(shown) < 2:
        return
    names = [each.name for each in shown]
    fitting = int((width - AXIS_ROOM) // (SYMBOL + LETTER * max(map(len, names))))
    legend = {"title": None, "symbolOpacity": 1, "columns": max(1, fitting)}
    parts = ("shape", "stroke", "fill", "strokeDash", "size")
    looks = zip(*(_symbol(each, theme) for each in shown), strict=True)
    channels = {
        part: {
            "field": "series", "type": "nominal", "sort": names, "legend": legend,
            "scale": {"type": "ordinal", "domain": names, "range": list(values)},
        }
        for part, values in zip(parts, looks, strict=True)
    }  # fmt: skip
    none = [{"filter": "false"}]
    yield {"transform": none, "mark": {"type": "point"}, "encoding": channels}


def _symbol(series: Series, theme: Theme) -> tuple[str, str, str, list[int], float]:
    """What stands for a series in the key: shape, stroke, fill, dash and size."""
    pencil, colour, none = series.pencil, series.pencil.colour(theme), "transparent"
    if series.kind == "points":
        fill = colour if pencil.filled else none
        return pencil.shape, colour, fill, list(look.SOLID), max(pencil.size, 60)
    if series.kind == "area":
        return "square", none, f"{colour}{round(255 * pencil.opacity):02x}", list(look.SOLID), 180
    return "stroke", colour, none, list(pencil.dash), 900
