"""From scores to a bound: every method by name, and what holds for all of them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprime import LowerCurve, TradeOff
from dprime.audit import Band, Bayesian, ClopperPearson, Mahloujifar, Steinke, lower_bound, rejects
from dprime.audit.estimators import ESTIMATORS
from dprime.metrics import Reading
from told import refuses

METHODS = list(ESTIMATORS)
FIXED = {"clopper-pearson": ClopperPearson(threshold=0.7), "bayesian": Bayesian(threshold=0.7)}
RANKED = [name for name in METHODS if name != "gaussian"]


def scores(seed, d_prime=1.5, sizes=(300, 310)):
    rng = np.random.default_rng(seed)
    return rng.normal(d_prime, 1, sizes[0]), rng.normal(0, 1, sizes[1])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_by_its_name(method):
    bound = lower_bound(*scores(0), delta=1e-5, confidence=0.95, method=method)
    assert (bound.method, bound.confidence, bound.delta) == (method, 0.95, 1e-5)
    assert 0 < bound.epsilon < TradeOff.gaussian(1.5).epsilon(1e-5)
    assert bound.trials == (300, 310)
    assert bound.value(Reading("epsilon")) == bound.epsilon
    if bound.curve is not None:
        assert isinstance(bound.curve, LowerCurve)
        assert (bound.curve.confidence, bound.curve.method) == (0.95, method)
        assert 0 < bound.value(Reading("advantage")) < TradeOff.gaussian(1.5).advantage()
    few = lower_bound(*scores(0, 5.0, (3, 2)), method=method)
    assert 0 <= few.epsilon < TradeOff.gaussian(5.0).epsilon(1e-5)


@given(
    seed=st.integers(0, 20),
    method=st.sampled_from(METHODS),
    levels=st.tuples(st.floats(0.5, 0.999), st.floats(0.5, 0.999)),
)
def test_more_confidence_and_a_larger_delta_claim_less(seed, method, levels):
    """At a fixed threshold; a chosen one may be another."""
    by, estimator = scores(seed), FIXED.get(method, method)
    bold, careful = (
        lower_bound(*by, confidence=c, method=estimator).epsilon for c in sorted(levels)
    )
    assert careful <= bold + 1e-5
    found = [lower_bound(*by, delta=d, method=estimator).epsilon for d in (0.0, 1e-5, 1e-2, 0.2)]
    assert all(after <= before + 1e-5 for before, after in itertools.pairwise(found))


@given(
    seed=st.integers(0, 50),
    method=st.sampled_from(RANKED),
    sizes=st.tuples(st.integers(2, 200), st.integers(2, 200)),
)
def test_only_the_order_of_the_scores_counts(seed, method, sizes):
    inside, outside = scores(seed, sizes=sizes)
    plain = lower_bound(inside, outside, seed=seed, method=method)
    bends = [np.exp, np.arctan, lambda x: x**3]
    if method not in FIXED:  # nothing is held out, so the order of the trials says nothing
        bends += [np.sort, np.random.default_rng(seed).permutation]
    for bent in bends:
        same = lower_bound(bent(inside), bent(outside), seed=seed, method=method)
        assert same.epsilon == plain.epsilon
        assert plain.curve is None or same.curve.advantage() == plain.curve.advantage()


@pytest.mark.parametrize("method", RANKED)
@pytest.mark.parametrize("ends", [math.inf, 1e308])
def test_infinite_scores_are_large_scores(method, ends):
    inside, outside = scores(3)
    inside[:20], outside[:20] = ends, -ends
    capped = lower_bound(np.clip(inside, -50, 50), np.clip(outside, -50, 50), method=method)
    assert lower_bound(inside, outside, method=method).epsilon == capped.epsilon


def test_the_seed_splits():
    found = {lower_bound(*scores(1), seed=s, method="clopper-pearson").epsilon for s in range(5)}
    assert len(found) > 1


def test_a_lower_curve_bounds_no_belief():
    """Precision at TPR t is an upper limit of the belief, which a lower curve cannot give."""
    curve = lower_bound(*scores(1)).curve
    for read in (lambda: curve.belief(0.5, 0.5), lambda: curve.belief_exceeds(0.9)):
        with pytest.raises(ValueError, match="must be read off an upper one, but it is read off a"):
            read()


def test_one_rule_says_which_bounds_decide():
    """No law of the scores assumed, or one that the user has accepted by name."""
    decides = {name for name in METHODS if lower_bound(*scores(1), method=name).decides}
    assert decides == {"clopper-pearson", "band", "steinke", "mahloujifar"}
    for method in ("gaussian", Mahloujifar(family="gaussian")):
        assert not lower_bound(*scores(1), method=method).decides
        assert lower_bound(*scores(1), method=method, assume="gaussian").decides
    assert not lower_bound(*scores(1), method="bayesian", assume="gaussian").decides


def test_a_bound_on_epsilon_alone_answers_nothing_else():
    bound = lower_bound(*scores(1), method="steinke")
    assert bound.value(Reading("epsilon", {"delta": 1e-5})) == bound.epsilon
    for metric in (Reading("advantage"), Reading("epsilon", {"delta": 0.1})):
        with pytest.raises(ValueError, match="must be ε at δ 1e-05 for steinke, but"):
            bound.value(metric)


def test_sentences():
    rng = np.random.default_rng(0)
    laplace = lower_bound(rng.laplace(1, 1, 999), rng.laplace(0, 1, 999), method="gaussian")
    assert laplace.sentence().endswith(
        "(method: gaussian, 999 trials in world in and 999 in world out). This rests on an "
        "assumption: The scores are Gaussian in both worlds, with one variance. The data speak "
        "against it: The scores of world in do not look Gaussian."
    )
    chosen = lower_bound(*scores(1, sizes=(2000, 1000)), confidence=0.9, method="clopper-pearson")
    assert chosen.sentence().startswith("At 90 % confidence the ε at δ = 1e-05 is at least 2.")
    assert "1,000 in world out, 1,600 and 800 of them counted)" in chosen.sentence()
    endless = lower_bound(*scores(1), delta=0, method="gaussian")
    assert "the ε at δ = 0 is at least any number" in endless.sentence()
    credible = lower_bound(*scores(1), method="bayesian").sentence()
    assert credible.startswith("With a posterior probability of 95 % the ε at δ = 1e-05 is")
    assert "confidence" not in credible


def bounded(**options):
    return lambda: lower_bound([1.0, 2.0], [0.0, 1.0], **options)


def rejected(claim=TradeOff.gaussian(1.0), **options):  # noqa: B008
    return lambda: rejects(claim, [1, 2], [3, 4], **options)


test_what_is_refused = refuses(
    {
        "delta be below 1": bounded(delta=1.0),
        "confidence be strictly between 0 and 1": bounded(confidence=95),
        "method be one of clopper-pearson, band": bounded(method=ClopperPearson),
        "metric be a Reading": bounded(metric="advantage"),
        "seed be a whole number": bounded(seed=0.5),
        "assume be one of gaussian": bounded(assume="prior"),
        "guesses be at most the 4 canaries": bounded(method=Steinke(guesses=5)),
        "ratio be ": lambda: Band(ratio=1),
        "held_out be strictly between 0 and 1": lambda: Bayesian(held_out=2),
        "threshold be a finite number": lambda: ClopperPearson(threshold=math.nan),
        "guesses be at least 1": lambda: Steinke(guesses=0),
        "delta_term be one of exact, published": lambda: Steinke(delta_term="mine"),
        "family be one of epsilon-delta, gaussian": lambda: Mahloujifar(family="laplace"),
        "claim be a TradeOff": rejected(claim=1.0),
        "confidence be strictly between 0": rejected(confidence=95),
    }
)
