"""The adversary of attribute inference: knows all but one attribute of one record.

D has the record with one value of the attribute, D′ with another. It sees every noisy sum and knows
the other records, the weights and the noise, so that the likelihood of what it saw is all there is
to know (Cherubin et al. 2024, game 3, against an attacker who sees the training).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dprime import validate
from dprime.attack.adversary import Adversary, Attack, Setting
from dprime.attack.records import LOOKED_AT
from dprime.attack.scorers import Likelihood
from dprime.data.dataset import Dataset
from dprime.train import Observer, Run, Step, Training, Worlds, train
from dprime.train.observe import clip_factors
from dprime.train.worlds import check_record

Column = int | str

MOMENTS = 8
"""Steps of the adversary's own training at which it looks for the record that shows most."""

AT_ONCE = 256
"""Records whose gradients are in memory at the same time."""


@dataclass(frozen=True)
class OneAttribute(Adversary):
    """Tells one value of an attribute from another by the likelihood of every update.

    Attributes:
        columns: that the attribute is made of, by index or name: one, or those of a one-hot group.
        values: of those columns in D and in D′; None takes the least and the largest that occur,
            for one column, or the first two of a one-hot group.
        record: whose attribute is in question; None takes the setting's, and without that the one
            whose gradients differ most in a training of the adversary's own.

    >>> OneAttribute(columns=("sex",), values=((0.0,), (1.0,))).name
    'attribute'
    """

    name = "attribute"
    sees = "updates"
    title = "attribute inference"

    columns: tuple[Column, ...] = (0,)
    values: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    record: int | None = None

    def __post_init__(self) -> None:
        given: Any = self.columns  # a file may give one alone, or a list
        columns = (given,) if isinstance(given, int | str) else tuple(given)
        object.__setattr__(self, "columns", columns)
        if self.values is not None:
            object.__setattr__(self, "values", _checked_values(self.values, len(columns)))

    def craft(self, setting: Setting) -> Attack:
        """Two data sets that differ in the attribute of one record."""
        recipe = setting.engine(self.name).training
        if recipe.noise_multiplier == 0 or recipe.clip_norm is None:
            raise validate.misfit(
                "training", "without noise or clipping", "private for attribute",
                "give a noise_multiplier and a clip_norm",
            )  # fmt: skip
        if setting.adjacency != "replace":
            remedy = 'give adjacency="replace": the record is there, with one value or another'
            raise validate.refusal("adjacency", setting.adjacency, "replace for attribute", remedy)
        dataset = setting.dataset
        if dataset.records.ndim != 2:
            remedy = "give a table"
            raise validate.misfit("dataset", "images", "a table for attribute", remedy)
        places = places_of(self.columns, dataset.columns, dataset.records.shape[1])
        values = self.values or usual_values(dataset.records, places)
        named = setting.record if self.record is None else self.record
        record = (
            most_revealing(setting, places, values)
            if named is None
            else check_record(named, len(dataset))
        )
        both = completed(dataset.take([record]), places, values)
        others = np.delete(np.arange(len(dataset)), record)
        which = "the record named" if named is not None else "the record that shows most"
        about = f"{_said(self.columns)} of {which}: {_value(values[0])} or {_value(values[1])}"
        return Attack(Worlds(dataset.take(others), both), Likelihood, about)


def places_of(
    columns: Sequence[Column], names: Sequence[str], width: int | None = None
) -> tuple[int, ...]:
    """Where columns stand, by index or by name.

    >>> places_of(("b", 0), ("a", "b"))
    (1, 0)
    """
    known = len(names) if width is None else width
    if not columns:
        remedy = "name the attribute's columns"
        raise validate.misfit("attribute", "empty", "at least one column", remedy)
    found = [_place(column, names, known) for column in columns]
    if len(set(found)) < len(found):
        raise validate.refusal(
            "attribute", list(columns), "of columns that differ", "name each once"
        )
    return tuple(found)


def _place(column: Column, names: Sequence[str], width: int) -> int:
    if isinstance(column, str):
        if column in names:
            return list(names).index(column)
        shown = ", ".join([*names[:6], "..."] if len(names) > 6 else names)
        remedy = f"give one of {shown}" if names else "give columns=, their names, or an index"
        raise validate.refusal("attribute", column, "a column of the data", remedy)
    if isinstance(column, int | np.integer) and not isinstance(column, bool):
        if 0 <= column < width:
            return int(column)
        remedy = "give an index that the data has"
        raise validate.refusal("attribute", column, f"a column from 0 to {width - 1}", remedy)
    raise validate.refusal("attribute", column, "an index or a name", "give for example 0")


def usual_values(
    records: NDArray[Any], places: Sequence[int]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The least and the largest of one column, or the first two of a one-hot group."""
    if len(places) > 1:
        first, second, *_ = np.eye(len(places))
        return tuple(first.tolist()), tuple(second.tolist())
    column = records[:, places[0]]
    low, high = float(column.min()), float(column.max())
    if low == high:
        remedy = "give values, two that may be"
        raise validate.refusal("values", low, "two, but only one occurs", remedy)
    return (low,), (high,)


def completed(
    records: Dataset, places: Sequence[int], values: Sequence[Sequence[float]]
) -> Dataset:
    """Every record with each of the values, in their order."""
    made = np.repeat(records.records, len(values), axis=0)
    made[:, list(places)] = np.tile(np.asarray(values, dtype=np.float32), (len(records), 1))
    labels = np.repeat(records.labels, len(values))
    return dataclasses.replace(records, records=made, labels=labels, kind="table")


def most_revealing(
    setting: Setting, places: Sequence[int], values: Sequence[Sequence[float]]
) -> int:
    """The record whose gradients differ most between two values, over one training of its own.

    By the term of the central-limit form, e^(n0²/z²) + e^(n1²/z²) − 2 e^(⟨g0, g1⟩/z²), summed over
    a few steps, among the first few thousand records.
    """
    engine = setting.engine("attribute")
    head = setting.dataset.take(np.arange(min(len(setting.dataset), LOOKED_AT)))
    moments = _Moments()
    train(
        engine.model, setting.dataset, engine.alone, trials=1, seed=setting.shadow_seed,
        observers=[moments], keep_weights=False, progress=False,
    )  # fmt: skip
    total = np.zeros(len(head))
    for first in range(0, len(head), AT_ONCE):
        part = head.take(np.arange(first, min(first + AT_ONCE, len(head))))
        both = [completed(part, places, [value]) for value in values]
        for weights in moments.weights:
            one, other = (_clipped(made, weights, moments.run) for made in both)
            total[first : first + len(part)] += _terms(one, other, engine.training)
    return int(total.argmax())


class _Moments(Observer):
    """Keeps the weights at a few steps, spread over the training."""

    def begin(self, run: Run) -> None:
        steps = run.training.steps
        self._steps = set(np.linspace(0, steps - 1, min(MOMENTS, steps)).round().astype(int))
        self.run = run
        self.weights: list[Tensor] = []

    def see(self, step: Step) -> None:
        if step.index in self._steps:
            self.weights.append(step.weights[:1].clone())


def _clipped(records: Dataset, weights: Tensor, run: Run) -> Tensor:
    """Their clipped gradients, in units of the clipping norm [record, parameter]."""
    x, y = torch.tensor(records.records), torch.tensor(records.labels)
    # The engine has the gradient of one record in each trial: every record is a trial here.
    same = weights.expand(len(x), -1).contiguous()
    found = run.network.gradients(same, x[:, None], y[:, None], run.training.loss)
    gradients = torch.zeros_like(same)
    found.add_weighted(same.new_ones(len(x), 1), gradients)
    norm = run.training.clip_norm
    assert norm is not None
    return (gradients * clip_factors(gradients.norm(dim=1, keepdim=True), norm) / norm).double()


def _terms(first: Tensor, second: Tensor, recipe: Training) -> NDArray[np.float64]:
    """Of every record [record]: (a − b)² + 2 a b (1 − e^(−d²/2z²)), a and b = e^(n²/2z²)."""
    scale = 2 * recipe.noise_multiplier**2
    a, b = ((one.square().sum(dim=1) / scale).clamp(max=300.0).exp() for one in (first, second))
    apart = (first - second).square().sum(dim=1) / scale
    found: NDArray[np.float64] = ((a - b) ** 2 - 2 * a * b * torch.expm1(-apart)).numpy()
    return found


def _checked_values(
    values: Sequence[Sequence[float]], width: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Two different settings of the columns."""
    remedy = "give two, such as ((0.0,), (1.0,))"
    rows = [
        tuple(validate.number("values", value) for value in (row if _is_row(row) else (row,)))
        for row in (values if _is_row(values) else (values,))
    ]
    if len(rows) != 2 or {len(row) for row in rows} != {width} or rows[0] == rows[1]:
        wanted = f"two different settings of {width} column{'s' if width > 1 else ''}"
        raise validate.refusal("values", values, wanted, remedy)
    return rows[0], rows[1]


def _is_row(value: object) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)


def _said(columns: Sequence[Column]) -> str:
    """The columns as a reader names them."""
    shown = ", ".join(str(column) for column in columns)
    return f"column {shown}" if len(columns) == 1 else f"columns {shown}"


def _value(row: Sequence[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in row)
