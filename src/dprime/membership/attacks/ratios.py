"""Attacks that compare likelihoods: LiRA and RMIA.

Notation: θ is the target, p(x | θ) the probability that it gives to the true class of x, and φ =
ln(p / (1 - p)) its logit.

LiRA asks whether the target is as sure of a record as models with it, or models without it. For
each record the shadow models that had it give a Gaussian (μ_in, σ_in), those that had not give
(μ_out, σ_out). Source: Carlini et al. 2022, "Membership inference attacks from first principles",
algorithm 1, and its offline form.

RMIA asks whether the target prefers a record to the population more than other models do. p(x) is
p(x | θ) averaged over models with and without x, z a record that no model was trained on. Source:
Zarifzadeh, Liu and Shokri 2024, "Low-cost high-power membership inference attacks".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
import scipy

from dprime import validate
from dprime.membership.attacks.attack import POPULATIONS, SHADOWS, MembershipAttack
from dprime.membership.signals import Bools, Floats, Signals
from dprime.parameters import one_of, parameter

Variance = Literal["per-record", "fixed"]

LEAST_DEVIATION = 1e-6
"""The least deviation of φ: models compute in float32, so smaller ones are rounding."""


@final
@dataclass(frozen=True)
class LiRA(MembershipAttack):
    """The likelihood-ratio attack.

    The score is ln N(φ; μ_in, σ_in) - ln N(φ; μ_out, σ_out). Without models that had the record
    (`online=False`) it is (φ - μ_out) / σ_out, which orders records as the one-sided probability Φ
    of it does. The `variance` is "per-record", from the record's own models (at least two on each
    side), or "fixed", one for all records on each side: the squared deviations from each record's
    own mean, summed, over (models - 1) summed. Both are unbiased.
    """

    name = "lira"
    title = "LiRA"
    needs = SHADOWS
    variants = (
        ("online", False, "offline", "offline"),
        ("variance", "fixed", "fixed", "fixed variance"),
    )

    online: bool = True
    variance: Variance = parameter("per-record", one_of("per-record", "fixed"))

    def _models(self) -> tuple[int, int]:
        """The models that each side needs: two for a variance of each record's own."""
        least = 2 if self.variance == "per-record" else 1
        return least if self.online else 0, least

    def _scores(self, target: Signals, shadows: Signals, members: Bools) -> Floats:
        z_out, deviation_out = self._standardised(target.logit, shadows.logit, ~members)
        if not self.online:
            return z_out
        z_in, deviation_in = self._standardised(target.logit, shadows.logit, members)
        # Carlini et al. 2022, algorithm 1: ln of N(φ; in) / N(φ; out)
        ratio: Floats = (z_out**2 - z_in**2) / 2 + np.log(deviation_out / deviation_in)
        return ratio

    def _standardised(self, phi: Floats, shadows: Floats, side: Bools) -> tuple[Floats, Floats]:
        """(φ - μ) / σ and σ of one side [record]; the values are 0 and wrong without models."""
        count = side.sum(0)
        mean = np.where(side, shadows, 0.0).sum(0) / np.maximum(count, 1)
        squares = np.where(side, (shadows - mean) ** 2, 0.0).sum(0)
        freedom = np.maximum(count - 1, 0)
        if self.variance == "fixed":
            squares, freedom = squares.sum(keepdims=True), freedom.sum(keepdims=True)
            if not freedom[0]:
                wanted = "two models on one side for some record"
                remedy = "train more shadow models"
                raise validate.invalid_input("members", "such that no record has", wanted, remedy)
        deviation = np.maximum(np.sqrt(squares / np.maximum(freedom, 1)), LEAST_DEVIATION)
        with np.errstate(invalid="ignore"):  # a target that diverged has no φ
            return (phi - mean) / deviation, deviation


@final
@dataclass(frozen=True)
class RMIA(MembershipAttack):
    """The robust membership inference attack.

    The score is the share of population records z with LR(x, z) >= γ, where LR(x, z) = (p(x | θ) /
    p(x)) / (p(z | θ) / p(z)). p(z) is the average over all shadow models, none of which had z. With
    `online`, p(x) is the mean of the average over those that had it and the average over those that
    had not; else ((1 + a) p_out(x) + 1 - a) / 2, with a = `offline_a` from 0 to 1 of p_in(x) ≈ a
    p_out(x) + 1 - a: find the best by attacking one shadow model with the others.
    """

    name = "rmia"
    title = "RMIA"
    needs = SHADOWS + POPULATIONS
    variants = (("online", False, "offline", "offline"),)

    online: bool = True
    gamma: float = parameter(2.0, validate.positive)
    offline_a: float = parameter(0.3, validate.probability)

    def _models(self) -> tuple[int, int]:
        return int(self.online), 1

    def _scores(
        self, target: Signals, shadows: Signals, members: Bools, *population: Signals
    ) -> Floats:
        of_target, of_shadows = (signals.log_p for signals in population)
        of_z = of_target - _log_mean(of_shadows, np.ones(of_shadows.shape, bool))
        of_x = target.log_p - self._log_average(shadows.log_p, members)
        # ln LR = of_x - of_z >= ln γ, for every pair at once: of_z sorted, and counted up to there
        with np.errstate(invalid="ignore"):
            places = np.searchsorted(np.sort(of_z), of_x - math.log(self.gamma), side="right")
        share: Floats = places / len(of_z)
        return share

    def _log_average(self, log_p: Floats, inside: Bools) -> Floats:
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
