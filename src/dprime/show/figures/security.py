"""Bayes security of a watched training, over its epochs or against its accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

from dprime import validate
from dprime.curve import Kind
from dprime.show.figures import comparing, marks, words
from dprime.show.figures.figure import OUTLINE, Figure, Row

if TYPE_CHECKING:
    import altair as alt

Across = Literal["epochs", "accuracy"]

SAMPLE = (0.02, 0.1)
"""From here to here across the drawing a line is shown in the key, words on its right."""

CERTIFIED = 3
"""Solid lines that can be told apart."""


@final
@dataclass(frozen=True)
class SecurityLine:
    """How secure a training was against one threat.

    Attributes:
        name: the threat and how it was read, such as "age, full analysis".
        kind: "certified" or "estimate".
        points: (epochs or accuracy, Bayes security).
    """

    name: str
    kind: Kind
    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if not self.points:
            raise validate.invalid_input(
                "points", "empty", "one pair or more", "give (x, security)"
            )
        for x, security in self.points:
            validate.at_least_zero("x", x)
            validate.probability("security", security, example=0.9)

    @property
    def last(self) -> float:
        """The security at the end, where the most was spent."""
        return self.points[-1][1]

    def told(self, security: float) -> str:
        """A number of this line: what is certified is not rounded up."""
        if self.kind == "certified":
            return f"at least {words.down(security)}"
        return f"about {words.near(security)}"


@final
@dataclass(frozen=True)
class SecurityFigure(Figure):
    """Bayes security, one line for each threat: 1 is perfect, 0 is none.

    Attributes:
        lines: those that are compared, in the order of the key.
        data: what was trained on.
        across: what stands on the axis: epochs, or accuracy on held-out records.

    >>> member = SecurityLine("membership", "certified", ((10, 0.92), (20, 0.89)))
    >>> age = SecurityLine("age", "estimate", ((10, 0.97), (20, 0.945)))
    >>> SecurityFigure((member, age), "Adult").title  # doctest: +NORMALIZE_WHITESPACE
    'After 20 epochs on Adult, Bayes security is at least 0.89 for membership and about 0.945 for
    age.'
    """

    lines: tuple[SecurityLine, ...]
    data: str
    across: Across = "epochs"

    def __post_init__(self) -> None:
        comparing.pencils("lines", len(self.lines))
        certified = sum(line.kind == "certified" for line in self.lines)
        if certified > CERTIFIED:
            remedy = "draw the others in a figure of their own"
            raise validate.invalid_input(
                "lines", f"{certified} certified", f"{CERTIFIED} at most", remedy
            )
        validate.one_of("across", self.across, ("epochs", "accuracy"))

    @property
    def name(self) -> str:
        """Of files and addresses."""
        return "security"

    @property
    def title(self) -> str:
        """Every line at its end."""
        told = comparing.listed([f"{line.told(line.last)} for {line.name}" for line in self.lines])
        last = self._at(self.lines[0].points[-1][0])
        where = f"After {last}" if self.across == "epochs" else f"At {last} accuracy"
        return f"{where} on {self.data}, Bayes security is {told}."

    @property
    def text(self) -> str:
        """The axes and every point."""
        listed = " ".join(
            f"{comparing.sentence(line.name)} ({line.kind}): "
            + "; ".join(f"{self._at(x)}: {line.told(y)}" for x, y in line.points)
            + "."
            for line in self.lines
        )
        where = "epochs" if self.across == "epochs" else "accuracy on held-out records"
        return (
            f"Line chart. Across: {where}. Up: Bayes security, from 0 (no protection) to 1 "
            "(perfect); the axis does not begin at 0. Solid lines are certified, dashed ones are "
            f"estimates, which guarantee nothing. {listed}"
        )

    def _at(self, x: float) -> str:
        if self.across == "accuracy":
            return words.percent(x)
        return f"{words.near(x, 4)} epochs"

    def rows(self) -> list[Row]:
        """Every point, and a key."""
        rows = [
            _row(f"line {place}", x, y, line)
            for place, line in enumerate(self.lines, start=1)
            for x, y in line.points
        ]
        return rows + self._key()

    def _key(self) -> list[Row]:
        """Above the lines: a piece of each with its name."""
        low, high = self._domain
        left, right = (low + (high - low) * share for share in SAMPLE)
        rows = []
        for place, (line, pencil, height) in enumerate(
            zip(self.lines, self._pencils, self._strip.heights, strict=True), start=1
        ):
            rows += [_row(f"{OUTLINE} line {place}", x, height) for x in (left, right)]
            told = f"{line.name} ({line.kind})"
            rows.append(_row(marks.label("right", pencil.ink), right, height, label=told))
        return rows

    @property
    def _pencils(self) -> list[comparing.Pencil]:
        """Solid for what is certified, dashed for the others."""
        solid = (comparing.Pencil(ink, comparing.SOLID) for ink in ("first", "ink", "second"))
        dashed = iter(comparing.PENCILS)
        return [next(solid if line.kind == "certified" else dashed) for line in self.lines]

    @property
    def _strip(self) -> comparing.Strip:
        values = [y for line in self.lines for _, y in line.points]
        return comparing.Strip.of(values, len(self.lines))

    @property
    def _domain(self) -> tuple[float, float]:
        values = [x for line in self.lines for x, _ in line.points]
        if self.across == "epochs":
            return 0.0, max(values) * 1.02
        air = comparing.AIR * (max(values) - min(values)) or 0.01
        return min(values) - air, max(values) + air

    def draw(self, data: alt.NamedData) -> alt.LayerChart:
        """Lines with their points, and words."""
        accuracy, strip = self.across == "accuracy", self._strip
        ticks = comparing.round_numbers(*self._domain)
        title = "accuracy on held-out records" if accuracy else "epochs"
        plain: dict[str, Any] = {"zero": False}
        x = comparing.axis("x", title, ticks, share=accuracy, domain=self._domain, **plain)
        ends = (strip.bottom, strip.top)
        shares = [tick for tick in strip.ticks if tick <= 1.0]
        y = comparing.axis("bayes_security", "Bayes security", shares, domain=ends, **plain)
        layers = []
        for place, pencil in enumerate(self._pencils, start=1):
            line = f"line {place}"
            layers += [
                pencil.line(line, x=x, y=y),
                pencil.dots(line, x=x, y=y, size=20),
                pencil.line(f"{OUTLINE} {line}", x=x, y=y),
            ]
        return marks.stacked(data, [*layers, *marks.words(x, y, "first", "second", "ink")])


def _row(
    layer: str, x: float, security: float, line: SecurityLine | None = None, label: str = ""
) -> Row:
    return {
        "layer": layer, "threat": line.name if line else None, "kind": line.kind if line else None,
        "x": x, "bayes_security": security, "label": label or None,
    }  # fmt: skip
