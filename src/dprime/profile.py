"""The answer as people read it: every metric of a curve with its value, kind and a sentence.

Table, JSON, and everything shown later are made from this one list.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dprime.curve import INDEX_FLOOR, Estimate, Kind, TradeOff

MEANINGLESS_EPSILON, MEANINGLESS_DELTA = 20.0, 0.5
"""Beyond these, differential privacy is a form of words."""

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
    metrics = [
        _advantage,
        _bayes_security,
        _tpr,
        _precision,
        _success,
        _belief,
        _belief_exceeds,
        _epsilon,
        _delta,
        _d_prime,
    ]
    if ask.max_prior is not None:
        metrics.append(_secret_success)
    return [metric(curve, ask) for metric in metrics]


def _most(curve: TradeOff | Estimate) -> str:
    return "at most" if curve.kind == "certified" else "about"


def _advantage(curve: TradeOff | Estimate, ask: Questions) -> Answer:
    value = curve.advantage()
    sentence = (
        f'An attacker says "member" {_most(curve)} {round_up(100 * value)} percentage points more '
        "often of members than of outsiders."
    )
    return Answer("advantage", "Membership advantage", value, curve.kind, {}, sentence)


def _bayes_security(curve: TradeOff | Estimate, ask: Questions) -> Answer:
    value = curve.bayes_security()
    least = "at least" if curve.kind == "certified" else "about"
    sentence = (
        f"On a scale from 0 (no protection) to 1 (perfect), this is {least} {round_down(value)}."
    )
    return Answer("bayes_security", "Bayes security", value, curve.kind, {}, sentence)


def _tpr(curve: TradeOff | Estimate, ask: Questions) -> Answer:
    value = curve.tpr(ask.fpr)
    sentence = (
        f"Wrongly accusing {given(100 * ask.fpr)} % of outsiders, an attacker finds "
        f"{_most(curve)} {percent_up(value)} of the members."
    )
    title = f"TPR at FPR {given(ask.fpr)}"
    return Answer("tpr", title, value, curve.kind, {"fpr": ask.fpr}, sentence)


def _precision(curve: TradeOff | Estimate, ask: Questions) -> Answer:
    value = curve.precision(ask.prior, ask.min_tpr)
    sentence = (
        f"Where {given(100 * ask.prior)} % of the candidates are members, {_most(curve)} "
        f'{percent_up(value)} of an attacker\'s "member" answers, counted over many trainings, are '
        f"right (of attackers who find at least {given(100 * ask.min_tpr)} % of the members)."
    )
    conditions = {"prior": ask.prior, "min_tpr": ask.min_tpr}
    title = f"Precision at prior {given(ask.prior)}"
    return Answer("precision", title, value, curve.kind, conditions, sentence)


def _success(curve: TradeOff | Estimate, ask: Questions) -> Answer:
    value, prior = curve.success(ask.success_prior), ask.success_prior
    sentence = (
        f"Answering member or not, an attacker is right {_most(curve)} {percent_up(value)} of the "
        f"time; blind guessing gets {given(100 * max(prior, 1 - prior))} %."
    )
    title = f"Success at prior {given(prior)}"
    return Answer("success", title, value, curve.kind, {"prior": prior}, sentence)


def _belief(curve: TradeOff | Estimate, ask: Questions) -> Answer:
    value = curve.belief(ask.belief_prior, ask.exceeded)
    sentence = (
        f"Someone {given(100 * ask.belief_prior)} % sure that a member was in the data ends up "
        f"more than {percent_up(value)} sure {_most(curve)} {_odds(ask.exceeded)}."
        if percent_up(value) != percent_up(1.0)
        else "No limit below certainty can be given for what someone may come to believe."
        if curve.kind == "certified"
        else "By this estimate, someone may come to be certain."
    )
    conditions = {"prior": ask.belief_prior, "exceeded": ask.exceeded}
    title = f"Belief, exceeded with probability {given(ask.exceeded)}"
    return Answer("belief", title, value, curve.kind, conditions, sentence)


def _belief_exceeds(curve: TradeOff | Estimate, ask: Questions) -> Answer:
    value = curve.belief_exceeds(ask.belief, ask.belief_prior)
    sentence = (
        f"Someone {given(100 * ask.belief_prior)} % sure that a member was in the data ends up "
        f"more than {given(100 * ask.belief)} % sure {_most(curve)} {_odds(value)}."
        if value > 0
        else f"{_nobody(curve)} ends up more than {given(100 * ask.belief)} % sure."
    )
    conditions = {"belief": ask.belief, "prior": ask.belief_prior}
    title = f"Chance of a belief above {given(ask.belief)}"
    return Answer("belief_exceeds", title, value, curve.kind, conditions, sentence)


def _epsilon(curve: TradeOff | Estimate, ask: Questions) -> Answer:
    value = curve.epsilon(ask.delta)
    title = f"ε at δ {given(ask.delta)}"
    sentence = _dp_sentence(value, ask.delta, curve)
    return Answer("epsilon", title, value, curve.kind, {"delta": ask.delta}, sentence)


def _delta(curve: TradeOff | Estimate, ask: Questions) -> Answer:
    value = curve.delta(ask.epsilon)
    title = f"δ at ε {given(ask.epsilon)}"
    sentence = _dp_sentence(ask.epsilon, value, curve)
    return Answer("delta", title, value, curve.kind, {"epsilon": ask.epsilon}, sentence)


def _dp_sentence(epsilon: float, delta: float, curve: TradeOff | Estimate) -> str:
    if curve.kind == "estimate":
        pair = f"({round_up(epsilon)}, {round_up(delta)})"
        return f"By this estimate (ε, δ) is about {pair}, which is no guarantee."
    if math.isinf(epsilon):
        return "No finite ε can be certified at this δ: treat the training as not private."
    pair = f"({round_up(epsilon)}, {round_up(delta)})-differentially private"
    if epsilon > MEANINGLESS_EPSILON or delta > MEANINGLESS_DELTA:
        return f"Formally {pair}, which is no protection to speak of."
    if epsilon == 0:
        return f"The training is {pair}: the δ alone covers all that it reveals."
    return f"The training is {pair}."


def _d_prime(curve: TradeOff | Estimate, ask: Questions) -> Answer:
    value = curve.d_prime()
    sentence = (
        f"Telling whether a record was used is {_most(curve)} as easy as telling apart two bell "
        f"curves whose centres are {round_up(value)} standard deviations apart (for attackers with "
        "error rates of one in 10,000 or more)."
        if math.isfinite(value)
        else f"{_no_limit(curve)} an attacker may hardly ever err."
    )
    title = "d′ (distance of the two worlds)"
    return Answer("d_prime", title, value, curve.kind, {"floor": INDEX_FLOOR}, sentence)


def _nobody(curve: TradeOff | Estimate) -> str:
    return "Nobody" if curve.kind == "certified" else "By this estimate, hardly anyone"


def _no_limit(curve: TradeOff | Estimate) -> str:
    return "No limit can be given:" if curve.kind == "certified" else "By this estimate,"


def _secret_success(curve: TradeOff | Estimate, ask: Questions) -> Answer:
    assert ask.max_prior is not None
    value = curve.secret_success(ask.max_prior)
    sentence = (
        f"Where the likeliest value has {given(100 * ask.max_prior)} %, an attacker guesses a "
        f"record's secret right {_most(curve)} {percent_up(value)} of the time."
    )
    conditions = {"max_prior": ask.max_prior}
    title = "Guessing a secret attribute"
    return Answer("secret_success", title, value, curve.kind, conditions, sentence)


def given(value: float) -> str:
    """A number that the user gave, short, but never rounded to certainty."""
    text = f"{value:.6g}"
    return f"{value:.12g}" if float(text) in (0.0, 1.0, 100.0) else text


def round_up(value: float, digits: int = 4) -> str:
    """A few significant digits, rounded up: a ceiling may not shrink when it is printed."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if abs(value) < SMALLEST:
        return f"{SMALLEST:g}" if value > 0 else "-0"
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return f"{math.ceil(value / unit - 1e-14 * abs(value / unit)) * unit:.{digits}g}"


def round_down(value: float, digits: int = 4) -> str:
    """A few significant digits, rounded down: a floor may not rise when it is printed.

    >>> round_down(0.123456), round_down(-0.123456)
    ('0.1234', '-0.1235')
    """
    text = round_up(-value, digits)
    return text.removeprefix("-") if text.startswith("-") else text if value == 0 else f"-{text}"


def percent_up(share: float) -> str:
    """A share that is a ceiling."""
    return f"{round_up(100 * min(share, 1.0))} %"


def percent_down(share: float) -> str:
    """A share that is a floor."""
    return f"{round_down(100 * max(share, 0.0))} %"


def times_up(probability: float) -> str:
    """How many times there are to one occasion, rounded down, so that the chance is not smaller.

    >>> times_up(0.015), times_up(1e-3)
    ('66', '1,000')
    """
    return f"{math.floor(float(round_down(1 / max(probability, SMALLEST), 3))):,}"


def _odds(probability: float) -> str:
    if probability >= 0.1:
        return f"{percent_up(probability)} of the time"
    return f"once in {times_up(probability)} times"
