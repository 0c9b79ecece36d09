"""The adversary of attribute inference: knows all but one attribute of one record.

D has the record with one value of the attribute, D′ with another. Against a correct trainer, the
likelihood of the noisy sums is a sufficient statistic (Cherubin et al. 2024, game 3, against an
attacker who sees the training).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dprime import validate
from dprime.attack.adversary import Adversary, AttackTarget
from dprime.attack.gradient_attacks import clipped, gradient_at
from dprime.attack.scorers import Likelihood
from dprime.attack.trainer import Attack
from dprime.data.columns import Column, columns_named, value_named, value_numbers
from dprime.data.dataset import Dataset
from dprime.train import EngineContext, Observer, Step, TrainingData
from dprime.train.compute import HERE
from dprime.train.data import check_record

Values = tuple[float, ...]  # a number for each column of the attribute

MOMENTS = 8  # steps of the adversary's training at which it looks for the record that shows most
AT_ONCE = 256  # records whose gradients are in memory at the same time


@dataclass(frozen=True)
class OneAttribute(Adversary):
    """Tells one value of an attribute from another by the likelihood of every update.

    Attributes:
        columns: of the attribute, by index or name: one column, those of a one-hot group, or the
            common beginning of their names: "sex" for sex=Female and sex=Male.
        values: in D and in D′, two numbers or two categories; by default the least and the largest
            that occur in one column, or the first two of a one-hot group.
        record: whose attribute is attacked; by default the target's record, else the one whose
            gradients differ most in a training of the adversary's own.
    """

    name = "attribute"
    sees = "updates"
    weighs_noise = True
    title = "attribute inference"

    columns: tuple[Column, ...] = (0,)
    values: tuple[str | Values, str | Values] | None = None
    record: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _sequence(self.columns))
        if self.values is not None:
            object.__setattr__(self, "values", tuple(map(_row, _sequence(self.values))))

    def check(self, target: AttackTarget) -> None:
        super().check(target)
        if target.adjacency != "replace":
            remedy = 'give adjacency="replace"'
            wanted = "replace for attribute, where the record is there with one value or another"
            raise validate.invalid_value("adjacency", target.adjacency, wanted, remedy)
        if (named := self._record(target)) is not None:
            check_record(named, len(target.dataset))
        self._pair(target.dataset)

    def craft(self, target: AttackTarget) -> Attack:
        self.check(target)
        dataset, names = target.dataset, target.dataset.columns
        places, values = self._pair(dataset)
        named = self._record(target)
        record = most_revealing(target, places, values) if named is None else named
        both = completed(dataset.take([record]), places, values)
        others = np.delete(np.arange(len(dataset)), record)
        chosen = ", the one that shows most" if named is None else ""
        first, second = (value_named(row, places, names) for row in values)
        about = f"{columns_named(places, names)} of record {record}{chosen}: {first} or {second}"
        if len(places) == 1:  # the scaling may be another than the user thinks of
            column = dataset.records[:, places[0]]
            low, high = column.min(), column.max()
            if not all(low <= np.float32(value) <= high for (value,) in values):
                about += f" (the data has {low:.4g} to {high:.4g})"
        worlds = TrainingData(dataset.take(others), both).at_random_place(target.seed)
        # Bernau et al.'s numbers, which the details are for, are of another game.
        return Attack(worlds, partial(Likelihood, details=False), about)

    def _record(self, target: AttackTarget) -> int | None:
        return target.record if self.record is None else self.record

    def _pair(self, dataset: Dataset) -> tuple[tuple[int, ...], tuple[Values, Values]]:
        names, places = dataset.columns, dataset.column(self.columns)
        if self.values is not None:
            rows = [
                value_numbers(row, places, names) if isinstance(row, str) else row
                for row in self.values
            ]
        elif len(places) > 1:
            rows = [tuple(row) for row in np.eye(len(places)).tolist()[:2]]
        else:
            column = dataset.records[:, places[0]]
            rows = [(float(column.min()),), (float(column.max()),)]
        if len(rows) != 2 or rows[0] == rows[1] or {*map(len, rows)} != {len(places)}:
            many = len(places) > 1
            wanted = f"two different settings of {len(places)} column{'s' if many else ''}"
            remedy = "give two categories" if many and names else "give two, such as 0 and 1"
            raise validate.invalid_input("values", _shown(self.values or rows), wanted, remedy)
        return places, (rows[0], rows[1])


def completed(records: Dataset, places: Sequence[int], values: Sequence[Values]) -> Dataset:
    """Every record with each of the values, in their order."""
    made = np.repeat(records.records, len(values), axis=0)
    made[:, list(places)] = np.tile(np.asarray(values, dtype=np.float32), (len(records), 1))
    labels = np.repeat(records.labels, len(values))
    return dataclasses.replace(records, records=made, labels=labels, kind="table")


def most_revealing(target: AttackTarget, places: Sequence[int], values: Sequence[Values]) -> int:
    """The record whose gradients differ most between two values, over one training.

    By the term of the central-limit form, e^(n0²/z²) + e^(n1²/z²) − 2 e^(⟨g0, g1⟩/z²), summed over
    a few steps, among the first few thousand records.
    """
    engine = dataclasses.replace(target.engine("attribute"), compute=HERE)
    alone, moments = TrainingData.alone(target.dataset), _Moments()
    recipe = engine.without_target_record
    engine.watch(moments, alone, recipe, trials=1, seed=target.shadow_seed)
    total = np.zeros(len(target.head))
    for part in np.split(np.arange(len(total)), range(AT_ONCE, len(total), AT_ONCE)):
        both = [completed(target.dataset.take(part), places, [value]) for value in values]
        for weights in moments.weights:
            one, other = (_gradients(made, weights, moments.run) for made in both)
            total[part] += _terms(one, other, engine.training.noise_multiplier)
    return int(total.argmax())


class _Moments(Observer):
    """Keeps the weights at a few steps, spread over the training."""

    def begin(self, run: EngineContext) -> None:
        steps = run.training.steps
        self._steps = set(np.linspace(0, steps - 1, min(MOMENTS, steps)).round().astype(int))
        self.run = run
        self.weights: list[Tensor] = []

    def see(self, step: Step) -> None:
        if step.index in self._steps:
            self.weights.append(step.weights[:1].clone())


def _gradients(records: Dataset, weights: Tensor, run: EngineContext) -> Tensor:
    """Their clipped gradients, in units of the clipping norm [record, parameter]."""
    x, y = torch.tensor(records.records), torch.tensor(records.labels)
    # The engine has the gradient of one record in each trial: every record is a trial here.
    same = weights.expand(len(x), -1).contiguous()
    norm = run.training.clip_norm
    assert norm is not None
    return (clipped(gradient_at(run, same, x[:, None], y[:, None]), norm) / norm).double()


def _terms(first: Tensor, second: Tensor, noise_multiplier: float) -> NDArray[np.float64]:
    """A term for every record: (a − b)² + 2 a b (1 − e^(−d²/2z²)), a and b = e^(n²/2z²)."""
    scale = 2 * noise_multiplier**2
    a, b = ((one.square().sum(dim=1) / scale).clamp(max=300.0).exp() for one in (first, second))
    apart = (first - second).square().sum(dim=1) / scale
    found: NDArray[np.float64] = ((a - b) ** 2 - 2 * a * b * torch.expm1(-apart)).numpy()
    return found


def _row(value: Any) -> str | Values:
    """A value: a text, or numbers; whether they fit the columns is for the data to say."""
    parts = _sequence(value)
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    return tuple(validate.number("values", part) for part in parts)


def _shown(rows: Sequence[str | Values]) -> str:
    texts = (row if isinstance(row, str) else ", ".join(f"{n:g}" for n in row) for row in rows)
    return " and ".join(texts) or "nothing"


def _sequence(value: Any) -> tuple[Any, ...]:
    """The elements of a list or an array; another value alone: a file may have either."""
    many = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
    return tuple(value) if many else (value,)
