"""How models are trained on parts of a pool, whatever share of it is kept, and what is claimed.

Rate and steps follow from the expected number of records, never from the number that was drawn,
which nothing public may depend on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
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
from dprime.guarantees import EpsilonDelta
from dprime.mechanisms import DPSGD
from dprime.parameters import steps_from_epochs
from dprime.solve import choose
from dprime.train import SGD, Compute, TrainingConfig
from dprime.train.compute import HERE
from dprime.train.models import network_named


@dataclass(frozen=True)
class Recipe:
    """A training described without its data.

    Give `epsilon` for noise that keeps it at `delta`, or the `noise_multiplier`, or neither for a
    training without privacy.

    Attributes:
        batch: expected records in a step.
        epochs: how often each record is used on average.
        clip_norm: C; not used without noise.
        epsilon: to be kept at `delta`.
        delta: of every ε.
        noise_multiplier: z = σ/C.

    >>> Recipe(batch=50, epochs=4, epsilon=3.0).training(1000, 0.5).steps
    40
    """

    batch: int = 64
    epochs: float = 20
    learning_rate: float = 0.5
    clip_norm: float = 1.0
    momentum: float = 0.0
    epsilon: float | None = None
    delta: float = 1e-5
    noise_multiplier: float | None = None
    loss: str = "cross-entropy"

    def __post_init__(self) -> None:
        validate.whole("batch", self.batch, example=64)
        validate.inner_probability("delta", self.delta, example=1e-5)
        positive = ("epochs", "learning_rate", "clip_norm", "epsilon", "noise_multiplier")
        for name in positive:
            if getattr(self, name) is not None:
                validate.positive(name, getattr(self, name))
        if self.epsilon is not None and self.noise_multiplier is not None:
            remedy = "give one of them"
            raise validate.invalid_input("noise_multiplier", "given too", "left out with ε", remedy)

    @property
    def private(self) -> bool:
        """Whether noise is added."""
        return self.epsilon is not None or self.noise_multiplier is not None

    def training(self, pool: int, probability: float) -> TrainingConfig:
        """The engine's settings for parts of a pool of this size, each record kept this likely."""
        expected = pool * validate.inner_probability("probability", probability)
        if self.batch > expected:
            remedy = "give a smaller batch, a larger pool or a larger probability"
            limit = f"at most the {expected:,.0f} records that are expected of the pool"
            raise validate.invalid_value("batch", self.batch, limit, remedy)
        rate = self.batch / expected
        steps = steps_from_epochs(self.epochs, rate)
        noise = self.noise_multiplier or 0.0
        if self.epsilon is not None:
            noise = _noise_for(rate, steps, self.epsilon, self.delta)
        return TrainingConfig(
            steps=steps, learning_rate=self.learning_rate,
            clip_norm=self.clip_norm if self.private else None, noise_multiplier=noise,
            sample_rate=rate, expected_batch_size=self.batch,
            optimizer=SGD(momentum=self.momentum), loss=self.loss,
        )  # fmt: skip


@lru_cache(maxsize=256)
def _noise_for(rate: float, steps: int, epsilon: float, delta: float) -> float:
    chosen = choose(DPSGD(sample_rate=rate, steps=steps), epsilon=epsilon, delta=delta)
    assert chosen.noise_multiplier is not None
    return chosen.noise_multiplier


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
        cls, recipe: Recipe, pool: Dataset, *, model: str, own: str | None = None,
        compute: Compute = HERE,
    ) -> Self:  # fmt: skip
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
        """What such a training is held to: the recipe's curve, or for a training function its ε.

        None without either.
        """
        if not self.recipe.private:
            return None
        if self.own is not None and self.recipe.epsilon is not None:
            return EpsilonDelta(self.recipe.epsilon, self.recipe.delta).curve()
        return self.recipe.training(len(self.pool), probability).mechanism().curve()
