"""The risk that an attribute is inferred, from the numbers of every step.

Both forms say that the attacker's curve is Gaussian with an index μ:

    closed form     μ² = Σ_t (q R_t / z)²       (Cherubin et al. 2024, corollary 10)
    central limit   μ² = Σ_t q² term_t          (the module `worst_pair` has the term)

They are estimates, and depend on the data. Membership is the same with R = 2 and the largest term
that clipping allows, so attribute inference is never estimated to be easier. Where an estimate says
more than the certified curve for one record replaced allows, that curve stands in its place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dprime import estimates, validate
from dprime.attributes.attribute import Attribute
from dprime.attributes.worst_pair import (
    MAX_CLIPPED_DISTANCE,
    WorstPair,
    membership,
    membership_term,
)
from dprime.curve import Estimate, TradeOff
from dprime.shapes import GaussianShape

Form = Literal["central-limit", "closed-form"]
FORMS: tuple[Form, ...] = ("central-limit", "closed-form")

TWO_VALUES = 0.5
"""The prior of Cherubin et al. (section 6.2) where none is given: two values, equally likely."""


@dataclass
class StepTerms:
    """The numbers that are kept of every step: no record, but they depend on who was in the batch.

    The rate q is the probability with which a record is in the step's batch, the noise is z.
    """

    rates: list[float]
    noises: list[float]
    worst: dict[str, list[WorstPair]]  # by attribute

    def __len__(self) -> int:
        return len(self.rates)

    @property
    def differences(self) -> dict[str, list[float]]:
        """R of every step, by attribute."""
        return {name: [one.difference for one in pairs] for name, pairs in self.worst.items()}

    @property
    def terms(self) -> dict[str, list[float]]:
        """The central-limit terms of every step, by attribute."""
        return {name: [one.term for one in pairs] for name, pairs in self.worst.items()}

    def append(self, rate: float, noise: float, found: Mapping[str, WorstPair]) -> None:
        """Add a step, with the worst pair of every attribute."""
        self.rates.append(rate)
        self.noises.append(noise)
        for name, pair in found.items():
            self.worst[name].append(pair)

    def squares(self, name: str | None, form: str) -> NDArray[np.float64]:
        """The share of each step in μ², for an attribute, or for membership where it is None."""
        q, z = np.array(self.rates), np.array(self.noises)
        if form == "closed-form":
            reach = MAX_CLIPPED_DISTANCE if name is None else np.array(self.differences[name])
            return np.asarray((q * reach / z) ** 2)
        if name is None:
            return np.asarray(q**2 * np.array([membership_term(noise) for noise in z]))
        return np.asarray(q**2 * np.array(self.terms[name]))

    def estimate(self, name: str | None, form: str) -> Estimate:
        """The attacker's curve after all steps."""
        return self.estimate_at(math.sqrt(self.squares(name, form).sum()), form)

    def estimate_at(self, mu: float, form: str) -> Estimate:
        """The curve of an index, with the warning that belongs to its form."""
        if form == "closed-form" and len(self):
            least, rate = min(self.noises), self.rates[0]
            return estimates.attribute_inference(mu * least / rate, least, rate)
        return Estimate(GaussianShape(mu), source="central limit theorem, attribute inference")

    def count_as_membership(self, since: int) -> None:
        """Replace the numbers of all steps from one on by the most that clipping allows."""
        most = [membership(noise) for noise in self.noises[since:]]
        for pairs in self.worst.values():
            pairs[since:] = most

    def state_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        worst = {name: [[*astuple(one)] for one in pairs] for name, pairs in self.worst.items()}
        return {"rates": list(self.rates), "noises": list(self.noises), "worst": worst}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> StepTerms:
        """The numbers whose `state_dict` this is."""
        worst = {
            name: [WorstPair(r, term, place, (a, b)) for r, term, place, (a, b) in pairs]
            for name, pairs in state["worst"].items()
        }
        return cls(list(state["rates"]), list(state["noises"]), worst)


@dataclass(frozen=True)
class Moment:
    """The state of a training at the end of an epoch: Bayes securities by one form."""

    epoch: int  # expected passes over the data
    step: int  # counted from 1
    attribute: float  # against attribute inference
    membership: float  # against membership inference


def over_epochs(steps: StepTerms, name: str, form: str, least: float = 0.0) -> list[Moment]:
    """The security at the end of every epoch, and at the end; none is below `least`."""
    passes = np.cumsum(np.array(steps.rates))
    mine, theirs = (np.sqrt(np.cumsum(steps.squares(which, form))) for which in (name, None))
    found = []
    for epoch in range(1, math.ceil(float(passes[-1]) - 1e-9) + 1 if len(steps) else 0):
        at = min(int(np.searchsorted(passes, epoch - 1e-9)), len(passes) - 1)
        mu = (float(mine[at]), float(theirs[at]))
        securities = (max(least, steps.estimate_at(one, form).bayes_security()) for one in mu)
        found.append(Moment(epoch, at + 1, *securities))
    return found


@dataclass(frozen=True, eq=False)
class AttributeRisk:
    """The risk of an attribute, with that of membership for comparison.

    Attributes:
        attribute: which.
        curve: telling one value from another, an estimate, capped by the certified curve.
        membership: telling one record from another, by the same form, capped in the same way.
        certified: telling one record from another, what no attacker can beat; None where no bound
            is proved.
        steps: that were seen.
        doubt: what is doubtful about the attribute's values; None for nothing.
    """

    attribute: Attribute
    curve: Estimate
    membership: Estimate
    certified: TradeOff | None
    steps: int
    doubt: str | None = None

    def bayes_security(self) -> float:
        """β* against attribute inference: 1 is perfect, 0 is none."""
        return self.curve.bayes_security()

    def baseline_success(self) -> float:
        """The probability that the best guess without the model is right."""
        prior = self.attribute.prior
        return TWO_VALUES if prior is None else max(prior)

    def success(self, curve: Estimate | TradeOff | None = None) -> float:
        """The probability that the attacker is right: 1 − β*(1 − the likeliest value's prior).

        Without a prior, of two values that are equally likely.
        """
        return (curve or self.curve).secret_success(self.baseline_success())

    def tpr(self, fpr: float = 0.1) -> float:
        """The share of records with the sensitive value that are found at a rate of false alarms.

        Whichever value is sensitive: the others together are no easier to tell from it than the
        one that is told from it best, since the curve is concave.
        """
        return self.curve.tpr(fpr)

    def precision(self, min_tpr: float = 0.01) -> float:
        """The share of right answers among those that name the sensitive value."""
        prior, place = self.attribute.prior, self.attribute.sensitive_value
        if prior is None or place is None:
            raise validate.invalid_input(
                "prior and sensitive_value", "not both given", "given for a precision",
                "give both to the attribute",
            )  # fmt: skip
        return self.curve.precision(prior[place], min_tpr) if prior[place] else 0.0
