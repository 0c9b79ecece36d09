"""Verdicts: refuted, not refuted or inconclusive, and no bound says more than it may."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprime import EpsilonDelta, Estimate, LowerCurve, TradeOff
from dprime.audit import ClopperPearson, Mahloujifar, judge, lower_bound
from dprime.audit.verdict import _pair
from dprime.metrics import Reading
from dprime.shapes import GaussianShape, Polygon

ADVANTAGE, EPSILON = Reading("advantage"), Reading("epsilon")
PURE = Reading("epsilon", {"delta": 0})
LAPLACE = TradeOff.from_lines([(1.0, 0.0)])
ACCEPTED = {"method": "gaussian", "assume": "gaussian"}


def scores(d_prime=1.5, size=2000, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(d_prime, 1, size), rng.normal(0, 1, size)


def judged(claim, metric="curve", method="band", by=scores(), **options):  # noqa: B008
    """The verdict on scores; a number claims a Gaussian curve."""
    claim = TradeOff.gaussian(claim) if isinstance(claim, float) else claim
    return judge(lower_bound(*by, method=method, **options), claim, metric)


def unplanned(inside, outside, method):
    """A bound for which a verdict does not compute what would have been noticed."""
    return replace(lower_bound(inside, outside, method=method), usual=False)


FEW = unplanned(*scores(size=50), "band")


def test_both_numbers_and_what_would_have_been_noticed():
    refuted, kept = judged(0.8, ADVANTAGE), judged(1.5, ADVANTAGE)
    assert (refuted.outcome, refuted.detects, refuted.confidence) == ("refuted", None, 0.95)
    assert refuted.reached == lower_bound(*scores()).curve.advantage() > refuted.allowed
    assert refuted.allowed == TradeOff.gaussian(0.8).advantage()
    assert refuted.sentence.endswith("; the claim allows 0.3109: the claim is refuted.")
    assert (kept.refuted, kept.outcome) == (False, "not refuted")
    assert 1.5 < kept.detects < 1.8


EVERY = [
    *(("band", Reading(name)) for name in ("epsilon", "tpr", "precision", "success", "d_prime")),
    *(("band", PURE), ("band", "curve")),
    *(("clopper-pearson", Reading("tpr")), ("clopper-pearson", PURE)),
]


@pytest.mark.parametrize(("method", "metric"), EVERY, ids=lambda each: getattr(each, "name", each))
def test_every_metric_judges(method, metric):
    bound = unplanned(*scores(2.5), method)
    assert not judge(bound, TradeOff.gaussian(2.5), metric).refuted
    if metric != PURE:  # no Gaussian claims a finite one
        assert judge(bound, TradeOff.gaussian(0.01), metric).refuted


def test_by_the_curve_one_point_is_enough():
    """A claim can keep the advantage and still be refuted where false alarms are few."""
    claim = TradeOff.from_lines([(1.0, 0.0), (0.0, 0.6)])
    assert not judged(claim, ADVANTAGE).refuted
    verdict = judged(claim)
    assert verdict.refuted
    fpr = verdict.metric.conditions["fpr"]
    assert verdict.reached == lower_bound(*scores()).curve.tpr(fpr) > claim.tpr(fpr)


@given(
    points=st.lists(st.tuples(st.floats(0.001, 0.999), st.floats(0.001, 0.999)), max_size=5),
    mu=st.floats(0.1, 3),
)
def test_by_the_curve_agrees_with_looking_everywhere(points, mu):
    lower = LowerCurve(Polygon.from_points(points), 0.95, "band")
    bound = replace(FEW, curve=lower)
    claim = TradeOff.gaussian(mu)
    grid = np.linspace(0, 1, 2001)
    excess = max(lower.tpr(float(f)) - claim.tpr(float(f)) for f in grid)
    refuted = judge(bound, claim, "curve").refuted
    if excess > 1e-9:
        assert refuted
    if refuted:
        assert any(tpr > claim.tpr(fpr) for fpr, tpr in points)


def test_a_gaussian_lower_curve_against_a_claim():
    verdict = judged(1.0, **ACCEPTED)
    assert verdict.refuted
    assert "assuming that the scores are Gaussian in both worlds" in verdict.sentence
    assert judged(LAPLACE, **ACCEPTED).refuted
    nobody = judged(0.1, method="gaussian")
    assert nobody.outcome == "inconclusive"
    assert nobody.reached > nobody.allowed
    assert 'Accept it with assume="gaussian" if you know that it holds.' in nobody.sentence
    near = judged(
        0.9, by=scores(0.5), **ACCEPTED
    )  # equally far everywhere: looked at in the middle
    assert near.metric.conditions["fpr"] == pytest.approx(0.5)
    assert near.outcome == "not refuted"


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_a_gaussian_curve_far_above_a_pure_claim_refutes_it(epsilon):
    """The gap in standard deviations grows without end towards FPR 0, where no rate can tell."""
    verdict = judged(EpsilonDelta(epsilon, 0.0).curve(), by=scores(0.9, 4000), **ACCEPTED)
    assert verdict.refuted
    assert verdict.metric.conditions["fpr"] > 1e-10


def test_what_does_not_decide_refutes_nothing():
    bayesian = judged(0.01, EPSILON, "bayesian")
    assert (bayesian.outcome, bayesian.reached > bayesian.allowed) == ("inconclusive", True)
    assert bayesian.sentence.startswith("With a posterior probability of 95 % this attacker")
    assert "confidence" not in bayesian.sentence
    assert judged(0.01, ADVANTAGE, Mahloujifar(family="gaussian")).outcome == "inconclusive"
    rng = np.random.default_rng(0)
    laplace = rng.laplace(2, 1, 999), rng.laplace(0, 1, 999)
    unfair = rng.normal(9, 1, 1500), rng.normal(0, 1, 500)
    for by, method, metric in ((laplace, "gaussian", ADVANTAGE), (unfair, "steinke", EPSILON)):
        found = judged(0.01, metric, method, by, assume="gaussian")
        assert found.outcome == "inconclusive"
        assert found.sentence.endswith(lower_bound(*by, method=method).objection)


@pytest.mark.slow
def test_too_few_trials_are_inconclusive_and_the_number_that_would_do_does():
    few = judged(0.9249, by=scores(0.9, 10))
    assert (few.outcome, few.detects) == ("inconclusive", None)
    assert f"takes {few.trials:,} trials in each world." in few.sentence
    enough = judged(0.9249, by=scores(0.9, few.trials))
    assert enough.outcome == "not refuted"
    assert enough.detects <= 2 * 0.9249
    attackers = (scores(2 * 0.9249, few.trials, seed) for seed in range(200))
    missed = sum(not judged(0.9249, by=attacker).refuted for attacker in attackers)
    assert missed <= 40 + 4 * math.sqrt(200 * 0.2 * 0.8)


@pytest.mark.parametrize(
    "metric",
    [ADVANTAGE, EPSILON, Reading("tpr"), "curve"],
    ids=["advantage", "epsilon", "tpr", "curve"],
)
def test_a_claim_that_allows_nothing_is_judged_too(metric):
    """Much noise has ε = 0 at δ = 1e-5: a run must not fail when it is concluded."""
    verdict = judged(0.0, metric, by=scores(0.0))
    assert verdict.outcome == "inconclusive"
    assert verdict.sentence.endswith("allows no more than blind guessing reaches.")
    assert judged(0.0, metric, by=scores(1.0)).refuted


def test_the_power_of_an_estimator_with_options_is_not_known():
    """The planner knows the default options; a threshold far out, for one, notices far less."""
    by, claim = scores(0.9), TradeOff.gaussian(0.9249)
    for usual, outcome in ((False, "inconclusive"), (True, "not refuted")):
        estimator = ClopperPearson() if usual else ClopperPearson(threshold=4.0)
        verdict = judge(lower_bound(*by, method=estimator, metric=ADVANTAGE), claim, ADVANTAGE)
        assert (verdict.outcome, verdict.power_known) == (outcome, usual)


def test_a_claim_that_allows_everything_is_inconclusive():
    for claim, metric in ((TradeOff.from_lines([(0.0, 1.0)]), "curve"), (9.0, PURE)):
        verdict = judged(claim, metric, by=scores(3.0))
        assert verdict.outcome == "inconclusive"
        assert verdict.sentence.endswith("because the claim allows everything by this measure.")


def test_trials_that_failed_count_against_an_attacker_who_reads_scores_the_wrong_way_round():
    inside, outside = scores(9.0, 100)
    assert judged(1.0, by=(-inside, -outside)).refuted
    inside, outside = scores(0.0, 200)
    inside[:50], outside[:50] = -np.inf, np.inf  # as the audit counts them
    assert not judged(0.01, by=(inside, outside)).refuted


def test_one_run_bounds_judge_by_epsilon():
    assert judged(0.2, EPSILON, "steinke", scores(2.0)).refuted
    for metric in (ADVANTAGE, "curve"):
        with pytest.raises(ValueError, match=r"metric must be .* for .*steinke, but it is"):
            judged(0.2, metric, "steinke")


def test_numbers_in_print_never_contradict_the_verdict():
    assert _pair(0.27094, 0.27093) == "0.27094; the claim allows 0.27093"
    assert _pair(0.5, 0.4) == "0.5; the claim allows 0.4"
    assert _pair(0.12345678, 0.9) == "0.1234; the claim allows 0.9"
    assert _pair(2.0, math.inf) == "2; the claim allows any number"
    assert _pair(math.inf, 2.0) == "any number; the claim allows 2"


def test_what_is_no_claim_and_no_metric():
    with pytest.raises(ValueError, match="claim must be a TradeOff, but it is of type Estimate"):
        judged(Estimate(GaussianShape(1.0), "central limit"), ADVANTAGE)
    with pytest.raises(ValueError, match='metric must be a Reading or "curve", but it is \'adv'):
        judged(1.0, "advantage")


def test_half_of_the_noise_is_named_only_where_it_doubles_the_d_prime():
    few = scores(0.0, 20)
    assert "To notice half of the noise, a true adv" in judged(0.9249, by=few).sentence
    assert "To notice twice the d′ of a Gaus" in judged(EpsilonDelta(4.0).curve(), by=few).sentence
