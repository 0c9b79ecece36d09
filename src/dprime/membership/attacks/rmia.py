"""RMIA asks whether the target prefers a record to the population more than other models do.

Notation: θ is the target, p(x | θ) the probability that it gives to the true class of x, p(x) the
same averaged over models with and without x, z a record that no model was trained on.
Source: Zarifzadeh, Liu and Shokri 2024, "Low-cost high-power membership inference attacks".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np
import scipy

from dprime import validate
from dprime.membership.attacks.attack import POPULATIONS, SHADOWS, Evidence, MembershipAttack
from dprime.membership.signals import Bools, Floats
from dprime.parameters import checked


@final
@dataclass(frozen=True)
class RMIA(MembershipAttack):
    """The robust membership inference attack.

    The score is the share of population records z with LR(x, z) >= γ, where
    LR(x, z) = (p(x | θ) / p(x)) / (p(z | θ) / p(z)). All ratios are taken in logarithms. p(z) is
    the average over all shadow models, none of which had z.

    Args:
        online: whether shadow models that had the record are used: p(x) is then the mean of the
            average over those that had it and the average over those that had not. Without them
            p(x) = ((1 + a) p_out(x) + 1 - a) / 2.
        gamma: γ, how much more the target must prefer x to z.
        offline_a: a, from 0 to 1, of p_in(x) ≈ a p_out(x) + 1 - a. The best a depends on the data
            and the training; find it by attacking one shadow model with the others.
    """

    name = "rmia"
    title = "RMIA"
    needs = SHADOWS + POPULATIONS
    variants = (("online", False, "offline", "offline"),)

    online: bool = True
    gamma: float = field(default=2.0, metadata=checked(validate.positive))
    offline_a: float = field(default=0.3, metadata=checked(validate.probability))

    def _models(self) -> tuple[int, int]:
        return int(self.online), 1

    def _scores(self, evidence: Evidence) -> Floats:
        everyone = evidence.of("shadow_population").log_p
        of_z = evidence.of("population").log_p - _log_mean(everyone, np.ones(everyone.shape, bool))
        of_x = evidence.target.log_p - self._log_average(evidence)
        # ln LR = of_x - of_z >= ln γ, for every pair at once: of_z sorted, and counted up to there
        with np.errstate(invalid="ignore"):
            places = np.searchsorted(np.sort(of_z), of_x - math.log(self.gamma), side="right")
        share: Floats = places / len(of_z)
        return share

    def _log_average(self, evidence: Evidence) -> Floats:
        """The logarithm of p(x) [record]."""
        inside, log_p = evidence.member_mask, evidence.of("shadows").log_p
        outside = _log_mean(log_p, ~inside)
        if self.online:
            return np.logaddexp(_log_mean(log_p, inside), outside) - math.log(2)
        # ((1 + a) p_out + 1 - a) / 2, Zarifzadeh et al. 2024, offline
        rest = math.log1p(-self.offline_a) if self.offline_a < 1 else -math.inf
        return np.logaddexp(math.log1p(self.offline_a) + outside, rest) - math.log(2)


def _log_mean(logs: Floats, chosen: Bools) -> Floats:
    """The logarithm of the mean of e^logs over the chosen models [record]; 0 where none is."""
    count = chosen.sum(0)
    total = scipy.special.logsumexp(np.where(chosen, logs, -np.inf), axis=0)
    return np.where(count > 0, total - np.log(np.maximum(count, 1)), 0.0)
