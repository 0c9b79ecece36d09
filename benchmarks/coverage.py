"""How often does each lower bound claim too much? Simulated audits of mechanisms with known truth.

Claim: docs/lower-bounds.md. Every method, at δ = 0, 1e-5 and 1e-2, with 100, 1,000 and 10,000
trials a world, on four mechanisms with ε = 0, 1 and 4, on scores that are continuous, tied, or have
at most five values: 2,000 audits each. One-run methods get twice as many canaries as a world has
trials, in or out by fair coins.
"""

from __future__ import annotations

import itertools
import math
import os
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from multiprocessing import Pool
from typing import Any

import numpy as np

import dprime
from benchmarks.timing import Found, say
from dprime import Reading, TradeOff
from dprime.audit import LowerBound, judge, lower_bound
from dprime.privacy_loss import Array

RATE = 0.2
"""With which the subsampled Gaussian has the record in its one step."""

MECHANISMS: dict[str, Callable[[], dprime.Mechanism]] = {
    "Gaussian": dprime.Gaussian,
    "Laplace": dprime.Laplace,
    "randomised response": dprime.RandomizedResponse,
    "subsampled Gaussian": lambda: dprime.DPSGD(sample_rate=RATE, steps=1),
}
FORMS = ("continuous", "ties", "few values")
PILOT = 200_000
"""Scores that the rounding is laid out on, from a fixed seed of their own."""


class Worlds:
    """Two worlds of one mechanism.

    Args:
        family: a name in `MECHANISMS`.
        epsilon: at `delta`; 0 makes both worlds the same, that without the record.
        delta: at which epsilon is meant.
        form: of the scores, one of `FORMS`. Rounding can only lose some of what they tell.
    """

    def __init__(self, family: str, epsilon: float, delta: float, form: str) -> None:
        self.family, self.null = family, epsilon == 0
        self.mechanism = dprime.choose(MECHANISMS[family](), epsilon=epsilon or 1.0, delta=delta)
        self.curve = dprime.TradeOff.gaussian(0.0) if self.null else self.mechanism.curve()
        self._shape = self._forms(form)

    def epsilon(self, delta: float) -> float:
        """The mechanism's ε at a δ, exact at 0 too, which a certified curve cannot give."""
        if delta or self.null:
            return Reading("epsilon", {"delta": delta}).value(self.curve) if delta else 0.0
        if isinstance(self.mechanism, dprime.Laplace):
            return 1.0 / self.mechanism._required("noise_multiplier")
        if isinstance(self.mechanism, dprime.RandomizedResponse):
            return self.mechanism._required("epsilon")
        return math.inf

    def draw(self, rng: np.random.Generator, size: int, *, inside: bool) -> Array:
        return self._shape(self._scores(rng, size, inside=inside and not self.null))

    def _scores(self, rng: np.random.Generator, size: int, *, inside: bool) -> Array:
        mechanism = self.mechanism
        if isinstance(mechanism, dprime.RandomizedResponse):
            honest = 1.0 / (1.0 + math.exp(-mechanism._required("epsilon")))
            says_in = rng.random(size) < (honest if inside else 1.0 - honest)
            return says_in + rng.random(size)
        noise = mechanism._required("noise_multiplier")
        if isinstance(mechanism, dprime.Laplace):
            return inside + rng.laplace(0.0, noise, size)
        if isinstance(mechanism, dprime.Gaussian):
            return inside + rng.normal(0.0, noise, size)
        sampled = (rng.random(size) < RATE) & inside
        outputs = sampled + rng.normal(0.0, noise, size)
        # The privacy loss of one step: ln((1 - q) + q e^u), u = (2x - 1) / (2 z^2)
        return np.logaddexp(math.log1p(-RATE), math.log(RATE) + (2 * outputs - 1) / (2 * noise**2))

    def _forms(self, form: str) -> Callable[[Array], Array]:
        """Rounding that is fixed before any audit."""
        if form == "continuous":
            return lambda scores: scores
        rng = np.random.default_rng(0)
        pilot = np.concatenate([self._scores(rng, PILOT, inside=i) for i in (True, False)])
        if form == "ties":
            step = float(pilot.std()) / 8
            return lambda scores: np.round(scores / step)
        if self.family == "randomised response":
            return np.floor  # the two answers themselves
        cuts = np.quantile(pilot, (0.05, 0.3, 0.7, 0.95))
        return lambda scores: np.searchsorted(cuts, scores).astype(np.float64)


CONFIDENCE = 0.95
"""The default of `lower_bound`."""

DESIGNS = (
    (0.0, 1e-5, (0.0, 1e-5, 1e-2)),
    (1.0, 1e-5, (0.0, 1e-5)),
    (1.0, 1e-2, (1e-2,)),
    (4.0, 1e-5, (0.0, 1e-5)),
    (4.0, 1e-2, (1e-2,)),
)
"""ε, the δ at which it is meant, and the δ that are asked of these worlds."""

SIZES = (100, 1000, 10_000)
CURVES = ("band", "gaussian")
"""One call bounds the curve; every δ is read off it."""
CHOSEN = ("clopper-pearson", "bayesian")
ONE_RUN = ("steinke", "mahloujifar")

ORDER = ("method", "mechanism", "epsilon", "delta", "trials", "scores")

Task = tuple[str, float, float, tuple[float, ...], str, int, int]


def measure(quick: bool) -> Found:
    audits, sizes = (100, SIZES[:2]) if quick else (2000, SIZES)
    designs = itertools.product(MECHANISMS, DESIGNS, FORMS, sizes)
    tasks = [(family, *design, form, n, audits) for family, design, form, n in designs]
    tasks.sort(key=lambda task: -task[5])  # long ones first
    rows: list[Found] = []
    with Pool(os.cpu_count()) as pool:
        for done, found in enumerate(pool.imap_unordered(_played, tasks), 1):
            rows += found
            say(f"{done} of {len(tasks)} settings")
    rows.sort(key=lambda row: [row[name] for name in ORDER])
    for row in rows:
        if decisive(row) and share_over(row) > limit(audits):
            say(f"above the limit: {row}")
    return {"confidence": CONFIDENCE, "audits": audits, "rows": rows}


def _played(task: Task) -> list[Found]:
    """All methods on one kind of audit; a row for each method and δ."""
    family, epsilon, at_delta, deltas, form, n, audits = task
    worlds = Worlds(family, epsilon, at_delta, form)
    curve = worlds.curve
    epsilons = {delta: worlds.epsilon(delta) for delta in deltas}
    found: dict[tuple[str, float], list[Found]] = defaultdict(list)
    for number, scores, canaries in _audits(worlds, n, audits, task):
        for method, delta, bound in _bounds(scores, canaries, deltas, number):
            found[method, delta].append(_outcome(bound, delta, epsilons[delta], curve))
    setting = {"mechanism": family, "epsilon": epsilon, "scores": form, "trials": n}
    return [
        {"method": method, "delta": delta, **setting, **_summary(outcomes, epsilons[delta])}
        for (method, delta), outcomes in found.items()
    ]


def _audits(
    worlds: Worlds, n: int, audits: int, task: Task
) -> Iterator[tuple[int, tuple[Array, Array], tuple[Array, Array]]]:
    """Scores of two worlds, and of canaries that share the draws where they can."""
    rng = np.random.default_rng([ord(letter) for letter in repr(task)])
    spare = n + 6 * math.isqrt(n)  # six standard deviations of a fair coin's count, and more
    for number in range(audits):
        inside = worlds.draw(rng, spare, inside=True)
        outside = worlds.draw(rng, spare, inside=False)
        heads = min(max(int(rng.binomial(2 * n, 0.5)), 2 * n - spare), spare)
        yield number, (inside[:n], outside[:n]), (inside[:heads], outside[: 2 * n - heads])


def _bounds(
    scores: tuple[Array, Array],
    canaries: tuple[Array, Array],
    deltas: tuple[float, ...],
    seed: int,
) -> Iterator[tuple[str, float, LowerBound]]:
    for method in CURVES:
        bound = lower_bound(*scores, delta=deltas[-1], method=method)
        yield from ((method, delta, bound) for delta in deltas)
    for delta in deltas:
        for method in CHOSEN:
            yield method, delta, lower_bound(*scores, delta=delta, method=method, seed=seed)
        for method in ONE_RUN:
            yield method, delta, lower_bound(*canaries, delta=delta, method=method)


def _outcome(bound: LowerBound, delta: float, truth: float, claim: TradeOff) -> Found:
    same = delta == bound.delta
    epsilon = bound.epsilon if same else bound.value(Reading("epsilon", {"delta": delta}))
    over = epsilon > truth
    outcome: Found = {"bound": epsilon, "over": over}
    if bound.method == "band":
        outcome["curve_over"] = _curve_over(bound, claim)
    if bound.method == "gaussian":
        outcome["objected"] = bound.objection is not None
        outcome["over_unobjected"] = over and bound.objection is None
    return outcome


@lru_cache(2)
def _curve_over(bound: LowerBound, claim: TradeOff) -> bool:
    """Once for all δ."""
    return judge(bound, claim, "curve").refuted


def _summary(outcomes: list[Found], truth: float) -> Found:
    bounds = [outcome.pop("bound") for outcome in outcomes]
    shares = {name: float(np.mean([o[name] for o in outcomes])) for name in outcomes[0]}
    return {**shares, "truth": round(truth, 6), "median": round(statistics.median(bounds), 6)}


# How the rows are read ----------------------------------------------------------------------------


def limit(audits: int) -> float:
    """1 - confidence and three standard errors."""
    alpha = 1 - CONFIDENCE
    return alpha + 3 * math.sqrt(alpha * (1 - alpha) / audits)


def decisive(row: Mapping[str, Any]) -> bool:
    """Whether a bound must hold: a Bayesian one need not, nor a Gaussian one on other scores."""
    if row["method"] == "gaussian":
        return (row["mechanism"], row["scores"]) == ("Gaussian", "continuous")
    return str(row["method"]) != "bayesian"


def share_over(row: Mapping[str, Any]) -> float:
    """Of ε, and for the band of the curve anywhere."""
    return max(float(row["over"]), float(row.get("curve_over", 0.0)))
