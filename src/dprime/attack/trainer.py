"""How models are made: by the engine, or by a function that the user brings."""

from __future__ import annotations

import dataclasses
import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dprime import validate
from dprime.attack.game import Arrays, Attack
from dprime.data.dataset import Dataset
from dprime.train import Compute, Observer, Trained, TrainingConfig, TrainingData, evaluate, train
from dprime.train.compute import HERE
from dprime.train.losses import Loss, named_loss

Losses = NDArray[np.float64]
Side = Literal["in", "out"]

Change = Callable[[Compute], Compute]
TrainingFunction = Callable[[Dataset, int], nn.Module]
"""(data set, seed) → the trained model."""


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
    reason = "it is not callable"
    try:
        found: TrainingFunction = getattr(importlib.import_module(module), name)
        if callable(found):
            return found
    except Exception as error:  # a module may raise anything while it is imported
        reason = f"{type(error).__name__}: {error}"
    remedy = "give module:function, with the module where Python finds it"
    raise validate.invalid_value("trainer", path, f"a function to import ({reason})", remedy)
