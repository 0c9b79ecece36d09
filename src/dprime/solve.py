"""From an acceptable risk to the parameter that keeps it, always on the safe side.

Every question has the same form: a certified risk that moves one way with one free parameter, and
a ceiling for it. The free parameter is the one that the mechanism's description leaves out; where
it may lie is said by its own field.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic

import scipy

from dprime import validate
from dprime.curve import Estimate, TradeOff, TradeOffMetrics
from dprime.estimates import central_limit_mu
from dprime.mechanisms import DPSGD, AnyMechanism, Gaussian, Mechanism, PoolSampled
from dprime.metrics import METRICS, TARGETS, Reading, certifiable, example
from dprime.parameters import MOST_STEPS, Search, steps_from_epochs
from dprime.privacy_loss import NotCertifiableError
from dprime.shapes import GaussianShape, Polygon

TOLERANCE, POLISHED = 5e-4, 1e-12
"""How far below the ceiling an answer may stay, as a share of the risk above the baseline: in
general, and where a curve has a closed form."""

FEW_CORNERS = 64
"""A curve with at most so many corners is a closed form: it costs nothing to read one more."""

MOST_EVALUATIONS = 200

LEAST_GUESS = {"noise_multiplier": 0.05}
"""e^(1/z^2) of the central-limit form leaves the number range not far below."""

BEYOND = 50.0
"""An excess that says no more than that a value is unsafe."""


@dataclass(frozen=True)
class Target:
    """A reading and the value that it may have at most (at least, for Bayes security)."""

    reading: Reading
    value: float

    def __post_init__(self) -> None:
        metric, name = self.reading.metric, self.reading.name
        check = validate.inner_probability if metric.share else validate.positive
        value = check(name, self.value, example=metric.example or 0.1)
        object.__setattr__(self, "value", value)
        blind = self.reading.blind
        if metric.rises and metric.baseline is not None and value <= blind:
            raise validate.InputError.of(
                name,
                f"be above {blind:g} ({metric.baseline.words})",
                f"it is {value:g}",
                f"no mechanism goes lower, so ask for more than {blind:g}",
                value=value,
            )

    @staticmethod
    def of(given: Mapping[str, float | None]) -> Target:
        """The one target among the keywords, with its conditions.

        >>> Target.of({"tpr": 0.03, "fpr": 0.01}).value
        0.03
        """
        present = {name: value for name, value in given.items() if value is not None}
        name = validate.exactly_one(
            ", ".join(TARGETS),
            {target: present.get(target) for target in TARGETS},
            "give one target, for example advantage=0.1",
        )
        value, known = present.pop(name), METRICS[name].conditions
        for condition, number in present.items():
            if condition not in known:
                raise validate.InputError.of(
                    condition,
                    f"not be given for the target {name}",
                    f"it is {number}",
                    f"{name} takes {', '.join(known) or 'no condition'}",
                    value=number,
                )
        for condition, each in known.items():
            if each.explicit and condition not in present:
                raise validate.InputError.of(
                    condition, f"be given with {name}", "it is missing", example(condition)
                )
        return Target(certifiable(name, present), value)

    def adjacency(self, given: str | None) -> str | None:
        """The adjacency to read the curve for, or an error where it cannot answer the question."""
        needed = self.reading.metric.adjacency
        if needed and given not in (None, needed):
            requirement = f"{needed!r} for the target {self.reading.name}"
            raise validate.refusal("adjacency", given, requirement, "leave it out")
        return needed or given

    def keeps(self, value: float) -> bool:
        """Whether a value of the metric is on the safe side."""
        return value <= self.value if self.reading.metric.rises else value >= self.value

    def excess(self, curve: TradeOffMetrics) -> float:
        """Ln of the risk over its ceiling, both counted from what guessing reaches; <= 0 is safe.

        What is rounded to 0 counts as safe only if it is.
        """
        value = self.reading.value(curve)
        excess = math.log(max(self._risk(value), 1e-300)) - math.log(self._risk(self.value))
        return min(excess, 0.0) if self.keeps(value) else max(excess, 5e-324)

    def value_at(self, excess: float) -> float:
        """The metric's value with this excess."""
        risk = math.exp(excess) * self._risk(self.value)
        return self.reading.blind + (risk if self.reading.metric.rises else -risk)

    def _risk(self, value: float) -> float:
        risk = value - self.reading.blind
        return risk if self.reading.metric.rises else -risk


@dataclass(frozen=True)
class Solution(Generic[AnyMechanism]):
    """What was found: the completed mechanism, its certified curve, and the parameter's name."""

    mechanism: AnyMechanism
    curve: TradeOff
    parameter: str


def choose(
    mechanism: AnyMechanism,
    *,
    adjacency: str | None = None,
    group_size: int = 1,
    whole: str = "steps",
    **target: float | None,
) -> AnyMechanism:
    """The mechanism with its missing parameter set so that the risk stays below the target.

    Leave out exactly one parameter of the mechanism. The answer is re-checked before it is
    returned: its certified risk is at most the target. Where the risk changes continuously with the
    parameter, it is less than 0.1 % below the target, counted from what blind guessing reaches, and
    where the curve has a closed form it is at the target to twelve digits. A number of steps is the
    largest whole number that is safe (with `whole="epochs"`, of whole epochs); there, and for the
    rate of shuffled batches, the risk moves in jumps and may stay further below.

    Args:
        mechanism: a description with one parameter left out, e.g. `DPSGD(sample_rate=0.01,
            steps=2000)`. For `PoolSampled` it may be the pool's sampling probability.
        adjacency: "add-remove", "replace" or "zero-out"; the mechanism's own by default.
        group_size: how many records one person may have contributed.
        whole: what a free number of steps is counted in, "steps" or "epochs".
        **target: exactly one of `advantage`, `bayes_security`, `tpr` (with `fpr`), `epsilon` (with
            `delta`), `precision` (with `prior`, `min_tpr`), `belief` (with `prior`, `exceeded`),
            `success` (with `prior`), `secret_success` (with `max_prior`),
            `reconstruction_success` (with `guess`).

    Raises:
        InputError: a bad input, or a target that no value of the parameter meets, or that every
            value meets; the sentence says what the nearest possible value is.

    >>> m = choose(DPSGD(sample_rate=0.01, steps=2000), advantage=0.1)
    >>> 0.0999 < m.curve().advantage() <= 0.1
    True

    """
    return solve(
        mechanism, target, adjacency=adjacency, group_size=group_size, whole=whole
    ).mechanism


def solve(
    mechanism: AnyMechanism,
    target: Mapping[str, float | None],
    *,
    adjacency: str | None = None,
    group_size: int = 1,
    whole: str = "steps",
) -> Solution[AnyMechanism]:
    """What `choose` finds, with its certified curve.

    >>> round(solve(Gaussian(), {"advantage": 0.1}).curve.advantage(), 9)
    0.1
    """
    if not isinstance(mechanism, Mechanism):
        raise validate.refusal(
            "mechanism",
            mechanism,
            "a mechanism",
            "give for example DPSGD(sample_rate=0.01, steps=2000)",
        )
    validate.one_of("whole", whole, ("steps", "epochs"))
    _check_pool(mechanism, target)
    asked = targets_of(mechanism, target)
    relation = asked[0].adjacency(adjacency)
    _check_drawn(mechanism, asked[0], relation, group_size)
    problem = Problem(mechanism, _free_parameter(mechanism), target, relation, group_size)
    found = _search(problem, _scale(problem, whole, asked[0]), asked)
    assert found.curve is not None
    return Solution(problem.completed(found.value), found.curve, problem.parameter)


def targets_of(mechanism: Mechanism, target: Mapping[str, float | None]) -> list[Target]:
    """The target; of a pool, at the prior of the record that is worst off.

    Precision and belief grow with the prior. Success is convex in it, so it is worst at an end.
    Where the probability of the pool is sought, it stands for every prior below the target.
    """
    if not isinstance(mechanism, PoolSampled):
        return [Target.of(target)]
    if not any(target.get(name) is not None for name in ("precision", "belief", "success")):
        return [Target.of(target)]
    if mechanism.probability is None:
        return [Target.of({**target, "prior": mechanism.search("probability").low})]
    priors = [mechanism.prior]
    if target.get("success") is not None and mechanism.least is not None:
        priors.append(mechanism.least)
    return [Target.of({**target, "prior": prior}) for prior in priors]


def _check_pool(mechanism: Mechanism, target: Mapping[str, float | None]) -> None:
    """A pool's probability is the prior, and only some risks grow with it."""
    if not isinstance(mechanism, PoolSampled):
        return
    if target.get("prior") is not None:
        raise validate.InputError.of(
            "prior",
            "not be given for a pool",
            f"it is {target['prior']}",
            "the pool's sampling probability is the prior",
            value=target["prior"],
        )
    grows = target.get("precision") is not None or target.get("belief") is not None
    if mechanism.probability is None and not grows:
        shown = ", ".join(name for name, value in target.items() if value is not None) or "missing"
        raise validate.refusal(
            "The target",
            shown,
            "precision or belief to choose a pool's probability",
            "the other risks do not grow with it",
        )


def _check_drawn(
    mechanism: Mechanism, target: Target, adjacency: str | None, group_size: int
) -> None:
    """What a pool does not answer is refused before anything is computed."""
    if not isinstance(mechanism, PoolSampled):
        return
    if target.reading.metric.adjacency:
        raise validate.refusal(
            "The target",
            target.reading.name,
            "about who was drawn for a pool",
            "it compares two versions of a record; choose for the training without the pool",
        )
    mechanism.check_question(adjacency or mechanism.default_adjacency, group_size)


def _free_parameter(mechanism: Mechanism) -> str:
    missing = mechanism.free_parameters()
    if len(missing) == 1:
        return missing[0]
    shown = " and ".join(missing) or "none"
    raise validate.InputError.of(
        f"Exactly one parameter of {type(mechanism).__name__}",
        "be left out to be chosen",
        f"{shown} {('is' if len(missing) < 2 else 'are')} missing",
        "leave out the one that dprime shall find",
    )


@dataclass(frozen=True)
class Problem(Generic[AnyMechanism]):
    """A mechanism, its free parameter, and the target to keep."""

    mechanism: AnyMechanism
    parameter: str
    target: Mapping[str, float | None]
    adjacency: str | None
    group_size: int

    def completed(self, value: float) -> AnyMechanism:
        """The mechanism with a value of the parameter."""
        return self.mechanism.with_parameter(self.parameter, value)

    def evaluate(self, value: float) -> tuple[float, TradeOff | None]:
        """Ln of risk over ceiling, 0 or less is safe; and the curve, where one is certified."""
        made = self.completed(value)
        try:
            curve = self.pool_curve if self.parameter == "probability" else self._curve(made)
        except NotCertifiableError:
            return math.inf, None
        return max(each.excess(curve) for each in targets_of(made, self.target)), curve

    @cached_property
    def pool_curve(self) -> TradeOff:
        """The curve of a pool, which is the same for every probability."""
        return self._curve(self.mechanism)

    def _curve(self, mechanism: AnyMechanism) -> TradeOff:
        return mechanism.curve(self.adjacency, group_size=self.group_size)


@dataclass(frozen=True)
class Scale:
    """The values that a search may try, by a position v in which the risk rises: +-ln(value).

    Attributes:
        range: of the values; of whole ones, in units.
        units: a value's unit, for a sentence; None for a continuous parameter.
        value: that so many units are.
        guess: where to begin.
    """

    range: Search
    units: str | None
    value: Callable[[float], float]
    guess: float

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the most risk."""
        ends = sorted(map(self.position, (self.range.low, self.range.high)))
        return ends[0], ends[1]

    def position(self, number: float) -> float:
        """Where a number of the range lies on the searched axis, riskier to the right."""
        return math.log(number) if self.range.rises else -math.log(number)

    def number(self, v: float) -> float:
        """At a position; a whole one is rounded down."""
        low, high = self.range.low, self.range.high
        if v in self.ends:
            return low if (v == self.ends[0]) == self.range.rises else high
        number = min(high, max(low, math.exp(v if self.range.rises else -v)))
        return math.floor(number * (1 + 1e-14)) if self.range.whole else number


@dataclass(frozen=True)
class Point:
    """A value that was tried."""

    v: float
    number: float
    value: float
    excess: float
    curve: TradeOff | None


def _search(problem: Problem[AnyMechanism], scale: Scale, targets: list[Target]) -> Point:
    """The riskiest value that is safe, within the tolerance; every candidate is evaluated.

    From the guess the search walks, faster and faster, until it has a safe and an unsafe value, and
    then narrows the two: by the line through both, and by halves at every third turn.
    """
    target, ends = targets[0], scale.ends

    def at(v: float) -> Point:
        v = min(max(v, ends[0]), ends[1])
        number = scale.number(v)
        value = scale.value(number)
        if scale.range.whole:
            v = scale.position(number)
        return Point(v, number, value, *problem.evaluate(value))

    safe: Point | None = None
    unsafe: Point | None = None
    v, stride = scale.position(scale.guess), 0.02
    for turn in range(MOST_EVALUATIONS):
        now = at(v)
        if now.excess <= 0:
            safe = now
            if not scale.range.whole and now.excess >= -_tolerance(now):
                return now
            if now.v == ends[1]:
                raise _everything_is_safe(target, problem.parameter, scale, now)
        else:
            unsafe = now
            if now.v == ends[0]:
                raise _impossible(target, problem.parameter, scale, now)
        if safe and unsafe:
            if _closed(safe, unsafe, scale):
                if math.isinf(unsafe.excess) and not scale.range.whole:
                    raise _nothing_certified(target, problem.parameter, safe)
                return safe
            v = _between(safe, unsafe, scale, halve=turn % 3 == 2)
        else:
            step = min(abs(now.excess), 3.0) + stride
            v = now.v - math.copysign(max(step, _one_more(now, scale)), now.excess)
            stride *= 2
    if safe is None:
        raise _impossible(target, problem.parameter, scale, replace(now, excess=math.inf))
    return safe


def _tolerance(point: Point) -> float:
    shape = None if point.curve is None else point.curve.shape
    few = isinstance(shape, Polygon) and len(shape.left.rise) + len(shape.right.rise) <= FEW_CORNERS
    return POLISHED if few or isinstance(shape, GaussianShape) else TOLERANCE


def _one_more(point: Point, scale: Scale) -> float:
    """The distance to the next whole number."""
    return math.log1p(1.0 / point.number) if scale.range.whole else 0.0


def _closed(safe: Point, unsafe: Point, scale: Scale) -> bool:
    """Whether nothing is left between a safe and an unsafe value: the risk jumps there."""
    if scale.range.whole:
        return unsafe.number - safe.number <= 1
    nearest = 1e-9 if math.isinf(unsafe.excess) else 1e-15 if _polished(safe) else 1e-13
    return unsafe.v - safe.v <= nearest * max(1.0, abs(safe.v))


def _polished(point: Point) -> bool:
    return _tolerance(point) == POLISHED


def _between(safe: Point, unsafe: Point, scale: Scale, *, halve: bool) -> float:
    """Where the line through both points is just below the ceiling, or half-way."""
    share = 0.5
    if not halve and unsafe.excess < 5 and safe.excess > -5:
        aim = 0.0 if scale.range.whole else -_tolerance(safe) / 2
        share = (aim - safe.excess) / (unsafe.excess - safe.excess)
    v = safe.v + (unsafe.v - safe.v) * min(max(share, 0.02), 0.98)
    if scale.range.whole:
        number = min(max(scale.number(v), safe.number + 1), unsafe.number - 1)
        return scale.position(number)
    return v


# Where to look ------------------------------------------------------------------------------------


def _scale(problem: Problem[AnyMechanism], whole: str, target: Target) -> Scale:
    """The range of the free parameter, and a value near the answer."""
    name = problem.parameter
    found = problem.mechanism.search(name)
    if name == "probability":
        found = replace(found, high=target.value * (1 - 1e-12))  # the target is above the prior
    guess = _first_guess(problem, found, target)
    if not found.whole:
        return Scale(found, None, lambda value: value, guess)
    if whole == "steps":
        return Scale(found, whole, int, guess)
    rate = _rate(problem.mechanism)

    def steps(count: float) -> int:
        return steps_from_epochs(count, rate)

    most = replace(found, high=_most_units(steps))
    return Scale(most, whole, steps, min(max(math.floor(guess * rate), 1), most.high))


def _rate(mechanism: Mechanism) -> float:
    rate: float | None = getattr(getattr(mechanism, "training", mechanism), "sample_rate", None)
    if rate is None:
        raise validate.InputError.of(
            "whole",
            "be 'steps' for a mechanism without a sampling rate",
            "it is 'epochs'",
            "leave it out",
        )
    return rate


def _most_units(steps_of: Callable[[float], int]) -> int:
    """The largest number of units whose steps can be certified."""
    fits, too_many = 1, MOST_STEPS + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        try:
            steps_of(middle)  # refuses more than MOST_STEPS
            fits = middle
        except validate.InputError:
            too_many = middle
    return fits


def _first_guess(problem: Problem[AnyMechanism], found: Search, target: Target) -> float:
    """A value near the answer: the central-limit form, solved for the parameter."""
    if problem.parameter == "probability":
        return _pool_guess(problem, found, target)
    mechanism: Mechanism = getattr(problem.mechanism, "training", problem.mechanism)
    if not isinstance(mechanism, DPSGD | Gaussian):
        return min(max(1.0, found.low), found.high)
    name, relation = problem.parameter, problem.adjacency or mechanism.default_adjacency

    def index(value: float) -> float:
        known = {"sample_rate": 1.0, **vars(mechanism), name: value}
        z, q, steps = known["noise_multiplier"], known["sample_rate"], known["steps"]
        return problem.group_size * central_limit_mu(z, q, steps, relation)

    def gap(log_value: float) -> float:
        mu = min(index(math.exp(log_value)), 60.0)
        excess = target.excess(Estimate(GaussianShape(mu), source="first guess"))
        return max(-50.0, min(50.0, excess))

    low, high = math.log(max(found.low, LEAST_GUESS.get(name, 0.0))), math.log(found.high)
    if gap(low) * gap(high) >= 0:
        return found.low if found.rises else found.high
    return math.exp(float(scipy.optimize.brentq(gap, low, high, xtol=1e-3)))


def _pool_guess(problem: Problem[AnyMechanism], found: Search, target: Target) -> float:
    """The largest prior at which the curve keeps the precision, in closed form.

    Precision is logistic(logit prior + ln(t / FPR(t))).
    """
    at = target.reading.conditions
    t = at["min_tpr"] if target.reading.name == "precision" else at["exceeded"]
    fpr = problem.pool_curve.fpr(t)
    if fpr == 0:
        return found.low
    prior = float(scipy.special.expit(scipy.special.logit(target.value) - math.log(t / fpr)))
    return min(max(prior * (1 - 1e-13), found.low), found.high)


# What cannot be chosen ----------------------------------------------------------------------------


def _everything_is_safe(target: Target, name: str, scale: Scale, end: Point) -> validate.InputError:
    if scale.units:
        return validate.InputError(
            f"{_kept(target)} its target for every number of {scale.units} that can be certified, "
            f"so there is nothing to choose: even {int(end.number):,} {scale.units} are safe."
        )
    return _all_safe(target, f"{name} {_range_to(scale, end)}", end)


def _nothing_certified(target: Target, name: str, last: Point) -> validate.InputError:
    return _all_safe(target, f"{name} that can be certified", last)


def _all_safe(target: Target, which: str, end: Point) -> validate.InputError:
    return validate.InputError(
        f"{_kept(target)} its target at every {which}, so there is nothing to choose: at "
        f"{end.number:g} the nearest possible value is "
        f"{_shown(target, target.value_at(end.excess))}."
    )


def _impossible(target: Target, name: str, scale: Scale, end: Point) -> validate.InputError:
    where, which = f"{name} {end.number:g}", f" at any {name} {_range_to(scale, end)}"
    if scale.units:
        where, which = f"1 {scale.units.removesuffix('s')}", ""
    refused = f"The target {_shown(target, target.value)} cannot be met{which}:"
    if math.isinf(end.excess):
        larger = ""
        if target.reading.name == "epsilon":
            larger = f" for delta {target.reading.conditions['delta']:g}; give a larger delta"
        return validate.InputError(f"{refused} nothing finite can be certified at {where}{larger}.")
    nearest = _shown(target, target.value_at(min(end.excess, 700.0)))
    return validate.InputError(f"{refused} the nearest possible value is {nearest}, at {where}.")


def _range_to(scale: Scale, end: Point) -> str:
    low, number = scale.range.low, end.number
    return f"from {number:g} up" if number == low else f"up to {number:g}"


def _kept(target: Target) -> str:
    """What a value on the safe side of the target does."""
    return f"{target.reading.name} stays {'below' if target.reading.metric.rises else 'above'}"


def _shown(target: Target, value: float) -> str:
    return f"{target.reading.name} {value:.6g}"
