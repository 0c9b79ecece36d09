"""Verdicts: refuted, not refuted or inconclusive, and no bound says more than it may."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprime import EpsilonDelta, Estimate, TradeOff
from dprime.audit import ClopperPearson, Mahloujifar, Verdict, judge, lower_bound
from dprime.audit.verdict import _pair
from dprime.metrics import Reading
from dprime.shapes import GaussianShape, Polygon
from dprime.text import round_up

ADVANTAGE = Reading("advantage")


def scores(d_prime=1.5, size=2000, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(d_prime, 1, size), rng.normal(0, 1, size)


def judged(claim, metric="curve", method="band", **options):
    """The verdict on the usual scores; a number claims a Gaussian curve."""
    claim = TradeOff.gaussian(claim) if isinstance(claim, float) else claim
    return judge(lower_bound(*scores(), method=method, **options), claim, metric)


def test_a_claim_below_the_attack_is_refuted():
    verdict = judged(0.8, ADVANTAGE)
    assert isinstance(verdict, Verdict)
    assert verdict.refuted
    assert (verdict.outcome, verdict.detects, verdict.confidence) == ("refuted", None, 0.95)
    assert verdict.reached == lower_bound(*scores()).curve.advantage() > verdict.allowed
    assert verdict.allowed == TradeOff.gaussian(0.8).advantage()
    assert verdict.sentence.endswith("; the claim allows 0.3109: the claim is refuted.")


def test_a_claim_that_is_not_refuted_comes_with_what_would_have_been_noticed():
    verdict = judged(1.5, ADVANTAGE)
    assert (verdict.refuted, verdict.outcome) == (False, "not refuted")
    assert 1.5 < verdict.detects < 1.8
    noticed = round_up(math.erf(verdict.detects / math.sqrt(8)), 3)
    start, _, end = verdict.sentence.partition("; ")
    assert start.startswith("At 95 % confidence this attacker reaches an advantage of at least 0.4")
    assert end == (
        "the claim allows 0.5468: the claim is not refuted, which does not prove it. With 80 % "
        f"power this audit would have noticed an attacker whose true advantage is {noticed} or "
        "more, if its scores are Gaussian."
    )


EVERY = [
    *(("band", Reading(name)) for name in ("epsilon", "tpr", "precision", "success", "d_prime")),
    ("band", Reading("epsilon", {"delta": 0})), ("band", "curve"),
    ("clopper-pearson", Reading("tpr")), ("clopper-pearson", Reading("epsilon", {"delta": 0})),
]  # fmt: skip


@pytest.mark.parametrize(("method", "metric"), EVERY, ids=str)
def test_every_metric_judges(method, metric):
    bound = lower_bound(*scores(2.5), method=method)
    assert not judge(bound, TradeOff.gaussian(2.5), metric).refuted
    if metric != Reading("epsilon", {"delta": 0}):  # no Gaussian claims a finite one
        assert judge(bound, TradeOff.gaussian(0.01), metric).refuted


def test_by_the_curve_one_point_is_enough():
    """A claim can keep the advantage and still be refuted where false alarms are few."""
    claim = TradeOff.from_lines([(1.0, 0.0), (0.0, 0.6)])
    assert not judged(claim, ADVANTAGE).refuted
    verdict = judged(claim)
    assert verdict.refuted
    assert "reaches a TPR at FPR 0." in verdict.sentence
    fpr = float(verdict.sentence.split("FPR ")[1].split(" ")[0])
    assert verdict.reached == pytest.approx(lower_bound(*scores()).curve.tpr(fpr), rel=1e-4)


@given(
    points=st.lists(st.tuples(st.floats(0.001, 0.999), st.floats(0.001, 0.999)), max_size=5),
    mu=st.floats(0.1, 3),
)
def test_by_the_curve_agrees_with_looking_everywhere(points, mu):
    bound = lower_bound(*scores(size=50), method="band")
    lower = type(bound.curve)(Polygon.from_points(points), 0.95, "band")
    object.__setattr__(bound, "curve", lower)
    claim = TradeOff.gaussian(mu)
    grid = np.linspace(0, 1, 2001)
    excess = max(lower.tpr(float(f)) - claim.tpr(float(f)) for f in grid)
    refuted = judge(bound, claim, "curve").refuted
    if excess > 1e-9:
        assert refuted
    if refuted:
        assert any(tpr > claim.tpr(fpr) for fpr, tpr in points)


def test_a_gaussian_lower_curve_against_a_claim():
    accepted = {"method": "gaussian", "assume": "gaussian"}
    verdict = judged(1.0, **accepted)
    assert verdict.refuted
    assert "assuming that the scores are Gaussian in both worlds" in verdict.sentence
    assert not judged(1.5, **accepted).refuted
    assert judged(TradeOff.from_lines([(1.0, 0.0)]), **accepted).refuted
    nobody = judged(0.1, method="gaussian")
    assert nobody.outcome == "inconclusive"
    assert nobody.reached > nobody.allowed
    assert 'Accept it with assume="gaussian" if you know that it holds.' in nobody.sentence


@pytest.mark.parametrize("claim", [EpsilonDelta(0.3, 0.0), EpsilonDelta(1.0, 0.0)], ids=str)
def test_a_gaussian_curve_far_above_a_pure_claim_refutes_it(claim):
    """The gap in standard deviations grows without end towards FPR 0, where no rate can tell."""
    found = lower_bound(*scores(0.9, 4000), method="gaussian", assume="gaussian")
    verdict = judge(found, claim.curve(), "curve")
    assert verdict.refuted
    assert verdict.metric.conditions["fpr"] > 1e-10


def test_what_does_not_decide_refutes_nothing():
    rng = np.random.default_rng(0)
    epsilon, fair = Reading("epsilon"), Mahloujifar(family="gaussian")
    bayesian = judged(0.01, epsilon, "bayesian")
    assert (bayesian.outcome, bayesian.reached > bayesian.allowed) == ("inconclusive", True)
    assert bayesian.sentence.startswith("With a posterior probability of 95 % this attacker")
    assert "confidence" not in bayesian.sentence
    assert "this bound exceeds the claim but does not refute it" in bayesian.sentence
    assert "Jeffreys" in bayesian.sentence
    assert judged(0.01, ADVANTAGE, fair).outcome == "inconclusive"
    laplace = rng.laplace(2, 1, 999), rng.laplace(0, 1, 999)
    unfair = rng.normal(9, 1, 1500), rng.normal(0, 1, 500)
    for drawn, method, metric in ((laplace, "gaussian", ADVANTAGE), (unfair, "steinke", epsilon)):
        bound = lower_bound(*drawn, method=method, assume="gaussian")
        found = judge(bound, TradeOff.gaussian(0.01), metric)
        assert found.outcome == "inconclusive"
        assert found.sentence.endswith(bound.objection)


def test_too_few_trials_are_inconclusive_and_the_number_that_would_do_does():
    claim = TradeOff.gaussian(0.9249)
    few = judge(lower_bound(*scores(0.9, 10)), claim, "curve")
    assert few.outcome == "inconclusive"
    assert few.detects is None
    assert f"takes {few.trials:,} trials in each world." in few.sentence
    enough = judge(lower_bound(*scores(0.9, few.trials)), claim, "curve")
    assert enough.outcome == "not refuted"
    assert enough.detects <= 2 * 0.9249
    missed = sum(
        not judge(lower_bound(*scores(2 * 0.9249, few.trials, seed)), claim, "curve").refuted
        for seed in range(200)
    )
    assert missed <= 40 + 4 * math.sqrt(200 * 0.2 * 0.8)


@pytest.mark.parametrize("metric", [ADVANTAGE, Reading("epsilon"), Reading("tpr"), "curve"])
def test_a_claim_that_allows_nothing_is_judged_too(metric):
    """Much noise has ε = 0 at δ = 1e-5: a run must not fail when it is concluded."""
    verdict = judge(lower_bound(*scores(0.0)), TradeOff.gaussian(0.0), metric)
    assert verdict.outcome == "inconclusive"
    assert verdict.sentence.endswith("allows no more than blind guessing reaches.")
    assert judge(lower_bound(*scores(1.0)), TradeOff.gaussian(0.0), metric).refuted


def test_the_power_of_an_estimator_with_options_is_not_known():
    """The planner knows the default options; a threshold far out, for one, notices far less."""
    claim = TradeOff.gaussian(0.9249)
    far = lower_bound(*scores(0.9), method=ClopperPearson(threshold=4.0), metric=ADVANTAGE)
    verdict = judge(far, claim, ADVANTAGE)
    assert verdict.outcome == "inconclusive"
    assert verdict.sentence.endswith("it is not known what this audit would have noticed.")
    usual = lower_bound(*scores(0.9), method=ClopperPearson(), metric=ADVANTAGE)
    assert judge(usual, claim, ADVANTAGE).outcome == "not refuted"


def test_a_claim_that_allows_everything_is_inconclusive():
    bound = lower_bound(*scores(3.0))
    for claim, metric in (
        (TradeOff.from_lines([(0.0, 1.0)]), "curve"),
        (TradeOff.gaussian(9.0), Reading("epsilon", {"delta": 0})),
    ):
        verdict = judge(bound, claim, metric)
        assert verdict.outcome == "inconclusive"
        assert verdict.sentence.endswith("because the claim allows everything by this measure.")


def test_scores_that_point_the_wrong_way_round_refute_by_the_band():
    """A fault may make members score lower: the areas under the ROC curve is 0 here."""
    inside, outside = scores(9.0, 100)
    assert judge(lower_bound(-inside, -outside), TradeOff.gaussian(1.0), "curve").refuted


def test_trials_that_failed_count_against_the_turned_attacker_too():
    inside, outside = scores(0.0, 200)
    inside[:50], outside[:50] = -np.inf, np.inf  # as the audit counts them
    bound = lower_bound(inside, outside)
    assert not judge(bound, TradeOff.gaussian(0.01), "curve").refuted


def test_one_run_bounds_judge_by_epsilon():
    bound = lower_bound(*scores(2.0), method="steinke")
    assert judge(bound, TradeOff.gaussian(0.2), Reading("epsilon")).refuted
    for metric in (ADVANTAGE, "curve"):
        with pytest.raises(ValueError, match=r"metric must be .* for .*steinke, but it is"):
            judge(bound, TradeOff.gaussian(0.2), metric)


def test_numbers_in_print_never_contradict_the_verdict():
    assert _pair(0.27094, 0.27093) == "0.27094; the claim allows 0.27093"
    assert _pair(0.5, 0.4) == "0.5; the claim allows 0.4"
    assert _pair(0.12345678, 0.9) == "0.1234; the claim allows 0.9"
    assert _pair(2.0, math.inf) == "2; the claim allows any number"


def test_what_is_no_claim_and_no_metric():
    with pytest.raises(ValueError, match="claim must be a TradeOff, but it is of type Estimate"):
        judged(Estimate(GaussianShape(1.0), "central limit"), ADVANTAGE)
    with pytest.raises(ValueError, match='metric must be a Reading or "curve", but it is \'adv'):
        judged(1.0, "advantage")


def test_half_of_the_noise_is_named_only_where_it_doubles_the_d_prime():
    bound = lower_bound(*scores(0.0, 20), method="band")
    gaussian = judge(bound, TradeOff.gaussian(0.9249), "curve").sentence
    stated = judge(bound, EpsilonDelta(4.0).curve(), "curve").sentence
    assert "To notice half of the noise, a true advantage of 0.645, takes" in gaussian
    assert "half of the noise" not in stated
    assert "To notice twice the d′ of a Gaussian attacker who keeps the claim" in stated


def test_two_gaussian_curves_are_compared_where_it_tells_most():
    bound = lower_bound(*scores(0.5), method="gaussian", assume="gaussian")
    verdict = judge(bound, TradeOff.gaussian(0.9), "curve")
    assert verdict.metric.conditions["fpr"] == pytest.approx(0.5)
    assert verdict.outcome == "not refuted"
    assert judge(bound, TradeOff.gaussian(0.3), "curve").refuted
