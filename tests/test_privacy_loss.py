import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from dprime import privacy_loss
from dprime.privacy_loss import GaussianMixture, subsampled_gaussian
from dprime.shapes import Polygon
from reference import one_step_delta

EPSILONS = st.floats(0.01, 20)


def totals(loss):
    return math.fsum(loss.p) + loss.p_inf, math.fsum(loss.q) + loss.q_inf


@given(
    noise=st.floats(0.3, 100),
    rate=st.floats(-6, 0).map(lambda e: 10**e),
    replace=st.booleans(),
    epsilon=st.floats(0, 8),
)
def test_a_step_dominates_the_exact_one_and_is_close_to_it(noise, rate, replace, epsilon):
    loss = subsampled_gaussian(noise, rate, 1, replace=replace)
    assert totals(loss) == pytest.approx((1, 1), abs=1e-14)
    assert min(loss.p.min(), loss.q.min()) >= 0
    shape = Polygon.from_privacy_loss(loss)
    for exchanged, curve in ((False, shape), (True, shape.reversed())):
        exact = one_step_delta(epsilon, noise, rate, replace=replace, exchanged=exchanged)
        assert exact * (1 - 1e-15) - 1e-16 <= curve.delta(epsilon) <= exact * (1 + 2e-3) + 1e-13
    turned = Polygon.from_privacy_loss(loss.reversed())
    assert turned.delta(epsilon) == shape.reversed().delta(epsilon)


@pytest.mark.parametrize("k", [2, 5])
def test_a_group_is_the_binomial_mixture(k):
    noise, rate, epsilon = 1.3, 0.2, 0.7
    shape = Polygon.from_privacy_loss(subsampled_gaussian(noise, rate, 1, group_size=k))

    def gain(x):
        chances = [math.comb(k, i) * rate**i * (1 - rate) ** (k - i) for i in range(k + 1)]
        p = sum(chance * norm.pdf(x, i / noise) for i, chance in enumerate(chances))
        return max(0.0, p - math.exp(epsilon) * norm.pdf(x))

    exact, _ = quad(gain, -10, 20, limit=400)
    assert exact <= shape.delta(epsilon) <= exact * 1.001


@given(epsilon=EPSILONS, at=st.floats(0, 1))
def test_laplace_is_exact_up_to_its_cells(epsilon, at):
    loss = privacy_loss.laplace(epsilon)
    shape = Polygon.from_privacy_loss(loss)
    e = at * epsilon
    exact = -math.expm1((e - epsilon) / 2)  # Balle, Barthe and Gaboardi 2018
    # A chord over a cell of width h lies at most h²/8 times the largest curvature, 1/4, above it.
    width = np.diff(np.unique(loss.loss)).max()
    assert exact - 1e-14 <= shape.delta(e) <= exact + width**2 / 32 + 1e-14
    assert shape.delta(epsilon) == pytest.approx(0, abs=1e-15)


@given(epsilon=EPSILONS, categories=st.integers(2, 50))
def test_randomized_response_is_a_pair_of_its_epsilon(epsilon, categories):
    loss = privacy_loss.randomized_response(epsilon, categories)
    assert totals(loss) == pytest.approx((1, 1), abs=1e-12)
    assert loss.q == pytest.approx(loss.p * np.exp(-loss.loss), rel=1e-12)
    exact = math.expm1(epsilon) / (math.exp(epsilon) + categories - 1)
    assert Polygon.from_privacy_loss(loss).delta(0.0) == pytest.approx(exact, rel=1e-12)


@given(epsilon=EPSILONS, delta=st.floats(0, 0.9))
def test_the_worst_pair_of_epsilon_delta(epsilon, delta):
    shape = Polygon.from_privacy_loss(privacy_loss.two_points(epsilon, delta))
    assert shape.delta(epsilon) == pytest.approx(delta, abs=1e-14)
    tight = (math.expm1(epsilon) + 2 * delta) / (math.exp(epsilon) + 1)
    assert shape.delta(0.0) == pytest.approx(tight, rel=1e-12)


def test_log_ratio_keeps_its_digits_at_tiny_rates():
    mixture = GaussianMixture(np.array([1 - 1e-12, 1e-12]), np.array([0.0, 1.0]))
    x = np.array([-3.0, 0.0, 0.5, 2.0])
    exact = [1e-12 * math.expm1(v - 0.5) for v in x]  # ln(1 + y) = y to 1e-11 here
    assert mixture.log_ratio(x) == pytest.approx(exact, rel=1e-9, abs=0)


def test_cells_are_exact_in_both_tails():
    mixture = GaussianMixture(np.array([1.0]), np.array([0.0]))
    below, cells, above = mixture.cells(np.array([-20.0, -19.0, 0.5, 19.0, 20.0]))
    assert below == above == pytest.approx(norm.cdf(-20), rel=1e-12)
    assert cells[0] == cells[-1] == pytest.approx(norm.cdf(-19) - norm.cdf(-20), rel=1e-12)
