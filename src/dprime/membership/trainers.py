"""Who trains models on parts of a pool, whatever share of it is kept, and what is claimed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from torch import nn

from dprime.attack.trainer import (
    EngineTrainer,
    FunctionTrainer,
    Trainer,
    TrainingFunction,
    function_named,
)
from dprime.curve import TradeOff
from dprime.data.dataset import Dataset
from dprime.guarantees import EpsilonDelta
from dprime.membership.config import Recipe
from dprime.train import Compute
from dprime.train.compute import HERE
from dprime.train.models import network_named


@dataclass(frozen=True, eq=False)
class Trainers:
    """Gives the trainer for a probability of being kept, and what is claimed of it.

    Attributes:
        recipe: of the engine; of a training function it is what you claim.
        pool: the records.
        network: what the engine trains.
        own: instead of the engine: given a data set and a seed, returns a model.
        compute: where the engine trains.
    """

    recipe: Recipe
    pool: Dataset
    network: nn.Module | None = None
    own: TrainingFunction | None = None
    compute: Compute = HERE

    @classmethod
    def named(
        cls,
        recipe: Recipe,
        pool: Dataset,
        *,
        model: str,
        own: str | None = None,
        compute: Compute = HERE,
    ) -> Self:
        """From the names of a network and of a function, as the command line has them."""
        if own is not None:
            return cls(recipe, pool, own=function_named(own))
        _ = compute.place  # refuses a device that is not there
        return cls(recipe, pool, network_named(model, pool), compute=compute)

    def __call__(self, probability: float) -> Trainer:
        """The trainer of models on parts of the pool of this share."""
        if self.own is not None:
            return FunctionTrainer(self.own)
        assert self.network is not None
        training = self.recipe.training(len(self.pool), probability)
        return EngineTrainer(self.network, training, self.compute)

    def claim(self, probability: float) -> TradeOff | None:
        """The recipe's curve, or that of a training function's ε; None without privacy."""
        if not self.recipe.private:
            return None
        if self.own is not None and self.recipe.epsilon is not None:
            return EpsilonDelta(self.recipe.epsilon, self.recipe.delta).curve()
        return self.recipe.training(len(self.pool), probability).mechanism().curve()
