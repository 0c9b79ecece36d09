"""From an acceptable risk to the parameter that keeps it, always on the safe side.

Every question has the same form: a certified risk that moves one way with one free parameter, and
a ceiling for it. The free parameter is the one that the mechanism's description leaves out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import scipy

from dprime import validate
from dprime.curve import Estimate, TradeOffMetrics
from dprime.estimates import central_limit_mu
from dprime.guarantees import LARGEST_EPSILON
from dprime.mechanisms import DPSGD, Gaussian, Mechanism, PoolSampled
from dprime.metrics import METRICS, TARGETS, Reading, certifiable, example
from dprime.parameters import LEAST_NOISE, MOST_STEPS, steps_from_epochs
from dprime.privacy_loss import NotCertifiableError
from dprime.shapes import GaussianShape

AnyMechanism = TypeVar("AnyMechanism", bound=Mechanism)
Excess = Callable[[float], float]
"""ln of risk over ceiling at a value of the free parameter; 0 or less is safe."""

TOLERANCE = 5e-4
"""How far below the ceiling an answer may stay, as a share of the risk above the baseline."""

MOST_EVALUATIONS = 80

LEAST_GUESS = {"noise_multiplier": 0.05}
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
class Free:
    """A parameter that can be chosen: its range, and whether risk rises with it."""

    low: float
    high: float
    rises: bool

    @property
    def safest(self) -> float:
        """The end of the range with the least risk."""
        return self.low if self.rises else self.high

    @property
    def riskiest(self) -> float:
        """The other end."""
        return self.high if self.rises else self.low

    def in_words(self, end: float) -> str:
        """The range, for a sentence about one of its ends."""
        return f"from {end:g} up" if end == self.low else f"up to {end:g}"


FREE = {
    "noise_multiplier": Free(LEAST_NOISE, 1e5, rises=False),
    "sample_rate": Free(1e-9, 1.0, rises=True),
    "epsilon": Free(1e-7, LARGEST_EPSILON, rises=True),
    "mu": Free(1e-7, 500.0, rises=True),
    "rho": Free(1e-12, 1e4, rises=True),
}


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
    parameter, it is less than 0.1 % below the target, counted from what blind guessing reaches. A
    number of steps is the largest whole number that is safe (with `whole="epochs"`, of whole
    epochs); there, and for the rate of shuffled batches, the risk moves in jumps and may stay
    further below.

    Args:
        mechanism: a description with one parameter left out, e.g. `DPSGD(sample_rate=0.01,
            steps=2000)`. For `PoolSampled` it may be the pool's sampling probability.
        adjacency: "add-remove", "replace" or "zero-out"; the mechanism's own where not given.
        group_size: how many records one person may have contributed.
        whole: what a free number of steps is counted in, "steps" or "epochs".
        **target: exactly one of `advantage`, `bayes_security`, `tpr` (with `fpr`), `epsilon` (with
            `delta`), `precision` (with `prior`, `min_tpr`), `belief` (with `prior`, `exceeded`),
            `success` (with `prior`), `secret_success` (with `max_prior`).

    Raises:
        InputError: a bad input, or a target that no value of the parameter meets, or that every
            value meets; the sentence says what the nearest possible value is.

    >>> m = choose(DPSGD(sample_rate=0.01, steps=2000), advantage=0.1)
    >>> 0.0999 < m.curve().advantage() <= 0.1
    True

    """
    if not isinstance(mechanism, Mechanism):
        raise validate.refusal(
            "mechanism",
            mechanism,
            "a mechanism",
            "give for example DPSGD(sample_rate=0.01, steps=2000)",
        )
    validate.one_of("whole", whole, ("steps", "epochs"))
    if isinstance(mechanism, PoolSampled):
        return _choose_pooled(mechanism, adjacency, group_size, whole, target)  # type: ignore[return-value]
    goal = Target.of(target)
    return _complete(mechanism, [goal], goal.adjacency(adjacency), group_size, whole)


def _choose_pooled(
    pooled: PoolSampled,
    adjacency: str | None,
    group_size: int,
    whole: str,
    target: dict[str, float | None],
) -> PoolSampled:
    if target.get("prior") is not None:
        raise validate.InputError.of(
            "prior",
            "not be given for a pool",
            f"it is {target['prior']}",
            "the pool's sampling probability is the prior",
            value=target["prior"],
        )
    if pooled.probability is None:
        return replace(pooled, probability=_pool_probability(pooled, adjacency, group_size, target))
    goals = _pooled_targets(pooled, target)
    if goals[0].reading.metric.adjacency:
        raise validate.refusal(
            "The target",
            goals[0].reading.name,
            "about who was drawn for a pool",
            "it compares two versions of a record; choose for the training without the pool",
        )
    pooled.check_question(adjacency or pooled.default_adjacency, group_size)
    return replace(pooled, training=_complete(pooled.training, goals, adjacency, group_size, whole))


def _pooled_targets(pooled: PoolSampled, target: dict[str, float | None]) -> list[Target]:
    """The target at the prior of the record that is worst off.

    Precision and belief grow with the prior. Success is convex in it, so it is worst at an end.
    """
    if target.get("precision") is not None or target.get("belief") is not None:
        return [Target.of({**target, "prior": pooled.prior})]
    if target.get("success") is None:
        return [Target.of(target)]
    priors = dict.fromkeys((pooled.prior, pooled.least_prior))
    return [Target.of({**target, "prior": prior}) for prior in priors]


def _pool_probability(
    pooled: PoolSampled, adjacency: str | None, group_size: int, target: dict[str, float | None]
) -> float:
    """The largest prior at which the curve keeps the precision: solved in closed form."""
    if target.get("precision") is None and target.get("belief") is None:
        shown = ", ".join(name for name, value in target.items() if value is not None) or "missing"
        raise validate.refusal(
            "The target",
            shown,
            "precision or belief to choose a pool's probability",
            "the other risks do not grow with it",
        )
    goal = Target.of({**target, "prior": 1e-300})
    t = goal.reading.conditions["min_tpr" if goal.reading.name == "precision" else "exceeded"]
    curve = pooled.curve(adjacency, group_size=group_size)
    fpr = curve.fpr(t)
    prior = 0.0
    if fpr > 0:  # precision = logistic(logit prior + ln(t / FPR(t)))
        prior = float(scipy.special.expit(scipy.special.logit(goal.value) - math.log(t / fpr))) * (
            1 - 1e-12
        )
    if not prior > 0 or curve.precision(prior, t) > goal.value:
        raise validate.InputError(
            f"{goal.reading.name} cannot be kept at {goal.value:g} by any pool: this training "
            f"reveals a member with probability {t:g} and no false alarm; the nearest possible "
            "value is 1."
        )
    return prior


def _complete(
    mechanism: AnyMechanism,
    goals: list[Target],
    adjacency: str | None,
    group_size: int,
    whole: str,
) -> AnyMechanism:
    """Set the one missing parameter of the mechanism."""
    goal = goals[0]
    missing = mechanism.free_parameters()
    if len(missing) != 1:
        shown = " and ".join(missing) or "none"
        raise validate.InputError.of(
            f"Exactly one parameter of {type(mechanism).__name__}",
            "be left out to be chosen",
            f"{shown} {('is' if len(missing) < 2 else 'are')} missing",
            "leave out the one that dprime shall find",
        )
    name = missing[0]

    def excess(value: float) -> float:
        try:
            curve = mechanism.with_parameter(name, value).curve(adjacency, group_size=group_size)
            return max(each.excess(curve) for each in goals)
        except NotCertifiableError:
            return math.inf

    if name == "steps":
        count = _steps_of(mechanism, whole)
        most = _largest_safe_count(lambda n: excess(count(n)), goal, whole, count)
        return mechanism.with_parameter(name, count(most))
    if name not in FREE:
        raise validate.InputError.of(
            name, "be given", "it is missing", f"dprime can choose {', '.join(FREE)}, steps"
        )
    free = _range(mechanism, name)
    guess = _first_guess(mechanism, free, name, goal, adjacency, group_size)
    return mechanism.with_parameter(name, _safe_value(excess, free, guess, name, goal))


def _range(mechanism: Mechanism, name: str) -> Free:
    """Where the parameter may lie: Laplace noise begins higher than Gaussian noise."""
    free = FREE[name]
    try:
        mechanism.with_parameter(name, free.low)
    except validate.InputError:
        return replace(free, low=1.0 / LARGEST_EPSILON)
    return free


def _steps_of(mechanism: Mechanism, whole: str) -> Callable[[int], int]:
    """How many steps n units are."""
    if whole == "steps":
        return _whole_steps
    rate = getattr(mechanism, "sample_rate", None)
    if rate is None:
        raise validate.InputError.of(
            "whole",
            "be 'steps' for a mechanism without a sampling rate",
            "it is 'epochs'",
            "leave it out",
        )
    return lambda n: steps_from_epochs(n, rate)


def _first_guess(
    mechanism: Mechanism,
    free: Free,
    name: str,
    goal: Target,
    adjacency: str | None,
    group_size: int,
) -> float:
    """A value near the answer: the central-limit form, solved for the parameter."""
    if not isinstance(mechanism, DPSGD | Gaussian):
        return 1.0

    def index(value: float) -> float:
        known = {"sample_rate": 1.0, **vars(mechanism), name: value}
        relation = adjacency or mechanism.default_adjacency
        return group_size * central_limit_mu(
            known["noise_multiplier"], known["sample_rate"], known["steps"], relation
        )

    def gap(log_value: float) -> float:
        mu = min(index(math.exp(log_value)), 60.0)
        excess = goal.excess(Estimate(GaussianShape(mu), source="first guess"))
        return max(-50.0, min(50.0, excess))

    low, high = math.log(max(free.low, LEAST_GUESS.get(name, 0.0))), math.log(free.high)
    if gap(low) * gap(high) >= 0:
        return free.safest
    return math.exp(float(scipy.optimize.brentq(gap, low, high, xtol=1e-3)))


def _safe_value(excess: Excess, free: Free, guess: float, name: str, goal: Target) -> float:
    """The riskiest value that is safe, within the tolerance; every candidate is evaluated."""
    sign = 1.0 if free.rises else -1.0
    ends = sorted((sign * math.log(free.low), sign * math.log(free.high)))

    def value_at(v: float) -> float:  # risk rises with v
        if v in ends:
            return free.safest if v == ends[0] else free.riskiest
        return min(free.high, max(free.low, math.exp(sign * v)))

    v = min(max(sign * math.log(guess), ends[0]), ends[1])
    safe: tuple[float, float] | None = None  # (v, excess)
    unsafe: tuple[float, float] | None = None
    stride = 0.02
    for turn in range(MOST_EVALUATIONS):
        now = excess(value_at(v))
        if now <= 0:
            safe = (v, now)
            if now >= -TOLERANCE:
                return value_at(v)
            if v == ends[1]:
                which = f"{name} {free.in_words(free.riskiest)}"
                raise _everything_is_safe(goal, now, which, free.riskiest)
        else:
            unsafe = (v, now)
            if v == ends[0]:
                which = f" at any {name} {free.in_words(free.safest)}"
                raise _impossible(goal, now, f"{name} {free.safest:g}", which)
        if safe and unsafe:
            last = math.isinf(unsafe[1])  # beyond, nothing can be certified
            if unsafe[0] - safe[0] < (1e-9 if last else 1e-13) * max(1.0, abs(v)):
                if last:
                    which = f"{name} that can be certified"
                    raise _everything_is_safe(goal, safe[1], which, value_at(safe[0]))
                return value_at(safe[0])
            v = _between(safe, unsafe, halve=turn % 3 == 2)
        else:  # walk, faster and faster, towards the other side
            distance = min(abs(now), 3.0) + stride
            v = min(max(v - math.copysign(distance, now), ends[0]), ends[1])
            stride *= 2
    if safe is None:
        raise _impossible(goal, math.inf, "the values tried")
    return value_at(safe[0])


def _between(safe: tuple[float, float], unsafe: tuple[float, float], *, halve: bool) -> float:
    """Where the line through both points is just below the ceiling, or half-way."""
    width = unsafe[0] - safe[0]
    share = 0.5
    if not halve and unsafe[1] < 5 and safe[1] > -5:
        share = (-TOLERANCE / 2 - safe[1]) / (unsafe[1] - safe[1])
    return safe[0] + width * min(max(share, 0.02), 0.98)


def _kept(goal: Target) -> str:
    """What a value on the safe side of the target does."""
    return f"{goal.reading.name} stays {'below' if goal.reading.metric.rises else 'above'}"


def _shown(goal: Target, value: float) -> str:
    return f"{goal.reading.name} {value:.6g}"


def _everything_is_safe(
    goal: Target, excess: float, which: str, value: float
) -> validate.InputError:
    return validate.InputError(
        f"{_kept(goal)} its target at every {which}, so there is nothing to choose: at "
        f"{value:g} the nearest possible value is {_shown(goal, goal.value_at(excess))}."
    )


def _impossible(goal: Target, excess: float, where: str, which: str = "") -> validate.InputError:
    refused = f"The target {_shown(goal, goal.value)} cannot be met{which}:"
    if math.isinf(excess):
        larger = ""
        if goal.reading.name == "epsilon":
            larger = f" for delta {goal.reading.conditions['delta']:g}; give a larger delta"
        return validate.InputError(f"{refused} nothing finite can be certified at {where}{larger}.")
    nearest = _shown(goal, goal.value_at(min(excess, 700.0)))
    return validate.InputError(f"{refused} the nearest possible value is {nearest}, at {where}.")


def _largest_safe_count(
    excess: Callable[[int], float], goal: Target, whole: str, steps_of: Callable[[int], int]
) -> int:
    """The whole number n that is safe while n + 1 is not."""
    first = excess(1)
    if first > 0:
        raise _impossible(goal, first, f"1 {whole.removesuffix('s')}")
    most = _most_units(steps_of)
    safe, unsafe = (1, first), (0, math.inf)
    n = 2
    while not unsafe[0]:
        now = excess(n)
        if now > 0:
            unsafe = (n, now)
        elif n >= most:
            raise validate.InputError(
                f"{_kept(goal)} its target for every number of {whole} that can be "
                f"certified, so there is nothing to choose: even {n:,} {whole} are safe."
            )
        else:
            safe = (n, now)
            n = min(most, max(2 * n, math.ceil(n * math.exp(min(5.0, -1.5 * now)))))
    turn = 0
    while unsafe[0] - safe[0] > 1:
        width = unsafe[0] - safe[0]
        share = 0.5
        turn += 1
        if turn % 3 and math.isfinite(unsafe[1]):  # every third time the bracket is halved
            logs = math.log(unsafe[0] / safe[0])
            target = safe[0] * math.exp(logs * -safe[1] / (unsafe[1] - safe[1]))
            share = (target - safe[0]) / width
        step = min(max(round(width * share), 1, width // 50), width - max(1, width // 50))
        now = excess(safe[0] + step)
        if now > 0:
            unsafe = (safe[0] + step, now)
        else:
            safe = (safe[0] + step, now)
    return safe[0]


def _whole_steps(n: int) -> int:
    return n


def _most_units(steps_of: Callable[[int], int]) -> int:
    """The largest number of units whose steps can be certified."""
    if steps_of is _whole_steps:
        return MOST_STEPS
    fits, too_many = 1, MOST_STEPS + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        try:
            steps_of(middle)  # refuses more than MOST_STEPS
            fits = middle
        except validate.InputError:
            too_many = middle
    return fits
