"""The literature's bounds against the curve, which is the reference, and against naive copies."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

import dprime
from dprime import Gaussian, TradeOff, bounds, choose
from told import refuses

EPSILON, DELTA, INNER = st.floats(0.0, 800.0), st.floats(0.0, 0.5), st.floats(1e-6, 1 - 1e-6)
SMALL_DELTA = st.floats(1e-9, 0.1)
FEWER = settings(max_examples=60)


def allowed(epsilon, delta=0.0):
    """The curve of everything that (ε, δ) allows."""
    return TradeOff.from_lines([(epsilon, delta)])


@FEWER
@given(EPSILON, DELTA, INNER)
def test_the_curve_is_never_above_the_literature(epsilon, delta, prior):
    pure, loose = allowed(epsilon), allowed(epsilon, delta)
    mosaicrown = bounds.mosaicrown_advantage_from_epsilon(epsilon)
    assert pure.advantage() <= mosaicrown + 1e-15
    assert mosaicrown <= bounds.yeom_advantage_from_epsilon(epsilon) + 1e-15
    erlingsson = bounds.erlingsson_advantage_from_epsilon(epsilon, delta=delta)
    assert loose.advantage() <= erlingsson + 1e-15
    sablayrolles = bounds.sablayrolles_precision_from_epsilon(epsilon, prior=prior)
    assert pure.precision(prior, min(0.01, prior)) <= sablayrolles + 1e-15
    assert bounds.mahloujifar_precision_from_epsilon(epsilon) == pytest.approx(pure.precision(0.5))


@FEWER
@given(st.floats(1e-3, 50.0), SMALL_DELTA)
def test_the_largest_mu_of_an_epsilon(epsilon, delta):
    mu = bounds.mu_from_epsilon(epsilon, delta=delta)
    assert TradeOff.gaussian(mu).delta(epsilon) <= delta
    assert TradeOff.gaussian(mu * (1 + 1e-9)).delta(epsilon) > delta
    assert choose(dprime.GDP(), epsilon=epsilon, delta=delta).mu == pytest.approx(mu, rel=1e-9)


def test_check_values_of_the_literature():
    target = bounds.epsilon_from_belief(0.9)
    assert target == pytest.approx(math.log(9), rel=1e-14)
    for delta, advantage in ((0.01, 0.28), (0.001, 0.23)):  # B table 3
        found = bounds.classical_advantage_from_epsilon(target, delta=delta)
        assert found == pytest.approx(advantage, abs=5e-3)
    noise = bounds.rdp_noise_multiplier_from_epsilon(target, delta=0.01, steps=30)
    trained = Gaussian(noise, steps=30).curve().advantage()
    assert trained == pytest.approx(0.2562, abs=5e-5)  # M beside table 5.1
    for epsilon, printed in ((3.0, 0.953), (2.0, 0.881), (1.0, 0.731)):  # T's figures
        assert allowed(epsilon).precision(0.5) == pytest.approx(printed, abs=5e-4)
    for fpr, printed in ((0.1, 0.128), (0.01, 0.038)):  # C figure 7
        assert allowed(0.0, 0.02835).tpr(fpr) == pytest.approx(printed, abs=5e-4)
    highest = stats.beta.ppf(0.975, 1, 1000)  # N: a thousand trials without an error
    assert bounds.epsilon_from_error_rates(highest, highest) == pytest.approx(5.60, abs=5e-3)


def test_exact_small_cases():
    assert bounds.epsilon_from_belief(0.5) == 0.0
    assert bounds.epsilon_from_belief(0.9, prior=0.1) == pytest.approx(2 * math.log(9))
    errors = {(0.0, 0.0): math.inf, (0.0, 1.0): 0.0, (0.5, 0.5): 0.0}
    assert {pair: bounds.epsilon_from_error_rates(*pair) for pair in errors} == errors
    for pair in ((0.01, 0.5), (0.5, 0.01)):
        assert bounds.epsilon_from_error_rates(*pair) == pytest.approx(math.log(50))
    assert bounds.empirical_epsilon_from_advantage(-0.1, delta=1e-5) == 0.0
    assert bounds.yeom_advantage_from_epsilon(800.0) == pytest.approx(1.0)
    capacities = {(1.0, 0.001): 82, (800.0, 0.01): 0, (700.0, 1e-306): 22, (0.0, 5e-324): 10**300}
    for (epsilon, prior), records in capacities.items():
        found = bounds.deletion_capacity(0.8, epsilon=epsilon, prior=prior).records
        assert found == int(float(records))


@FEWER
@given(INNER, INNER)
def test_epsilon_from_a_belief_is_rounded_down(belief, prior):
    assume(belief >= prior)
    epsilon = bounds.epsilon_from_belief(belief, prior=prior)
    reached = allowed(epsilon).precision(prior, min(1e-6, prior))
    assert belief * (1 + 1e-15) >= reached == pytest.approx(belief, rel=1e-9)


@FEWER
@given(st.floats(0.01, 10.0), SMALL_DELTA, st.integers(1, 1000))
def test_rdp_noise_is_rounded_up_and_keeps_the_tail(epsilon, delta, steps):
    noise = bounds.rdp_noise_multiplier_from_epsilon(epsilon, delta=delta, steps=steps)
    promised = bounds.rdp_epsilon_from_noise_multiplier(noise, delta=delta, steps=steps)
    assert epsilon >= promised == pytest.approx(epsilon)
    mu = Gaussian(noise, steps).curve().d_prime()
    assert stats.norm.sf(epsilon / mu - mu / 2) <= delta
    exact = choose(Gaussian(steps=steps), epsilon=epsilon, delta=delta)
    assert exact.noise_multiplier <= noise


def test_rdp_conversion_against_a_grid_of_orders():
    orders = np.linspace(1.01, 60, 20_000)
    naive = bounds.epsilon_from_rdp(orders * 30 / (2 * 8.0**2), orders=orders, delta=1e-5)
    given_steps = {"delta": 1e-5, "steps": 30}
    closed = bounds.rdp_epsilon_from_noise_multiplier(8.0, **given_steps)
    assert closed <= naive == pytest.approx(closed, rel=1e-6)
    assert closed > Gaussian(8.0, 30).curve().epsilon(1e-5) == pytest.approx(2.8376, abs=5e-5)
    doubled = bounds.rdp_epsilon_from_noise_multiplier(16.0, adjacency="replace", **given_steps)
    assert doubled == closed


def test_belief_from_rdp_keeps_its_tail():
    orders = [1.5, 2.0, 4.0, 8.0, 16.0, 32.0]
    for z, exceeded in itertools.product((0.5, 1.0, 4.0), (1e-5, 1e-2, 0.3)):
        curve = [order / (2 * z**2) for order in orders]
        belief = bounds.belief_from_rdp(curve, orders=orders, exceeded=exceeded, prior=0.2)
        threshold = math.log(belief / (1 - belief)) - math.log(0.2 / 0.8)
        assert stats.norm.sf(threshold * z - 1 / (2 * z)) <= exceeded


@FEWER
@given(st.floats(0.01, 0.99), SMALL_DELTA)
def test_epsilon_from_an_advantage_is_that_of_the_gaussian(advantage, delta):
    mu = choose(dprime.GDP(), advantage=advantage).mu
    exact = bounds.empirical_epsilon_from_advantage(advantage, delta=delta)
    assert exact == pytest.approx(TradeOff.gaussian(mu).epsilon(delta), rel=1e-9, abs=1e-9)
    classical = bounds.classical_epsilon_from_advantage(advantage, delta=delta)
    back = bounds.classical_advantage_from_epsilon(classical, delta=delta)
    assert back == pytest.approx(advantage)


@FEWER
@given(st.floats(1e-3, 1.0), SMALL_DELTA)
def test_the_classical_noise_is_enough_where_it_is_proved(epsilon, delta):
    classical = bounds.classical_noise_multiplier_from_epsilon
    noise = classical(epsilon, delta=delta)
    assert Gaussian(noise).curve().delta(epsilon) <= delta
    assert classical(epsilon, delta=delta, adjacency="replace") == 2 * noise


@FEWER
@given(INNER, st.floats(0.0, 12.0), INNER)
def test_a_pure_capacity_is_exact(deniability, epsilon, prior):
    found = bounds.deletion_capacity(deniability, epsilon=epsilon, prior=prior)
    # randomised response on each of them, all of which report "used"
    log_unused = -math.log1p(math.exp(epsilon) * prior / (1 - prior))
    wanted = math.log(deniability)
    assert (found.records + 1) * log_unused < wanted * (1 - 1e-9)
    assert wanted <= math.log(found.deniability) * (1 - 1e-15)
    assert found.deniability <= max(deniability, math.exp(found.records * log_unused))


def rdp_epsilon(rdp, orders):
    return lambda: bounds.epsilon_from_rdp(rdp, orders=orders, delta=1e-5)


def rdp_noise(**given):
    return lambda: bounds.rdp_noise_multiplier_from_epsilon(1.0, delta=0.1, **given)


DELTA = {"delta": 1e-5}
classical_noise = bounds.classical_noise_multiplier_from_epsilon
test_what_is_refused = refuses(
    {
        "epsilon be a finite number": lambda: bounds.yeom_advantage_from_epsilon(math.inf),
        "epsilon be at most 1": lambda: classical_noise(2.0, **DELTA),
        "belief be at least the prior": lambda: bounds.epsilon_from_belief(0.3),
        "false_positive_rate be between": lambda: bounds.epsilon_from_error_rates(1.5, 0.0),
        "advantage be": lambda: bounds.empirical_epsilon_from_advantage(1.0, **DELTA),
        "orders be as many": rdp_epsilon([1.0], [2.0, 4.0]),
        "orders be as many as": rdp_epsilon([], []),
        "orders be as many as rdp": rdp_epsilon([1.0], [1.0]),
        "rdp be a finite number": rdp_epsilon([1.0, math.nan], [2.0, 4.0]),
        "steps be at most": rdp_noise(steps=10**16),
        "adjacency be one of": rdp_noise(adjacency="near"),
    }
)
