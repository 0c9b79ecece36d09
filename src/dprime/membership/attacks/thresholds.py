"""Attacks with one threshold for all records; none of them needs shadow models.

Sources: Yeom et al. 2018, "Privacy risk in machine learning: analyzing the connection to
overfitting"; Ye et al. 2022, "Enhanced membership inference attacks against machine learning
models", attack P.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from dprime.membership.attacks.attack import Evidence, MembershipAttack
from dprime.membership.signals import Floats


@final
@dataclass(frozen=True)
class Baseline(MembershipAttack):
    """The same score for all: its precision is the share of members, and it needs no model."""

    name = "baseline"
    title = "Baseline (all members)"
    needs = ()

    def _scores(self, evidence: Evidence) -> Floats:
        return np.zeros(evidence.target.shape)


@final
@dataclass(frozen=True)
class YeomLoss(MembershipAttack):
    """The score is minus the loss: a small loss means "member". It needs nothing but the target.

    The paper's own threshold is the mean loss on the training set, which is often published:
    "member" where the loss is at most that.
    """

    name = "yeom"
    title = "Yeom (loss)"
    needs = ("target",)

    def _scores(self, evidence: Evidence) -> Floats:
        return evidence.target.log_p


@final
@dataclass(frozen=True)
class AttackP(MembershipAttack):
    """A threshold on the loss that comes from records that no model was trained on.

    The score is the share of the population whose loss is larger than the record's; an equal loss
    counts half. So "score >= 1 - α" is the attack at a false-positive rate of α: of n population
    records and one more like them, it says "member" of the latter with probability α, up to
    1/(n + 1).
    """

    name = "attack-p"
    title = "Attack P"
    needs = ("target", "population")

    def _scores(self, evidence: Evidence) -> Floats:
        others, loss = np.sort(evidence.of("population").loss), evidence.target.loss
        smaller = np.searchsorted(others, loss, side="left")
        smaller_or_equal = np.searchsorted(others, loss, side="right")
        share: Floats = 1.0 - (smaller + smaller_or_equal) / (2 * len(others))
        return share
