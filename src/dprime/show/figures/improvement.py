"""How much better than the baseline an attack is over π, beside what shuffled scores give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from dprime import validate
from dprime.show.figures import comparing, marks, words
from dprime.show.figures.figure import OUTLINE, Figure, Row

if TYPE_CHECKING:
    import altair as alt

ASIDE = 3
"""Pixels by which two intervals at the same π keep aside."""

SAMPLE = (0.03, 0.08)
"""From here to here across the drawing a line is shown in the key, words on its right."""

WORDS = 0.085
"""There the words begin."""

LAYERS = ("attack", "shuffled", "baseline")


@final
@dataclass(frozen=True)
class ImprovementPoint:
    """Precision minus π at one π: the mean over targets and trainings, with its interval.

    Attributes:
        prior: π, the share of the pool that was trained on.
        improvement: of the attack over the baseline.
        low: lower end of its interval.
        high: upper end.
        shuffled: what the same procedure gives for shuffled scores, which say nothing.
        shuffled_low: lower end of its interval.
        shuffled_high: upper end.
    """

    prior: float
    improvement: float
    low: float
    high: float
    shuffled: float
    shuffled_low: float
    shuffled_high: float

    def __post_init__(self) -> None:
        validate.inner_probability("prior", self.prior)
        validate.number("improvement", self.improvement, example=0.05)
        validate.number("shuffled", self.shuffled, example=0.05)
        comparing.check_interval("improvement", self.low, self.improvement, self.high)
        comparing.check_interval("shuffled", self.shuffled_low, self.shuffled, self.shuffled_high)

    @property
    def told_apart(self) -> bool:
        """Whether the attack's interval lies wholly above that of shuffled scores."""
        return self.low > self.shuffled_high


@final
@dataclass(frozen=True)
class ImprovementFigure(Figure):
    """The mean improvement over the baseline against π, for an attack and for shuffled scores.

    The best of many thresholds on the scored records has a precision above π even where scores say
    nothing; only what lies above that is the attack's own.

    Attributes:
        points: one for each π.
        attack: its name.
        data: what was trained on.
        thresholds: from how many the best one was chosen; None where it was not chosen so.
        confidence: of the intervals.

    >>> point = ImprovementPoint(0.5, 0.06, 0.05, 0.07, 0.055, 0.045, 0.065)
    >>> ImprovementFigure((point,), "LiRA", "digits").title
    'LiRA on digits is at no π told apart from shuffled scores; at π = 50 % it gains 6 points ...'
    """

    points: tuple[ImprovementPoint, ...]
    attack: str
    data: str
    thresholds: int | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not self.points:
            remedy = "give an ImprovementPoint"
            raise validate.invalid_input("points", "empty", "one point or more", remedy)
        if self.thresholds is not None:
            validate.whole("thresholds", self.thresholds, example=40)
        validate.inner_probability("confidence", self.confidence, example=0.95)

    @property
    def name(self) -> str:
        """Of files and addresses."""
        return "improvement"

    @property
    def _ordered(self) -> list[ImprovementPoint]:
        return sorted(self.points, key=lambda point: point.prior)

    @property
    def title(self) -> str:
        """Where the attack gains more than shuffled scores, and both gains at its best."""
        subject = f"{comparing.sentence(self.attack)} on {self.data}"
        clear = [point for point in self._ordered if point.told_apart]
        best = max(clear or self._ordered, key=lambda point: point.improvement)
        both = (
            f"at π = {words.percent(best.prior)} it gains {_points(best.improvement)} over the "
            f"baseline, they {_number(best.shuffled)}"
        )
        if not clear:
            return f"{subject} is at no π told apart from shuffled scores; {both}."
        if len(clear) == len(self.points) > 1:
            where = "at every π"
        else:
            where = f"at π = {comparing.listed([words.percent(point.prior) for point in clear])}"
        return f"{subject} gains more than shuffled scores {where}; {both}."

    @property
    def text(self) -> str:
        """The axes and every π."""
        told = "; ".join(
            f"π = {words.percent(p.prior)}: {_number(p.improvement)} ({_range(p.low, p.high)}), "
            f"shuffled {_number(p.shuffled)} ({_range(p.shuffled_low, p.shuffled_high)})"
            for p in self._ordered
        )
        chosen = (
            ""
            if self.thresholds is None
            else f" Each number is for the best of {words.counted(self.thresholds, 'threshold')}."
        )
        return (
            "Two lines. Across: π, the share of the pool that was trained on. Up: the precision of "
            f'{self.attack} on {self.data} less that of always saying "member", in percentage '
            f"points, a mean with its {words.percent(self.confidence)} interval, and the same for "
            f"shuffled scores, which gain only by the choice of a threshold.{chosen} {told}."
        )

    def rows(self) -> list[Row]:
        """Both lines with their intervals, the baseline, and a key."""
        rows = []
        for p in self._ordered:
            rows.append(_row("attack", p.prior, p.improvement, p.low, p.high))
            shuffled = (p.shuffled, p.shuffled_low, p.shuffled_high)
            rows.append(_row("shuffled", p.prior, *shuffled))
        rows += [_row("baseline", end, 0.0) for end in (0.0, 1.0)]
        for layer, told, ink, height in zip(
            LAYERS,
            (self.attack, "shuffled scores", "baseline"),
            ("second", "ink", "muted"),
            self._strip.heights,
            strict=True,
        ):
            rows += [_row(f"{OUTLINE} {layer}", x, height) for x in SAMPLE]
            rows.append(_row(marks.label("right", ink), WORDS, height, label=told))
        return rows

    @property
    def _strip(self) -> comparing.Strip:
        ends = [end for p in self.points for end in (p.low, p.high)]
        shuffled = [end for p in self.points for end in (p.shuffled_low, p.shuffled_high)]
        return comparing.Strip.of([*ends, *shuffled, 0.0], rows=len(LAYERS))

    def draw(self, data: alt.NamedData) -> alt.LayerChart:
        """The baseline, intervals, both lines, and the key."""
        across = "π (% of the pool trained on)"
        x = marks.axis("prior", across, share=True, domain=(0.0, 1.0))
        up = "precision above the baseline (points)"
        strip = self._strip
        domain = (strip.bottom, strip.top)
        y = comparing.axis("improvement", up, strip.ticks, domain=domain)
        y["axis"]["labelExpr"] = "format(datum.value * 100, '~g')"
        ends = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
        hollow = {"filled": False, "size": 60, "strokeWidth": 1.5}
        attack, shuffled = comparing.CHOSEN, comparing.PENCILS[7]
        left, right = {"xOffset": -ASIDE}, {"xOffset": ASIDE}
        layers = [
            *(
                marks.layer(layer, "line", "blind", x=x, y=y)
                for layer in ("baseline", f"{OUTLINE} baseline")
            ),
            shuffled.rule("shuffled", x=x, **ends, **right),
            attack.rule("attack", x=x, **ends, **left),
        ]
        for start, one, other in (("", left, right), (f"{OUTLINE} ", {}, {})):
            layers += [
                shuffled.line(f"{start}shuffled", x=x, y=y, **other),
                attack.line(f"{start}attack", x=x, y=y, **one),
                marks.layer(f"{start}shuffled", "point", "estimate", x=x, y=y, **hollow, **other),
                attack.dots(f"{start}attack", x=x, y=y, **one),
            ]
        return marks.stacked(data, [*layers, *marks.words(x, y, "second", "ink", "muted")])


def _number(difference: float) -> str:
    """A difference of shares in percentage points, with two digits.

    >>> _number(0.0512), _number(-0.004), _number(0.0)
    ('5.1', '-0.4', '0')
    """
    return words.near(100 * difference + 0.0, 2)  # without the sign of -0


def _points(difference: float) -> str:
    return f"{_number(difference)} point{'' if _number(difference) == '1' else 's'}"


def _range(low: float, high: float) -> str:
    """An interval in percentage points, never printed narrower than it is.

    >>> _range(-0.00123, 0.05678)
    '-0.13 to 5.7'
    """
    least = words.down(100 * low, 2) if low >= 0 else f"-{words.up(-100 * low, 2)}"
    return f"{least} to {words.up(100 * high + 0.0, 2)}"


def _row(
    layer: str,
    prior: float,
    improvement: float,
    low: float | None = None,
    high: float | None = None,
    label: str | None = None,
) -> Row:
    return {
        "layer": layer, "prior": prior, "improvement": improvement, "low": low, "high": high,
        "label": label,
    }  # fmt: skip
