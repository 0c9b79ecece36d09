"""From an acceptable risk to the parameter that keeps it, always on the safe side.

A certified risk moves one way with one free parameter, which the mechanism's description leaves
out, and has a ceiling. The field of the parameter says where it may lie.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Generic

import scipy

from dprime import validate
from dprime.curve import Estimate, TradeOff
from dprime.estimates import central_limit_mu
from dprime.mechanisms import DPSGD, AnyMechanism, Gaussian, Mechanism, PoolSampled
from dprime.metrics import Target
from dprime.parameters import MOST_STEPS, Search, steps_from_epochs
from dprime.privacy_loss import NotCertifiableError
from dprime.shapes import GaussianShape, Polygon

TOLERANCE, POLISHED = 5e-4, 1e-12
"""How far below the ceiling an answer may stay, as a share of the risk; closed forms: polished."""

FEW_EDGES = 64  # a curve with at most this many is a closed form: one more reading costs nothing
MOST_EVALUATIONS = 200
LEAST_NOISE_GUESSED = 0.05  # e^(1/z^2) of the central-limit form soon leaves the number range


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
    round_to: str = "steps",
    **target: float | None,
) -> AnyMechanism:
    """The mechanism with its missing parameter set so that the risk stays below the target.

    Leave out exactly one parameter of the mechanism, and give exactly one of `advantage`,
    `bayes_security`, `tpr` (with `fpr`), `epsilon` (with `delta`), `precision` (with `prior`,
    `min_tpr`), `belief` (with `belief_prior`, `exceeded`), `success` (with `prior`),
    `secret_success` (with `max_prior`), `reconstruction_success` (with `guess`).

    The certified risk of the answer is at most the target. Where the risk changes continuously with
    the parameter, it is less than 0.1 % below the target, counted from what blind guessing reaches,
    and where the curve has a closed form it is at the target to twelve digits. A number of steps is
    the largest whole number that is safe (with `round_to="epochs"`, of whole epochs); there, and
    for the rate of shuffled batches, the risk moves in jumps. Where no value meets the target, or
    every value does, the error says what the nearest possible value is.

    >>> m = choose(DPSGD(sample_rate=0.01, steps=2000), advantage=0.1)
    >>> 0.0999 < m.curve().advantage() <= 0.1
    True
    """
    return solve(
        mechanism, target, adjacency=adjacency, group_size=group_size, round_to=round_to
    ).mechanism


def solve(
    mechanism: AnyMechanism,
    target: Mapping[str, float | None],
    *,
    adjacency: str | None = None,
    group_size: int = 1,
    round_to: str = "steps",
) -> Solution[AnyMechanism]:
    """What `choose` finds, with its certified curve."""
    if not isinstance(mechanism, Mechanism):
        raise validate.invalid_value("mechanism", mechanism, "a mechanism", "give a DPSGD")
    validate.one_of("round_to", round_to, ("steps", "epochs"))
    goals, parameter = _goals(mechanism, target), _free_parameter(mechanism)
    relation = goals[0].reading.adjacency(adjacency)
    if parameter == "sampling_probability":
        curve = mechanism.curve(relation, group_size=group_size)
        share = _share_of_pool(curve, goals[0])
        return Solution(mechanism.with_parameter(parameter, share), curve, parameter)
    found, rate = mechanism.search(parameter), None
    if found.whole and round_to == "epochs":
        rate = getattr(getattr(mechanism, "training", mechanism), "sample_rate", None)
        if rate is None:
            requirement = "'steps' for a mechanism without a sampling rate"
            raise validate.invalid_value("round_to", round_to, requirement, "leave it out")
        found = replace(found, high=max(1, math.floor(MOST_STEPS * rate * (1 + 5e-13))))
    problem = _Problem(mechanism, parameter, goals, relation, group_size, found, rate)
    point = problem.search()
    assert point.curve is not None
    return Solution(problem.completed(point.number), point.curve, parameter)


def _goals(mechanism: Mechanism, target: Mapping[str, float | None]) -> list[Target]:
    """The target; of a pool, at the prior of the record that is worst off.

    Precision and belief grow with the prior. Success is convex in it, so it is worst at an end.
    """
    if not isinstance(mechanism, PoolSampled):
        return [Target.of(target)]
    given = {name: value for name, value in target.items() if value is not None}
    prior = "belief_prior" if "belief" in given else "prior"
    if prior in given:
        remedy = "the pool's sampling_probability is the prior"
        raise validate.invalid_value(prior, given[prior], "left out for a pool", remedy)
    if mechanism.sampling_probability is None and not {"precision", "belief"} & set(given):
        requirement = "precision or belief to choose a pool's sampling_probability"
        remedy, names = "the other risks do not grow with it", ", ".join(given) or "missing"
        raise validate.invalid_input("The target", names, requirement, remedy)
    if not {"precision", "belief", "success"} & set(given):
        return [Target.of(given)]
    priors = [mechanism.sampling_probability or mechanism.search("sampling_probability").low]
    if "success" in given and mechanism.least is not None:
        priors.append(mechanism.least)
    return [Target.of({**given, prior: each}) for each in priors]


def _share_of_pool(curve: TradeOff, goal: Target) -> float:
    """The largest prior that keeps a precision, logistic(logit prior + ln(t / FPR(t)))."""
    reading = goal.reading
    t = reading.conditions["min_tpr" if reading.name == "precision" else "exceeded"]
    fpr = curve.fpr(t)
    if fpr == 0:
        refused = f"The target {_shown(goal, goal.value)} cannot be met at any sampling_probability"
        raise validate.InputError(f"{refused}: an attacker may be right without fail.")
    log_odds = scipy.special.logit(goal.value) - math.log(t / fpr)
    prior = float(scipy.special.expit(log_odds)) * (1 - 1e-13)
    while not goal.keeps(curve.precision(prior, t)):
        prior *= 1 - 1e-13
    return prior


def _free_parameter(mechanism: Mechanism) -> str:
    missing = mechanism.free_parameters()
    if len(missing) == 1:
        return missing[0]
    which = ", ".join(missing) or f"the parameters of {type(mechanism).__name__}"
    shown = f"{len(missing)} are missing" if missing else "none is missing"
    remedy = "leave out the one that is to be found, and give the others"
    raise validate.InputError.of(f"Exactly one of {which}", "be left out", shown, remedy)


@dataclass(frozen=True)
class _Candidate:
    """A number of the range that was tried; no curve where none is certified."""

    v: float  # its position
    number: float
    excess: float = math.inf
    curve: TradeOff | None = None

    @property
    def tolerance(self) -> float:
        shape = self.curve.shape if self.curve else None
        if isinstance(shape, Polygon) and shape.edges > FEW_EDGES:
            return TOLERANCE
        return POLISHED


@dataclass(frozen=True)
class _Problem(Generic[AnyMechanism]):
    """A mechanism, its free parameter, and the target to keep.

    The search moves along a position v = +-ln(number), in which the risk rises.
    """

    mechanism: AnyMechanism
    parameter: str
    goals: list[Target]
    adjacency: str | None
    group_size: int
    range: Search  # of the numbers that may be tried: values of the parameter, or whole epochs
    rate: float | None  # the sampling rate where epochs are counted

    def completed(self, number: float) -> AnyMechanism:
        value = steps_from_epochs(number, self.rate) if self.rate is not None else number
        return self.mechanism.with_parameter(self.parameter, value)

    def position(self, number: float) -> float:
        return math.log(number) if self.range.rises else -math.log(number)

    def number(self, v: float) -> float:
        """The number at a position or at the nearer end; a whole one is rounded down."""
        number = math.exp(v if self.range.rises else -v)
        number = min(self.range.high, max(self.range.low, number))
        return math.floor(number * (1 + 1e-14)) if self.range.whole else number

    def at(self, v: float) -> _Candidate:
        number = self.number(v)
        if self.range.whole or number in (self.range.low, self.range.high):
            v = self.position(number)
        try:
            curve = self.completed(number).curve(self.adjacency, group_size=self.group_size)
        except NotCertifiableError:
            return _Candidate(v, number)
        return _Candidate(v, number, max(goal.excess(curve) for goal in self.goals), curve)

    def search(self) -> _Candidate:
        """The riskiest number that is safe, within the tolerance; every candidate is evaluated.

        The search walks, faster and faster, until it has a safe and an unsafe number, and then
        narrows the two: by the line through both, and by halves at every third turn.
        """
        whole, ends = self.range.whole, (self.range.low, self.range.high)
        safest, riskiest = ends if self.range.rises else ends[::-1]
        safe: _Candidate | None = None
        unsafe: _Candidate | None = None
        v, stride = self.position(self.first_guess()), 0.02
        for turn in range(MOST_EVALUATIONS):
            now = self.at(v)
            if now.excess <= 0:
                safe = now
                if not whole and now.excess >= -now.tolerance:
                    return now
                if now.number == riskiest:
                    raise self.refused(now)
            else:
                unsafe = now
                if now.number == safest:
                    raise self.refused(now)
            if safe and unsafe:
                if self.closed(safe, unsafe):
                    if math.isinf(unsafe.excess) and not whole:
                        raise self.refused(safe, "that can be certified")
                    return safe
                v = self.between(safe, unsafe, halve=turn % 3 == 2)
            else:
                one_more = math.log1p(1.0 / now.number) if whole else 0.0
                step = max(min(abs(now.excess), 3.0) + stride, one_more)
                v = now.v - math.copysign(step, now.excess)
                stride *= 2
        if safe is None:
            raise self.refused(replace(now, excess=math.inf))
        return safe

    def closed(self, safe: _Candidate, unsafe: _Candidate) -> bool:
        """Whether nothing is left between a safe and an unsafe number: the risk jumps there."""
        if self.range.whole:
            return unsafe.number - safe.number <= 1
        nearest = 1e-15 if safe.tolerance == POLISHED else 1e-13
        if math.isinf(unsafe.excess):
            nearest = 1e-9
        return unsafe.v - safe.v <= nearest * max(1.0, abs(safe.v))

    def between(self, safe: _Candidate, unsafe: _Candidate, *, halve: bool) -> float:
        """Where the line through both points is just below the ceiling, or half-way."""
        share, whole = 0.5, self.range.whole
        if not halve and unsafe.excess < 5 and safe.excess > -5:
            aim = 0.0 if whole else -safe.tolerance / 2
            share = (aim - safe.excess) / (unsafe.excess - safe.excess)
        v = safe.v + (unsafe.v - safe.v) * min(max(share, 0.02), 0.98)
        if whole:
            v = self.position(min(max(self.number(v), safe.number + 1), unsafe.number - 1))
        return v

    def first_guess(self) -> float:
        """A number near the answer: the central-limit form, solved for the parameter."""
        mechanism: Mechanism = getattr(self.mechanism, "training", self.mechanism)
        name, relation = self.parameter, self.adjacency or mechanism.default_adjacency
        found = self.mechanism.search(name)
        if not isinstance(mechanism, DPSGD | Gaussian):
            return min(max(1.0, found.low), found.high)

        def gap(log_value: float) -> float:
            known = {"sample_rate": 1.0, **vars(mechanism), name: math.exp(log_value)}
            z, q, steps = known["noise_multiplier"], known["sample_rate"], known["steps"]
            mu = min(self.group_size * central_limit_mu(z, q, steps, relation), 60.0)
            excess = self.goals[0].excess(Estimate(GaussianShape(mu), source="first guess"))
            return max(-50.0, min(50.0, excess))

        least = LEAST_NOISE_GUESSED if name == "noise_multiplier" else found.low
        low, high = math.log(least), math.log(found.high)
        guess = found.low if found.rises else found.high
        if gap(low) * gap(high) < 0:
            guess = math.exp(float(scipy.optimize.brentq(gap, low, high, xtol=1e-3)))
        if self.rate is None:
            return guess
        return min(max(math.floor(guess * self.rate), 1), self.range.high)

    def refused(self, end: _Candidate, where: str = "") -> validate.InputError:
        """Why nothing is chosen: every number up to an end is safe, or none is."""
        goal, number, name = self.goals[0], f"{end.number:g}", self.parameter
        at = f"{name} {number}"
        if self.range.whole:
            unit = "step" if self.rate is None else "epoch"
            number, name = f"{end.number:,}", f"number of {unit}s"
            at = f"{number} {unit if end.number == 1 else unit + 's'}"
        low = end.number == self.range.low
        which = f"{name} {where or (f'from {number} up' if low else f'up to {number}')}"
        if math.isfinite(end.excess):
            value = goal.value_at(min(end.excess, 700.0))
            nearest = f"the nearest possible value is {_shown(goal, value)}, at {at}"
        else:
            nearest = f"nothing finite can be certified at {at}"
            if goal.reading.name == "epsilon":
                nearest += f" for delta {goal.reading.conditions['delta']:g}; give a larger delta"
        said = f"The target {_shown(goal, goal.value)} cannot be met at any {which}"
        if end.excess <= 0:
            kept = f"stays {'below' if goal.reading.metric.rises else 'above'} its target"
            said = f"{goal.reading.name} {kept} at every {which}, so there is nothing to choose"
        return validate.InputError(f"{said}: {nearest}.")


def _shown(target: Target, value: float) -> str:
    return f"{target.reading.name} {value:.6g}"
