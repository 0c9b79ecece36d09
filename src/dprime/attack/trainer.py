"""Attacks on trainings, who trains, and the game: trials in two worlds, and a score for each."""

from __future__ import annotations

import dataclasses
import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dprime import validate
from dprime.data.dataset import Dataset
from dprime.train import (
    CanaryGradient,
    Compute,
    Observer,
    Trained,
    TrainingConfig,
    TrainingData,
    evaluate,
    train,
)
from dprime.train.compute import HERE
from dprime.train.losses import Loss, named_loss

Arrays = dict[str, NDArray[np.float64]]
Losses = NDArray[np.float64]
Side = Literal["in", "out"]

Change = Callable[[Compute], Compute]
TrainingFunction = Callable[[Dataset, int], nn.Module]
"""(data set, seed) → the trained model."""


class Scorer(Observer, ABC):
    """Watches the trials of a run and scores each: a higher score is evidence for world `in`."""

    scores: NDArray[np.float64]

    def arrays(self) -> Arrays:
        """What is kept of every trial; the trial is the first dimension."""
        return {"score": self.scores}


@dataclass(frozen=True, eq=False)
class Attack:
    """What is played: two worlds D and D′, a scorer for each run, and a sentence about it.

    Every trial starts from the initial weights. A canary sets gradients in the record's place.
    Probes make the score of a final model, for adversaries that need nothing else.
    """

    worlds: TrainingData
    scorer: Callable[[], Scorer]
    about: str
    initial: Tensor | Literal["fresh"] = "fresh"
    canary: CanaryGradient | None = None
    probes: Probes | None = None


@dataclass(frozen=True, eq=False)
class Probes:
    """One record, or one of each world, whose losses give the score of a model.

    It is the loss of the first less that of the second, with sign −1 if a low loss is evidence for
    world `in`. A model that has diverged has no loss; its score is fixed before the trials.
    """

    records: Dataset
    sign: float = -1.0
    diverged_score: float = -np.inf

    def score(self, losses: NDArray[np.float64]) -> NDArray[np.float64]:
        other = losses[:, 1] if losses.shape[1] > 1 else 0.0
        scores: NDArray[np.float64] = self.sign * (losses[:, 0] - other)
        return scores


class Trainer(ABC):
    """Makes models; the adversary may use it too."""

    training: TrainingConfig | None = None
    """The recipe, or None where the user's own code trains."""
    compute: Compute = HERE

    @abstractmethod
    def losses(
        self, data: TrainingData, records: Dataset, models: int, seed: int, world: Side = "in"
    ) -> Losses:
        """Losses of records [model, record]; the models train on one world, or on all data."""

    @abstractmethod
    def play(self, attack: Attack, *, trials: int, block: int, size: int, seed: int) -> Arrays:
        """What an attack's scorer keeps of a block of trials; even trials are in world `in`.

        The game has `trials` in both worlds together, in blocks of this size; the last one may have
        fewer.
        """

    @abstractmethod
    def models(self, data: TrainingData, seed: int) -> Iterator[Trained | nn.Module]:
        """The models of all parts of a pool, in order: together, or one after the other."""

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """In words that are the same in every process."""

    def with_compute(self, change: Change) -> Self:
        """The same with less memory, or on another device, where it can be told."""
        return self


@dataclass(frozen=True, eq=False)
class EngineTrainer(Trainer):
    """The engine, which shows every update."""

    model: nn.Module
    training: TrainingConfig
    compute: Compute = HERE

    def train(
        self, data: TrainingData, training: TrainingConfig | None = None, **options: Any
    ) -> Trained:
        """Train the model with this recipe, or another; options as of `dprime.train.train`."""
        recipe = training or self.training
        return train(self.model, data, recipe, compute=self.compute, progress=False, **options)

    def watch(
        self, observer: Observer, data: TrainingData, training: TrainingConfig, **options: Any
    ) -> Trained:
        return self.train(data, training, observers=[observer], keep_weights=False, **options)

    def losses(
        self, data: TrainingData, records: Dataset, models: int, seed: int, world: Side = "in"
    ) -> Losses:
        recipe = self.without_target_record if data.adjacency is None else self.training
        trained = self.train(data, recipe, trials=models, seed=seed, world=world)
        assert trained.weights is not None
        return evaluate.losses(trained.network, trained.weights, records, self.training.loss)

    def play(self, attack: Attack, *, trials: int, block: int, size: int, seed: int) -> Arrays:
        scorer, recipe = attack.scorer(), dataclasses.replace(self.training, block=size)
        start = {"initial": attack.initial, "canary": attack.canary}
        game = {"trials": trials, "seed": seed, "blocks": [block]}
        self.watch(scorer, attack.worlds, recipe, **game, **start)
        return scorer.arrays()

    def models(self, data: TrainingData, seed: int) -> Iterator[Trained]:
        yield self.train(data, self.without_target_record, seed=seed)

    def with_compute(self, change: Change) -> Self:
        return dataclasses.replace(self, compute=change(self.compute))

    @property
    def without_target_record(self) -> TrainingConfig:
        """The recipe for data of which no record is attacked: global sensitivity."""
        return dataclasses.replace(self.training, sensitivity="global")

    def describe(self) -> dict[str, str]:
        names = [field.name for field in dataclasses.fields(self.training)]
        recipe = {name: _text(getattr(self.training, name)) for name in names if name != "block"}
        return {"model": str(self.model), **recipe}


@dataclass(frozen=True, eq=False)
class FunctionTrainer(Trainer):
    """A training function that the user brings, which shows the final model only.

    The adversary judges its models by the loss.
    """

    function: TrainingFunction
    loss: str | Loss = "cross-entropy"

    def losses(
        self, data: TrainingData, records: Dataset, models: int, seed: int, world: Side = "in"
    ) -> Losses:
        dataset, seeds = data.dataset(world), _seeds(seed, models)
        return np.stack([self.model_losses(dataset, records, each) for each in seeds])

    def model_losses(self, dataset: Dataset, records: Dataset, seed: int) -> Losses:
        model = self.model(dataset, seed)
        device = next((weight.device for weight in model.parameters()), None)
        with torch.no_grad():
            outputs = model(torch.tensor(records.records, device=device))
            found = named_loss(self.loss)(outputs, torch.tensor(records.labels, device=device))
        return found.double().cpu().numpy()

    def play(self, attack: Attack, *, trials: int, block: int, size: int, seed: int) -> Arrays:
        probes = attack.probes
        assert probes is not None
        scores = []
        for trial in range(block * size, min((block + 1) * size, trials)):
            dataset = attack.worlds.dataset("in" if trial % 2 == 0 else "out")
            (own,) = _seeds((seed, trial), 1)
            scores.append(probes.score(self.model_losses(dataset, probes.records, own)[None])[0])
        return {"score": np.array(scores)}

    def models(self, data: TrainingData, seed: int) -> Iterator[nn.Module]:
        assert data.members is not None
        for members, own in zip(data.members, _seeds(seed, len(data.members)), strict=True):
            yield self.model(data.common.take(members), own)

    def model(self, dataset: Dataset, seed: int) -> nn.Module:
        model: object = self.function(dataset, seed)
        if not isinstance(model, nn.Module):
            found = f"a function that returned {type(model).__name__}"
            wanted, remedy = "one that returns the trained nn.Module", "return the model at its end"
            raise validate.invalid_input("trainer", found, wanted, remedy)
        return model.eval()

    def describe(self) -> dict[str, str]:
        return {"function": _text(self.function), "loss": _text(self.loss)}


@dataclass(frozen=True, eq=False)
class Game:
    """An attack that is played `trials` times in each world; any block can be played anywhere."""

    trainer: Trainer
    attack: Attack
    trials: int
    block: int
    seed: int = field(repr=False)

    def __call__(self, block: int) -> dict[str, NDArray[Any]]:
        return self.play(block)

    def with_compute(self, change: Change) -> Game:
        return dataclasses.replace(self, trainer=self.trainer.with_compute(change))

    def play(self, block: int) -> dict[str, NDArray[Any]]:
        """Scores and worlds of a block's trials, even trials in world `in`.

        A model that has diverged has no score. The adversary fixes before the trials what it counts
        as in both worlds; by default it is least like world `in`.
        """
        arrays = self.trainer.play(
            self.attack, trials=2 * self.trials, block=block, size=self.block, seed=self.seed
        )
        lost, probes = np.isnan(arrays["score"]), self.attack.probes
        settled = -np.inf if probes is None else probes.diverged_score
        numbers = block * self.block + np.arange(len(lost))
        score = np.where(lost, settled, arrays["score"])
        return {**arrays, "score": score, "in_world": numbers % 2 == 0, "diverged": lost}


def _seeds(seed: int | tuple[int, int], count: int) -> list[int]:
    return [int(each) for each in np.random.SeedSequence(seed).generate_state(count, np.uint32)]


def _text(value: object) -> str:
    """A value as text; a function by where it is, and nothing by its address."""
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}:{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", str(value))


def function_named(path: str) -> TrainingFunction:
    """The training function that "module:function" stands for."""
    module, _, name = path.partition(":")
    remedy = "give module:function, with the module where Python finds it"
    if not module or not name:  # `runs.runner.code_of` knows code by its colon: import nothing else
        raise validate.invalid_value("trainer", path, "of the form module:function", remedy)
    reason = "it is not callable"
    try:
        found: TrainingFunction = getattr(importlib.import_module(module), name)
        if callable(found):
            return found
    except Exception as error:  # a module may raise anything while it is imported
        reason = f"{type(error).__name__}: {error}"
    raise validate.invalid_value("trainer", path, f"a function to import ({reason})", remedy)
