"""The attack of Yeom et al. 2018: a small loss means "member", for all records alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from dprime import validate
from dprime.membership.attacks.attack import Attack, Evidence, Part
from dprime.membership.signals import Floats


@final
@dataclass(frozen=True)
class YeomLoss(Attack):
    """The score is minus the loss. It needs nothing but the target.

    The attack's own threshold is the mean loss on the training set, see `yeom_threshold`.

    >>> from dprime.membership.signals import Signals
    >>> seen = Signals.from_binary_logits([2.0, 0.0], [1, 1])
    >>> YeomLoss().scores(Evidence(seen)).round(4).tolist()
    [-0.1269, -0.6931]
    """

    @property
    def name(self) -> str:
        """After its first author."""
        return "yeom"

    @property
    def title(self) -> str:
        """After its first author."""
        return "Yeom (loss)"

    @property
    def needs(self) -> tuple[Part, ...]:
        """The target on the records in question."""
        return ("target",)

    def _scores(self, evidence: Evidence) -> Floats:
        return -evidence.target.loss


def yeom_threshold(mean_training_loss: float) -> float:
    """The score from which on a record is called a member: minus the mean training loss.

    "Member" where the loss is at most what is usual for members (Yeom et al. 2018).
    Whoever trains a model often publishes this mean; the attacker is given it.

    >>> yeom_threshold(0.25)
    -0.25
    """
    loss = validate.at_least_zero("mean_training_loss", mean_training_loss, example=0.25)
    return float(np.negative(loss))
