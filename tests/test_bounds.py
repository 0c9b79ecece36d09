"""The literature's bounds against the curve, which is the reference, and against naive copies."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import dprime
from dprime import Gaussian, TradeOff, bounds, choose

EPSILON, DELTA, INNER = st.floats(0.0, 800.0), st.floats(0.0, 0.5), st.floats(1e-6, 1 - 1e-6)
REPEATABLE = settings(deadline=None, max_examples=60, derandomize=True)


def allowed(epsilon, delta=0.0):
    """The curve of everything that (ε, δ) allows."""
    return TradeOff.from_lines([(epsilon, delta)])


def canonical_pair(epsilon, delta):
    """Four outputs that use up all that (ε, δ) allows, in both directions."""
    high, low = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    p = np.array([delta, (1 - delta) * high, (1 - delta) * low, 0.0])
    return p, p[::-1]


def rates_of_every_test(p, q):
    """(TPR, FPR) of every set of outputs."""
    masks = itertools.product([0.0, 1.0], repeat=len(p))
    return [(min(1.0, float(np.dot(m, p))), min(1.0, float(np.dot(m, q)))) for m in masks]


@REPEATABLE
@given(EPSILON, DELTA, INNER)
def test_the_curve_is_never_above_the_literature(epsilon, delta, prior):
    pure, loose = allowed(epsilon), allowed(epsilon, delta)
    advantages = [
        pure.advantage(),
        bounds.mosaicrown_advantage_from_epsilon(epsilon),
        bounds.yeom_advantage_from_epsilon(epsilon),
    ]
    assert advantages == pytest.approx(sorted(advantages), abs=1e-15)
    erlingsson = bounds.erlingsson_advantage_from_epsilon(epsilon, delta=delta)
    assert loose.advantage() <= erlingsson + 1e-15
    least = min(0.01, prior)
    sablayrolles = bounds.sablayrolles_precision_from_epsilon(epsilon, prior=prior)
    assert pure.precision(prior, least) <= sablayrolles + 1e-15
    assert bounds.mahloujifar_precision_from_epsilon(epsilon) == pytest.approx(pure.precision(0.5))


@REPEATABLE
@given(st.floats(1e-3, 50.0), st.floats(1e-9, 0.1))
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
    assert bounds.epsilon_from_error_rates(0.0, 0.0) == math.inf
    assert bounds.epsilon_from_error_rates(0.0, 1.0) == 0.0
    assert bounds.epsilon_from_error_rates(0.5, 0.5) == 0.0
    assert bounds.empirical_epsilon_from_advantage(-0.1, delta=1e-5) == 0.0
    assert bounds.yeom_advantage_from_epsilon(800.0) == pytest.approx(1.0)
    assert bounds.mosaicrown_advantage_from_epsilon(800.0) == pytest.approx(1.0)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 4.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.2])
def test_the_curve_is_that_of_the_canonical_mechanism(epsilon, delta):
    curve, (p, q) = allowed(epsilon, delta), canonical_pair(epsilon, delta)
    pairs = rates_of_every_test(p, q)
    assert curve.advantage() == pytest.approx(max(tpr - fpr for tpr, fpr in pairs))
    for tpr, fpr in pairs:
        assert tpr <= curve.tpr(fpr) + 1e-15
        assert bounds.epsilon_from_error_rates(fpr, 1 - tpr, delta=delta) <= epsilon + 1e-12
        for prior in (0.01, 0.5, 0.9) if tpr > 0 else ():
            precision = prior * tpr / (prior * tpr + (1 - prior) * fpr)
            limit = curve.precision(prior, tpr * (1 - 1e-14))  # the rate is rounded
            assert precision <= limit + 1e-15
            mirrored = curve.negative_accuracy(1 - prior, tpr * (1 - 1e-14))
            assert mirrored == pytest.approx(limit)
    tpr, fpr = p[0] + p[1], q[0] + q[1]  # on TPR = e^ε FPR + δ, T theorem 3.3 is reached
    if tpr > delta:
        odds = math.exp(-epsilon) * (1 - delta / tpr) * 0.7 / 0.3
        assert curve.precision(0.3, tpr) == pytest.approx(1 / (1 + odds))
    for belief in np.linspace(0.02, 0.98, 25):
        exceeding = p > belief / (1 - belief) * q
        assert p[exceeding].sum() <= curve.belief_exceeds(float(belief)) + 1e-12


@REPEATABLE
@given(INNER, INNER)
def test_epsilon_from_a_belief_is_rounded_down(belief, prior):
    if belief < prior:
        return
    epsilon = bounds.epsilon_from_belief(belief, prior=prior)
    reached = allowed(epsilon).precision(prior, min(1e-6, prior))
    assert reached <= belief * (1 + 1e-15)
    assert reached == pytest.approx(belief, rel=1e-9)


@REPEATABLE
@given(st.floats(0.01, 10.0), st.floats(1e-9, 0.1), st.integers(1, 1000))
def test_rdp_noise_is_rounded_up_and_keeps_the_tail(epsilon, delta, steps):
    noise = bounds.rdp_noise_multiplier_from_epsilon(epsilon, delta=delta, steps=steps)
    promised = bounds.rdp_epsilon_from_noise_multiplier(noise, delta=delta, steps=steps)
    assert promised <= epsilon
    assert promised == pytest.approx(epsilon)
    mu = Gaussian(noise, steps).curve().d_prime()
    assert stats.norm.sf(epsilon / mu - mu / 2) <= delta
    exact = choose(Gaussian(steps=steps), epsilon=epsilon, delta=delta)
    assert exact.noise_multiplier <= noise


def test_rdp_conversion_against_a_grid_of_orders():
    orders = np.linspace(1.01, 60, 20_000)
    naive = bounds.epsilon_from_rdp(orders * 30 / (2 * 8.0**2), orders=orders, delta=1e-5)
    closed = bounds.rdp_epsilon_from_noise_multiplier(8.0, delta=1e-5, steps=30)
    assert closed <= naive == pytest.approx(closed, rel=1e-6)
    assert closed > Gaussian(8.0, 30).curve().epsilon(1e-5) == pytest.approx(2.8376, abs=5e-5)
    doubled = bounds.rdp_epsilon_from_noise_multiplier(
        16.0, delta=1e-5, steps=30, adjacency="replace"
    )
    assert doubled == closed


def test_belief_from_rdp_keeps_its_tail():
    orders = [1.5, 2.0, 4.0, 8.0, 16.0, 32.0]
    for z, exceeded in itertools.product((0.5, 1.0, 4.0), (1e-5, 1e-2, 0.3)):
        curve = [order / (2 * z**2) for order in orders]
        belief = bounds.belief_from_rdp(curve, orders=orders, exceeded=exceeded, prior=0.2)
        threshold = math.log(belief / (1 - belief)) - math.log(0.2 / 0.8)
        assert stats.norm.sf(threshold * z - 1 / (2 * z)) <= exceeded


@REPEATABLE
@given(st.floats(0.01, 0.99), st.floats(1e-9, 0.1))
def test_epsilon_from_an_advantage_is_that_of_the_gaussian(advantage, delta):
    mu = choose(dprime.GDP(), advantage=advantage).mu
    exact = bounds.empirical_epsilon_from_advantage(advantage, delta=delta)
    assert exact == pytest.approx(TradeOff.gaussian(mu).epsilon(delta), rel=1e-9, abs=1e-9)
    classical = bounds.classical_epsilon_from_advantage(advantage, delta=delta)
    back = bounds.classical_advantage_from_epsilon(classical, delta=delta)
    assert back == pytest.approx(advantage)


@REPEATABLE
@given(st.floats(1e-3, 1.0), st.floats(1e-9, 0.1))
def test_the_classical_noise_is_enough_where_it_is_proved(epsilon, delta):
    noise = bounds.classical_noise_multiplier_from_epsilon(epsilon, delta=delta)
    assert Gaussian(noise).curve().delta(epsilon) <= delta
    replace = bounds.classical_noise_multiplier_from_epsilon(
        epsilon, delta=delta, adjacency="replace"
    )
    assert replace == 2 * noise


@REPEATABLE
@given(INNER, st.floats(0.0, 12.0), INNER)
def test_a_pure_capacity_is_exact(deniability, epsilon, prior):
    found = bounds.deletion_capacity(deniability, epsilon=epsilon, prior=prior)
    # randomised response on each of them, all of which report "used"
    log_unused = -math.log1p(math.exp(epsilon) * prior / (1 - prior))
    wanted = math.log(deniability)
    assert (found.records + 1) * log_unused < wanted * (1 - 1e-9)
    assert wanted <= math.log(found.deniability) * (1 - 1e-15)
    assert found.deniability <= max(deniability, math.exp(found.records * log_unused))


def test_extreme_capacities():
    assert bounds.deletion_capacity(0.8, epsilon=1.0, prior=10 / 10_000).records == 82
    assert bounds.deletion_capacity(0.8, epsilon=800.0, prior=0.01).records == 0
    assert bounds.deletion_capacity(0.8, epsilon=700.0, prior=1e-306).records == 22
    assert bounds.deletion_capacity(0.8, epsilon=0.0, prior=5e-324).records == int(1e300)


RDP = {"orders": [2.0, 4.0], "delta": 1e-5}


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: bounds.yeom_advantage_from_epsilon(math.inf), "epsilon"),
        (lambda: bounds.epsilon_from_belief(0.3), "belief"),
        (lambda: bounds.epsilon_from_error_rates(1.5, 0.0), "false_positive_rate"),
        (lambda: bounds.empirical_epsilon_from_advantage(1.0, delta=1e-5), "advantage"),
        (lambda: bounds.classical_noise_multiplier_from_epsilon(2.0, delta=1e-5), "epsilon"),
        (lambda: bounds.epsilon_from_rdp([1.0], **RDP), "orders"),
        (lambda: bounds.epsilon_from_rdp([], orders=[], delta=1e-5), "orders"),
        (lambda: bounds.epsilon_from_rdp([1.0], orders=[1.0], delta=1e-5), "orders"),
        (lambda: bounds.epsilon_from_rdp([1.0, math.nan], **RDP), "rdp"),
        (
            lambda: bounds.rdp_noise_multiplier_from_epsilon(1.0, delta=0.1, steps=10**16),
            "steps",
        ),
        (
            lambda: bounds.rdp_noise_multiplier_from_epsilon(1.0, delta=0.1, adjacency="near"),
            "adjacency",
        ),
    ],
)
def test_bad_input_is_named(call, parameter):
    with pytest.raises(dprime.InputError) as refused:
        call()
    assert refused.value.parameter == parameter
