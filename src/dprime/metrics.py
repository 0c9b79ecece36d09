"""Readings of a curve: entries of the registry with their conditions.

    Metric (in METRICS) ──► Reading (with its conditions) ──► MetricValue (on a curve)

A reading is what a profile lists, what an audit judges by, and what `choose` keeps below a ceiling.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType

from dprime import validate
from dprime.curve import TradeOff, TradeOffMetrics
from dprime.option import nearest
from dprime.registry import METRICS, OPTIONS, At, Kind, Metric, Observation
from dprime.text import SIDES, Ceiling, Floor, Given, round_down, round_up

BLIND = TradeOff.gaussian(0.0)  # the curve of an attacker who guesses

_PROFILE = [metric for metric in METRICS.values() if metric.listed]
_LISTED = {name: usual for metric in _PROFILE for name, usual in metric.conditions.items()}
CONDITIONS = tuple(OPTIONS[name].here(OPTIONS[name].default or _LISTED[name]) for name in _LISTED)
"""The conditions of a profile, as options."""

TARGETS = tuple(metric.name for metric in METRICS.values() if metric.limit)
"""The metrics that `choose` can keep below a ceiling."""

OBSERVED = tuple(metric.name for metric in METRICS.values() if metric.observation is not None)
"""The metrics that an audit bounds from below: each grows with the curve."""


@dataclass(frozen=True, repr=False)
class MetricValue:
    """A metric's value: its name, whether it is certified, and what it means."""

    name: str
    title: str
    value: float
    kind: Kind
    conditions: At
    sentence: str

    def as_json(self) -> dict[str, object]:
        """JSON values; an infinite value is null with a note."""
        shown: dict[str, object] = {"value": self.value, "kind": self.kind, **self.conditions}
        if not math.isfinite(self.value):
            shown |= {"value": None, "note": "no finite value can be certified"}
        return shown

    def shown(self) -> str:
        """The number as tables show it, rounded to the safe side."""
        if self.kind == "lower bound":
            return round_down(self.value)
        if self.name in METRICS and METRICS[self.name].rises:
            return round_up(self.value).replace("inf", "no limit")
        return ("≥ " if self.kind == "certified" else "") + round_down(self.value)

    def bounded(self) -> str:
        """The number in words: "at most 0.1975", "at least 0.8025", "no limit"."""
        number = self.shown()
        side = "at least" if number.startswith("≥") else SIDES[self.kind]
        return number if number == "no limit" else f"{side} {number.removeprefix('≥ ')}"

    def __repr__(self) -> str:
        also = (f", {each.name} {getattr(self, each.name)}" for each in fields(self)[6:])
        words = f"{self.title} {self.bounded()}, {self.kind}{''.join(also)}"
        return f"{type(self).__name__}({words})"


@dataclass(frozen=True)
class Reading:
    """A metric with its conditions; those that are not given have their defaults.

    >>> reading = Reading("tpr", {"fpr": 0.05})
    >>> reading.title, round(reading.value(TradeOff.gaussian(1.0)), 4)
    ('TPR at FPR 0.05', 0.2595)
    """

    name: str
    conditions: At = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        known = METRICS[validate.one_of("metric", self.name, tuple(METRICS))].conditions
        for name, value in self.conditions.items():
            if name not in known:
                remedy = f"{self.name} takes {', '.join(known) or 'no condition'}"
                raise validate.invalid_value(name, value, f"left out for {self.name}", remedy)
        values = {**known, **self.conditions}
        for name, usual in values.items():
            if usual is None:
                wanted, remedy = f"given with {self.name}", f"add for example {name}=0.1"
                raise validate.invalid_input(name, "missing", wanted, remedy)
        object.__setattr__(self, "conditions", MappingProxyType(values))
        self.value(BLIND)  # the curve checks the conditions' values

    def __repr__(self) -> str:
        return f"Reading({self.name!r}, {dict(self.conditions)})"

    def __reduce__(self) -> tuple[type[Reading], tuple[str, dict[str, float]]]:
        return Reading, (self.name, dict(self.conditions))

    @property
    def metric(self) -> Metric:
        return METRICS[self.name]

    @property
    def title(self) -> str:
        """The name that people read, with the conditions in it."""
        return self._filled(self.metric.title)

    @property
    def phrase(self) -> str:
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
        return self.metric.blind(self.conditions)

    def adjacency(self, given: str | None) -> str | None:
        """The adjacency to read the curve for, or an error where it cannot answer the question."""
        needed = self.metric.adjacency
        if needed and given not in (None, needed):
            requirement = f"{needed!r} for {self.name}"
            raise validate.invalid_value("adjacency", given, requirement, "leave it out")
        return needed or given

    def value(self, curve: TradeOffMetrics) -> float:
        read = self.metric.read or getattr(TradeOffMetrics, self.name)
        return float(read(curve, *self.conditions.values()))

    def of(self, curve: TradeOffMetrics) -> MetricValue:
        return self.valued(self.value(curve), curve.kind)

    def valued(self, value: float, kind: Kind = "certified") -> MetricValue:
        """A number that is known already, with its sentence."""
        at, sentence = {**self.conditions, **self.metric.stated}, self.sentence(value, kind)
        return MetricValue(self.name, self.title, value, kind, at, sentence)

    def sentence(self, value: float, kind: Kind = "certified") -> str:
        """A sentence about a value for readers without mathematics; a lower bound says so."""
        if kind == "lower bound":
            return f"This attacker reaches {self.phrase} of at least {round_down(value)}."
        number = Ceiling(value) if self.metric.rises else Floor(value)
        return self._filled(self.template(value, kind), x=number, blind=Given(self.blind))

    def template(self, value: float, kind: Kind = "certified") -> str:
        """The sentence for a value, without its numbers."""
        say, rises = self.metric.say, self.metric.rises
        template = say if isinstance(say, str) else say(value, kind, self.conditions)
        most = "about" if kind != "certified" else "at most" if rises else "at least"
        number = f"{Ceiling(value) if rises else Floor(value)}"
        nothing = number == ("1" if rises else "0") and self.metric.share
        if nothing and kind == "certified" and "{most}" in template.lower():
            rest = template[1:].replace("Most}", "most}")
            template = f"This rules nothing out: {template[0].lower()}{rest}"
            most = "up to" if rises else most
        return template.replace("{most}", most).replace("{Most}", most.capitalize())

    def _filled(self, template: str, **also: object) -> str:
        values = {name: Given(value) for name, value in self.conditions.items()}
        return template.format(**values, **also)


def certifiable(name: str, conditions: At) -> Reading:
    """A reading of a certified curve; an audit may ask for delta = 0 too."""
    if "delta" in conditions:
        validate.inner_probability("delta", conditions["delta"], example="1e-5")
    return Reading(name, conditions)


def profile(**conditions: float | None) -> tuple[Reading, ...]:
    """The readings of a risk profile, in the order in which people ask.

    Conditions go by their options: `prior` is that of precision and success, `belief_prior` that of
    a belief; None counts as not given. What has a condition without a default is listed where it is
    given.

    >>> [reading.title for reading in profile(fpr=0.001)][:3]
    ['Membership advantage', 'Bayes security', 'TPR at FPR 0.001']
    """
    given = {name: value for name, value in conditions.items() if value is not None}
    for name, value in given.items():
        if name not in _LISTED:
            remedy = f"the conditions are {', '.join(_LISTED)}"
            raise validate.invalid_value(name, value, "left out", remedy)
    readings = []
    for metric in _PROFILE:
        at = {name: given.get(name, usual) for name, usual in metric.conditions.items()}
        known = {name: value for name, value in at.items() if value is not None}
        if known.keys() == at.keys():
            readings.append(certifiable(metric.name, known))
    return tuple(readings)


def conditions_of(readings: Iterable[Reading]) -> dict[str, float]:
    """The conditions of a profile, as `profile` takes them."""
    return {
        name: value
        for reading in reversed([*readings])
        for name, value in reading.conditions.items()
    }


def risk_profile(
    curve: TradeOffMetrics, readings: Iterable[Reading] | None = None
) -> list[MetricValue]:
    """Every metric of a profile, read off a curve."""
    return [reading.of(curve) for reading in (profile() if readings is None else readings)]


def audited(metric: object, *, or_curve: bool = False) -> Reading:
    """The reading that an audit bounds from below; `or_curve`: "curve" would be right too."""
    if isinstance(metric, Reading) and metric.metric.observation:
        return metric
    also = ' or "curve"' if or_curve else ""
    remedy = f'give a Reading such as Reading("advantage"){also and "," + also}'
    raise validate.invalid_value("metric", metric, f"a Reading{also}", remedy)


@dataclass(frozen=True)
class Target:
    """A reading and the value that it may have at most (at least, for Bayes security)."""

    reading: Reading
    value: float

    def __post_init__(self) -> None:
        metric, name, blind = self.reading.metric, self.reading.name, self.reading.blind
        check = validate.inner_probability if metric.share else validate.positive
        value = check(name, self.value, example=metric.example or 0.1)
        object.__setattr__(self, "value", value)
        if metric.rises and value <= blind:
            requirement = f"above {blind:g}, which guessing reaches"
            remedy = f"no mechanism goes lower, so ask for more than {blind:g}"
            raise validate.invalid_value(name, value, requirement, remedy)

    @staticmethod
    def of(given: Mapping[str, float | None]) -> Target:
        present = {name: value for name, value in given.items() if value is not None}
        for each in present:
            if each not in OPTIONS:
                needed, found = "be a target or a condition of one", "there is none of that name"
                raise validate.InputError.of(each, needed, found, nearest(each, OPTIONS))
        name = validate.exactly_one(
            ", ".join(TARGETS),
            {target: present.get(target) for target in TARGETS},
            "give one target, for example advantage=0.1",
        )
        value = present.pop(name)
        return Target(certifiable(name, present), value)

    def keeps(self, value: float) -> bool:
        return value <= self.value if self.reading.metric.rises else value >= self.value

    def excess(self, curve: TradeOffMetrics) -> float:
        """Ln of the risk over its ceiling, both counted from what guessing reaches; 0 is safe."""
        value, blind = self.reading.value(curve), self.reading.blind
        risk = value - blind if self.reading.metric.rises else blind - value
        excess = math.log(max(risk, 1e-300)) - math.log(abs(self.value - blind))
        return min(excess, 0.0) if self.keeps(value) else max(excess, 5e-324)

    def value_at(self, excess: float) -> float:
        return self.reading.blind + math.exp(excess) * (self.value - self.reading.blind)
