"""What may be asked of an audit: one metric with its conditions, read off any curve.

Names, conditions and defaults are those of `profile.Questions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from dprime import validate
from dprime.curve import TradeOff, _Readings
from dprime.profile import Questions, risk_profile, round_down

BLIND = TradeOff.gaussian(0.0)
"""The curve of guessing."""


@dataclass(frozen=True)
class _Kind:
    """A metric: where `Questions` keeps its conditions, how it is read, and what it is called."""

    fields: Mapping[str, str]
    read: Callable[..., float]
    phrase: str


def _epsilon(curve: _Readings, delta: float) -> float:
    """Epsilon of both directions; an audit may also ask for delta = 0, which no curve does."""
    if delta > 0:
        return curve.epsilon(delta)
    return max(curve.shape.epsilon(0.0), curve.shape.reversed().epsilon(0.0))


KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        "epsilon": _Kind({"delta": "delta"}, _epsilon, "an ε at δ = {delta:g}"),
        "advantage": _Kind({}, lambda c: c.advantage(), "an advantage"),
        "tpr": _Kind({"fpr": "fpr"}, lambda c, fpr: c.tpr(fpr), "a TPR at FPR {fpr:g}"),
        "precision": _Kind(
            {"prior": "prior", "min_tpr": "min_tpr"},
            lambda c, prior, min_tpr: c.precision(prior, min_tpr),
            "a precision at prior {prior:g} and TPR {min_tpr:g}",
        ),
        "success": _Kind(
            {"prior": "success_prior"},
            lambda c, prior: c.success(prior),
            "a success at prior {prior:g}",
        ),
        "d_prime": _Kind({}, lambda c: c.d_prime(), "a d′"),
    }
)
"""Every metric that an audit can bound from below: each grows with the curve."""


@dataclass(frozen=True)
class Metric:
    """One question: a metric's name and its conditions, defaults for those left out.

    Args:
        name: "epsilon", "advantage", "tpr", "precision", "success" or "d_prime". A lower curve
            bounds no posterior belief, so none is asked for: "precision" is what it bounds.
        conditions: "delta" for epsilon (0 is allowed), "fpr" for tpr, "prior" and "min_tpr" for
            precision, "prior" for success.

    >>> metric = Metric("tpr", {"fpr": 0.05})
    >>> metric.title, round(metric.read(TradeOff.gaussian(1.0)), 4)
    ('TPR at FPR 0.05', 0.2595)
    >>> metric.sentence(0.2595)
    'This attacker reaches a TPR at FPR 0.05 of at least 0.2595.'
    """

    name: str
    conditions: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        validate.one_of("metric", self.name, tuple(KINDS))
        object.__setattr__(self, "conditions", MappingProxyType(self._completed()))
        self.read(BLIND)  # the curve checks the conditions' values

    def _completed(self) -> dict[str, float]:
        fields, defaults = KINDS[self.name].fields, Questions()
        for name, value in self.conditions.items():
            if name not in fields:
                remedy = f"{self.name} takes {', '.join(fields) or 'no condition'}"
                raise validate.refusal(name, value, f"left out for {self.name}", remedy)
        given = {name: getattr(defaults, source) for name, source in fields.items()}
        given |= self.conditions
        if self.name == "epsilon":
            given["delta"] = validate.below_one("delta", given["delta"], example="1e-5")
        return given

    def __hash__(self) -> int:
        return hash((self.name, *sorted(self.conditions.items())))

    @property
    def title(self) -> str:
        """What tables call it, as `profile` has it."""
        fields = KINDS[self.name].fields
        ask = Questions(**{fields[name]: value for name, value in self.conditions.items()})
        if self.name == "epsilon" and not ask.delta:
            return "ε at δ 0"
        answers = risk_profile(BLIND, ask)
        return next(answer.title for answer in answers if answer.name == self.name)

    @property
    def phrase(self) -> str:
        """What a sentence calls it, with an article."""
        return KINDS[self.name].phrase.format(**self.conditions)

    def read(self, curve: _Readings) -> float:
        """Its value on a curve: certified, an estimate, or a lower bound, as the curve is."""
        return KINDS[self.name].read(curve, **self.conditions)

    def sentence(self, value: float) -> str:
        """What a lower bound of this metric says."""
        return f"This attacker reaches {self.phrase} of at least {round_down(value)}."
