"""Trainers for any share of a pool: one recipe, or a function of the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from torch import nn

from dprime import validate
from dprime.attack.trainer import (
    EngineTrainer,
    FunctionTrainer,
    Trainer,
    TrainingFunction,
    function_named,
)
from dprime.curve import TradeOff
from dprime.data.dataset import Dataset
from dprime.data.devices import device_named
from dprime.guarantees import EpsilonDelta
from dprime.membership.recipe import Recipe
from dprime.train import Compute
from dprime.train.models import network_named


@dataclass(frozen=True, eq=False)
class Trainers:
    """Gives the trainer for a probability of being kept, and what is claimed of it.

    Attributes:
        recipe: of the engine; for a function of one's own only its claim counts.
        pool: the records.
        network: what the engine trains.
        own: given a data set and a seed, returns a model.
        device: "cpu" or "cuda".
        memory: in GB.
    """

    recipe: Recipe
    pool: Dataset
    network: nn.Module | None = None
    own: TrainingFunction | None = None
    device: str = "cpu"
    memory: float = 2.0

    @classmethod
    def named(
        cls,
        recipe: Recipe,
        pool: Dataset,
        *,
        model: str,
        own: str | None = None,
        device: str = "cpu",
        memory: float = 2.0,
    ) -> Self:
        """From the names of a network and of a function, as the command line has them."""
        if own is None:
            device_named(device)
            validate.positive("memory", memory, example=2.0)
        function = None if own is None else function_named(own)
        network = network_named(model, pool) if own is None else None
        return cls(recipe, pool, network, function, device, memory)

    def __call__(self, probability: float) -> Trainer:
        """The trainer of models on parts of the pool of this share."""
        if self.own is not None:
            return FunctionTrainer(self.own)
        assert self.network is not None
        training = self.recipe.training(len(self.pool), probability)
        return EngineTrainer(self.network, training, Compute(self.device, self.memory))

    def claim(self, probability: float) -> TradeOff | None:
        """The certified curve of such a training; None where it is not private.

        A function of the user's own is held to the ε of the recipe, or to its noise.
        """
        if not self.recipe.private:
            return None
        if self.own is not None and self.recipe.epsilon is not None:
            return EpsilonDelta(self.recipe.epsilon, self.recipe.delta).curve()
        return self.recipe.training(len(self.pool), probability).mechanism().curve()
