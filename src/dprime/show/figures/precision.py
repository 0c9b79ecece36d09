"""The largest precision over prior and ε, drawn as a map with lines of equal precision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Self, final

import numpy as np
import scipy

from dprime import validate
from dprime.show.figures import marks, words
from dprime.show.figures.figure import Figure, Row

if TYPE_CHECKING:
    import altair as alt

LARGEST_EPSILON = 10.0
"""Where the ε axis ends; a larger ε is marked at its edge."""

EPSILONS = tuple(float(x) for x in np.linspace(0.0, LARGEST_EPSILON, 41))
LOWEST_PRIOR, HIGHEST_PRIOR = 0.001, 0.9
"""Where the prior's axis begins and ends."""

HALF = 0.5
"""Above this prior words stand below their point."""

LEAST = 1e-9
"""Where no prior keeps a precision, a line ends here, far below the axis."""

MEANINGLESS = 500.0
"""A larger ε guarantees nothing, and its exponential leaves the number range."""

NAMED_AT = (0.03, 0.006)
"""Priors at which the lines have their names, in turn, so that the names keep apart."""

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
"""Precisions at which a line is drawn."""

Line = tuple[float, ...]


@final
@dataclass(frozen=True)
class PrecisionFigure(Figure):
    """What (ε, δ) alone says of the largest precision, for every prior and ε.

    Attributes:
        delta: of the guarantee.
        min_tpr: attackers who find at least this share of the members are covered.
        prior: the setting's own, the share of members among the candidates.
        epsilon: the setting's own; infinite where none is certified, None where none is named.
        lines: for each of `LEVELS` and each ε of `EPSILONS`, the largest prior that keeps every
            attacker's precision at or below that level.
        precision: the largest one at the setting's own prior and ε.

    >>> PrecisionFigure.of(epsilon=2.0).title
    'ε = 2 and δ = 0.00001 alone allow, where 10 % of candidates are members, that 45.2 % of ...'
    """

    delta: float
    min_tpr: float
    prior: float
    epsilon: float | None
    lines: tuple[Line, ...]
    precision: float | None

    @classmethod
    def of(
        cls,
        *,
        delta: float = 1e-5,
        min_tpr: float = 0.01,
        prior: float = 0.1,
        epsilon: float | None = None,
    ) -> Self:
        """The map for a δ, with the setting's own prior and ε marked."""
        delta = validate.inner_probability("delta", delta, example="1e-5")
        min_tpr = validate.rate("min_tpr", min_tpr)
        prior = validate.inner_probability("prior", prior, example=0.1)
        found = None if epsilon is None else largest_precision(epsilon, delta, prior, min_tpr)
        return cls(delta, min_tpr, prior, epsilon, _lines(delta, min_tpr), found)

    @property
    def name(self) -> str:
        """Of files and addresses."""
        return "precision"

    @property
    def title(self) -> str:
        """The precision at the setting's own prior and ε."""
        where = f"where {words.percent(self.prior)} of candidates are members"
        if self.epsilon is None or self.precision is None:
            half = None
            for epsilon, prior in zip(EPSILONS, self.lines[LEVELS.index(0.5)], strict=True):
                half = epsilon if prior >= self.prior else half
            if half is None:
                return (
                    f"At δ = {words.near(self.delta)}, {where}, more than half of all "
                    '"member" answers may be right at any ε.'
                )
            return (
                f"At δ = {words.near(self.delta)}, {where}, at most half of all "
                f'"member" answers are right up to ε = {words.down(half)}.'
            )
        if math.isinf(self.epsilon):
            return (
                f"No finite ε is certified at δ = {words.near(self.delta)}: no limit to precision."
            )
        return (
            f"ε = {words.up(self.epsilon)} and δ = {words.near(self.delta)} alone allow, {where}, "
            f'that {words.percent_up(self.precision)} of "member" answers are right.'
        )

    @property
    def text(self) -> str:
        """The axes, and some values of the map."""
        return (
            "Map. Across: ε from 0 to 10. Up: prior, the share of members among the candidates, "
            f"from 0.1 % to 90 %, logarithmic. Darker: a larger precision, the share of right ones "
            f'among "member" answers, at δ = {words.near(self.delta)}, of attackers who find at '
            f"least {words.percent(self.min_tpr)} of the members. {self._readings()} "
            "It is what ε and δ alone allow; the curve of a training is never worse."
        )

    def _readings(self) -> str:
        own = [] if self.epsilon is None or math.isinf(self.epsilon) else [self.epsilon]
        readings = []
        for epsilon in sorted({1.0, 4.0, 8.0, *own}):
            most = largest_precision(epsilon, self.delta, self.prior, self.min_tpr)
            readings.append(f"ε = {words.up(epsilon)}: at most {words.percent_up(most)}")
        return f"At a prior of {words.percent(self.prior)}: {'; '.join(readings)}."

    def rows(self) -> list[Row]:
        """Lines of equal precision, the bands above them, the setting's own point, and words."""
        rows: list[Row] = []
        for place, level in enumerate(LEVELS):
            above = self.lines[place + 1] if place + 1 < len(LEVELS) else None
            for index, epsilon in enumerate(EPSILONS):
                low = max(self.lines[place][index], LEAST)
                high = 1.0 if above is None else max(above[index], LEAST)
                rows.append(self._row("band", epsilon, low, level, high))
        return rows + self._labels() + self._own()

    def _labels(self) -> list[Row]:
        """Each level's name where its line crosses the middle of the map."""
        rows = []
        for place, (level, line) in enumerate(zip(LEVELS, self.lines, strict=True)):
            prior = NAMED_AT[place % 2]
            if line[0] > prior > line[-1]:
                epsilon = float(np.interp(-prior, -np.array(line), EPSILONS))
                told = words.percent(level)
                rows.append(self._row(marks.label("middle"), epsilon, prior, level, label=told))
        return rows

    def _own(self) -> list[Row]:
        if self.epsilon is None or self.precision is None:
            return []
        place = min(self.epsilon, LARGEST_EPSILON), _within(self.prior)
        side = "below" if self.prior > HALF else "above"
        side += "-left" if place[0] > LARGEST_EPSILON / 2 else "-right"
        label = f"this setting: {words.percent_up(self.precision)}"
        if self.epsilon > LARGEST_EPSILON:
            label += f" (ε = {words.up(self.epsilon)})"
        return [
            self._row("own", *place, self.precision),
            self._row(marks.label(side), *place, self.precision, label=label),
        ]

    @staticmethod
    def _row(
        layer: str,
        epsilon: float,
        prior: float,
        precision: float | None,
        most: float | None = None,
        label: str | None = None,
    ) -> Row:
        return {
            "layer": layer, "epsilon": epsilon, "prior": prior, "precision": precision,
            "to_prior": most, "label": label,
        }  # fmt: skip

    def draw(self, data: alt.NamedData) -> alt.LayerChart:
        """Bands, lines, the own point, words."""
        x = marks.axis("epsilon", "ε", domain=(0.0, LARGEST_EPSILON), grid=False)
        domain = (LOWEST_PRIOR, HIGHEST_PRIOR)
        title = "prior (% of candidates)"
        y = marks.axis("prior", title, share=True, log=True, domain=domain)
        color = {"field": "precision", "type": "ordinal", "scale": {"domain": list(LEVELS)}}
        level = {"field": "precision", "type": "nominal"}
        layers = [
            marks.layer(
                "band", "area", "map", x=x, y=y, y2={"field": "to_prior"}, color=color, clip=True
            ),
            marks.layer("band", "line", "contour", x=x, y=y, detail=level, clip=True),
            marks.layer("own", "point", "own", x=x, y=y),
        ]
        return marks.stacked(data, [*layers, *marks.words(x, y, "ink")])


def largest_precision(epsilon: float, delta: float, prior: float, min_tpr: float) -> float:
    """The largest precision that (ε, δ) allows; 1 where ε is infinite.

    >>> round(largest_precision(1.0, 1e-5, 0.5, 0.01), 4)
    0.7313
    """
    if epsilon > MEANINGLESS:
        return 1.0
    return prior * min_tpr / (prior * min_tpr + (1.0 - prior) * _least_fpr(epsilon, delta, min_tpr))


def _least_fpr(epsilon: float, delta: float, tpr: float) -> float:
    """The least FPR at which (ε, δ) allows this TPR (Kairouz et al. 2015, theorem 2.1).

    TPR ≤ δ + e^ε FPR and 1 - FPR ≤ δ + e^ε (1 - TPR). Rounded down by the last digits, so that the
    precision is not below the truth.
    """
    missed = (1.0 - tpr) * math.exp(epsilon)
    forward = (tpr - delta) * math.exp(-epsilon) * (1.0 - 4e-16)
    return max(0.0, forward, 1.0 - delta - missed - 4e-16 * (1.0 + missed))


@lru_cache(maxsize=128)
def _lines(delta: float, min_tpr: float) -> tuple[Line, ...]:
    """The largest prior that keeps the precision at each level, for each ε.

    precision = π t / (π t + (1 - π) FPR(t)), so logit π = logit precision - ln(t / FPR(t)).
    """
    fprs = [_least_fpr(epsilon, delta, min_tpr) for epsilon in EPSILONS]
    gains = [math.log(min_tpr / fpr) if fpr > 0 else math.inf for fpr in fprs]
    return tuple(
        tuple(float(scipy.special.expit(scipy.special.logit(level) - gain)) for gain in gains)
        for level in LEVELS
    )


def _within(prior: float) -> float:
    return min(max(prior, LOWEST_PRIOR), HIGHEST_PRIOR)
