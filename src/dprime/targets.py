"""Acceptable risks: what a user may ask `choose` to keep, each with its conditions.

A target is named by its metric and takes the metric's conditions as further keywords. The
functions below are the list of what can be asked: their names are the targets, their parameters
the conditions, their defaults the values of conditions that are left out.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dprime import validate
from dprime.curve import _Readings

Reading = Callable[[_Readings], float]


@dataclass(frozen=True)
class Target:
    """An acceptable risk: the metric, its ceiling, and its value for an attacker who is blind."""

    name: str
    conditions: Mapping[str, float]
    ceiling: float
    baseline: float
    risk: Reading
    needs: str | None = None
    """The adjacency that the question is about, where only one answers it."""

    def checked_adjacency(self, adjacency: str | None) -> str | None:
        """The adjacency to read the curve for, or an error where it cannot answer the question."""
        if self.needs and adjacency not in (None, self.needs):
            raise validate.refusal(
                "adjacency", adjacency, f"{self.needs!r} for the target {self.name}", "leave it out"
            )
        return self.needs or adjacency

    def excess(self, curve: _Readings) -> float:
        """Ln of the risk over the ceiling, both counted from the baseline: 0 or less is safe."""
        risk = max(self.risk(curve) - self.baseline, 1e-300)
        return math.log(risk) - math.log(self.ceiling - self.baseline)

    def risk_at(self, excess: float) -> float:
        """The risk with this excess."""
        return self.baseline + math.exp(excess) * (self.ceiling - self.baseline)

    @property
    def kept(self) -> str:
        """What a value on the safe side of the target does."""
        return "stays above" if self.name == "bayes_security" else "stays below"

    def in_words(self, risk: float) -> str:
        """A risk as the user named it: security instead of advantage, say."""
        value = 1.0 - risk if self.name == "bayes_security" else risk
        return f"{self.name} {value:.6g}"


def advantage(advantage: float) -> Target:
    """Membership advantage at most this."""
    ceiling = validate.inner_probability("advantage", advantage, example=0.1)
    return Target("advantage", {}, ceiling, 0.0, lambda c: c.advantage())


def bayes_security(bayes_security: float) -> Target:
    """Bayes security at least this."""
    security = validate.inner_probability("bayes_security", bayes_security, example=0.9)
    return Target("bayes_security", {}, 1.0 - security, 0.0, lambda c: c.advantage())


def tpr(tpr: float, fpr: float = 0.01) -> Target:
    """True-positive rate at most this, at a false-positive rate."""
    ceiling = validate.inner_probability("tpr", tpr, example=0.03)
    fpr = validate.inner_probability("fpr", fpr, example=0.01)
    _above("tpr", ceiling, fpr, "the fpr, which blind guessing reaches")
    return Target("tpr", {"fpr": fpr}, ceiling, fpr, lambda c: c.tpr(fpr))


def epsilon(epsilon: float, delta: float) -> Target:
    """Epsilon of differential privacy at most this, at a delta."""
    ceiling = validate.positive("epsilon", epsilon, example=3.0)
    delta = validate.inner_probability("delta", delta, example="1e-5")
    return Target("epsilon", {"delta": delta}, ceiling, 0.0, lambda c: c.epsilon(delta))


def precision(precision: float, prior: float, min_tpr: float = 0.01) -> Target:
    """Precision at most this, at a prior, of attackers with at least `min_tpr`."""
    t = validate.rate("min_tpr", min_tpr)
    return _posterior("precision", precision, prior, {"min_tpr": t}, t)


def belief(belief: float, prior: float = 0.5, exceeded: float = 1e-3) -> Target:
    """Posterior belief at most this, but for a probability of `exceeded`."""
    t = validate.rate("exceeded", exceeded, example=0.001)
    return _posterior("belief", belief, prior, {"exceeded": t}, t)


def _posterior(
    name: str, value: float, prior: float, condition: dict[str, float], t: float
) -> Target:
    ceiling = validate.inner_probability(name, value, example=0.9)
    prior = validate.inner_probability("prior", prior, example=0.1)
    _above(name, ceiling, prior, "the prior, which an attacker has before looking")
    conditions = {"prior": prior, **condition}
    return Target(name, conditions, ceiling, prior, lambda c: c.precision(prior, t))


def success(success: float, prior: float = 0.5) -> Target:
    """Share of right answers at most this, at a prior."""
    ceiling = validate.inner_probability("success", success, example=0.55)
    prior = validate.inner_probability("prior", prior)
    blind = max(prior, 1.0 - prior)
    _above("success", ceiling, blind, "what always giving the likelier answer reaches")
    return Target("success", {"prior": prior}, ceiling, blind, lambda c: c.success(prior))


def secret_success(secret_success: float, max_prior: float) -> Target:
    """Probability of guessing a secret attribute at most this; `max_prior` its likeliest value."""
    ceiling = validate.inner_probability("secret_success", secret_success, example=0.2)
    blind = validate.inner_probability("max_prior", max_prior, example=0.1)
    _above("secret_success", ceiling, blind, "max_prior, which guessing the likeliest value gets")
    reading: Reading = lambda c: c.secret_success(blind)  # noqa: E731
    # Another value of the secret is another record, so records are exchanged.
    return Target("secret_success", {"max_prior": blind}, ceiling, blind, reading, needs="replace")


TARGETS: Mapping[str, Callable[..., Target]] = {
    make.__name__: make
    for make in (
        advantage,
        bayes_security,
        tpr,
        epsilon,
        precision,
        belief,
        success,
        secret_success,
    )
}


def _above(name: str, ceiling: float, baseline: float, what: str) -> None:
    if ceiling <= baseline:
        raise validate.InputError.of(
            name,
            f"be above {baseline:g} ({what})",
            f"it is {ceiling:g}",
            f"no mechanism goes lower, so ask for more than {baseline:g}",
            value=ceiling,
        )


def parse_target(given: Mapping[str, float | None]) -> Target:
    """The one target among the keywords, with its conditions.

    >>> parse_target({"tpr": 0.03, "fpr": 0.01}).ceiling
    0.03
    """
    present = {name: value for name, value in given.items() if value is not None}
    name = validate.exactly_one(
        ", ".join(TARGETS),
        {target: present.get(target) for target in TARGETS},
        "give one target, for example advantage=0.1",
    )
    parameters = inspect.signature(TARGETS[name]).parameters
    for condition, value in present.items():
        if condition not in parameters:
            fitting = ", ".join(list(parameters)[1:]) or "no condition"
            raise validate.InputError.of(
                condition,
                f"not be given for the target {name}",
                f"it is {value}",
                f"{name} takes {fitting}",
                value=value,
            )
    for condition, parameter in parameters.items():
        if parameter.default is parameter.empty and condition not in present:
            raise validate.InputError.of(
                condition,
                f"be given with {name}",
                "it is missing",
                f"add for example {condition}={('1e-5' if condition == 'delta' else 0.1)}",
            )
    return TARGETS[name](**present)
