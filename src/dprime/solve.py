"""From an acceptable risk to the parameter that keeps it, always on the safe side.

Every question has the same form: a certified risk that moves one way with one free parameter, and
a ceiling for it. The free parameter is the one that the mechanism's description leaves out; where
it may lie is said by its own field.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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
"""A curve with at most this many corners is a closed form: reading one more costs nothing."""

MOST_EVALUATIONS = 200

EXAMPLE = "give for example DPSGD(sample_rate=0.01, steps=2000)"

LEAST_NOISE_GUESSED = 0.05
"""e^(1/z^2) of the central-limit form leaves the number range not far below."""


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
            requirement = f"above {blind:g} ({metric.baseline.words})"
            remedy = f"no mechanism goes lower, so ask for more than {blind:g}"
            raise validate.invalid_value(name, value, requirement, remedy)

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
                remedy = f"{name} takes {', '.join(known) or 'no condition'}"
                raise validate.invalid_value(condition, number, f"left out for {name}", remedy)
        for condition, each in known.items():
            if each.explicit and condition not in present:
                remedy = example(condition)
                raise validate.invalid_input(condition, "missing", f"given with {name}", remedy)
        return Target(certifiable(name, present), value)

    def adjacency(self, given: str | None) -> str | None:
        """The adjacency to read the curve for, or an error where it cannot answer the question."""
        needed = self.reading.metric.adjacency
        if needed and given not in (None, needed):
            requirement = f"{needed!r} for the target {self.reading.name}"
            raise validate.invalid_value("adjacency", given, requirement, "leave it out")
        return needed or given

    def keeps(self, value: float) -> bool:
        """Whether a value of the metric is on the safe side."""
        return value <= self.value if self.reading.metric.rises else value >= self.value

    def excess(self, curve: TradeOffMetrics) -> float:
        """Ln of the risk over its ceiling, both counted from what guessing reaches; <= 0 is safe.

        What is rounded to 0 counts as safe only if it is.
        """
        value = self.reading.value(curve)
        excess = math.log(max(self._risk(value), 1e-300)) - self._log_ceiling
        return min(excess, 0.0) if self.keeps(value) else max(excess, 5e-324)

    @cached_property
    def _log_ceiling(self) -> float:
        return math.log(self._risk(self.value))

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
        raise validate.invalid_value("mechanism", mechanism, "a mechanism", EXAMPLE)
    validate.one_of("whole", whole, ("steps", "epochs"))
    if isinstance(mechanism, PoolSampled):
        _check_pool(mechanism, target, adjacency, group_size)
    goals = targets_of(mechanism, target)
    goal = goals[0]
    parameter, relation = _free_parameter(mechanism), goal.adjacency(adjacency)
    found, rate = mechanism.search(parameter), None
    if parameter == "probability":
        found = replace(found, high=goal.value * (1 - 1e-12))  # the target is above the prior
    if found.whole and whole == "epochs":
        rate = _rate(mechanism)
        found = replace(found, high=max(1, math.floor(MOST_STEPS * rate * (1 + 5e-13))))
    problem = Problem(mechanism, parameter, target, goals, relation, group_size, found, rate)
    point = _search(problem)
    assert point.curve is not None
    return Solution(problem.completed(point.number), point.curve, parameter)


def targets_of(mechanism: Mechanism, target: Mapping[str, float | None]) -> list[Target]:
    """The target; of a pool, at the prior of the record that is worst off.

    Precision and belief grow with the prior. Success is convex in it, so it is worst at an end.
    Where the probability of the pool is sought, it stands for every prior below the target.
    """
    at_a_prior = any(target.get(name) is not None for name in ("precision", "belief", "success"))
    if not isinstance(mechanism, PoolSampled) or not at_a_prior:
        return [Target.of(target)]
    if mechanism.probability is None:
        return [Target.of({**target, "prior": mechanism.search("probability").low})]
    priors = [mechanism.prior]
    if target.get("success") is not None and mechanism.least is not None:
        priors.append(mechanism.least)
    return [Target.of({**target, "prior": prior}) for prior in priors]


def _check_pool(
    pool: PoolSampled,
    target: Mapping[str, float | None],
    adjacency: str | None,
    group_size: int,
) -> None:
    """A pool's probability is the prior, only some risks grow with it, and some it leaves open."""
    given = {name: value for name, value in target.items() if value is not None}
    if "prior" in given:
        remedy = "the pool's own probability is the prior"
        raise validate.invalid_value("prior", given["prior"], "left out for a pool", remedy)
    if pool.probability is None and not {"precision", "belief"} & set(given):
        requirement = "precision or belief to choose a pool's probability"
        remedy = "the other risks do not grow with it"
        raise validate.invalid_value(
            "The target", ", ".join(given) or "missing", requirement, remedy
        )
    for name in given:
        if name in TARGETS and METRICS[name].adjacency:
            remedy = "it compares two versions of a record; choose for the training alone"
            raise validate.invalid_value(
                "The target", name, "about who was drawn for a pool", remedy
            )
    pool.check_question(adjacency or pool.default_adjacency, group_size)


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


def _rate(mechanism: Mechanism) -> float:
    rate: float | None = getattr(getattr(mechanism, "training", mechanism), "sample_rate", None)
    if rate is None:
        requirement = "'steps' for a mechanism without a sampling rate"
        raise validate.invalid_value("whole", "epochs", requirement, "leave it out")
    return rate


@dataclass(frozen=True)
class Candidate:
    """A number of the range that was tried, and its position."""

    v: float
    number: float
    excess: float
    curve: TradeOff | None


@dataclass(frozen=True)
class Problem(Generic[AnyMechanism]):
    """A mechanism, its free parameter, and the target to keep.

    The search moves along a position v = +-ln(number), in which the risk rises.

    Attributes:
        goals: the targets; those of a pool whose probability is free hang on it.
        range: of the numbers that may be tried: values of the parameter, or whole epochs.
        rate: the sampling rate where epochs are counted; None elsewhere.
    """

    mechanism: AnyMechanism
    parameter: str
    target: Mapping[str, float | None]
    goals: list[Target]
    adjacency: str | None
    group_size: int
    range: Search
    rate: float | None

    def completed(self, number: float) -> AnyMechanism:
        """The mechanism with a number of the range."""
        value = steps_from_epochs(number, self.rate) if self.rate is not None else number
        return self.mechanism.with_parameter(self.parameter, value)

    def evaluate(self, number: float) -> tuple[float, TradeOff | None]:
        """Ln of risk over ceiling, 0 or less is safe; and the curve, where one is certified."""
        made = self.completed(number)
        try:
            curve = self.pool_curve if self.parameter == "probability" else self._curve(made)
        except NotCertifiableError:
            return math.inf, None
        of_pool = self.parameter == "probability"
        goals = targets_of(made, self.target) if of_pool else self.goals
        return max(goal.excess(curve) for goal in goals), curve

    @property
    def goal(self) -> Target:
        """The first of the targets."""
        return self.goals[0]

    @cached_property
    def pool_curve(self) -> TradeOff:
        """The curve of a pool, which is the same for every probability."""
        return self._curve(self.mechanism)

    def _curve(self, mechanism: AnyMechanism) -> TradeOff:
        return mechanism.curve(self.adjacency, group_size=self.group_size)

    @property
    def ends(self) -> tuple[float, float]:
        """The positions of the least and the most risk."""
        low, high = sorted(map(self.position, (self.range.low, self.range.high)))
        return low, high

    def position(self, number: float) -> float:
        """Where a number of the range lies, riskier to the right."""
        return math.log(number) if self.range.rises else -math.log(number)

    def number(self, v: float) -> float:
        """The number at a position; a whole one is rounded down."""
        low, high = self.range.low, self.range.high
        if v in self.ends:
            number = low if (v == self.ends[0]) == self.range.rises else high
        else:
            number = min(high, max(low, math.exp(v if self.range.rises else -v)))
        return math.floor(number * (1 + 1e-14)) if self.range.whole else number

    def at(self, v: float) -> Candidate:
        """The point at a position, or at the nearer end of the range."""
        v = min(max(v, self.ends[0]), self.ends[1])
        number = self.number(v)
        return Candidate(
            self.position(number) if self.range.whole else v, number, *self.evaluate(number)
        )


def _search(problem: Problem[AnyMechanism]) -> Candidate:
    """The riskiest number that is safe, within the tolerance; every candidate is evaluated.

    From the guess the search walks, faster and faster, until it has a safe and an unsafe number,
    and then narrows the two: by the line through both, and by halves at every third turn.
    """
    ends, whole = problem.ends, problem.range.whole
    safe: Candidate | None = None
    unsafe: Candidate | None = None
    v, stride = problem.position(_first_guess(problem)), 0.02
    for turn in range(MOST_EVALUATIONS):
        now = problem.at(v)
        if now.excess <= 0:
            safe = now
            if not whole and now.excess >= -_tolerance(now):
                return now
            if now.v == ends[1]:
                raise _everything_is_safe(problem, now, _range_to(problem, now))
        else:
            unsafe = now
            if now.v == ends[0]:
                raise _impossible(problem, now)
        if safe and unsafe:
            if _closed(safe, unsafe, whole=whole):
                if math.isinf(unsafe.excess) and not whole:
                    raise _everything_is_safe(problem, safe, "that can be certified")
                return safe
            v = _between(problem, safe, unsafe, halve=turn % 3 == 2)
        else:
            one_more = math.log1p(1.0 / now.number) if whole else 0.0
            step = max(min(abs(now.excess), 3.0) + stride, one_more)
            v = now.v - math.copysign(step, now.excess)
            stride *= 2
    if safe is None:
        raise _impossible(problem, replace(now, excess=math.inf))
    return safe


def _tolerance(point: Candidate) -> float:
    shape = None if point.curve is None else point.curve.shape
    few = isinstance(shape, Polygon) and len(shape.left.rise) + len(shape.right.rise) <= FEW_CORNERS
    return POLISHED if few or isinstance(shape, GaussianShape) else TOLERANCE


def _closed(safe: Candidate, unsafe: Candidate, *, whole: bool) -> bool:
    """Whether nothing is left between a safe and an unsafe number: the risk jumps there."""
    if whole:
        return unsafe.number - safe.number <= 1
    nearest = 1e-15 if _tolerance(safe) == POLISHED else 1e-13
    if math.isinf(unsafe.excess):
        nearest = 1e-9
    return unsafe.v - safe.v <= nearest * max(1.0, abs(safe.v))


def _between(
    problem: Problem[AnyMechanism], safe: Candidate, unsafe: Candidate, *, halve: bool
) -> float:
    """Where the line through both points is just below the ceiling, or half-way."""
    share, whole = 0.5, problem.range.whole
    if not halve and unsafe.excess < 5 and safe.excess > -5:
        aim = 0.0 if whole else -_tolerance(safe) / 2
        share = (aim - safe.excess) / (unsafe.excess - safe.excess)
    v = safe.v + (unsafe.v - safe.v) * min(max(share, 0.02), 0.98)
    if whole:
        v = problem.position(min(max(problem.number(v), safe.number + 1), unsafe.number - 1))
    return v


def _first_guess(problem: Problem[AnyMechanism]) -> float:
    """A number near the answer: the central-limit form, solved for the parameter."""
    if problem.parameter == "probability":
        return _pool_guess(problem)
    mechanism: Mechanism = getattr(problem.mechanism, "training", problem.mechanism)
    name, relation = problem.parameter, problem.adjacency or mechanism.default_adjacency
    found = problem.mechanism.search(name)
    if not isinstance(mechanism, DPSGD | Gaussian):
        return min(max(1.0, found.low), found.high)

    def gap(log_value: float) -> float:
        known = {"sample_rate": 1.0, **vars(mechanism), name: math.exp(log_value)}
        z, q, steps = known["noise_multiplier"], known["sample_rate"], known["steps"]
        mu = min(problem.group_size * central_limit_mu(z, q, steps, relation), 60.0)
        excess = problem.goal.excess(Estimate(GaussianShape(mu), source="first guess"))
        return max(-50.0, min(50.0, excess))

    least = LEAST_NOISE_GUESSED if name == "noise_multiplier" else found.low
    low, high = math.log(least), math.log(found.high)
    if gap(low) * gap(high) >= 0:
        guess = found.low if found.rises else found.high
    else:
        guess = math.exp(float(scipy.optimize.brentq(gap, low, high, xtol=1e-3)))
    if problem.rate is None:
        return guess
    return min(max(math.floor(guess * problem.rate), 1), problem.range.high)


def _pool_guess(problem: Problem[AnyMechanism]) -> float:
    """The largest prior at which the curve keeps the precision, in closed form.

    Precision is logistic(logit prior + ln(t / FPR(t))).
    """
    reading, found = problem.goal.reading, problem.range
    t = reading.conditions["min_tpr" if reading.name == "precision" else "exceeded"]
    fpr = problem.pool_curve.fpr(t)
    if fpr == 0:
        return found.low
    log_odds = scipy.special.logit(problem.goal.value) - math.log(t / fpr)
    prior = float(scipy.special.expit(log_odds))
    return min(max(prior * (1 - 1e-13), found.low), found.high)


# What cannot be chosen ----------------------------------------------------------------------------


def _everything_is_safe(
    problem: Problem[AnyMechanism], end: Candidate, which: str
) -> validate.InputError:
    goal = problem.goal
    every = f"at every {problem.parameter} {which}"
    at_the_end = (
        f"at {end.number:g} the nearest possible value is {_shown(goal, goal.value_at(end.excess))}"
    )
    if units := _units(problem):
        every = f"for every number of {units} that can be certified"
        at_the_end = f"even {int(end.number):,} {units} are safe"
    kept = f"stays {'below' if goal.reading.metric.rises else 'above'} its target"
    return validate.InputError(
        f"{goal.reading.name} {kept} {every}, so there is nothing to choose: {at_the_end}."
    )


def _impossible(problem: Problem[AnyMechanism], end: Candidate) -> validate.InputError:
    goal, name = problem.goal, problem.parameter
    where, which = f"{name} {end.number:g}", f" at any {name} {_range_to(problem, end)}"
    if units := _units(problem):
        where, which = f"1 {units.removesuffix('s')}", ""
    if math.isinf(end.excess):
        larger = ""
        if goal.reading.name == "epsilon":
            larger = f" for delta {goal.reading.conditions['delta']:g}; give a larger delta"
        nearest = f"nothing finite can be certified at {where}{larger}"
    else:
        value = goal.value_at(min(end.excess, 700.0))
        nearest = f"the nearest possible value is {_shown(goal, value)}, at {where}"
    refused = f"The target {_shown(goal, goal.value)} cannot be met{which}"
    return validate.InputError(f"{refused}: {nearest}.")


def _units(problem: Problem[AnyMechanism]) -> str:
    """What whole numbers count; nothing for a continuous parameter."""
    if not problem.range.whole:
        return ""
    return "steps" if problem.rate is None else "epochs"


def _range_to(problem: Problem[AnyMechanism], end: Candidate) -> str:
    return f"from {end.number:g} up" if end.number == problem.range.low else f"up to {end.number:g}"


def _shown(target: Target, value: float) -> str:
    return f"{target.reading.name} {value:.6g}"
