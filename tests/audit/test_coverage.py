"""How often each method claims too much, on a few hundred simulated audits of each law of scores.

`benchmarks/coverage.py` has the full table.
"""

import math

import numpy as np
import pytest

from dprime import EpsilonDelta, TradeOff
from dprime.audit import Mahloujifar, Steinke, judge, lower_bound, rejects
from dprime.metrics import Reading

AUDITS = 200
LIMIT = 0.05 + 3 * math.sqrt(0.05 * 0.95 / AUDITS)
COUNTED = ["clopper-pearson", "band", "steinke", "mahloujifar"]


def gaussian(world, size, rng):
    return rng.normal(1.2 * world, 1, size)


def ties(world, size, rng):
    return np.round(gaussian(world, size, rng), 1)


def few_values(world, size, rng):
    return np.clip(np.round(gaussian(world, size, rng)), -1, 3)


def cut(world, size, rng):
    """Normal scores whose tails are cut 3 from the midpoint: exactly 3-DP.

    ln p/q = x - 1/2 between the cuts at 1/2 - 3 and 1/2 + 3, so it never exceeds 3.
    """
    drawn = rng.normal(world, 1, 2 * size)
    return drawn[np.abs(drawn - 0.5) <= 3][:size]


def laplace(world, size, rng):
    """The log-likelihood ratio of 10 Laplace answers, each 0.3-DP: 3-DP together."""
    answers = world + rng.laplace(0, 1 / 0.3, (size, 10))
    return 0.3 * (np.abs(answers) - np.abs(answers - 1)).sum(1)


def responses(world, size, rng):
    """10 answers by randomised response, each 0.3-DP: 3-DP together; noise breaks the ties."""
    right = rng.random((size, 10)) < 1 / (1 + math.exp(-0.3))
    return np.where(right, world, 1 - world).sum(1) + 0.3 * rng.normal(size=size)


GAUSSIAN, PURE = TradeOff.gaussian(1.2), EpsilonDelta(3.0, 0.0).curve()
LAWS = {
    gaussian: GAUSSIAN,
    ties: GAUSSIAN,
    few_values: GAUSSIAN,
    cut: PURE,
    laplace: PURE,
    responses: PURE,
}
"""What gives scores, and a curve above its own: cutting and rounding can only tell less."""


def audits(law, seed, size=240, worlds=(1, 0)):
    """Scores of both worlds; each trial is in or out by a fair coin, as canaries are."""
    rng = np.random.default_rng(seed)
    for _ in range(AUDITS):
        inside = rng.binomial(size, 0.5)
        yield law(worlds[0], inside, rng), law(worlds[1], size - inside, rng)


@pytest.mark.parametrize("law", [gaussian, ties, few_values], ids=lambda law: law.__name__)
@pytest.mark.parametrize("method", COUNTED)
def test_pure_noise_claims_little(method, law):
    drawn = enumerate(audits(law, 1, worlds=(0, 0)))
    claimed = [lower_bound(*each, method=method, seed=n).epsilon > 0 for n, each in drawn]
    assert np.mean(claimed) <= LIMIT


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_no_method_is_often_above_the_truth(law):
    claim, drawn = LAWS[law], list(audits(law, 2))
    epsilon = Reading("epsilon", {"delta": 1e-2})
    for method in COUNTED:
        found = [
            lower_bound(*each, delta=1e-2, method=method, seed=n).epsilon
            for n, each in enumerate(drawn)
        ]
        assert np.mean(np.array(found) > epsilon.value(claim)) <= LIMIT, method
    refuted = [judge(lower_bound(*each), claim, "curve").refuted for each in drawn[:100]]
    assert np.mean(refuted) <= LIMIT


@pytest.mark.parametrize("law", [cut, laplace, responses], ids=lambda law: law.__name__)
def test_methods_that_assume_a_law_are_often_above_the_truth_and_refute_nothing(law):
    """Scores of light tails look Gaussian, and their ε is far smaller."""
    epsilon, drawn = Reading("epsilon"), list(audits(law, 3, size=1000))[:60]
    for method in ("gaussian", "bayesian"):
        verdicts = [judge(lower_bound(*each, method=method), PURE, epsilon) for each in drawn]
        assert not any(verdict.refuted for verdict in verdicts)
        if method == "gaussian":
            assert np.mean([verdict.reached > verdict.allowed for verdict in verdicts]) > 0.4


def test_sorted_scores_claim_no_more():
    """A threshold chosen on the first trials of sorted noise would claim nearly always."""
    drawn = enumerate(audits(gaussian, 4, worlds=(0, 0)))
    claimed = [
        lower_bound(np.sort(i), np.sort(o)[::-1], method="clopper-pearson", seed=n).epsilon > 0
        for n, (i, o) in drawn
    ]
    assert np.mean(claimed) <= LIMIT


def test_gaussian_bounds_on_gaussian_scores():
    runs, metric = list(audits(gaussian, 5)), Reading("d_prime")
    found = [lower_bound(*each, method="gaussian").value(metric) for each in runs]
    assert np.mean(np.array(found) > 1.2) <= LIMIT
    assert np.median(found) > 0.9
    method = Mahloujifar(family="gaussian")
    found = [lower_bound(*each, method=method).curve.d_prime() for each in runs]
    assert np.mean(np.array(found) > 1.2) <= LIMIT


def test_one_run_rejects_true_claims_seldom_and_false_ones_often():
    runs, false = list(audits(gaussian, 6)), TradeOff.gaussian(0.1)
    assert np.mean([rejects(GAUSSIAN, *each) for each in runs]) <= LIMIT
    assert np.mean([rejects(false, *each) for each in runs]) > 0.9


def test_the_best_of_many_numbers_of_guesses_would_be_caught():
    """These tests can fail: choosing the number of guesses after looking claims too much."""
    numbers = (4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 240)
    claimed = [
        any(lower_bound(*each, method=Steinke(guesses=c)).epsilon > 0 for c in numbers)
        for each in audits(gaussian, 7, worlds=(0, 0))
    ]
    assert np.mean(claimed) > LIMIT
