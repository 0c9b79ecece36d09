"""Settings of trainings on parts of a pool and of attacks on them, without PyTorch.

A field that `configured` an option is one of `dprime infer`, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, cast

from dprime import options, validate
from dprime.data.dataset import Dataset
from dprime.mechanisms import DPSGD
from dprime.membership.attacks import MembershipAttack, attack_named
from dprime.membership.signals import Bools
from dprime.option import configured
from dprime.parameters import Checked, parameter, steps_from_epochs
from dprime.solve import choose

if TYPE_CHECKING:
    from dprime.train import TrainingConfig

USUAL = ("lira", "rmia", "attack-p", "attack-r", "yeom", "baseline")
FEWEST_FALSE_ALARMS = 10  # least number allowed for a true-positive rate to be shown


@dataclass(frozen=True)
class Recipe(Checked):
    """A training described without its data.

    Give `epsilon` for noise that keeps it at `delta`, or the `noise_multiplier`, or neither for a
    training without privacy. Rate and steps follow from the expected number of records, never from
    the number that was drawn, which nothing public may depend on.

    >>> Recipe(batch_size=50, epochs=4, epsilon=3.0).training(1000, 0.5).steps
    40
    """

    batch_size: int = configured(options.BATCH_SIZE, 64, validate.whole)
    epochs: float = configured(options.EPOCHS, 20.0, validate.positive)
    epsilon: float | None = configured(options.EPSILON, None, validate.positive)
    delta: float = configured(options.DELTA, 1e-5, validate.inner_probability)
    noise_multiplier: float | None = configured(options.NOISE_MULTIPLIER, None, validate.positive)
    learning_rate: float = configured(options.LEARNING_RATE, 0.5, validate.positive)
    clip_norm: float = configured(options.CLIP_NORM, 1.0, validate.positive)
    momentum: float = configured(options.MOMENTUM, 0.0, validate.below_one)
    loss: str = "cross-entropy"

    def check_together(self) -> None:
        if self.epsilon is not None and self.noise_multiplier is not None:
            wanted, remedy = "left out with ε", "give one of them"
            raise validate.invalid_input("noise_multiplier", "given too", wanted, remedy)

    @property
    def private(self) -> bool:
        return self.epsilon is not None or self.noise_multiplier is not None

    def training(self, pool: int, probability: float) -> TrainingConfig:
        """The engine's settings for parts of a pool of this size, at this sampling probability."""
        from dprime.train import SGD, TrainingConfig  # noqa: PLC0415  it needs PyTorch

        expected = pool * validate.inner_probability("probability", probability)
        if self.batch_size > expected:
            wanted = f"at most the {expected:,.0f} records that are expected of the pool"
            remedy = "give a smaller batch, a larger pool or a larger probability"
            raise validate.invalid_value("batch_size", self.batch_size, wanted, remedy)
        rate = self.batch_size / expected
        steps = steps_from_epochs(self.epochs, rate)
        noise = self.noise_multiplier or 0.0
        if self.epsilon is not None:
            noise = _noise_for(rate, steps, self.epsilon, self.delta)
        own = {name: getattr(self, name) for name in ("learning_rate", "clip_norm", "loss")}
        own |= {"optimizer": SGD(momentum=self.momentum), "expected_batch_size": self.batch_size}
        if not self.private:
            own["clip_norm"] = None
        return TrainingConfig(steps=steps, noise_multiplier=noise, sample_rate=rate, **own)


@lru_cache(maxsize=256)
def _noise_for(rate: float, steps: int, epsilon: float, delta: float) -> float:
    training = DPSGD(sample_rate=rate, steps=steps)
    return cast(float, choose(training, epsilon=epsilon, delta=delta).noise_multiplier)


def _shares(name: str, values: object) -> tuple[float, ...]:
    return tuple(validate.inner_probability(name, value) for value in cast(Sequence[float], values))


@dataclass(frozen=True)
class InferenceConfig(Checked):
    """The settings of an inference: models, attacks, and questions to the results.

    A record is in a target's part with each of the `sampling_probabilities`; the first `records` of
    the pool are attacked, or all. Members are counted at `fpr`, the certified precision is for
    attackers who find `min_tpr` of them, and a claim is tested by calling `top_share` of the
    records members.
    """

    attacks: Sequence[str | MembershipAttack] = configured(options.ATTACKS, USUAL)
    sampling_probabilities: Sequence[float] = configured(
        options.SAMPLING_PROBABILITIES, (0.5,), _shares
    )
    shadow_probability: float = configured(
        options.SHADOW_PROBABILITY, 0.5, validate.inner_probability
    )
    shadows: int = configured(options.SHADOWS, 64, validate.whole)
    targets: int = configured(options.TARGETS, 5, partial(validate.whole, least=2))
    records: int | None = configured(options.RECORDS, None, validate.whole)
    seed: int = configured(options.SEED, 0, partial(validate.whole, least=0), repr=False)
    fpr: Sequence[float] = parameter((0.001, 0.01, 0.1), _shares)
    min_tpr: float = configured(options.MIN_TPR, 0.01, validate.rate)
    confidence: float = configured(options.CONFIDENCE, 0.95, validate.inner_probability)
    top_share: float = parameter(0.1, validate.rate)

    def check_together(self) -> None:
        names = [attack.name for attack in self.chosen]
        if not names or len(set(names)) < len(names):
            wanted, shown = "one attack or more, each once", "one twice" if names else "empty"
            raise validate.invalid_input("attacks", shown, wanted, "give lira,rmia")
        validate.whole(
            "the number of sampling_probabilities", len(self.sampling_probabilities), example=1
        )
        if self.top_share < self.min_tpr:
            limit = f"at most {self.top_share:g}, the share called members"
            raise validate.invalid_value("min_tpr", self.min_tpr, limit, "give a smaller one")

    @property
    def chosen(self) -> tuple[MembershipAttack, ...]:
        return tuple(attack_named(each) if isinstance(each, str) else each for each in self.attacks)

    def describe(self, pool: Dataset) -> dict[str, Any]:
        attacks = list(map(repr, self.chosen))
        return {**vars(self), "attacks": attacks, "records": self.attacked(pool)}

    def attacked(self, pool: Dataset) -> int:
        count = len(pool) if self.records is None else self.records
        if count > len(pool):
            wanted = f"at most {len(pool):,}"
            raise validate.invalid_value("records", count, wanted, "the pool has no more")
        return count

    def shares(self, probability: float) -> tuple[float, ...]:
        """Shares of the records that are called members to test a claim, fixed before looking."""
        return tuple({self.top_share, max(probability, self.min_tpr)})

    def counted(self, members: Bools) -> list[float]:
        """The false-positive rates that leave enough false alarms to count.

        The threshold is set on the same outsiders, so scores that tell nothing have a TPR of about
        FPR + 1/outsiders: at few false alarms that is more than a claim allows.
        """
        others = int((~members).sum(axis=1).min())
        return [rate for rate in self.fpr if rate * others >= FEWEST_FALSE_ALARMS]
