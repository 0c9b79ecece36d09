"""How often each method claims too much, on a few hundred simulated audits each.

`benchmarks/coverage.py` has the full table.
"""

import math

import numpy as np
import pytest

from dprime import TradeOff
from dprime.audit import Mahloujifar, Steinke, judge, lower_bound, rejects
from dprime.metrics import Reading

AUDITS = 300
LIMIT = 0.05 + 3 * math.sqrt(0.05 * 0.95 / AUDITS)

SHAPES = {
    "continuous": lambda x: x,
    "ties": lambda x: np.round(x, 1),
    "few values": lambda x: np.clip(np.round(x), -1, 3),
}
COUNTED = ["clopper-pearson", "band", "steinke", "mahloujifar"]


def audits(d_prime, shape, seed, size=120):
    """Scores of Gaussian worlds, cut to a shape: the truth can only fall."""
    rng = np.random.default_rng(seed)
    for number in range(AUDITS):
        inside = rng.binomial(2 * size, 0.5)
        yield (
            number,
            SHAPES[shape](rng.normal(d_prime, 1, inside)),
            SHAPES[shape](rng.normal(0, 1, 2 * size - inside)),
        )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("method", COUNTED)
def test_pure_noise_claims_little(method, shape):
    claimed = [
        lower_bound(inside, outside, method=method, seed=number).epsilon > 0
        for number, inside, outside in audits(0.0, shape, 1)
    ]
    assert np.mean(claimed) <= LIMIT


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("method", COUNTED)
def test_epsilon_is_seldom_above_the_truth(method, shape):
    truth = TradeOff.gaussian(1.2).epsilon(1e-2)
    found = [
        lower_bound(inside, outside, delta=1e-2, method=method, seed=number).epsilon
        for number, inside, outside in audits(1.2, shape, 2)
    ]
    assert np.mean(np.array(found) > truth) <= LIMIT


@pytest.mark.parametrize("shape", SHAPES)
def test_the_band_is_seldom_above_the_true_curve_anywhere(shape):
    claim = TradeOff.gaussian(1.0)
    broken = [
        judge(lower_bound(inside, outside, method="band"), claim, "curve").refuted
        for _, inside, outside in audits(1.0, shape, 3)
    ]
    assert np.mean(broken) <= LIMIT


def test_sorted_scores_claim_no_more():
    """A threshold chosen on the first trials of sorted noise would claim nearly always."""
    claimed = [
        lower_bound(
            np.sort(inside), np.sort(outside)[::-1], method="clopper-pearson", seed=number
        ).epsilon
        > 0
        for number, inside, outside in audits(0.0, "continuous", 4)
    ]
    assert np.mean(claimed) <= LIMIT


def test_gaussian_bounds_on_gaussian_scores():
    metric = Reading("d_prime")
    found = [
        lower_bound(inside, outside, method="gaussian").value(metric)
        for _, inside, outside in audits(1.0, "continuous", 5)
    ]
    assert np.mean(np.array(found) > 1.0) <= LIMIT
    assert np.median(found) > 0.7


def test_one_run_rejects_true_claims_seldom_and_false_ones_often():
    method = Mahloujifar(family="gaussian")
    runs = list(audits(1.0, "continuous", 6))
    bounds = [lower_bound(i, o, method=method).curve.d_prime() for _, i, o in runs]
    assert np.mean(np.array(bounds) > 1.0) <= LIMIT
    true, false = TradeOff.gaussian(1.0), TradeOff.gaussian(0.1)
    assert np.mean([rejects(true, i, o) for _, i, o in runs]) <= LIMIT
    assert np.mean([rejects(false, i, o) for _, i, o in runs]) > 0.9


def test_the_best_of_many_numbers_of_guesses_would_be_caught():
    """These tests can fail: choosing the number of guesses after looking claims too much."""
    numbers = (4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 240)
    claimed = [
        any(lower_bound(i, o, method=Steinke(guesses=c)).epsilon > 0 for c in numbers)
        for _, i, o in audits(0.0, "continuous", 7)
    ]
    assert np.mean(claimed) > LIMIT
