"""What an observer comes to believe, step by step, in a world with the record and without it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dprime import validate
from dprime.mechanisms import DPSGD
from dprime.show.figures import marks, words
from dprime.show.figures.figure import OUTLINE, Figure, Row
from dprime.show.figures.risk import mechanism_with
from dprime.show.figures.trials import Floats, Spread, drawn_steps, two_worlds
from dprime.text import odds

if TYPE_CHECKING:
    import altair as alt

HIGH = 0.94
"""Above this belief there is no room for words over a line."""

COMPUTED = 30
"""Steps at which the certified belief is computed; between them it is rounded up."""


@final
@dataclass(frozen=True)
class BeliefFigure(Figure):
    """The observer's belief that the record was in, after each step.

    Attributes:
        inside: its spread over the trials with the record.
        outside: over those without.
        prior: the belief before the first step.
        belief: the limit whose exceedance is counted.
        above: how many trials with the record ended above `belief`.
        trials: how many there were with the record, and without.
        left_out: trials without a finite number.
        bound: (step, certified belief), exceeded with probability at most `exceeded`.
        exceeded: that probability.
    """

    inside: Spread
    outside: Spread
    prior: float
    belief: float
    above: int
    trials: tuple[int, int]
    left_out: int = 0
    bound: tuple[tuple[int, float], ...] = ()
    exceeded: float = 1e-3

    @classmethod
    def of(
        cls,
        log_ratio: ArrayLike,
        in_world: ArrayLike,
        *,
        prior: float = 0.5,
        belief: float = 0.9,
        bound: Sequence[float] | None = None,
        exceeded: float = 1e-3,
    ) -> Self:
        """The figure of an adversary's trials.

        Args:
            log_ratio: [trial, step], the logarithm of how much likelier what was seen up to a step
                is in world `in`.
            in_world: [trial], whether each trial was in world `in`.
            prior: the belief before the first step.
            belief: the limit whose exceedance is counted.
            bound: the certified belief after each step, as `belief_bound` gives it.
            exceeded: the probability of exceeding it.
        """
        prior = validate.inner_probability("prior", prior)
        belief = validate.inner_probability("belief", belief, example=0.9)
        exceeded = validate.rate("exceeded", exceeded, example=0.001)
        inside, outside, left_out = two_worlds("log_ratio", log_ratio, in_world)
        count = inside.shape[1]
        steps = drawn_steps(count)
        limits: tuple[tuple[int, float], ...] = ()
        if bound is not None:
            if len(bound) != count:
                remedy = f"give one number for each of the {count} steps"
                raise validate.invalid_input("bound", f"{len(bound)} numbers", "one a step", remedy)
            limits = tuple((int(step), float(bound[step - 1])) for step in steps)
        return cls(
            Spread.of(beliefs(inside[:, steps - 1], prior), steps),
            Spread.of(beliefs(outside[:, steps - 1], prior), steps),
            prior, belief, int((beliefs(inside[:, -1], prior) > belief).sum()),
            (len(inside), len(outside)), left_out, limits, exceeded,
        )  # fmt: skip

    @property
    def name(self) -> str:
        """Of files and addresses."""
        return "belief"

    @property
    def title(self) -> str:
        """How often the belief ended above the limit, and what is certified."""
        limit, trials = words.percent(self.belief), words.counted(self.trials[0], "trial")
        said = f"With the record, the belief ended above {limit} in {self.above:,} of {trials}"
        if not self.bound:
            return f"{said}."
        certified = words.percent_up(self.bound[-1][1])
        if certified == "100 %":
            return f"{said}; no limit below certainty is certified."
        return f"{said}; above {certified} it ends at most {odds(self.exceeded)}."

    @property
    def text(self) -> str:
        """Where both worlds end, and the certified limit."""
        last = self.inside.steps[-1]
        told = (
            "Line chart. Across: steps. Up: the observer's belief that the record was in, starting "
            f"from {words.percent(self.prior)}. After {words.counted(last, 'step')}, with the "
            f"record: {_ends(self.inside)}; without it: {_ends(self.outside)} (median, and the "
            f"range of nine in ten trials; {self.trials[0]:,} and {self.trials[1]:,} trials). "
            f"{self.above:,} of {self.trials[0]:,} trials with the record ended above "
            f"{words.percent(self.belief)}."
        )
        if self.bound:
            told += (
                f" Certified: after the last step the belief exceeds "
                f"{words.percent_up(self.bound[-1][1])} at most {odds(self.exceeded)}; "
                "each step's limit holds for that step alone."
            )
        if self.left_out:
            told += f" {words.counted(self.left_out, 'trial')} without a finite number left out."
        return told

    def rows(self) -> list[Row]:
        """Both spreads from step 0 on, the certified limit, the marked belief."""
        rows = []
        for layer, spread in (("with", self.inside), ("without", self.outside)):
            rows.append(self._row(layer, 0, self.prior, self.prior, self.prior))
            columns = zip(spread.steps, spread.median, spread.low, spread.high, strict=True)
            rows += [self._row(layer, *column) for column in columns]
        rows += [self._row("certified", step, value) for step, value in self.bound]
        rows += [self._row(OUTLINE, step, value) for step, value in ((0, self.prior), *self.bound)]
        return rows + self._labels()

    def _labels(self) -> list[Row]:
        """Names of the lines, near their ends."""
        last = self.inside.steps[-1]
        beneath = "above-left" if self.outside.median[-1] < 1 - HIGH else "below-left"
        rows = [
            self._word("above-left", "second", last, self.inside.median[-1], "with the record"),
            self._word(beneath, "first", last, self.outside.median[-1], "without it"),
        ]
        if self.bound:
            step, limit = self.bound[-1]
            told = f"certified: {words.percent_up(limit)}"
            side = "below-left" if limit > HIGH else "above-left"
            rows.append(self._word(side, "ink", step, limit, told))
        return rows

    @classmethod
    def _word(cls, side: str, ink: str, step: int, belief: float, told: str) -> Row:
        return cls._row(marks.label(side, ink), step, belief, label=told)

    @staticmethod
    def _row(
        layer: str,
        step: int,
        belief: float,
        low: float | None = None,
        high: float | None = None,
        label: str | None = None,
    ) -> Row:
        return {
            "layer": layer, "step": step, "belief": belief, "low": low, "high": high, "label": label
        }  # fmt: skip

    def draw(self, data: alt.NamedData) -> alt.LayerChart:
        """Two ranges with their medians, the certified limit above."""
        x = marks.axis("step", "steps", whole=True)
        y = marks.axis("belief", "belief that the record was in (%)", share=True, domain=(0.0, 1.0))
        low, high = {**y, "field": "low"}, {"field": "high"}
        layers = [
            marks.layer("without", "area", "without-room", x=x, y=low, y2=high),
            marks.layer("with", "area", "with-room", x=x, y=low, y2=high),
            marks.layer("without", "line", "without", x=x, y=y),
            marks.layer("with", "line", "with", x=x, y=y),
            *(
                marks.layer(world, "line", f"{world}-edge", x=x, y={**y, "field": edge})
                for world in ("with", "without")
                for edge in ("low", "high")
            ),
            marks.layer(OUTLINE, "line", "limit", x=x, y=y, interpolate="step-before"),
        ]
        return marks.stacked(data, [*layers, *marks.words(x, y, "first", "second", "ink")])


def beliefs(log_ratio: Floats, prior: float) -> Floats:
    """logistic(L + logit π), the belief that the record was in.

    >>> beliefs(np.array([0.0]), 0.1).round(6).tolist()
    [0.1]
    """
    return np.asarray(scipy.special.expit(log_ratio + scipy.special.logit(prior)))


def belief_bound(
    mechanism: DPSGD, adjacency: str, prior: float, exceeded: float = 1e-3
) -> list[float]:
    """The belief that is exceeded with at most that probability, after each step of a training.

    It grows with the steps, so that between computed steps the next one's value is safe.

    >>> limits = belief_bound(DPSGD(4.0, 1.0, 50), "add-remove", prior=0.5)
    >>> len(limits), round(limits[0], 3), round(limits[-1], 3)
    (50, 0.705, 0.999)
    """
    count = int(mechanism._required("steps"))
    steps = np.arange(1, count + 1)
    if count > COMPUTED:  # evenly in the square root, as two worlds drift apart
        steps = np.unique((np.linspace(1.0, math.sqrt(count), COMPUTED) ** 2).round().astype(int))
    values = [
        mechanism_with(mechanism, "steps", int(step)).curve(adjacency).belief(prior, exceeded)
        for step in steps
    ]
    safe = np.maximum.accumulate(values)
    return [float(x) for x in safe[np.searchsorted(steps, np.arange(1, count + 1))]]


def _ends(spread: Spread) -> str:
    low, high = words.percent(spread.low[-1]), words.percent(spread.high[-1])
    return f"{words.percent(spread.median[-1])}, {low} to {high}"
