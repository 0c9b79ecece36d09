"""What a training is: steps, clipping, noise, sampling, optimizer. Frozen, checked when made."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from dprime import validate
from dprime.mechanisms import DPSGD, Adjacency
from dprime.parameters import LEAST_NOISE, MOST_STEPS, Checked, checked, limited, one_of, parameter
from dprime.train.layers import RUN_MOVES
from dprime.train.losses import Loss, named_loss
from dprime.train.optimizers import SGD, Constant, Optimizer, Schedule

Sensitivity = Literal["global", "local"]

NOT_DP = (
    "not DP: the noise was scaled to the local sensitivity of one record in these data, and "
    "protects no other record"
)
NOT_PRIVATE = "not private: trained without noise or without clipping"
TOO_LITTLE = f"not private: a noise multiplier below {LEAST_NOISE:g} hides nothing"
TOO_LONG = f"not private: more than {MOST_STEPS:,} steps are not certified"
PRIVATE = "differentially private"

HELD = "float32 holds no other clipped gradients and their factors, so scale the loss"
CLIP_NORM = limited(partial(validate.positive, example=3.0), HELD, least=1e-12, most=1e18)


@dataclass(frozen=True)
class TrainingConfig(Checked):
    """One training with DP-SGD, or without privacy.

    Args:
        learning_rate: its peak; `schedule` says how it changes.
        clip_norm: C, the largest norm that one record's gradient keeps; None does not clip.
        noise_multiplier: z, the noise on the clipped sum over C, as everywhere; see `sigma`.
        sample_rate: each record is in a step's batch with this probability (Poisson); 1 takes all.
        expected_batch_size: what every noisy sum is divided by, a public constant. None divides by
            `sample_rate` times the number of records, so that the result shows that number: then
            the guarantee is zero-out (the number of records is public), else add-remove too.
        sensitivity: "local" scales the noise to what the differing record changes at this step, z C
            LS/GS (Bernau et al. 2021, section 5.1), with GS = C, or 2C for replace. That is not DP,
            and every result says so.
        loss: "cross-entropy", "squared-error", "binary-cross-entropy", or a function of (outputs,
            labels) that returns one loss per record and is called with one at a time.
        block: trials that are run together; a block can be run again anywhere and gives the same.

    >>> private = TrainingConfig(steps=30, learning_rate=0.005, clip_norm=3.0, noise_multiplier=8.0)
    >>> private.label
    'differentially private'
    >>> round(private.mechanism().curve().advantage(), 3), private.adjacency
    (0.268, 'zero-out')
    """

    steps: int = field(metadata=checked(partial(validate.whole, example=30)))
    learning_rate: float = field(metadata=checked(partial(validate.positive, example=0.005)))
    clip_norm: float | None = parameter(None, CLIP_NORM)
    noise_multiplier: float = parameter(0.0, validate.at_least_zero)
    sample_rate: float = parameter(1.0, validate.rate)
    expected_batch_size: float | None = parameter(
        None, partial(validate.positive, example=64), kw_only=True
    )
    optimizer: Optimizer = field(default_factory=SGD)
    schedule: Schedule = field(default_factory=Constant)
    sensitivity: Sensitivity = parameter("global", one_of("global", "local"))
    loss: str | Loss = "cross-entropy"
    block: int = parameter(1000, validate.whole)

    def check_together(self) -> None:
        if self.clip_norm is None and (self.noise_multiplier or self.sensitivity == "local"):
            remedy = "give a number such as 3.0, or noise_multiplier=0 to train without privacy"
            raise validate.invalid_value("clip_norm", None, "given when noise is added", remedy)
        named_loss(self.loss)

    @property
    def private(self) -> bool:
        return self.label == PRIVATE

    @property
    def label(self) -> str:
        """What may be said of a model trained so: private, not DP, or not private.

        It is "differentially private" exactly where `mechanism` gives a certified curve, and under
        the same conditions: docs/meaning.md#certified.
        """
        if self.noise_multiplier == 0:
            return NOT_PRIVATE
        if self.noise_multiplier < LEAST_NOISE:
            return TOO_LITTLE
        if self.sensitivity == "local":
            return NOT_DP
        return TOO_LONG if self.steps > MOST_STEPS else PRIVATE

    @property
    def adjacency(self) -> Adjacency:
        """What a guarantee compares: zero-out, unless the divisor is a public constant."""
        return "zero-out" if self.expected_batch_size is None else "add-remove"

    @property
    def sigma(self) -> float:
        """The noise's standard deviation on the clipped sum: a thousandth above z C.

        A record may move a computed sum by C and by what it does to the rounding (`layers.RUN`).
        """
        wider = 1 + RUN_MOVES if self.sensitivity == "global" else 1.0
        return self.noise_multiplier * (self.clip_norm or 0.0) * wider

    def mechanism(self) -> DPSGD:
        """What the core accounts for, if private; add-remove needs `expected_batch_size`."""
        if not self.private:
            raise validate.InputError(f"This training has no certified curve, it is {self.label}.")
        public = self.adjacency == "zero-out"
        return DPSGD(self.noise_multiplier, self.sample_rate, self.steps, public_size=public)

    def rate_at(self, step: int) -> float:
        return self.learning_rate * self.schedule.share(step, self.steps)
