"""How far one record moves a step, against how far the noise is made for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, final

import numpy as np
from numpy.typing import ArrayLike

from dprime import validate
from dprime.mechanisms import ADJACENCIES
from dprime.show.figures import marks, words
from dprime.show.figures.figure import Figure, Row
from dprime.show.figures.trials import Spread, by_step, drawn_steps

if TYPE_CHECKING:
    import altair as alt


@final
@dataclass(frozen=True)
class SensitivityFigure(Figure):
    """Local sensitivity by step, against the global one.

    Attributes:
        local: its spread over the trials.
        middle: the median over all trials and steps.
        largest: over all trials and steps.
        clip_norm: C, the norm that gradients are clipped to.
        adjacency: adding a record moves the clipped sum by C at most, replacing one by 2 C.
        trials: how many there were.
        left_out: trials without a finite number.
    """

    local: Spread
    middle: float
    largest: float
    clip_norm: float
    adjacency: str
    trials: int
    left_out: int = 0

    @classmethod
    def of(cls, sensitivity: ArrayLike, *, clip_norm: float, adjacency: str) -> Self:
        """The figure of local sensitivities [trial, step], in the unit of the clipping norm."""
        norm = validate.positive("clip_norm", clip_norm)
        validate.one_of("adjacency", adjacency, ADJACENCIES)
        values, kept = by_step("sensitivity", sensitivity)
        steps = drawn_steps(values.shape[1])
        spread = Spread.of(values[:, steps - 1], steps)
        middle, largest = float(np.median(values)), float(values.max())
        return cls(spread, middle, largest, norm, adjacency, len(values), int((~kept).sum()))

    @property
    def name(self) -> str:
        """Of files and addresses."""
        return "sensitivity"

    @property
    def global_sensitivity(self) -> float:
        """What no record exceeds: C for adding one, 2 C for replacing one."""
        return self.clip_norm * (2.0 if self.adjacency == "replace" else 1.0)

    @property
    def _global_words(self) -> str:
        return "2 C" if self.adjacency == "replace" else "C"

    @property
    def title(self) -> str:
        """The median as a share of what the noise is made for."""
        share = words.percent(self.middle / self.global_sensitivity)
        return (
            f"At the median this record moved a step by {share} of the most that any record may "
            f"({self._global_words} = {words.near(self.global_sensitivity)})."
        )

    @property
    def text(self) -> str:
        """First, last and largest."""
        first, last = self._at(0), self._at(-1)
        told = (
            "Line chart. Across: steps. Up: local sensitivity, how far this record moves the "
            f"clipped sum. Step {self.local.steps[0]:,}: {first}; step {self.local.steps[-1]:,}: "
            f"{last} (median, and the range of nine in ten out of {self.trials:,} trials). The "
            f"largest was {words.near(self.largest)}. The global sensitivity is "
            f"{self._global_words} = {words.near(self.global_sensitivity)}."
        )
        if self.left_out:
            told += f" {words.counted(self.left_out, 'trial')} without a finite number left out."
        return told

    def _at(self, place: int) -> str:
        low, high = words.near(self.local.low[place]), words.near(self.local.high[place])
        return f"{words.near(self.local.median[place])}, {low} to {high}"

    def rows(self) -> list[Row]:
        """The spread, the global sensitivity, and words."""
        spread = self.local
        columns = zip(spread.steps, spread.median, spread.low, spread.high, strict=True)
        rows = [self._row("local", *column) for column in columns]
        ends = (spread.steps[0], spread.steps[-1])
        rows += [self._row("global", step, self.global_sensitivity) for step in ends]
        limit = f"global: {self._global_words} = {words.near(self.global_sensitivity)}"
        return [
            *rows,
            self._row(marks.label("below-left"), ends[1], self.global_sensitivity, label=limit),
            self._row(
                marks.label("above-left", "second"), ends[1], spread.high[-1], label="this record"
            ),
        ]

    @staticmethod
    def _row(
        layer: str,
        step: int,
        sensitivity: float,
        low: float | None = None,
        high: float | None = None,
        label: str | None = None,
    ) -> Row:
        return {
            "layer": layer, "step": step, "sensitivity": sensitivity, "low": low, "high": high,
            "label": label,
        }  # fmt: skip

    def draw(self, data: alt.NamedData) -> alt.LayerChart:
        """The range with its median, and the global line above."""
        x = marks.axis("step", "steps", zero=False, nice=False, whole=True)
        y = marks.axis("sensitivity", "sensitivity (norm, unit of C)")
        low = {**y, "field": "low"}
        layers = [
            marks.layer("local", "area", "with-room", x=x, y=low, y2={"field": "high"}),
            marks.layer("local", "line", "with", x=x, y=y),
            marks.layer("global", "line", "limit", x=x, y=y),
        ]
        return marks.stacked(
            data,
            [
                *layers,
                *marks.words(x, y, "second", "ink"),
            ],
        )
