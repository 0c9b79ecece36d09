"""Verdicts: a claim stands or is broken, and no bound says more than it may."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprime import Estimate, TradeOff
from dprime.audit import Mahloujifar, Metric, Verdict, judge, lower_bound
from dprime.audit.verdict import _pair
from dprime.shapes import GaussianShape, Polygon

ADVANTAGE = Metric("advantage")


def scores(d_prime=1.5, size=2000, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(d_prime, 1, size), rng.normal(0, 1, size)


def test_a_claim_below_the_attack_is_broken():
    bound = lower_bound(*scores(), method="band")
    verdict = judge(bound, TradeOff.gaussian(0.8), ADVANTAGE)
    assert isinstance(verdict, Verdict)
    assert verdict.broken
    assert verdict.outcome == "broken"
    assert verdict.reached == bound.curve.advantage() > verdict.allowed
    assert verdict.allowed == TradeOff.gaussian(0.8).advantage()
    assert verdict.confidence == 0.95
    assert verdict.sentence.endswith("; the claim allows 0.3109: the claim is broken.")


def test_a_claim_above_the_attack_stands_and_is_not_proved():
    verdict = judge(lower_bound(*scores(), method="band"), TradeOff.gaussian(1.5), ADVANTAGE)
    assert not verdict.broken
    assert verdict.sentence.startswith(
        "At 95 % confidence this attacker reaches an advantage of at least 0.4"
    )
    assert verdict.sentence.endswith(
        "; the claim allows 0.5468: the claim stands, which is no proof of it."
    )


@pytest.mark.parametrize(
    "metric",
    [
        Metric("epsilon"), Metric("epsilon", {"delta": 0}), Metric("tpr"), Metric("precision"),
        Metric("belief"), Metric("success"), Metric("d_prime"), "curve",
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["band", "clopper-pearson"])
def test_every_metric_judges(metric, method):
    bound = lower_bound(*scores(2.5), method=method)
    assert not judge(bound, TradeOff.gaussian(2.5), metric).broken
    if metric != Metric("epsilon", {"delta": 0}):  # no Gaussian claims a finite one
        assert judge(bound, TradeOff.gaussian(0.01), metric).broken


def test_by_the_curve_one_point_is_enough():
    """A claim can keep the advantage and still be broken where false alarms are few."""
    bound = lower_bound(*scores(), method="band")
    claim = TradeOff.from_lines([(1.0, 0.0), (0.0, 0.6)])
    assert not judge(bound, claim, ADVANTAGE).broken
    verdict = judge(bound, claim, "curve")
    assert verdict.broken
    assert "reaches a TPR at FPR 0." in verdict.sentence
    fpr = float(verdict.sentence.split("FPR ")[1].split(" ")[0])
    assert verdict.reached == pytest.approx(bound.curve.tpr(fpr), rel=1e-4)


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
    broken = judge(bound, claim, "curve").broken
    if excess > 1e-9:
        assert broken
    if broken:
        assert any(tpr > claim.tpr(fpr) for fpr, tpr in points)


def test_a_gaussian_lower_curve_against_a_claim():
    bound = lower_bound(*scores(), method="gaussian")
    assert bound.objection is None
    assert judge(bound, TradeOff.gaussian(1.0), "curve").broken
    assert not judge(bound, TradeOff.gaussian(1.5), "curve").broken
    polygon = TradeOff.from_lines([(1.0, 0.0)])
    assert judge(bound, polygon, "curve").broken


def test_what_does_not_decide_breaks_nothing():
    rng = np.random.default_rng(0)
    claim = TradeOff.gaussian(0.01)
    epsilon = Metric("epsilon")
    bayesian = judge(lower_bound(*scores(), method="bayesian"), claim, epsilon)
    assert bayesian.outcome == "stands"
    assert bayesian.reached > bayesian.allowed
    assert "does not count against the claim, because this bound decides nothing" in (
        bayesian.sentence
    )
    assert "Jeffreys" in bayesian.sentence
    laplace = lower_bound(rng.laplace(2, 1, 999), rng.laplace(0, 1, 999), method="gaussian")
    objected = judge(laplace, claim, ADVANTAGE)
    assert objected.outcome == "stands"
    assert objected.sentence.endswith("The scores of world in do not look Gaussian.")
    assumed = lower_bound(*scores(), method=Mahloujifar(family="gaussian"))
    assert judge(assumed, claim, ADVANTAGE).outcome == "stands"
    unfair = lower_bound(rng.normal(9, 1, 1500), rng.normal(0, 1, 500), method="steinke")
    assert judge(unfair, claim, epsilon).outcome == "stands"


def test_what_does_not_decide_says_so_where_the_claim_stands_too():
    verdict = judge(
        lower_bound(*scores(0.5), method="bayesian"), TradeOff.gaussian(3.0), Metric("epsilon")
    )
    assert "the claim stands, but this bound would have decided nothing. " in verdict.sentence


def test_one_run_bounds_judge_by_epsilon():
    bound = lower_bound(*scores(2.0), method="steinke")
    assert judge(bound, TradeOff.gaussian(0.2), Metric("epsilon")).broken
    for metric in (ADVANTAGE, "curve"):
        with pytest.raises(ValueError, match=r"metric must be .* for .*steinke, but it is"):
            judge(bound, TradeOff.gaussian(0.2), metric)


def test_numbers_in_print_never_contradict_the_verdict():
    assert _pair(0.27094, 0.27093) == "0.27094; the claim allows 0.27093"
    assert _pair(0.5, 0.4) == "0.5; the claim allows 0.4"
    assert _pair(0.12345678, 0.9) == "0.1234; the claim allows 0.9"
    assert _pair(2.0, math.inf) == "2; the claim allows any number"


@pytest.mark.parametrize(
    ("claim", "metric", "words"),
    [
        (
            Estimate(GaussianShape(1.0), "central limit"), ADVANTAGE,
            "claim must be a TradeOff, but it is of type Estimate: give the certified curve of a",
        ),
        (
            TradeOff.gaussian(1.0), "advantage",
            "metric must be a Metric or \"curve\", but it is 'advantage': give a Metric such as",
        ),
    ],
)  # fmt: skip
def test_bad_input_gets_one_sentence(claim, metric, words):
    with pytest.raises(ValueError, match=words):
        judge(lower_bound(*scores(), method="band"), claim, metric)
