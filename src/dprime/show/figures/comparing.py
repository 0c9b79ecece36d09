"""Several lines in one drawing: what tells them apart, their intervals, and a key that names them.

names ──► pencils: colour and dash, so that lines stay apart in grey
values ──► Strip: an axis with room above the numbers, where the key stands
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self, final

from dprime import validate
from dprime.show.figures import marks, words

if TYPE_CHECKING:
    import altair as alt

ROW = 0.068
"""The share of a drawing's height that a line of its key takes."""

AIR = 0.06
"""The share of their range that numbers keep from the ends of an axis."""

TICKS = 5
"""About so many ticks stand on an axis."""


@final
@dataclass(frozen=True)
class Pencil:
    """What draws one of several lines: a colour of the theme, and a dash."""

    ink: str
    dash: tuple[int, ...]

    def line(self, layer: str, **channels: Any) -> alt.Chart:
        """The rows of a layer as a line."""
        style, width = LINES[self.ink], 2.25
        dash = list(self.dash)
        return marks.layer(layer, "line", style, strokeDash=dash, strokeWidth=width, **channels)

    def room(self, layer: str, *, among: int, **channels: Any) -> alt.Chart:
        """The rows of a layer as the area of an interval, the lighter the more there are."""
        opacity = max(0.1, 0.3 - 0.04 * among)
        return marks.layer(layer, "area", LINES[self.ink], opacity=opacity, **channels)

    def rule(self, layer: str, **channels: Any) -> alt.Chart:
        """The rows of a layer as intervals, one a point."""
        solid = list(SOLID)
        return marks.layer(
            layer, "rule", LINES[self.ink], strokeDash=solid, strokeWidth=2.25, **channels
        )

    def dots(self, layer: str, *, size: int = 42, **channels: Any) -> alt.Chart:
        """The rows of a layer as points."""
        return marks.layer(
            layer, "point", LINES[self.ink], filled=True, size=size, opacity=1, **channels
        )


SOLID, DASHED, DOTTED, BOTH, FAR = (1, 0), (8, 4), (2, 2), (9, 3, 2, 3), (3, 6)

LINES = {"first": "without", "second": "with", "ink": "limit"}
"""The style that gives a line its colour."""

PENCILS = (
    Pencil("second", DASHED),
    Pencil("ink", BOTH),
    Pencil("first", FAR),
    Pencil("second", DOTTED),
    Pencil("ink", DASHED),
    Pencil("first", BOTH),
    Pencil("second", BOTH),
    Pencil("ink", DOTTED),
)
"""No two look alike, and none is solid, which a certified limit is."""

CHOSEN = Pencil("second", SOLID)
"""For what a figure is about, where nothing certified is drawn as a line."""


def pencils(name: str, count: int) -> tuple[Pencil, ...]:
    """One pencil a line; more lines than there are pencils could not be told apart."""
    if not 1 <= count <= len(PENCILS):
        remedy = f"put 1 to {len(PENCILS)} lines into a drawing"
        raise validate.invalid_input(name, f"{count} lines", "few enough to tell apart", remedy)
    return PENCILS[:count]


NO_SPREAD = 1e-9
"""Numbers that differ by no more than this are drawn as one."""


@final
@dataclass(frozen=True)
class Strip:
    """An upright axis for numbers, with room above them for the lines of a key.

    >>> strip = Strip.of([0.2, 0.8], rows=2)
    >>> strip.ticks
    (0.2, 0.4, 0.6, 0.8)
    >>> [0.8 < height < strip.top for height in strip.heights]
    [True, True]
    """

    bottom: float
    top: float
    ticks: tuple[float, ...]
    heights: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float], rows: int) -> Self:
        """The axis for these numbers and a key of so many lines."""
        least, most = min(values), max(values)
        air = AIR * (most - least) if most - least > NO_SPREAD else 0.01
        ticks = round_numbers(least - air, most + air)
        bottom = min(least - air, ticks[0])  # a tick may stand beyond by rounding
        whole = (most + air - bottom) / (1.0 - ROW * rows)
        heights = tuple(bottom + whole * (1.0 - ROW * (row + 0.5)) for row in range(rows))
        return cls(bottom, bottom + whole, ticks, heights)


def axis(field: str, title: str, ticks: Sequence[float], **options: Any) -> dict[str, Any]:
    """One axis as `marks.axis` gives it, with every one of these ticks.

    Vega drops half of the ticks that it is given where there are more than `tickCount`.
    """
    made = marks.axis(field, title, ticks=ticks, **options)
    made["axis"]["tickCount"] = len(ticks)
    return made


def round_numbers(low: float, high: float) -> tuple[float, ...]:
    """Round numbers from `low` to `high`, evenly spaced, for the ticks of an axis.

    >>> round_numbers(0.0, 1.0), round_numbers(-0.013, 0.071)
    ((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), (0.0, 0.02, 0.04, 0.06))
    """
    rough = (high - low) / TICKS
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(float(f"{place * step:.10g}") for place in range(first, last + 1))


def apart(heights: Sequence[float], gap: float, bottom: float) -> list[float]:
    """Heights for words: not above those wished unless the bottom is near, `gap` from each other.

    >>> [round(height, 9) for height in apart([0.5, 0.1, 0.5], gap=0.2, bottom=0.0)]
    [0.3, 0.1, 0.5]
    >>> [round(height, 9) for height in apart([0.1, 0.1], gap=0.2, bottom=0.0)]
    [0.0, 0.2]
    """
    order = sorted(range(len(heights)), key=lambda place: heights[place])
    found = list(heights)
    for above, below in pairwise(reversed(order)):
        found[below] = min(found[below], found[above] - gap)
    found[order[0]] = max(found[order[0]], bottom)
    for below, above in pairwise(order):
        found[above] = max(found[above], found[below] + gap)
    return found


def check_interval(name: str, low: float, value: float, high: float) -> None:
    """Refuse ends that are not finite, or that do not enclose the value."""
    for part, number in (("low", low), ("high", high)):
        validate.number(part, number)
    if not low <= value <= high:
        shown = f"{low}, {value}, {high}"
        remedy = "give the value between the ends of its interval"
        raise validate.invalid_input(f"low, {name}, high", shown, "ascending", remedy)


def share_range(low: float, high: float) -> str:
    """An interval of a share, never printed narrower than it is.

    >>> share_range(0.12344, 0.2)
    '12.3 % to 20 %'
    """
    return f"{words.percent_down(low)} to {words.percent_up(high)}"


def by_luck(count: int, confidence: float) -> int:
    """How many of so many intervals lie wholly above the truth by luck, rounded up.

    >>> by_luck(25, 0.95)
    1
    """
    return math.ceil(count * (1.0 - confidence) / 2.0 - 1e-9)


def listed(parts: Sequence[str], last: str = "and") -> str:
    """Words as a list in a sentence.

    >>> listed(["10 %"]), listed(["10 %", "30 %", "50 %"])
    ('10 %', '10 %, 30 % and 50 %')
    """
    return f" {last} ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def sentence(name: str) -> str:
    """A name at the beginning of a sentence.

    >>> sentence("attack R"), sentence("ε = 3")
    ('Attack R', 'ε = 3')
    """
    return name[:1].upper() + name[1:] if name[:1].isascii() else name
