"""How figures look: size, fonts, and colours in light and dark.

Marks name a style ("ceiling", "floor", ...) and the theme says what it looks like. Styles differ by
dash and width, not by colour alone, so that a figure can be read in grey and by everybody; the two
main colours are those of Okabe and Ito's palette, darkened or lightened for contrast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from dprime import validate

Theme = Literal["light", "dark"]
THEMES: tuple[str, ...] = get_args(Theme)

WIDTH, HEIGHT = 640, 340
"""Of a drawing as a whole, in pixels; a page may set another width."""

PADDING = 8

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"

WORD = 12
"""Size of words in a drawing, in pixels."""


@dataclass(frozen=True)
class _Colours:
    """What a theme paints with."""

    paper: str
    ink: str
    muted: str
    grid: str
    first: str
    second: str
    light: tuple[str, ...]
    """A ramp from little to much, for maps."""
    background: str = "transparent"


COLOURS: Mapping[str, _Colours] = MappingProxyType(
    {
        "light": _Colours(
            paper="#ffffff", ink="#1b1f24", muted="#57606a", grid="#e4e8ec",
            first="#0a5a8f", second="#b84a00",
            light=("#f3f7fb", "#dfeaf4", "#c4d9ea", "#9fc2dd", "#74a6cb", "#4a86b4", "#2a6796"),
            background="#ffffff",
        ),
        "dark": _Colours(
            paper="#181d23", ink="#e8edf2", muted="#a3adb8", grid="#2c333b",
            first="#6fb8ee", second="#f0a45c",
            light=("#1b232c", "#203244", "#26435e", "#2c5579", "#356a97", "#4380b4", "#5897d0"),
        ),
    }
)  # fmt: skip


def themed(spec: dict[str, Any], theme: Theme) -> dict[str, Any]:
    """The specification with size, fonts and colours, and without the address of a schema.

    >>> sorted(themed({"$schema": "a name"}, "dark"))
    ['autosize', 'background', 'config', 'height', 'padding', 'width']
    """
    validate.one_of("theme", theme, THEMES)
    colours = COLOURS[theme]
    kept = {key: value for key, value in spec.items() if key != "$schema"}
    size = {"width": WIDTH, "height": HEIGHT, "autosize": {"type": "fit", "contains": "padding"}}
    look = {"background": colours.background, "padding": PADDING, "config": _config(colours)}
    return size | kept | look


def _config(colours: _Colours) -> dict[str, Any]:
    axis = {
        "labelColor": colours.muted, "titleColor": colours.ink, "gridColor": colours.grid,
        "domainColor": colours.muted, "tickColor": colours.muted, "labelFontSize": WORD,
        "titleFontSize": WORD, "titleFontWeight": "normal", "titlePadding": 8, "titleLimit": 0,
        "labelPadding": 4, "tickSize": 4, "labelSeparation": 6, "tickCount": 6,
    }  # fmt: skip
    title = {
        "anchor": "start", "color": colours.ink, "fontSize": 15, "fontWeight": 600, "offset": 14,
        "lineHeight": 20, "frame": "bounds",
    }  # fmt: skip
    return {
        "font": FONT,
        "view": {"stroke": None},
        "axis": axis,
        "title": title,
        "mark": {"aria": False},
        "range": {"ramp": list(colours.light), "ordinal": list(colours.light)},
        "legend": {"disable": True},
        "style": _styles(colours),
    }


def _styles(colours: _Colours) -> dict[str, Any]:
    """What each kind of mark looks like."""
    first, second, ink, muted = colours.first, colours.second, colours.ink, colours.muted
    rim = {"color": colours.paper, "stroke": colours.paper, "strokeWidth": 4, "opacity": 0.85}
    inks = {"ink": ink, "muted": muted, "first": first, "second": second}
    words = {f"word-{name}": {"fontSize": WORD, "color": colour} for name, colour in inks.items()}
    return {
        "ceiling": {"color": first, "strokeWidth": 3},
        "ceiling-dot": {"color": first, "size": 28, "opacity": 1, "filled": True},
        "second-dot": {"color": second, "size": 28, "opacity": 1, "filled": True},
        "ceiling-2": {"color": second, "strokeWidth": 3, "strokeDash": [10, 3]},
        "floor": {"color": second, "strokeWidth": 2.5, "strokeDash": [7, 4]},
        "blind": {"color": muted, "strokeWidth": 1.5, "strokeDash": [2, 3]},
        "limit": {"color": ink, "strokeWidth": 1.5, "strokeDash": [6, 3]},
        "room": {"color": first, "opacity": 0.14},
        "with": {"color": second, "strokeWidth": 2.5},
        "with-bar": {"color": second, "opacity": 0.45},
        "with-edge": {"color": second, "strokeWidth": 1},
        "without-edge": {"color": first, "strokeWidth": 1, "strokeDash": [4, 3]},
        "with-room": {"color": second, "opacity": 0.24},
        "without": {"color": first, "strokeWidth": 2.5, "strokeDash": [7, 4]},
        "without-room": {"color": first, "opacity": 0.16},
        "contour": {"color": ink, "strokeWidth": 1},
        "own": {"color": ink, "size": 90, "opacity": 1, "filled": True},
        "guide": {"color": muted, "strokeWidth": 1, "strokeDash": [2, 3]},
        "estimate": {"color": ink, "size": 70, "strokeWidth": 2, "filled": False, "opacity": 1},
        "interval": {"color": first, "strokeWidth": 3},
        "rim": {"fontSize": WORD, "strokeJoin": "round", **rim},
        **words,
    }  # fmt: skip
