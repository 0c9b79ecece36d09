"""The answer as people read it: every metric of a curve with its value, kind and a sentence.

Table, JSON, and everything shown later are made from this one list.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dprime.curve import INDEX_FLOOR, Estimate, Kind, TradeOff

SMALLEST = 1e-290
"""Numbers below this are printed as this."""


@dataclass(frozen=True)
class Questions:
    """The conditions under which each metric is read."""

    delta: float = 1e-5
    epsilon: float = 1.0
    fpr: float = 0.01
    prior: float = 0.1
    min_tpr: float = 0.01
    success_prior: float = 0.5
    belief: float = 0.9
    belief_prior: float = 0.5
    exceeded: float = 1e-3
    max_prior: float | None = None


@dataclass(frozen=True)
class Answer:
    """One metric: its name, its value, whether it is certified, and what it means."""

    name: str
    title: str
    value: float
    kind: Kind
    conditions: dict[str, float]
    sentence: str

    def as_json(self) -> dict[str, object]:
        """Plain values; an infinite epsilon is null with a note, never NaN or Infinity."""
        finite = math.isfinite(self.value)
        shown: dict[str, object] = {"value": self.value if finite else None, "kind": self.kind}
        shown |= self.conditions
        if not finite:
            shown["note"] = "no finite value can be certified"
        return shown


def risk_profile(curve: TradeOff | Estimate, ask: Questions | None = None) -> list[Answer]:
    """Every metric of the curve, in the order in which people ask.

    >>> answers = risk_profile(TradeOff.gaussian(0.5))
    >>> answers[0].name, round(answers[0].value, 4)
    ('advantage', 0.1974)
    """
    ask = ask or Questions()
    kind = curve.kind
    most, least = ("at most", "at least") if kind == "certified" else ("about", "about")
    advantage = curve.advantage()
    answers = [
        Answer(
            "advantage", "Membership advantage", advantage, kind, {}, _advantage(advantage, most)
        ),
        Answer(
            "bayes_security",
            "Bayes security",
            security := curve.bayes_security(),
            kind,
            {},
            "On a scale from 0 (no protection) to 1 (perfect), this is "
            f"{least} {round_down(security)}.",
        ),
        Answer(
            "tpr",
            f"TPR at FPR {round_up(ask.fpr)}",
            tpr := curve.tpr(ask.fpr),
            kind,
            {"fpr": ask.fpr},
            f"Wrongly accusing {_percent(ask.fpr)} of outsiders, an attacker finds {most} "
            f"{_percent(tpr)} of the members.",
        ),
        Answer(
            "precision",
            f"Precision at prior {round_up(ask.prior)}",
            precision := curve.precision(ask.prior, ask.min_tpr),
            kind,
            {"prior": ask.prior, "min_tpr": ask.min_tpr},
            f"Where {_percent(ask.prior)} of the candidates are members, {most} "
            f'{_percent(precision)} of an attacker\'s "member" answers are right '
            f"(if they find at least {_percent(ask.min_tpr)} of the members).",
        ),
        Answer(
            "success",
            f"Success at prior {round_up(ask.success_prior)}",
            success := curve.success(ask.success_prior),
            kind,
            {"prior": ask.success_prior},
            f"Answering member or not, an attacker is right {most} {_percent(success)} of the "
            f"time; blind guessing gets "
            f"{_percent(max(ask.success_prior, 1 - ask.success_prior))}.",
        ),
        Answer(
            "belief",
            f"Belief, exceeded with probability {round_up(ask.exceeded)}",
            belief := curve.belief(ask.belief_prior, ask.exceeded),
            kind,
            {"prior": ask.belief_prior, "exceeded": ask.exceeded},
            f"Someone {_percent(ask.belief_prior)} sure that a member was in the data ends up more "
            f"than {_percent(belief)} sure {most} {_odds(ask.exceeded)}.",
        ),
        Answer(
            "belief_exceeds",
            f"Chance of a belief above {round_up(ask.belief)}",
            exceeds := curve.belief_exceeds(ask.belief, ask.belief_prior),
            kind,
            {"belief": ask.belief, "prior": ask.belief_prior},
            f"Someone {_percent(ask.belief_prior)} sure ends up more than "
            f"{_percent(ask.belief)} sure {most} {_odds(exceeds)}.",
        ),
        Answer(
            "epsilon",
            f"ε at δ {round_up(ask.delta)}",
            epsilon := curve.epsilon(ask.delta),
            kind,
            {"delta": ask.delta},
            f"The training is ({round_up(epsilon)}, {round_up(ask.delta)})-differentially private."
            if math.isfinite(epsilon)
            else "No finite ε can be certified at this δ: treat the training as not private.",
        ),
        Answer(
            "delta",
            f"δ at ε {round_up(ask.epsilon)}",
            delta := curve.delta(ask.epsilon),
            kind,
            {"epsilon": ask.epsilon},
            f"The training is ({round_up(ask.epsilon)}, {round_up(delta)})-differentially private.",
        ),
        Answer(
            "d_prime",
            "d′ (distance of the two worlds)",
            index := curve.d_prime(),
            kind,
            {"floor": INDEX_FLOOR},
            _distance(index, most),
        ),
    ]
    if ask.max_prior is not None:
        answers.append(_secret(curve, ask.max_prior))
    return answers


def _distance(index: float, most: str) -> str:
    if math.isinf(index):
        return "The worlds are so far apart that an attacker hardly ever errs."
    return (
        f"Telling whether a record was used is {most} as easy as telling apart two bell curves "
        f"whose centres are {round_up(index)} standard deviations apart (for attackers with error "
        "rates of one in 10,000 or more)."
    )


def _secret(curve: TradeOff | Estimate, max_prior: float) -> Answer:
    guess = curve.secret_success(max_prior)
    most = "at most" if curve.kind == "certified" else "about"
    return Answer(
        "secret_success",
        "Guessing a secret attribute",
        guess,
        curve.kind,
        {"max_prior": max_prior},
        f"Where the likeliest value has {_percent(max_prior)}, an attacker guesses a record's "
        f"secret right {most} {_percent(guess)} of the time.",
    )


def _advantage(advantage: float, most: str) -> str:
    return (
        f'An attacker says "member" {most} '
        f"{round_up(100 * advantage)} percentage points more often of members than of outsiders."
    )


def round_up(value: float, digits: int = 3) -> str:
    """A few significant digits, rounded up: a ceiling may not shrink when it is printed."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if abs(value) < SMALLEST:
        return f"{SMALLEST:g}" if value > 0 else "-0"
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return f"{math.ceil(value / unit - 1e-9) * unit:.{digits}g}"


def round_down(value: float, digits: int = 3) -> str:
    """A few significant digits, rounded down: a floor may not rise when it is printed."""
    return round_up(-value, digits).removeprefix("-")


def _percent(share: float) -> str:
    return f"{round_up(100 * min(share, 1.0))} %"


def _odds(probability: float) -> str:
    if probability >= 0.1:
        return f"{_percent(probability)} of the time"
    if probability < 1e-15:
        return "never"
    return f"once in {float(round_down(1 / probability)):,.0f} times"
