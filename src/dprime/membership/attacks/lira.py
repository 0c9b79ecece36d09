"""LiRA asks whether the target is as sure of a record as models with it, or models without it.

Notation: φ = ln(p / (1 - p)) is the logit-scaled confidence in the true class. For each record the
shadow models that had it give a Gaussian (μ_in, σ_in), those that had not give (μ_out, σ_out).
Source: Carlini et al. 2022, "Membership inference attacks from first principles", algorithm 1, and
its offline form.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, final

import numpy as np

from dprime import parameters, validate
from dprime.membership.attacks.attack import SHADOWS, Evidence, MembershipAttack
from dprime.membership.signals import Bools, Floats

Variance = Literal["per-record", "fixed"]

LEAST_DEVIATION = 1e-6
"""Deviations of φ below this count as this: models compute in float32, so such differences are
rounding, and a narrower Gaussian would turn them into certainty."""


@final
@dataclass(frozen=True)
class LiRA(MembershipAttack):
    """The likelihood-ratio attack.

    The score is ln N(φ; μ_in, σ_in) - ln N(φ; μ_out, σ_out), in logarithms throughout, so that no
    density becomes 0. Without models that had the record (`online=False`) it is
    (φ - μ_out) / σ_out: it orders records as the one-sided probability Φ of it does, and does not
    stop at 1. No deviation σ is taken below `LEAST_DEVIATION`.

    Args:
        online: whether shadow models that had the record are used, not only those that had not.
        variance: "per-record", from the record's own models (at least two on each side), or
            "fixed", one for all records on each side: the squared deviations from each record's
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
    variance: Variance = field(
        default="per-record", metadata=parameters.checked(parameters.one_of("per-record", "fixed"))
    )

    def _models(self) -> tuple[int, int]:
        """On each side that is used; a variance of the record's own needs two."""
        least = 2 if self.variance == "per-record" else 1
        return least if self.online else 0, least

    def _scores(self, evidence: Evidence) -> Floats:
        phi, shadows = evidence.target.logit, evidence.of("shadows").logit
        z_out, deviation_out = self._standardised(phi, shadows, ~evidence.member_mask)
        if not self.online:
            return z_out
        z_in, deviation_in = self._standardised(phi, shadows, evidence.member_mask)
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
