"""A training described without its data: batch and epochs, whatever share of a pool is kept.

Rate and steps follow from the expected number of records, never from the number that was drawn,
which nothing public may depend on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from dprime import validate
from dprime.mechanisms import DPSGD
from dprime.parameters import steps_from_epochs
from dprime.solve import choose
from dprime.train import SGD, TrainingConfig


@dataclass(frozen=True)
class Recipe:
    """How models are trained on parts of a pool.

    Give `epsilon` for noise that keeps it at `delta`, or the `noise_multiplier`, or neither for a
    training without privacy.

    Attributes:
        batch: expected records in a step.
        epochs: how often each record is used on average.
        learning_rate: of SGD.
        clip_norm: C; not used without noise.
        momentum: of SGD.
        epsilon: to be kept at `delta`.
        delta: of every ε.
        noise_multiplier: z = σ/C.
        loss: by which models are trained.

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
        validate.positive("epochs", self.epochs, example=20)
        validate.positive("learning_rate", self.learning_rate, example=0.5)
        validate.positive("clip_norm", self.clip_norm)
        validate.inner_probability("delta", self.delta, example=1e-5)
        if self.epsilon is not None:
            validate.positive("epsilon", self.epsilon)
            if self.noise_multiplier is not None:
                remedy = "give one of them"
                raise validate.misfit("noise_multiplier", "given too", "left out with ε", remedy)
        if self.noise_multiplier is not None:
            validate.positive("noise_multiplier", self.noise_multiplier)

    @property
    def private(self) -> bool:
        """Whether noise is added."""
        return self.epsilon is not None or self.noise_multiplier is not None

    def training(self, pool: int, probability: float) -> TrainingConfig:
        """The engine's settings for parts of a pool of so many records, each kept so likely."""
        rate, steps = rate_and_steps(pool, probability, self.batch, self.epochs)
        return TrainingConfig(
            steps=steps, learning_rate=self.learning_rate,
            clip_norm=self.clip_norm if self.private else None,
            noise_multiplier=self._noise(rate, steps), sample_rate=rate,
            expected_batch_size=self.batch,
            optimizer=SGD(momentum=self.momentum), loss=self.loss,
        )  # fmt: skip

    def _noise(self, rate: float, steps: int) -> float:
        if self.epsilon is not None:
            return _noise_for(rate, steps, self.epsilon, self.delta)
        return self.noise_multiplier or 0.0


def rate_and_steps(pool: int, probability: float, batch: int, epochs: float) -> tuple[float, int]:
    """The sampling rate and the steps that make batches of this expected size.

    >>> rate_and_steps(5000, 0.5, batch=64, epochs=20)
    (0.0256, 782)
    """
    expected = pool * validate.inner_probability("probability", probability, example=0.5)
    if batch > expected:
        remedy = "give a smaller batch, a larger pool or a larger probability"
        limit = f"at most the {expected:,.0f} records that are expected of the pool"
        raise validate.refusal("batch", batch, limit, remedy)
    rate = batch / expected
    return rate, steps_from_epochs(epochs, rate)


@lru_cache(maxsize=256)
def _noise_for(rate: float, steps: int, epsilon: float, delta: float) -> float:
    chosen = choose(DPSGD(sample_rate=rate, steps=steps), epsilon=epsilon, delta=delta)
    assert chosen.noise_multiplier is not None
    return chosen.noise_multiplier
