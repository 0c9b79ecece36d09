"""The registry of metrics: every number that is read off a curve, declared once.

Tables, JSON, sentences, charts and options are made from the entries: the conditions are options,
and so is each metric with a `limit`, which `choose` can target. Loads no NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from dprime import validate
from dprime.option import NUMBER, SHARE, Option
from dprime.text import percent_up

Kind = Literal["certified", "estimate", "lower bound"]
At = Mapping[str, float]  # the values of a metric's conditions

INDEX_FLOOR = 1e-4  # error rates that d' looks at; below, no Gaussian bounds a curve with delta > 0
MEANINGLESS_EPSILON, MEANINGLESS_DELTA = 20.0, 0.5  # above, a guarantee is meaningless


@dataclass(frozen=True)
class Observation:
    """How an audit speaks of a metric that it bounds from below.

    `{who}` reaches `{least}` ("at least") `{reached}`; `{by}` is what limits the attacker.
    """

    phrase: str  # the metric with an article
    reached: str  # what was observed, for laymen
    picture: str  # what a picture of it and of the claim shows
    allowed: str = "{by} allows {allowed:%}"


@dataclass(frozen=True, eq=False)
class Metric:
    """One metric. Templates take the conditions by name, in the formats of `dprime.text`.

    `say` is a sentence without mathematics: a template, or a function of value, kind and conditions
    that returns one. `{x}` is the value, `{most}` "at most", "at least" or "about", `{blind}` what
    guessing reaches.
    """

    name: str
    title: str
    say: str | Callable[[float, Kind, At], str]
    conditions: Mapping[str, float | None] = field(default_factory=dict)  # None: must be given
    read: Callable[..., float] | None = None  # where it is not the curve's method of that name
    stated: At = field(default_factory=dict)  # no conditions, but shown beside the value
    blind: Callable[[At], float] = lambda _: 0.0  # what guessing reaches
    limit: str = ""  # the help of its option, where `choose` can target it
    example: float | None = None  # an acceptable value of a target
    share: bool = True  # and not a number without a limit
    rises: bool = True  # with the attacker's success; Bayes security falls
    adjacency: str | None = None  # the only one that answers the question
    listed: bool = True  # a profile has it, once its conditions are known
    observation: Observation | None = None  # None: an audit does not bound it


_SURE = "Someone {belief_prior:%} sure that a member was in the data ends up more than "


def _belief(value: float, kind: Kind, _: At) -> str:
    if percent_up(value) != percent_up(1.0):
        return _SURE + "{x:%} sure {most} {exceeded:odds}."
    if kind == "certified":
        return "No limit below certainty can be given for what someone may come to believe."
    return "By this estimate, someone may come to be certain."


def _belief_exceeds(value: float, kind: Kind, _: At) -> str:
    if value > 0:
        return _SURE + "{belief_level:%} sure {most} {x:odds}."
    nobody = "Nobody" if kind == "certified" else "By this estimate, hardly anyone"
    return nobody + " ends up more than {belief_level:%} sure."


def _differential_privacy(pair: str, epsilon: float, delta: float, kind: Kind) -> str:
    if kind == "estimate":
        return f"By this estimate (ε, δ) is about {pair}, which is no guarantee."
    if math.isinf(epsilon):
        return "No finite ε can be certified at this δ: treat the training as not private."
    pair += "-differentially private"
    if epsilon > MEANINGLESS_EPSILON or delta > MEANINGLESS_DELTA:
        return f"Formally {pair}, which offers no meaningful protection."
    if epsilon == 0:
        return f"The training is {pair}: the δ alone covers all that it reveals."
    return f"The training is {pair}."


def _d_prime(value: float, kind: Kind, _: At) -> str:
    if math.isfinite(value):
        return (
            "Telling whether a record was used is {most} as easy as telling apart two bell curves "
            "whose centres are {x} standard deviations apart (for attackers with error rates of "
            "one in 10,000 or more)."
        )
    no_limit = "No limit can be given:" if kind == "certified" else "By this estimate,"
    return f"{no_limit} an attacker may hardly ever err."


def _epsilon(curve: Any, delta: float) -> float:
    if delta != 0:
        validate.below_one("delta", delta, example="1e-5")
        return float(curve.epsilon(delta))
    return float(max(curve.shape.epsilon(0.0), curve.shape.reversed().epsilon(0.0)))


_ENTRIES = (
    Metric(
        "advantage",
        "Membership advantage",
        'An attacker says "member" {most} {x:points} percentage points more often of members '
        "than of outsiders.",
        limit="Largest acceptable membership advantage",
        example=0.1,
        observation=Observation(
            "an advantage",
            "{who} says “member” {least}{reached:points} percentage points more often of members "
            "than of others",
            "How much more often the attacker says “member” of members than of others",
            "{by} allows {allowed:points}",
        ),
    ),
    Metric(
        "bayes_security",
        "Bayes security",
        "On a scale from 0 (no protection) to 1 (perfect), this is {most} {x}.",
        blind=lambda _: 1.0,
        limit="Least acceptable Bayes security",
        example=0.9,
        rises=False,
    ),
    Metric(
        "tpr",
        "TPR at FPR {fpr}",
        "Wrongly accusing {fpr:%} of outsiders, an attacker finds {most} {x:%} of the members.",
        {"fpr": 0.01},
        blind=lambda at: at["fpr"],
        limit="Largest acceptable TPR, at --fpr",
        example=0.03,
        observation=Observation(
            "a TPR at FPR {fpr}",
            "{who}, wrongly accusing {fpr:%} of outsiders, finds {least}{reached:%} of the members",
            "Members found, while {fpr:%} of outsiders are wrongly accused",
        ),
    ),
    Metric(
        "precision",
        "Precision at prior {prior}",
        "Where {prior:%} of the candidates are members, {most} {x:%} of an attacker's "
        '"member" answers, counted over many trainings, are right (of attackers who find at '
        "least {min_tpr:%} of the members).",
        {"prior": 0.1, "min_tpr": 0.01},
        blind=lambda at: at["prior"],
        limit="Largest acceptable precision of attackers that reach --min-tpr",
        example=0.9,
        observation=Observation(
            "a precision at prior {prior} and TPR {min_tpr}",
            "{who}, where {prior:%} of the candidates are members and {min_tpr:%} of the members "
            "are found, is right in {least}{reached:%} of the “member” answers",
            "“Member” answers that are right, where {prior:%} of the candidates are members",
        ),
    ),
    Metric(
        "success",
        "Success at prior {prior}",
        "Answering member or not, an attacker is right {most} {x:%} of the time; blind "
        "guessing gets {blind:%}.",
        {"prior": 0.5},
        blind=lambda at: max(at["prior"], 1.0 - at["prior"]),
        limit="Largest acceptable success, at --prior",
        example=0.55,
        observation=Observation(
            "a success at prior {prior}",
            "{who}, where {prior:%} of the candidates are members, is right in "
            "{least}{reached:%} of the answers",
            "Answers that are right, where {prior:%} of the candidates are members",
        ),
    ),
    Metric(
        "belief",
        "Belief, exceeded with probability {exceeded}",
        _belief,
        {"belief_prior": 0.5, "exceeded": 1e-3},
        blind=lambda at: at["belief_prior"],
        limit="Largest acceptable belief from --belief-prior, but for a probability of --exceeded",
        example=0.9,
    ),
    Metric(
        "belief_exceeds",
        "Chance of a belief above {belief_level}",
        _belief_exceeds,
        {"belief_level": 0.9, "belief_prior": 0.5},
    ),
    Metric(
        "epsilon",
        "ε at δ {delta}",
        lambda value, kind, at: _differential_privacy("({x}, {delta})", value, at["delta"], kind),
        {"delta": 1e-5},
        read=_epsilon,
        limit="ε of the guarantee, at --delta",
        example=3.0,
        share=False,
        observation=Observation(
            "an ε at δ = {delta}",
            "{who} shows an ε (0 is perfect, and each further unit lets what is seen speak 2.7 "
            "times as strongly) of {least}{reached}",
            "ε, the measure of the proof; 0 is blind guessing",
            "{by} allows {allowed}",
        ),
    ),
    Metric(
        "delta",
        "δ at ε {epsilon_level}",
        lambda value, kind, at: _differential_privacy(
            "({epsilon_level}, {x})", at["epsilon_level"], value, kind
        ),
        {"epsilon_level": 1.0},
        share=False,
    ),
    Metric(
        "d_prime",
        "d′ (distance of the two worlds)",
        _d_prime,
        stated={"floor": INDEX_FLOOR},
        share=False,
        observation=Observation(
            "a d′",
            "{who} tells trainings with the record from those without as well as two bell curves "
            "are told apart whose centres lie {least}{reached} standard deviations apart",
            "How far apart the two worlds are, in standard deviations",
            "{by} allows {allowed}",
        ),
    ),
    Metric(
        "secret_success",
        "Guessing a secret attribute",
        "Where the likeliest value has {max_prior:%}, an attacker guesses a record's secret "
        "right {most} {x:%} of the time.",
        {"max_prior": None},
        blind=lambda at: at["max_prior"],
        limit="Largest acceptable success at guessing a secret, at --max-prior",
        example=0.2,
        adjacency="replace",  # another value of the secret is another record
    ),
    Metric(
        "reconstruction_success",
        "Success of a reconstruction",
        "Where the best guess without the model is close enough to a record in {guess:%} of "
        "the cases, an attack that sees it reconstructs the record {most} {x:%} of the time.",
        {"guess": None},
        blind=lambda at: at["guess"],
        limit="Largest acceptable success of a reconstruction, at --guess",
        example=0.05,
    ),
    Metric(
        "negative_accuracy",
        "Right when saying not a member",
        '{Most} {x:%} of an attacker\'s "not a member" answers, counted over many trainings, '
        "are right (of attackers who say so of at least {min_tnr:%} of the outsiders); saying "
        "it without a look gets {blind:%}.",
        {"prior": 0.5, "min_tnr": 0.01},
        blind=lambda at: 1.0 - at["prior"],
        listed=False,
    ),
    Metric(
        "reconstruction_trust",
        "Trust in a reconstruction",
        # Thudi et al. 2024, corollary 5.3: "it came out close to x" is a way to say "member" of x.
        # So x is named first. An attack that may put out any record picks the one that shows most.
        "Name any record without looking at the model: if an attack then reconstructs it, it was "
        "trained on with a probability of {most} {x:%} (for attacks that reconstruct it in at "
        "least {min_tpr:%} of the trainings that use it); without an attack it is {prior:%}. A "
        "record that the attack picks after seeing the model is not covered.",
        {"prior": None, "min_tpr": 0.01},
        read=lambda curve, prior, min_tpr: curve.precision(prior, min_tpr),
        listed=False,
    ),
    Metric(
        "generalisation_gap",
        "Generalisation gap",
        # Corollary 5.4: a loss in [0, B] differs in expectation by B times the total variation.
        "For every record, the expected loss of a model trained without it and that of a model "
        "trained with it differ by {most} {x} (a loss between 0 and {loss_bound}, the mean over "
        "trainings).",
        {"loss_bound": 1.0},
        read=lambda curve, loss_bound: (
            validate.positive("loss_bound", loss_bound) * curve.advantage()
        ),
        listed=False,
    ),
)
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _ENTRIES}
"""Every metric, in the order in which people ask."""

_share, _audited = partial(Option, kind=SHARE), partial(Option, kind=SHARE, table="conditions")

_CONDITIONS = (
    _audited("fpr", "False-positive rate at which the TPR is read"),
    _audited(
        "prior",
        "Share of members among the candidates, for precision and success",
        default="0.1; for success 0.5",
    ),
    _audited("min_tpr", "Smallest TPR at which an attacker counts"),
    _share("belief_prior", "Belief in membership before the attack"),
    _share("exceeded", "Probability with which the belief may be exceeded"),
    _share("belief_level", "Level of belief; the probability of exceeding it is read"),
    _share("delta", "δ at which ε is read"),
    Option("epsilon_level", "ε at which δ is read"),
    _share("max_prior", "Probability of a secret attribute's likeliest value"),
    _share("guess", "Probability that a guess without the model reconstructs a record"),
    _share("min_tnr", 'Smallest share called "not a member" of the outsiders'),
    Option("loss_bound", "Largest value of the loss"),
)
"""What metrics are read at; audits take those of the table `conditions`."""

_LIMITS = (
    Option(
        each.name,
        each.limit,
        SHARE if each.share else NUMBER,
        table="claim" if each.name == "epsilon" else "",
    )
    for each in METRICS.values()
    if each.limit
)
OPTIONS: Mapping[str, Option] = {each.name: each for each in (*_CONDITIONS, *_LIMITS)}
"""Each condition, and each metric with a limit, as an option of that name."""
