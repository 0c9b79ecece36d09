"""How charts look: size, fonts, and colours in light and dark.

A series is drawn with a pencil, and the theme says what its ink looks like. Pencils differ by dash
and width, not by colour alone, so that a chart can be read in grey and by everybody; the two main
colours are those of Okabe and Ito's palette, darkened or lightened for contrast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

from dprime import validate

Theme = Literal["light", "dark"]
THEMES: tuple[str, ...] = get_args(Theme)

WIDTH, HEIGHT = 640, 250
"""The sizes of a drawing and of its plot in pixels; a page may set others."""

PADDING = 8

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"

WORD = 12
"""Size of words in a drawing, in pixels."""

SMALL = 11
"""Size of the words below a title."""

COLOURS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "light": {
            "background": "#ffffff", "paper": "#ffffff", "grid": "#e4e8ec",
            "ink": "#1b1f24", "muted": "#57606a",
            "first": "#0a5a8f", "second": "#b84a00", "third": "#2f7d5b", "fourth": "#8c4a7a",
        },
        "dark": {
            "background": "transparent", "paper": "#181d23", "grid": "#2c333b",
            "ink": "#e8edf2", "muted": "#a3adb8",
            "first": "#6fb8ee", "second": "#f0a45c", "third": "#5cc29a", "fourth": "#d793c4",
        },
    }
)  # fmt: skip

Dash = tuple[int, ...]

SOLID, LONG, DASHED, DOTTED, BOTH, FAR = (1, 0), (14, 4), (8, 4), (2, 2), (9, 3, 2, 3), (3, 6)


@dataclass(frozen=True)
class Pencil:
    """What draws a series.

    Attributes:
        ink: the name of a colour.
        dash: pixels that are drawn and left out, in turn.
        width: of a line, in pixels.
        size: of a point, in square pixels.
        shape: of a point.
        filled: whether points are filled.
        opacity: of an area.
        edges: whether an area between two ends has lines along them.
    """

    ink: str
    dash: Dash = SOLID
    width: float = 2.25
    size: float = 42
    shape: str = "circle"
    filled: bool = True
    opacity: float = 0.2
    edges: bool = False

    def colour(self, theme: Theme) -> str:
        """Its colour in a theme."""
        return COLOURS[theme][self.ink]


CERTIFIED, ALSO_CERTIFIED = Pencil("first", width=3, size=28), Pencil("second", (10, 3), 3, 28)
OBSERVED = Pencil("second", (7, 4), 2.5)
WITH = Pencil("second", width=2.5, edges=True)
WITHOUT = Pencil("first", (7, 4), 2.5, edges=True)
"""The world with the record, and the other one."""
CHOSEN = Pencil("second", size=26)
"""What a chart is about, where nothing certified is drawn as a line."""
OWN = Pencil("ink", size=90)
ESTIMATE = Pencil("ink", DOTTED, 1.75, size=60, filled=False)
LIMIT = Pencil("ink", (6, 3), 1.5)
BASELINE = Pencil("muted", (2, 3), 1.5)
GAP = Pencil("second", width=2)
ROOM = Pencil("first", opacity=0.14, width=0)

COMPARED = tuple(
    Pencil(ink, dash)
    for ink, dash in (
        ("second", DASHED), ("third", BOTH), ("fourth", LONG), ("ink", FAR),
        ("second", BOTH), ("third", DOTTED), ("fourth", DASHED), ("ink", LONG),
    )
)  # fmt: skip
"""Those of several alike: no two look the same, and none is solid, which a certified limit is."""

SECOND_INK = {"first": "second", "second": "fourth", "ink": "third", "third": "muted"}
"""The ink of the same series in the second of two charts that are drawn as one."""


def second_pencil(pencil: Pencil) -> Pencil:
    """The pencil of the same series in the second of two charts that are drawn as one."""
    dash, ink = (DASHED if pencil.dash == SOLID else DOTTED), SECOND_INK.get(pencil.ink)
    return replace(pencil, ink=ink or pencil.ink, dash=dash, shape="diamond")


def pencils(name: str, count: int) -> tuple[Pencil, ...]:
    """One pencil a line; more lines than there are pencils could not be told apart."""
    if not 1 <= count <= len(COMPARED):
        remedy = f"put 1 to {len(COMPARED)} lines into a chart"
        raise validate.invalid_input(name, f"{count} lines", "few enough to tell apart", remedy)
    return COMPARED[:count]


def config(theme: Theme) -> dict[str, Any]:
    """Fonts and colours of everything but the series."""
    validate.one_of("theme", theme, THEMES)
    colours = COLOURS[theme]
    ink, muted = colours["ink"], colours["muted"]
    axis = {
        "labelColor": muted, "titleColor": ink, "gridColor": colours["grid"],
        "domainColor": muted, "tickColor": muted, "labelFontSize": WORD,
        "titleFontSize": WORD, "titleFontWeight": "normal", "titlePadding": 8, "titleLimit": 0,
        "labelPadding": 4, "tickSize": 4, "labelSeparation": 6, "labelOverlap": "greedy",
    }  # fmt: skip
    title = {
        "anchor": "start", "color": ink, "fontSize": 15, "fontWeight": 600, "offset": 14,
        "lineHeight": 20, "frame": "bounds", "subtitleColor": muted, "subtitleFontSize": SMALL,
        "subtitleLineHeight": 15, "subtitlePadding": 5,
    }  # fmt: skip
    legend = {
        "orient": "top", "labelColor": ink, "labelFontSize": WORD, "labelLimit": 0,
        "symbolStrokeWidth": 2.25, "columnPadding": 18, "offset": 10, "clipHeight": 16,
    }  # fmt: skip
    rim = {"color": colours["paper"], "stroke": colours["paper"], "strokeWidth": 4, "opacity": 0.85}
    return {
        "font": FONT,
        "view": {"stroke": None},
        "axis": axis,
        "axisXDiscrete": {"labelAngle": -40},
        "title": title,
        "legend": legend,
        "header": {"labelColor": ink, "labelFontSize": WORD, "labelAnchor": "start"},
        "mark": {"aria": False},
        "style": {
            "rim": {"fontSize": WORD, "strokeJoin": "round", **rim},
            "word": {"fontSize": WORD, "color": ink},
        },
    }
