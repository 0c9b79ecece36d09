"""How often is a true claim refuted? Simulated audits of correct trainers, light tails included.

Claim: docs/lower-bounds.md. Each law of the scores has a trade-off curve that is known, and that
curve is the claim. 2,000 audits with 500 trials in each world are judged by each criterion. Scores
are log-likelihood ratios or an increasing function of them, so the best attacker plays.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import Pool

import numpy as np
import scipy

import dprime
from benchmarks.timing import Found
from dprime import Reading
from dprime.audit import judge, lower_bound
from dprime.audit.planner import Criterion
from dprime.curve import TradeOff
from dprime.privacy_loss import Array
from dprime.shapes import Polygon

TRIALS, CUT, PARTS = 500, 3.0, 10

Draw = Callable[[np.random.Generator, bool], Array]


def _gaussian(rng: np.random.Generator, inside: bool) -> Array:
    return rng.normal(float(inside), 1.0, TRIALS)


def _rounded(rng: np.random.Generator, inside: bool) -> Array:
    return np.round(_gaussian(rng, inside))


def _cut(rng: np.random.Generator, inside: bool) -> Array:
    """Normal scores, their tails cut 3 from the midpoint."""
    low, high = scipy.special.ndtr(np.array([-CUT, CUT]) + 0.5 - inside)
    return scipy.special.ndtri(rng.uniform(low, high, TRIALS)) + inside


def _cut_curve() -> TradeOff:
    """The curve of normal laws with tails cut at ½ ∓ 3, whose likelihood ratio increases."""
    places = np.linspace(0.5 - CUT, 0.5 + CUT, 4001)
    rates: list[list[float]] = []
    for mean in (0.0, 1.0):
        ends = scipy.special.ndtr(np.array([0.5 - CUT, 0.5 + CUT]) - mean)
        above = (ends[1] - scipy.special.ndtr(places - mean)) / (ends[1] - ends[0])
        rates.append(np.clip(above, 0.0, 1.0).tolist())
    return TradeOff(Polygon.from_points(zip(*rates, strict=True)))


def _laplace(rng: np.random.Generator, inside: bool) -> Array:
    """The log-likelihood ratio of 10 answers with Laplace noise, 0.3-DP each."""
    answers = float(inside) + rng.laplace(0.0, 1 / 0.3, (TRIALS, PARTS))
    return np.asarray(0.3 * (np.abs(answers) - np.abs(answers - 1.0)).sum(1))


def _responses(rng: np.random.Generator, inside: bool) -> Array:
    """The number of 10 randomised responses that say "in", 0.3-DP each."""
    right = rng.random((TRIALS, PARTS)) < scipy.special.expit(0.3)
    return np.asarray((right == inside).sum(1), dtype=np.float64)


def _sampled(rng: np.random.Generator, inside: bool) -> Array:
    """The log-likelihood ratio of 20 steps, with the record in each with probability 0.2."""
    seen = (rng.random((TRIALS, 20)) < 0.2) * float(inside) + rng.normal(0, 1, (TRIALS, 20))
    return np.asarray(np.log1p(0.2 * np.expm1(seen - 0.5)).sum(1))


LAWS: dict[str, tuple[Draw, Callable[[], TradeOff]]] = {
    "Gaussian": (_gaussian, lambda: TradeOff.gaussian(1.0)),
    "Gaussian, rounded": (_rounded, lambda: TradeOff.gaussian(1.0)),
    "normal, tails cut": (_cut, _cut_curve),
    "10 Laplace answers": (_laplace, lambda: dprime.Laplace(1 / 0.3, PARTS).curve("add-remove")),
    "10 randomised responses": (
        _responses, lambda: dprime.RandomizedResponse(0.3, steps=PARTS).curve("replace"),
    ),
    "20 steps of DP-SGD, rate 0.2": (
        _sampled, lambda: dprime.DPSGD(1.0, 0.2, 20).curve("add-remove"),
    ),
}  # fmt: skip
"""Scores of a correct trainer, and their curve."""

EPSILON = Reading("epsilon")
CRITERIA: dict[str, tuple[str, Criterion, str | None]] = {
    "band, curve (default)": ("band", "curve", None),
    "band, ε": ("band", EPSILON, None),
    "clopper-pearson, ε": ("clopper-pearson", EPSILON, None),
    "clopper-pearson, advantage": ("clopper-pearson", Reading("advantage"), None),
    "gaussian, ε": ("gaussian", EPSILON, None),
    "gaussian, ε, assumption accepted": ("gaussian", EPSILON, "gaussian"),
    "bayesian, ε": ("bayesian", EPSILON, None),
}
"""Method, metric, and the assumption that is accepted."""


def measure(quick: bool) -> Found:
    audits = 100 if quick else 2000
    tasks = [(law, criterion, audits) for law in LAWS for criterion in CRITERIA]
    with Pool(2) as pool:
        rows = pool.starmap(_judged, tasks, chunksize=1)
    return {"audits": audits, "trials": TRIALS, "confidence": 0.95, "rows": rows}


def _judged(law: str, criterion: str, audits: int) -> Found:
    """The same draws for every criterion."""
    draw, claim_of = LAWS[law]
    method, metric, assume = CRITERIA[criterion]
    options = {"method": method, "metric": None if metric == "curve" else metric, "assume": assume}
    rng, claim = np.random.default_rng(list(LAWS).index(law)), claim_of()
    refuted = 0
    for audit in range(audits):
        bound = lower_bound(draw(rng, True), draw(rng, False), **options, seed=audit)  # type: ignore[arg-type]
        refuted += judge(bound, claim, metric).refuted
    rest = audits - refuted
    low = scipy.special.betaincinv(refuted, rest + 1, 0.025) if refuted else 0.0
    high = scipy.special.betainccinv(refuted + 1, rest, 0.025) if rest else 1.0
    return {
        "law": law, "criterion": criterion, "refuted": refuted, "low": float(low),
        "high": float(high),
    }  # fmt: skip
