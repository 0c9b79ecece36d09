"""How models are made: by the engine, or by a function that the user brings."""

from __future__ import annotations

import dataclasses
import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dprime import validate
from dprime.data.dataset import Dataset
from dprime.train import Training, Worlds, evaluate, train
from dprime.train.losses import Loss, named_loss

Losses = NDArray[np.float64]

Side = Literal["in", "out"]

TrainingFunction = Callable[[Dataset, int], nn.Module]
"""(data set, seed) → the trained model."""


class Trainer(ABC):
    """Makes models; the adversary may use it too."""

    @abstractmethod
    def losses(
        self, data: Dataset | Worlds, records: Dataset, models: int, seed: int, world: Side = "in"
    ) -> Losses:
        """Of records, for models trained on a data set or on one of two worlds [model, record]."""

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """In words that are the same in every process."""

    def with_memory_fraction(self, fraction: float) -> Trainer:
        """The same in a half, a quarter, … of the memory, where it can be told."""
        return self

    def on_device(self, device: str, memory: float) -> Trainer:
        """The same on this device, in no more memory (GB) than this, where it can be told."""
        return self


@dataclass(frozen=True, eq=False)
class EngineTrainer(Trainer):
    """The engine, which shows every update.

    Attributes:
        model: the network.
        training: the recipe.
        device: where it trains.
        memory: in GB.
    """

    model: nn.Module
    training: Training
    device: str = "cpu"
    memory: float = 2.0

    def losses(
        self, data: Dataset | Worlds, records: Dataset, models: int, seed: int, world: Side = "in"
    ) -> Losses:
        """All models at once."""
        recipe = self.training if isinstance(data, Worlds) else self.alone
        trained = train(
            self.model, data, recipe, trials=models, seed=seed, world=world,
            device=self.device, memory=self.memory, progress=False,
        )  # fmt: skip
        assert trained.weights is not None
        return evaluate.losses(trained.network, trained.weights, records, self.training.loss)

    def with_memory_fraction(self, fraction: float) -> EngineTrainer:
        """In smaller slices of trials, whose numbers are the same."""
        return dataclasses.replace(self, memory=self.memory * fraction)

    def on_device(self, device: str, memory: float) -> EngineTrainer:
        """There, in slices that fit."""
        return dataclasses.replace(self, device=device, memory=min(self.memory, memory))

    @property
    def alone(self) -> Training:
        """The recipe for one data set, of which no record is in question: global sensitivity."""
        return dataclasses.replace(self.training, sensitivity="global")

    def describe(self) -> dict[str, str]:
        """The network's layers and the recipe."""
        recipe = {
            field.name: _text(getattr(self.training, field.name))
            for field in dataclasses.fields(self.training)
            if field.name != "block"
        }
        return {"model": str(self.model), **recipe}


@dataclass(frozen=True, eq=False)
class OwnTrainer(Trainer):
    """A function of the user's own, which shows the final model only.

    Attributes:
        function: given a data set and a seed, returns a model.
        loss: by which the adversary judges the model.
    """

    function: TrainingFunction
    loss: str | Loss = "cross-entropy"

    def losses(
        self, data: Dataset | Worlds, records: Dataset, models: int, seed: int, world: Side = "in"
    ) -> Losses:
        """One model after the other."""
        dataset = data.dataset(world) if isinstance(data, Worlds) else data
        seeds = np.random.SeedSequence(seed).generate_state(models, np.uint32)
        return np.stack([self.model_losses(dataset, records, int(each)) for each in seeds])

    def model_losses(self, dataset: Dataset, records: Dataset, seed: int) -> Losses:
        """Of one model [record]."""
        model = self.model(dataset, seed)
        device = next((weight.device for weight in model.parameters()), None)
        with torch.no_grad():
            outputs = model(torch.tensor(records.records, device=device))
            found = named_loss(self.loss)(outputs, torch.tensor(records.labels, device=device))
        return found.double().cpu().numpy()

    def model(self, dataset: Dataset, seed: int) -> nn.Module:
        """One model, as it is used after training."""
        model = self.function(dataset, seed)
        if not isinstance(model, nn.Module):
            raise validate.misfit(
                "trainer", f"a function that returned {type(model).__name__}",
                "one that returns the trained nn.Module", "return the model at its end",
            )  # fmt: skip
        return model.eval()

    def describe(self) -> dict[str, str]:
        """Where the function is."""
        return {"function": _text(self.function), "loss": _text(self.loss)}


def _text(value: object) -> str:
    """A value as text; a function by where it is, and nothing by its address."""
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}:{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", str(value))


def function_named(path: str) -> TrainingFunction:
    """The training function that "module:function" stands for.

    >>> function_named("os.path:join").__name__
    'join'
    """
    module, colon, name = path.partition(":")
    remedy = "give module:function, with the module where Python finds it"
    if not (module and colon and name):
        raise validate.refusal("trainer", path, "of the form module:function", remedy)
    try:
        found = getattr(importlib.import_module(module), name, None)
    except Exception as error:  # a module may raise anything while it is imported
        reason = f"{type(error).__name__}: {error}"
        raise validate.refusal("trainer", path, f"importable ({reason})", remedy) from None
    if not callable(found):
        raise validate.refusal("trainer", path, f"a function in {module}", remedy)
    function: TrainingFunction = found
    return function
