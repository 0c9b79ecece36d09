"""How precise an attack is over π, the share of the pool that is trained on: a panel for each ε."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from dprime import validate
from dprime.show.figures import comparing, marks, words
from dprime.show.figures.figure import OUTLINE, Figure, Row

if TYPE_CHECKING:
    import altair as alt

COLUMNS = 3
"""So many panels stand side by side at most."""

MARGIN = 0.11
"""The share of its width that a panel keeps free on both sides."""

STEP = 1.3
"""From one row of panels to the next, in heights of a panel."""

KEY_ROWS, KEY_ROW = 2, 0.2
"""Lines of the key above the panels, and what each takes, in heights of a panel."""

PANEL, FRAME = 130, 120
"""Pixels for the height of a panel, and for title and axes."""

ALONE = 1.5
"""A single row of panels is so much higher."""

SHARES = (0.0, 0.5, 1.0)
"""Where ticks stand in a panel."""


@final
@dataclass(frozen=True)
class PrecisionPoint:
    """How often "member" was right at one π: the mean over several targets, with its interval.

    Attributes:
        prior: π, the share of the pool that was trained on.
        precision: the share of right ones among "member" answers.
        low: lower end of the mean's interval.
        high: upper end.
        certified: what the claim allows at most, in expectation; None where nothing is certified.
        shuffled: the precision that the same procedure gives for shuffled scores; None: not known.
    """

    prior: float
    precision: float
    low: float
    high: float
    certified: float | None = None
    shuffled: float | None = None

    def __post_init__(self) -> None:
        validate.inner_probability("prior", self.prior)
        validate.probability("precision", self.precision, example=0.6)
        comparing.check_interval("precision", self.low, self.precision, self.high)
        for name in ("certified", "shuffled"):
            if getattr(self, name) is not None:
                validate.probability(name, getattr(self, name), example=0.6)


@final
@dataclass(frozen=True)
class PrecisionLine:
    """All π of one training, such as that with ε = 3 or the one without privacy."""

    label: str
    points: tuple[PrecisionPoint, ...]

    def __post_init__(self) -> None:
        if not self.points:
            raise validate.invalid_input(
                "points", "empty", "one point or more", "give a PrecisionPoint"
            )


@final
@dataclass(frozen=True)
class PrecisionOverPriorFigure(Figure):
    """An attack's precision against π beside the baseline, one panel for each training.

    The baseline says "member" of everybody, and is right with probability π.

    Attributes:
        lines: one for each training.
        attack: its name.
        data: what was trained on.
        baseline: whether the baseline is drawn.
        confidence: of the intervals.

    >>> line = PrecisionLine("ε = 3", (PrecisionPoint(0.5, 0.6, 0.55, 0.65),))
    >>> PrecisionOverPriorFigure((line,), attack="LiRA", data="digits").title
    "LiRA's precision on digits is above the baseline at 1 of 1 settings, as luck alone may give."
    """

    lines: tuple[PrecisionLine, ...]
    attack: str
    data: str
    baseline: bool = True
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not self.lines:
            raise validate.invalid_input(
                "lines", "empty", "one line or more", "give a PrecisionLine"
            )
        validate.inner_probability("confidence", self.confidence, example=0.95)

    @property
    def name(self) -> str:
        """Of files and addresses."""
        return "precision-over-prior"

    @property
    def _points(self) -> list[PrecisionPoint]:
        return [point for line in self.lines for point in line.points]

    @property
    def _above(self) -> int:
        """Settings whose interval lies wholly above the baseline."""
        return sum(point.low > point.prior for point in self._points)

    @property
    def _certified(self) -> list[tuple[PrecisionPoint, float]]:
        """Settings with a certified precision."""
        return [(p, p.certified) for p in self._points if p.certified is not None]

    @property
    def _beyond(self) -> int:
        """Settings whose interval lies wholly above what is certified."""
        return sum(point.low > most for point, most in self._certified)

    @property
    def _shuffled(self) -> list[PrecisionPoint]:
        """Settings with a number for shuffled scores."""
        return [point for point in self._points if point.shuffled is not None]

    @property
    def _above_both(self) -> int:
        """Settings whose interval lies above the baseline and what shuffled scores give."""
        return sum(p.low > max(p.prior, p.shuffled or 0.0) for p in self._shuffled)

    @property
    def title(self) -> str:
        """At how many settings the attack is better than the baseline, and than shuffled scores."""
        count, luck = len(self._points), comparing.by_luck(len(self._points), self.confidence)
        told = f"{comparing.sentence(self.attack)}'s precision on {self.data} is above "
        certified = len(self._certified)
        if self._beyond > comparing.by_luck(certified, self.confidence):
            return f"{told}the certified one at {self._beyond} of {certified} settings."
        if not self._above:
            return f"{told}the baseline at none of {count} settings."
        told += f"the baseline at {self._above} of {count} settings"
        if self._above <= luck:
            return f"{told}, as luck alone may give."
        if self._shuffled:
            told += f", above that of shuffled scores at {self._above_both or 'none'}"
            if len(self._shuffled) < count:
                told += f" of {len(self._shuffled)}"
        return f"{told}."

    @property
    def text(self) -> str:
        """The axes, every setting, and how to read an interval."""
        count, sure = len(self._points), words.percent(self.confidence)
        parts = [
            f"Panels, one for each training on {self.data}. "
            "Across: π, the share of the pool that was trained on. Up: precision, the share of "
            f'right ones among the "member" answers of {self.attack}, a mean with its {sure} '
            'interval. The baseline says "member" of everybody, and its precision is π.',
            *(
                f"{comparing.sentence(line.label)}. {'; '.join(_told(p) for p in line.points)}."
                for line in self.lines
            ),
            f"At {self._above} of {count} settings the interval lies wholly above the baseline; "
            f"each interval stands for itself, and luck alone would put about "
            f"{comparing.by_luck(count, self.confidence)} there.",
        ]
        if self._shuffled:
            parts.append(
                f"At {self._above_both} of {len(self._shuffled)} it lies above what the same "
                "procedure gives for shuffled scores, too."
            )
        if self._certified:
            parts.append(
                f"At {self._beyond} of {len(self._certified)} it lies wholly above the certified "
                "precision, which bounds expected rates, not the best of many thresholds on the "
                "scored records."
            )
        return " ".join(parts)

    @property
    def _columns(self) -> int:
        """Panels in a row; four stand two by two."""
        count = len(self.lines)
        return 2 if count == 4 else min(count, COLUMNS)

    @property
    def _rows(self) -> int:
        return math.ceil(len(self.lines) / self._columns)

    def rows(self) -> list[Row]:
        """Every setting in its panel, what is certified, shuffled scores, the baseline, and words.

        Panels are numbered from 0, from left to right and from the top down.
        """
        rows = []
        for panel, line in enumerate(self.lines):
            for point in sorted(line.points, key=lambda point: point.prior):
                place = (panel, line.label, point.prior)
                low, high = max(point.low, 0.0), min(point.high, 1.0)
                rows.append(_row("attack", *place, point.precision, low, high))
                if point.certified is not None:
                    rows.append(_row("certified", *place, point.certified))
                if point.shuffled is not None:
                    rows.append(_row("shuffled", *place, point.shuffled))
            if self.baseline:
                rows += [_row("baseline", panel, line.label, end, end) for end in (0.0, 1.0)]
            name = marks.label("above-right")
            rows.append(_row(name, panel, line.label, -0.05, 1.05, label=line.label))
        return rows + self._key()

    def _key(self) -> list[Row]:
        """Above the first panel: each kind of mark with its name, in two columns."""
        named = [("attack", self.attack, "second")]
        if self._certified:
            named.append(("certified", "certified limit", "first"))
        if self._shuffled:
            named.append(("shuffled", "shuffled scores", "ink"))
        if self.baseline:
            named.append(("baseline", "baseline", "muted"))
        rows = []
        wide = self._columns / (1 - 2 * MARGIN)  # of the whole drawing, in widths of a panel's axis
        for place, (layer, told, ink) in enumerate(named):
            across = wide * 0.5 * (place // KEY_ROWS)
            up = STEP + KEY_ROW * (KEY_ROWS - 0.4 - place % KEY_ROWS)
            ends = [across - 0.02 * wide, across + 0.02 * wide]
            for x in ends if layer in ("baseline", "attack") else [across]:
                rows.append(_row(f"{OUTLINE} {layer}", 0, None, x, up))
            if layer == "attack":
                dot = (f"{OUTLINE} attack dot", 0, None, across, up, up - 0.06, up + 0.06)
                rows.append(_row(*dot))
            rows.append(_row(marks.label("right", ink), 0, None, ends[1], up, label=told))
        return rows

    def draw(self, data: alt.NamedData) -> alt.LayerChart:
        """All panels on one pair of axes, each at its place."""
        x, y = self._axis_across(), self._axis_up()
        ends = {"y": {**y, "field": "bottom"}, "y2": {"field": "top"}}
        panel = {"field": "panel", "type": "nominal"}
        pencil = comparing.CHOSEN
        layers = []
        for layer in ("baseline", f"{OUTLINE} baseline"):
            layers.append(marks.layer(layer, "line", "blind", x=x, y=y, detail=panel))
        for layer in ("certified", f"{OUTLINE} certified"):
            bar = {"shape": "stroke", "size": 220, "filled": False, "opacity": 1}
            layers.append(marks.layer(layer, "point", "interval", x=x, y=y, **bar))
        for line, dot in (("attack", "attack"), (f"{OUTLINE} attack", f"{OUTLINE} attack dot")):
            layers.append(marks.layer(line, "line", "with-edge", x=x, y=y, detail=panel))
            layers.append(pencil.rule(dot, x=x, **ends))
            layers.append(pencil.dots(dot, size=26, x=x, y=y))
        for layer in ("shuffled", f"{OUTLINE} shuffled"):
            layers.append(marks.layer(layer, "point", "estimate", x=x, y=y, strokeWidth=1.5))
        names = marks.words(x, y, "first", "second", "muted", "ink")
        drawn = marks.stacked(data, [*layers, *names])
        drawn.transform = [{"calculate": to, "as": name} for name, to in self._places().items()]
        higher = ALONE if self._rows == 1 else 1.0
        drawn.height = round(higher * PANEL * self._height) + FRAME
        return drawn

    @property
    def _height(self) -> float:
        """Of all panels and the key, in heights of a panel."""
        return STEP * self._rows + KEY_ROW * KEY_ROWS

    def _places(self) -> dict[str, str]:
        """Where a row's numbers stand in the whole drawing: in the unit square of its panel."""
        row = f"floor(datum.panel / {self._columns})"
        column = f"(datum.panel - {self._columns} * {row})"
        down = f"{STEP} * ({self._rows - 1} - {row})"
        across = f"{column} + {MARGIN} + {1 - 2 * MARGIN} * datum.prior"
        heights = {"up": "precision", "bottom": "low", "top": "high"}
        return {"across": across} | {
            name: f"{down} + datum.{field}" for name, field in heights.items()
        }

    def _axis_across(self) -> dict[str, object]:
        """π in every column of panels."""
        ticks = [
            column + MARGIN + (1 - 2 * MARGIN) * share
            for column in range(self._columns)
            for share in SHARES
        ]
        title = "π (% of the pool trained on)"
        made = comparing.axis("across", title, ticks, domain=(0.0, float(self._columns)))
        share = f"(datum.value - floor(datum.value) - {MARGIN}) / {1 - 2 * MARGIN}"
        made["axis"]["labelExpr"] = _percent(share)
        return made

    def _axis_up(self) -> dict[str, object]:
        """Precision in every row of panels."""
        title = f"precision (%), with {words.percent(self.confidence)} intervals"
        ticks = [STEP * row + share for row in range(self._rows) for share in SHARES]
        made = comparing.axis("up", title, ticks, domain=(-0.05, self._height))
        row = f"floor((datum.value + 0.01) / {STEP})"
        made["axis"]["labelExpr"] = _percent(f"(datum.value - {STEP} * {row})")
        return made


def _percent(share: str) -> str:
    """An expression for a tick's words; without a unit, for want of room."""
    return f"format(round(100 * ({share})), 'd')"


def _told(point: PrecisionPoint) -> str:
    """One setting in words."""
    told = (
        f"π = {words.percent(point.prior)}: {words.percent(point.precision)} "
        f"({comparing.share_range(point.low, point.high)})"
    )
    if point.certified is not None:
        told += f", at most {words.percent_up(point.certified)}"
    if point.shuffled is not None:
        told += f", shuffled {words.percent(point.shuffled)}"
    return told


def _row(
    layer: str,
    panel: int,
    line: str | None,
    prior: float,
    precision: float,
    low: float | None = None,
    high: float | None = None,
    label: str | None = None,
) -> Row:
    return {
        "layer": layer, "panel": panel, "line": line, "prior": prior, "precision": precision,
        "low": low, "high": high, "label": label,
    }  # fmt: skip
