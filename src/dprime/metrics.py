"""The registry of metrics: every number that is read off a curve, declared once.

    Metric (an entry of METRICS) ──► Reading (with its conditions) ──► MetricValue (on a curve)

A reading is what a profile lists, what an audit judges by, and what `choose` keeps below a ceiling.
Tables, JSON, sentences, charts and options of the command line are made from the entries, so a new
metric is one entry here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType

from dprime import validate
from dprime.curve import INDEX_FLOOR, Kind, TradeOff, TradeOffMetrics
from dprime.text import Ceiling, Floor, Given, percent_up, round_down, round_up

MEANINGLESS_EPSILON, MEANINGLESS_DELTA = 20.0, 0.5
"""Above these values the guarantee is meaningless."""

BLIND = TradeOff.gaussian(0.0)
"""The curve of an attacker who guesses."""


@dataclass(frozen=True)
class Condition:
    """A number that a metric is read at.

    Attributes:
        default: where it is not given; None if it must be.
        help: what it is, for the command line.
        option: its name where several metrics are asked for at once, if not its own.
        explicit: whether a target must name it.
        above_zero: whether 0 is refused of a certificate; an audit may ask for it.
    """

    default: float | None
    help: str = ""
    option: str = ""
    explicit: bool = False
    above_zero: bool = False


@dataclass(frozen=True)
class Guessing:
    """What guessing reaches, given the conditions, and how a sentence names it."""

    value: Callable[[Mapping[str, float]], float]
    words: str


@dataclass(frozen=True)
class Observation:
    """How an audit speaks of a metric that it bounds from below.

    Attributes:
        phrase: the metric with an article.
        reached: what was observed, for laymen; `{reached}` is the bound.
        picture: what a picture of it and of the claim shows.
        allowed: what the claim says; `{allowed}` is its limit.
    """

    phrase: str
    reached: str
    picture: str
    allowed: str = "the claim allows {allowed:%}"


@dataclass(frozen=True, eq=False)
class Metric:
    """One metric. Templates take the conditions by name, in the formats of `dprime.text`.

    Attributes:
        name: in Python, on the command line and in JSON.
        title: in tables, a template.
        read: its value on a curve at given conditions.
        say: a sentence without mathematics, as a template or as a function of value, kind and
            conditions that returns one. `{x}` is the value, `{most}` "at most", "at least" or
            "about", `{blind}` what guessing reaches.
        conditions: in order.
        stated: numbers that are no conditions but stand beside the value.
        baseline: what guessing reaches; 0 where there is none.
        example: an acceptable value, where `choose` can keep the metric below one.
        share: whether it is a share, and not a number without a limit.
        rises: whether it grows with the attacker's success; Bayes security falls.
        adjacency: the only adjacency that answers the question.
        listed: whether a profile has it, once its conditions are known.
        observation: how an audit speaks of it; None where an audit does not bound it.
    """

    name: str
    title: str
    read: Callable[..., float]
    say: str | Callable[[float, Kind, Mapping[str, float]], str]
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    stated: Mapping[str, float] = field(default_factory=dict)
    baseline: Guessing | None = None
    example: float | None = None
    share: bool = True
    rises: bool = True
    adjacency: str | None = None
    listed: bool = True
    observation: Observation | None = None

    def option(self, condition: str) -> str:
        """What a condition is called where several metrics are asked for at once."""
        return self.conditions[condition].option or condition


@dataclass(frozen=True)
class MetricValue:
    """A metric's value: its name, whether it is certified, and what it means."""

    name: str
    title: str
    value: float
    kind: Kind
    conditions: Mapping[str, float]
    sentence: str

    def as_json(self) -> dict[str, object]:
        """JSON values; an infinite epsilon is null with a note, never NaN or Infinity."""
        finite = math.isfinite(self.value)
        note = {} if finite else {"note": "no finite value can be certified"}
        value = self.value if finite else None
        return {"value": value, "kind": self.kind, **self.conditions, **note}

    def shown(self) -> str:
        """The number as people read it, its digits on the safe side.

        >>> MetricValue("bayes_security", "Bayes security", 0.77777, "certified", {}, "").shown()
        '≥ 0.7777'
        """
        metric = METRICS.get(self.name)
        if metric is not None and not metric.rises and self.kind == "certified":
            return f"≥ {round_down(self.value)}"
        return round_up(self.value).replace("inf", "no limit")


@dataclass(frozen=True)
class Reading:
    """A metric with its conditions: what is asked of a curve.

    Args:
        name: of an entry of `METRICS`.
        conditions: by name; defaults for those that are not given.

    >>> reading = Reading("tpr", {"fpr": 0.05})
    >>> reading.title, round(reading.value(TradeOff.gaussian(1.0)), 4)
    ('TPR at FPR 0.05', 0.2595)
    >>> reading.sentence(0.2595, "lower bound")
    'This attacker reaches a TPR at FPR 0.05 of at least 0.2595.'
    """

    name: str
    conditions: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        validate.one_of("metric", self.name, tuple(METRICS))
        given: Mapping[str, float | None] = self.conditions
        known, values = self.metric.conditions, {}
        for name in given:
            if name not in known:
                remedy = f"{self.name} takes {', '.join(known) or 'no condition'}"
                raise validate.invalid_value(name, given[name], f"left out for {self.name}", remedy)
        for name, condition in known.items():
            value = given.get(name, condition.default)
            if value is None:
                raise validate.invalid_input(
                    name, "missing", f"given with {self.name}", example(name)
                )
            values[name] = value
        object.__setattr__(self, "conditions", MappingProxyType(values))
        self.value(BLIND)  # the curve checks the conditions' values

    def __hash__(self) -> int:
        return hash((self.name, *sorted(self.conditions.items())))

    def __reduce__(self) -> tuple[type[Reading], tuple[str, dict[str, float]]]:
        return Reading, (self.name, dict(self.conditions))

    @property
    def metric(self) -> Metric:
        return METRICS[self.name]

    @property
    def title(self) -> str:
        return self._filled(self.metric.title)

    @property
    def phrase(self) -> str:
        """What a sentence about an audit calls it, with an article."""
        return self._filled(self.observation.phrase)

    @property
    def observation(self) -> Observation:
        """How an audit speaks of it; an error where an audit cannot bound it."""
        if self.metric.observation is None:
            remedy = f"give one of {', '.join(OBSERVED)}"
            raise validate.invalid_value("metric", self.name, "one that an audit can bound", remedy)
        return self.metric.observation

    @property
    def blind(self) -> float:
        """What guessing reaches."""
        baseline = self.metric.baseline
        return 0.0 if baseline is None else baseline.value(self.conditions)

    def value(self, curve: TradeOffMetrics) -> float:
        """Its value on a curve: certified, an estimate, or a lower bound, as the curve is."""
        return self.metric.read(curve, **self.conditions)

    def of(self, curve: TradeOffMetrics) -> MetricValue:
        """The value on a curve, with title and sentence."""
        return self.valued(self.value(curve), curve.kind)

    def valued(self, value: float, kind: Kind = "certified") -> MetricValue:
        """A value that is known already, with title and sentence."""
        at, sentence = {**self.conditions, **self.metric.stated}, self.sentence(value, kind)
        return MetricValue(self.name, self.title, value, kind, at, sentence)

    def sentence(self, value: float, kind: Kind = "certified") -> str:
        """What a value says to somebody without mathematics; of a lower bound, what it bounds."""
        if kind == "lower bound":
            return f"This attacker reaches {self.phrase} of at least {round_down(value)}."
        say, rises = self.metric.say, self.metric.rises
        template = say if isinstance(say, str) else say(value, kind, self.conditions)
        most = "about" if kind != "certified" else "at most" if rises else "at least"
        number = Ceiling(value) if rises else Floor(value)
        words = {"most": most, "Most": most.capitalize()}
        return self._filled(template, x=number, blind=Given(self.blind), **words)

    def _filled(self, template: str, **also: object) -> str:
        values = {name: Given(value) for name, value in self.conditions.items()}
        return template.format(**values, **also)


def profile(**conditions: float | None) -> tuple[Reading, ...]:
    """The readings of a risk profile, in the order in which people ask.

    A metric that has a condition without a default is listed where the condition is given.

    Args:
        **conditions: by their options: `prior` is that of precision and success, `belief_prior`
            that of a belief; None counts as not given.

    >>> [reading.name for reading in profile(fpr=0.001)][:3], profile(fpr=0.001)[2].title
    (['advantage', 'bayes_security', 'tpr'], 'TPR at FPR 0.001')
    """
    given = {name: value for name, value in conditions.items() if value is not None}
    for name, value in given.items():
        if name not in OPTIONS:
            remedy = f"the conditions are {', '.join(OPTIONS)}"
            raise validate.invalid_value(name, value, "left out", remedy)
    readings = []
    for metric in METRICS.values():
        conditions = {
            name: given.get(metric.option(name), condition.default)
            for name, condition in metric.conditions.items()
        }
        known = {name: value for name, value in conditions.items() if value is not None}
        if metric.listed and len(known) == len(conditions):
            readings.append(certifiable(metric.name, known))
    return tuple(readings)


def certifiable(name: str, conditions: Mapping[str, float]) -> Reading:
    """A reading of a certified curve."""
    for condition, value in conditions.items():
        known = METRICS[name].conditions.get(condition)
        if known is not None and known.above_zero:
            validate.inner_probability(condition, value, example="1e-5")
    return Reading(name, conditions)


def conditions_of(readings: Iterable[Reading]) -> dict[str, float]:
    """The conditions of a profile by their options, as `profile` takes them.

    >>> conditions_of(profile(belief_prior=0.3))["belief_prior"]
    0.3
    """
    return {
        reading.metric.option(name): value
        for reading in reversed([*readings])
        for name, value in reading.conditions.items()
    }


_usual = cache(profile)


def risk_profile(
    curve: TradeOffMetrics, readings: Iterable[Reading] | None = None
) -> list[MetricValue]:
    """Every metric of a profile, read off a curve.

    >>> values = risk_profile(TradeOff.gaussian(0.5))
    >>> values[0].name, round(values[0].value, 4)
    ('advantage', 0.1974)
    """
    return [reading.of(curve) for reading in (_usual() if readings is None else readings)]


def audited(metric: object, *, or_curve: bool = False) -> Reading:
    """The reading that an audit bounds from below; `or_curve`: "curve" would be right too."""
    if isinstance(metric, Reading) and metric.observation:
        return metric
    also = ' or "curve"' if or_curve else ""
    remedy = f'give a Reading such as Reading("advantage"){also and "," + also}'
    raise validate.invalid_value("metric", metric, f"a Reading{also}", remedy)


def example(condition: str) -> str:
    """The remedy where a condition is missing."""
    return f"add for example {condition}={'1e-5' if condition == 'delta' else 0.1}"


# Sentences that depend on the value ---------------------------------------------------------------


_SURE = "Someone {prior:%} sure that a member was in the data ends up more than "


def _belief(value: float, kind: Kind, _: Mapping[str, float]) -> str:
    if percent_up(value) != percent_up(1.0):
        return _SURE + "{x:%} sure {most} {exceeded:odds}."
    if kind == "certified":
        return "No limit below certainty can be given for what someone may come to believe."
    return "By this estimate, someone may come to be certain."


def _belief_exceeds(value: float, kind: Kind, _: Mapping[str, float]) -> str:
    if value > 0:
        return _SURE + "{belief:%} sure {most} {x:odds}."
    nobody = "Nobody" if kind == "certified" else "By this estimate, hardly anyone"
    return nobody + " ends up more than {belief:%} sure."


def _differential_privacy(epsilon: float, delta: float, kind: Kind) -> str:
    pair = f"({round_up(epsilon)}, {round_up(delta)})"
    if kind == "estimate":
        return f"By this estimate (ε, δ) is about {pair}, which is no guarantee."
    if math.isinf(epsilon):
        return "No finite ε can be certified at this δ: treat the training as not private."
    pair += "-differentially private"
    if epsilon > MEANINGLESS_EPSILON or delta > MEANINGLESS_DELTA:
        return f"Formally {pair}, which is no protection to speak of."
    if epsilon == 0:
        return f"The training is {pair}: the δ alone covers all that it reveals."
    return f"The training is {pair}."


def _d_prime(value: float, kind: Kind, _: Mapping[str, float]) -> str:
    if math.isfinite(value):
        return (
            "Telling whether a record was used is {most} as easy as telling apart two bell curves "
            "whose centres are {x} standard deviations apart (for attackers with error rates of "
            "one in 10,000 or more)."
        )
    no_limit = "No limit can be given:" if kind == "certified" else "By this estimate,"
    return f"{no_limit} an attacker may hardly ever err."


def _epsilon(curve: TradeOffMetrics, delta: float) -> float:
    """Epsilon of both directions; an audit may also ask for delta = 0, which no curve does."""
    if delta != 0:
        validate.below_one("delta", delta, example="1e-5")
        return curve.epsilon(delta)
    return max(curve.shape.epsilon(0.0), curve.shape.reversed().epsilon(0.0))


# The registry -------------------------------------------------------------------------------------

_PRIOR = Condition(
    0.1,
    "Prior of precision [0.1] and success [0.5]; choose finds a pool's share without it.",
    explicit=True,
)
_MIN_TPR = Condition(0.01, "Smallest TPR of attackers that matter [0.01].")
_BELIEF = Condition(0.9, "Posterior belief asked about [0.9].")
_EXCEEDED = Condition(1e-3, "How often a belief may be exceeded [0.001].")
_DELTA = Condition(1e-5, "δ at which ε is read [1e-5].", explicit=True, above_zero=True)
_GUESS = Condition(None, "Probability that a guess without the model reconstructs a record.")
_BELIEF_PRIOR = Condition(0.5, "Belief before looking [0.5].", "belief_prior")
_BEFORE = Guessing(lambda at: at["prior"], "the prior, which an attacker has before looking")

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "advantage",
            "Membership advantage",
            TradeOffMetrics.advantage,
            'An attacker says "member" {most} {x:points} percentage points more often of members '
            "than of outsiders.",
            example=0.1,
            observation=Observation(
                "an advantage",
                "This attacker says “member” at least {reached:points} percentage points more "
                "often of members than of others",
                "How much more often the attacker says “member” of members than of others",
                "the claim allows {allowed:points}",
            ),
        ),
        Metric(
            "bayes_security",
            "Bayes security",
            TradeOffMetrics.bayes_security,
            "On a scale from 0 (no protection) to 1 (perfect), this is {most} {x}.",
            baseline=Guessing(lambda _: 1.0, "what guessing leaves"),
            example=0.9,
            rises=False,
        ),
        Metric(
            "tpr",
            "TPR at FPR {fpr}",
            TradeOffMetrics.tpr,
            "Wrongly accusing {fpr:%} of outsiders, an attacker finds {most} {x:%} of the members.",
            {"fpr": Condition(0.01, "False-positive rate at which the TPR is read [0.01].")},
            baseline=Guessing(lambda at: at["fpr"], "the fpr, which blind guessing reaches"),
            example=0.03,
            observation=Observation(
                "a TPR at FPR {fpr}",
                "Wrongly accusing {fpr:%} of outsiders, this attacker finds at least {reached:%} "
                "of the members",
                "Members found, while {fpr:%} of outsiders are wrongly accused",
            ),
        ),
        Metric(
            "precision",
            "Precision at prior {prior}",
            TradeOffMetrics.precision,
            "Where {prior:%} of the candidates are members, {most} {x:%} of an attacker's "
            '"member" answers, counted over many trainings, are right (of attackers who find at '
            "least {min_tpr:%} of the members).",
            {"prior": _PRIOR, "min_tpr": _MIN_TPR},
            baseline=_BEFORE,
            example=0.9,
            observation=Observation(
                "a precision at prior {prior} and TPR {min_tpr}",
                "Where {prior:%} of the candidates are members and {min_tpr:%} of the members are "
                "found, this attacker's “member” answers are right in at least {reached:%} of the "
                "cases",
                "“Member” answers that are right, where {prior:%} of the candidates are members",
            ),
        ),
        Metric(
            "success",
            "Success at prior {prior}",
            TradeOffMetrics.success,
            "Answering member or not, an attacker is right {most} {x:%} of the time; blind "
            "guessing gets {blind:%}.",
            {"prior": Condition(0.5)},
            baseline=Guessing(
                lambda at: max(at["prior"], 1.0 - at["prior"]),
                "what always giving the likelier answer reaches",
            ),
            example=0.55,
            observation=Observation(
                "a success at prior {prior}",
                "Where {prior:%} are members, this attacker's answers, member or not, are right "
                "in at least {reached:%} of the cases",
                "Answers that are right, where {prior:%} of the candidates are members",
            ),
        ),
        Metric(
            "belief",
            "Belief, exceeded with probability {exceeded}",
            TradeOffMetrics.belief,
            _belief,
            {"prior": _BELIEF_PRIOR, "exceeded": _EXCEEDED},
            baseline=_BEFORE,
            example=0.9,
        ),
        Metric(
            "belief_exceeds",
            "Chance of a belief above {belief}",
            TradeOffMetrics.belief_exceeds,
            _belief_exceeds,
            {"belief": _BELIEF, "prior": _BELIEF_PRIOR},
        ),
        Metric(
            "epsilon",
            "ε at δ {delta}",
            _epsilon,
            lambda value, kind, at: _differential_privacy(value, at["delta"], kind),
            {"delta": _DELTA},
            example=3.0,
            share=False,
            observation=Observation(
                "an ε at δ = {delta}",
                "ε is the measure in which the claim is proved; 0 is perfect, and each further "
                "unit lets what is seen speak 2.7 times as strongly. Here it is at least {reached}",
                "ε, the measure of the proof; 0 is blind guessing",
                "the claim says {allowed}",
            ),
        ),
        Metric(
            "delta",
            "δ at ε {epsilon}",
            TradeOffMetrics.delta,
            lambda value, kind, at: _differential_privacy(at["epsilon"], value, kind),
            {"epsilon": Condition(1.0, "ε at which δ is read [1].")},
            share=False,
        ),
        Metric(
            "d_prime",
            "d′ (distance of the two worlds)",
            TradeOffMetrics.d_prime,
            _d_prime,
            stated={"floor": INDEX_FLOOR},
            share=False,
            observation=Observation(
                "a d′",
                "With and without the record are as easy to tell apart as two bell curves whose "
                "centres are at least {reached} standard deviations apart",
                "How far apart the two worlds are, in standard deviations",
                "the claim says at most {allowed}",
            ),
        ),
        Metric(
            "secret_success",
            "Guessing a secret attribute",
            TradeOffMetrics.secret_success,
            "Where the likeliest value has {max_prior:%}, an attacker guesses a record's secret "
            "right {most} {x:%} of the time.",
            {"max_prior": Condition(None, "Probability of a secret attribute's likeliest value.")},
            baseline=Guessing(
                lambda at: at["max_prior"], "max_prior, which guessing the likeliest value gets"
            ),
            example=0.2,
            adjacency="replace",  # another value of the secret is another record
        ),
        Metric(
            "reconstruction_success",
            "Success of a reconstruction",
            TradeOffMetrics.reconstruction_success,
            "Where the best guess without the model is close enough to a record in {guess:%} of "
            "the cases, an attack that sees it reconstructs the record {most} {x:%} of the time.",
            {"guess": _GUESS},
            baseline=Guessing(lambda at: at["guess"], "the guess, which needs no model"),
            example=0.05,
        ),
        Metric(
            "negative_accuracy",
            "Right when saying not a member",
            TradeOffMetrics.negative_accuracy,
            '{Most} {x:%} of an attacker\'s "not a member" answers, counted over many trainings, '
            "are right (of attackers who say so of at least {min_tnr:%} of the outsiders); saying "
            "it without a look gets {blind:%}.",
            {"prior": Condition(0.5), "min_tnr": Condition(0.01)},
            baseline=Guessing(lambda at: 1.0 - at["prior"], "what is right without a look"),
            listed=False,
        ),
    )
}
"""Every metric, in the order in which people ask."""

OPTIONS: dict[str, Condition] = {}
"""The conditions of a profile, by what they are called there."""

for _metric in METRICS.values():
    for _name, _condition in _metric.conditions.items() if _metric.listed else ():
        OPTIONS.setdefault(_metric.option(_name), _condition)

TARGETS = tuple(metric.name for metric in METRICS.values() if metric.example is not None)
"""The metrics that `choose` can keep below a ceiling."""

OBSERVED = tuple(metric.name for metric in METRICS.values() if metric.observation is not None)
"""The metrics that an audit bounds from below: each grows with the curve."""
