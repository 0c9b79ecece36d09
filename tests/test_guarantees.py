import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import dprime
from dprime import GDP, PLD, RDP, ZCDP, EpsilonDelta, EpsilonDeltaProfile, Laplace, TradeOff


@given(epsilon=st.floats(0.01, 8), delta=st.floats(0, 0.5), fpr=st.floats(0, 1))
def test_epsilon_delta_is_its_two_lines(epsilon, delta, fpr):
    expected = min(
        1.0,
        delta + math.exp(epsilon) * fpr,
        1 - math.exp(-epsilon) * (1 - delta - fpr),
    )
    assert EpsilonDelta(epsilon, delta).curve().tpr(fpr) == pytest.approx(expected, abs=1e-9)


def test_steps_of_epsilon_delta_match_the_exact_composition():
    """Kairouz, Oh and Viswanath: k-fold (eps, 0) is a binomial."""
    epsilon, k = 0.2, 12
    yes = 1 / (1 + math.exp(-epsilon))
    p = [math.comb(k, i) * yes**i * (1 - yes) ** (k - i) for i in range(k + 1)]
    exact = sum(max(0, a - math.exp(0.5) * b) for a, b in zip(p, reversed(p), strict=True))
    assert EpsilonDelta(epsilon, steps=k).curve().delta(0.5) == pytest.approx(exact, rel=1e-9)


def test_a_profile_keeps_each_of_its_points():
    points = ((0.1, 0.2), (0.5, 0.05), (1.0, 1e-3), (2.0, 1e-6))
    curve = EpsilonDeltaProfile(points).curve()
    for epsilon, delta in points:
        assert curve.delta(epsilon) == pytest.approx(delta, abs=1e-9)
        assert curve.epsilon(delta) <= epsilon + 1e-6


@settings(max_examples=12, deadline=None)
@given(mu=st.floats(0.05, 2.5))
def test_zcdp_lies_above_the_gaussian_that_has_it(mu):
    curve, exact = ZCDP(mu**2 / 2).curve(), TradeOff.gaussian(mu)
    for fpr in (1e-6, 1e-3, 0.01, 0.1, 0.5, 0.9, 0.999):
        assert curve.tpr(fpr) >= exact.tpr(fpr) - 1e-12
    assert curve.epsilon(1e-5) >= exact.epsilon(1e-5)
    assert curve.epsilon(1e-5) <= _canonne(mu**2 / 2, 1e-5) * 1.005


def _canonne(rho, delta):
    """Canonne, Kamath and Steinke 2020, corollary 13: a published conversion from zCDP."""
    orders = 1 + np.geomspace(1e-3, 1e4, 4000)
    return float(
        np.min(rho * orders + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1))
    )


def test_rdp_of_one_order_is_the_binary_divergence():
    order, epsilon = 3.0, 0.4
    curve = RDP((order,), (epsilon,)).curve()
    bound = math.exp((order - 1) * epsilon)
    for fpr in (0.001, 0.01, 0.1, 0.4):
        tpr = curve.tpr(fpr)
        held = max(_renyi(order, tpr, fpr), _renyi(order, fpr, tpr))  # both directions hold
        assert bound * (1 - 1e-9) <= held <= bound * 1.01


def _renyi(order, p, q):
    return p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)


def test_rdp_covers_randomised_response():
    """A mechanism whose Renyi divergences are known exactly never lies above its RDP curve."""
    epsilon = 1.0
    yes = 1 / (1 + math.exp(-epsilon))
    orders = np.array([1.5, 2.0, 4.0, 16.0, 64.0])
    values = [
        math.log(yes**a * (1 - yes) ** (1 - a) + (1 - yes) ** a * yes ** (1 - a)) / (a - 1)
        for a in orders
    ]
    curve = RDP(tuple(orders), tuple(values)).curve()
    exact = dprime.RandomizedResponse(epsilon).curve()
    for fpr in np.linspace(0.001, 0.999, 60):
        assert curve.tpr(fpr) >= exact.tpr(fpr) - 1e-12


def test_laplace_steps_against_simulation():
    noise, steps, trials = 2.0, 5, 200_000
    rng = np.random.default_rng(4)
    x = rng.laplace(0, noise, (trials, steps))
    loss = ((np.abs(x - 1) - np.abs(x)) / noise).sum(axis=1)  # world `in`: centred at 0
    curve = Laplace(noise, steps).curve()
    for epsilon in (0.0, 0.5, 1.0):
        terms = np.maximum(0.0, -np.expm1(epsilon - loss))
        error = 4 * terms.std() / math.sqrt(trials)
        assert terms.mean() - error <= curve.delta(epsilon) <= terms.mean() * 1.002 + error


def test_gdp_is_exact():
    assert GDP(0.7).curve().tpr(0.01) == pytest.approx(norm.cdf(norm.ppf(0.01) + 0.7), rel=1e-12)


def test_pld_reads_as_given_and_sends_the_rest_to_infinity():
    curve = PLD((1.0, -1.0), (0.7, 0.25)).curve()
    assert curve.shape.delta(1.0) == pytest.approx(0.05, abs=1e-12)
    assert curve.advantage() == pytest.approx(0.05 + 0.7 * -math.expm1(-1.0), abs=1e-12)


def test_a_guarantee_holds_for_the_adjacency_it_was_stated_for():
    with pytest.raises(ValueError, match="adjacency must be 'add-remove' for this EpsilonDelta"):
        EpsilonDelta(1.0).curve("replace")
    assert EpsilonDelta(1.0, adjacency="replace").curve("replace").advantage() > 0
    assert dprime.RandomizedResponse(1.0).default_adjacency == "replace"


TOLD = {
    "epsilon must be above 0": lambda: EpsilonDelta(-1.0),
    "epsilon must be at most 500, but it is 501.0: a larger": lambda: EpsilonDelta(501.0),
    "delta must be below 1": lambda: EpsilonDelta(1.0, 1.0),
    "steps must be at least 1": lambda: EpsilonDelta(1.0, steps=0),
    "adjacency must be one of": lambda: EpsilonDelta(1.0, adjacency="near"),
    "points must hold at least one": lambda: EpsilonDeltaProfile(()),
    "delta must be between 0 and 1": lambda: EpsilonDeltaProfile(((1.0, 2.0),)),
    "orders must be as many as epsilons": lambda: RDP((2.0, 3.0), (0.1,)),
    "and at least one, but there are 0": lambda: RDP((), ()),
    "orders must be above 1": lambda: RDP((1.0,), (0.1,)),
    "rho must be above 0": lambda: ZCDP(0.0),
    "xi must be 0 or more": lambda: ZCDP(0.1, -1.0),
    "mu must be a finite number": lambda: GDP(math.nan),
    "masses must be as many as": lambda: PLD((1.0,), (0.5, 0.5)),
    "add up to at most 1 .* in world 'out'": lambda: PLD((-3.0,), (1.0,)),
    "add up to at most 1 .* in world 'in'": lambda: PLD((0.0, 0.0), (0.9, 0.9)),
    r"noise_multiplier must be at least 0\.002": lambda: Laplace(0.001),
    "categories must be at least 2": lambda: dprime.RandomizedResponse(1.0, 1),
}


@pytest.mark.parametrize("words", TOLD)
def test_bad_input_is_one_sentence(words):
    with pytest.raises(ValueError, match=words) as error:
        TOLD[words]()
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


@pytest.mark.parametrize(
    ("excess", "epsilon", "worst"),
    [
        (1e-12, 1e-4, 7.07e-3),
        (1e-10, 1e-6, 7.07e-4),
        (1e-8, 1e-8, 7.07e-5),
        (1e-6, 1e-6, 7.071064e-4),
        (1e-3, 0.1, 0.2210),
    ],
)
def test_orders_next_to_one_stay_on_the_safe_side(excess, epsilon, worst):
    """`worst` is the advantage of a randomised response that has this divergence (60 digits)."""
    assert RDP((1 + excess,), (epsilon,)).curve().advantage() >= worst


@pytest.mark.parametrize("rho", [1e-14, 1e-12, 1e-6, 1.0, 100.0])
def test_zcdp_over_its_range(rho):
    exact = TradeOff.gaussian(math.sqrt(2 * rho))
    curve = ZCDP(rho).curve()
    assert curve.advantage() >= exact.advantage()
    assert exact.epsilon(1e-5) <= curve.epsilon(1e-5) <= _canonne(rho, 1e-5) * 1.02 + 1e-9


@pytest.mark.parametrize(
    "mechanism",
    [
        PLD((-1000.0, 0.0), (0.0, 1.0)),
        PLD((1e200, 0.0), (0.0, 1.0)),
        PLD((1e160, 0.0), (1e-3, 0.999)),
        PLD((0.0,), (1.0,)),
    ],
)
def test_impossible_and_endless_losses_compose(mechanism):
    both = dprime.Composition(mechanism, dprime.DPSGD(1.0, 0.01, 10)).curve()
    infinite = mechanism.masses[0] if mechanism.loss_values[0] > 700 else 0.0
    alone = dprime.DPSGD(1.0, 0.01, 10).curve().advantage()
    assert both.advantage() >= alone
    assert both.advantage() == pytest.approx(alone + infinite * (1 - alone), rel=2e-3)
