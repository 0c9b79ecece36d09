"""Bayes security as the training goes on: of membership, and of any secret attribute."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, final

import numpy as np

from dprime import validate
from dprime.mechanisms import DPSGD
from dprime.parameters import MOST_STEPS, steps_from_epochs
from dprime.show.figures import marks, words
from dprime.show.figures.figure import Figure, Row
from dprime.show.figures.risk import COUNT, mechanism_with, some_of

if TYPE_CHECKING:
    import altair as alt

REACH = 10.0
"""The epochs drawn go from a tenth to ten times the training's own."""


@final
@dataclass(frozen=True)
class BayesSecurityFigure(Figure):
    """Bayes security over epochs: 1 is perfect, 0 is none.

    Another value of an attribute is another record, so the curve for replacing a record bounds
    every attacker on any secret attribute.

    Attributes:
        epochs: ascending.
        membership: certified Bayes security against saying who is a member, at each of `epochs`.
        any_attribute: the same against guessing any secret attribute of a record.
        at: the training's own epochs.
        attribute: (epoch, Bayes security) estimated from data, without a guarantee.

    >>> training = DPSGD(noise_multiplier=1.0, sample_rate=0.01, steps=2000)
    >>> BayesSecurityFigure.of(training, epochs=[10, 20]).title
    'After 20 epochs Bayes security is at least 0.773 for membership, 0.632 for any attribute.'
    """

    epochs: tuple[float, ...]
    membership: tuple[float, ...]
    any_attribute: tuple[float, ...]
    at: float
    attribute: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        sizes = {len(self.epochs), len(self.membership), len(self.any_attribute)}
        if len(sizes) > 1 or 0 in sizes:
            remedy = "give both numbers for each epoch"
            raise validate.invalid_input("epochs", "not", "as many as the numbers", remedy)

    @classmethod
    def of(
        cls,
        mechanism: DPSGD,
        *,
        adjacency: str = "add-remove",
        epochs: Sequence[float] | None = None,
        read: Callable[[DPSGD, str], float] | None = None,
        attribute: Sequence[tuple[float, float]] = (),
    ) -> Self:
        """The two certified lines of a training, and estimates beside them.

        Args:
            mechanism: the training; its noise and rate stay.
            adjacency: what membership means: with or without the record, zeroed out, or replaced.
            epochs: at which to compute; the training's own are added. None takes some around it.
            read: gives the advantage of a mechanism under an adjacency, where it is known already.
            attribute: (epoch, Bayes security) of one attribute, estimated from data.
        """
        own = mechanism.epochs
        rate = mechanism._required("sample_rate")
        answer = read or _advantage
        chosen = sorted({own, *(_around(own, rate) if epochs is None else epochs)})
        steps = [round(own / rate) if x == own else steps_from_epochs(x, rate) for x in chosen]
        others = [mechanism_with(mechanism, "steps", count) for count in steps]
        lines = [
            tuple(1.0 - answer(other, relation) for other in others)
            for relation in (adjacency, "replace")
        ]
        points = tuple(
            (validate.positive("epoch", epoch), validate.probability("attribute", value))
            for epoch, value in attribute
        )
        return cls(tuple(chosen), lines[0], lines[1], own, points)

    @property
    def name(self) -> str:
        """Of files and addresses."""
        return "bayes-security"

    @property
    def title(self) -> str:
        """Both numbers at the end of the training."""
        place = self.epochs.index(self.at)
        return (
            f"After {_epochs(self.at)} Bayes security is at least "
            f"{_least(self.membership[place])} for membership, "
            f"{_least(self.any_attribute[place])} for any attribute."
        )

    @property
    def text(self) -> str:
        """Some epochs with both numbers, and the estimates."""
        listed = "; ".join(
            f"{_epochs(self.epochs[place])}: {_least(self.membership[place])} and "
            f"{_least(self.any_attribute[place])}"
            for place in some_of(len(self.epochs), self.epochs.index(self.at))
        )
        told = (
            "Line chart. Across: epochs, logarithmic. Up: Bayes security, from 0 (no protection) "
            "to 1 (perfect). Two certified lines, both lower limits: for membership, and for any "
            f"secret attribute of a record. {listed}."
        )
        if self.attribute:
            points = "; ".join(f"{_epochs(x)}: {words.near(y)}" for x, y in self.attribute)
            told += f" Estimates of one attribute from data, which guarantee nothing: {points}."
        return told

    def rows(self) -> list[Row]:
        """Both lines, the estimates, the training's own numbers, and words."""
        rows = [self._row("membership", *p) for p in zip(self.epochs, self.membership, strict=True)]
        pairs = list(zip(self.epochs, self.any_attribute, strict=True))
        rows += [self._row("any attribute", *pair) for pair in pairs]
        rows += [self._row("estimate", *pair) for pair in self.attribute]
        return rows + self._own()

    def _own(self) -> list[Row]:
        place = self.epochs.index(self.at)
        upper, lower = self.membership[place], self.any_attribute[place]
        return [
            self._row("own", self.at, upper),
            self._row("own", self.at, lower),
            self._row(self._name("above", "first"), self.at, upper, f"membership: {_least(upper)}"),
            self._row(
                self._name("below", "second"), self.at, lower, f"any attribute: {_least(lower)}"
            ),
            *(self._row(marks.label("above"), *point, "estimate") for point in self.attribute[-1:]),
        ]

    def _name(self, side: str, ink: str) -> str:
        """Words stand where the falling lines leave room, unless they would leave the drawing."""
        whole = math.log(self.epochs[-1] / self.epochs[0]) or 1.0
        across = math.log(self.at / self.epochs[0]) / whole
        if side == "above":
            return marks.label("above-right" if across < 0.6 else "above-left", ink)
        return marks.label("below-left" if across > 0.4 else "below-right", ink)

    @staticmethod
    def _row(layer: str, epoch: float, security: float, label: str | None = None) -> Row:
        return {"layer": layer, "epoch": epoch, "bayes_security": security, "label": label}

    def draw(self, data: alt.NamedData) -> alt.LayerChart:
        """Two lines, estimates as points, the own numbers."""
        x = marks.axis("epoch", "epochs", log=True, live=True)
        y = marks.axis("bayes_security", "Bayes security, at least", domain=(0.0, 1.0))
        # Between two epochs the smaller security holds, that of the later one.
        layers = [
            marks.layer("own", "rule", "guide", x=x),
            marks.layer("any attribute", "line", "ceiling-2", x=x, y=y, interpolate="step-before"),
            marks.layer("any attribute", "point", "second-dot", x=x, y=y),
            marks.layer("membership", "line", "ceiling", x=x, y=y, interpolate="step-before"),
            marks.layer("membership", "point", "ceiling-dot", x=x, y=y),
            marks.layer("estimate", "point", "estimate", x=x, y=y),
            marks.layer("own", "point", "own", x=x, y=y),
        ]
        return marks.stacked(data, [*layers, *marks.words(x, y, "first", "second", "ink")])


def _advantage(mechanism: DPSGD, adjacency: str) -> float:
    return mechanism.curve(adjacency).advantage()


def _around(own: float, rate: float) -> list[float]:
    """Epochs on both sides of the training's own, of whole steps."""
    steps = np.clip(np.geomspace(own / REACH, own * REACH, COUNT) / rate, 1, MOST_STEPS).round()
    return [float(step * rate) for step in np.unique(steps) if round(own / rate) != step]


def _least(security: float) -> str:
    """What is certified; where nothing is, 0 would sound like a measurement."""
    return words.down(security) if security > 0 else "none"


def _epochs(number: float) -> str:
    return f"{words.near(number, 4)} epoch" + ("" if number == 1 else "s")
