import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import dprime
from dprime import DPSGD, GDP, PLD, RDP, ZCDP, EpsilonDelta, EpsilonDeltaProfile, Laplace, TradeOff
from told import refuses


@given(epsilon=st.floats(0.01, 8), delta=st.floats(0, 0.5), fpr=st.floats(0, 1))
def test_epsilon_delta_is_its_two_lines(epsilon, delta, fpr):
    lines = delta + math.exp(epsilon) * fpr, 1 - math.exp(-epsilon) * (1 - delta - fpr)
    assert EpsilonDelta(epsilon, delta).curve().tpr(fpr) == pytest.approx(min(1, *lines), abs=1e-9)


def test_a_profile_keeps_each_of_its_points():
    points = ((0.1, 0.2), (0.5, 0.05), (1.0, 1e-3), (2.0, 1e-6))
    curve = EpsilonDeltaProfile(points).curve()
    for epsilon, delta in points:
        assert curve.delta(epsilon) == pytest.approx(delta, abs=1e-9)
        assert curve.epsilon(delta) <= epsilon + 1e-6


def _canonne(rho, delta):
    """Canonne, Kamath and Steinke 2020, corollary 13: a published conversion from zCDP."""
    orders = 1 + np.geomspace(1e-3, 1e4, 4000)
    return float(
        np.min(rho * orders + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1))
    )


@pytest.mark.parametrize("rho", [1e-14, 1e-12, 1e-6, 0.00125, 0.02, 0.18, 1.0, 3.125, 100.0])
def test_zcdp_lies_above_the_gaussian_that_has_it(rho):
    curve, exact = ZCDP(rho).curve(), TradeOff.gaussian(math.sqrt(2 * rho))
    for fpr in (1e-6, 1e-3, 0.01, 0.1, 0.5, 0.9, 0.999):
        assert curve.tpr(fpr) >= exact.tpr(fpr) - 1e-12
    assert curve.advantage() >= exact.advantage()
    published = _canonne(rho, 1e-5) * (1.005 if 1e-3 < rho < 4 else 1.02) + 1e-9
    assert exact.epsilon(1e-5) <= curve.epsilon(1e-5) <= published


def _renyi(order, p, q):
    return p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)


def test_rdp_of_one_order_is_the_binary_divergence():
    order, epsilon = 3.0, 0.4
    curve = RDP((order,), (epsilon,)).curve()
    bound = math.exp((order - 1) * epsilon)
    for fpr in (0.001, 0.01, 0.1, 0.4):
        tpr = curve.tpr(fpr)
        held = max(_renyi(order, tpr, fpr), _renyi(order, fpr, tpr))  # both directions hold
        assert bound * (1 - 1e-9) <= held <= bound * 1.01


def test_renyi_divergences_cover_randomised_response():
    """A mechanism whose Renyi divergences are known exactly never lies above the curve."""
    yes, orders = 1 / (1 + math.exp(-1.0)), (1.5, 2.0, 4.0, 16.0, 64.0)
    epsilons = tuple(math.log(_renyi(a, yes, 1 - yes)) / (a - 1) for a in orders)
    exact = dprime.RandomizedResponse(1.0).curve()
    for curve in (RDP(orders, epsilons).curve(), ZCDP(1e-9, xi=1.0).curve()):
        for fpr in np.linspace(0.001, 0.999, 60):
            assert curve.tpr(fpr) >= exact.tpr(fpr) - 1e-12


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


def test_gdp_is_exact():
    assert GDP(0.7).curve().tpr(0.01) == pytest.approx(norm.cdf(norm.ppf(0.01) + 0.7), rel=1e-12)


def test_pld_reads_as_given_and_sends_the_rest_to_infinity():
    curve = PLD((1.0, -1.0), (0.7, 0.25)).curve()
    assert curve.shape.delta(1.0) == pytest.approx(0.05, abs=1e-12)
    assert curve.advantage() == pytest.approx(0.05 + 0.7 * -math.expm1(-1.0), abs=1e-12)


@pytest.mark.parametrize(
    ("losses", "masses"),
    [
        ((-1000.0, 0.0), (0.0, 1.0)),
        ((1e200, 0.0), (0.0, 1.0)),
        ((1e160, 0.0), (1e-3, 0.999)),
        ((0.0,), (1.0,)),
    ],
)
def test_impossible_and_endless_losses_compose(losses, masses):
    training = DPSGD(1.0, 0.01, 10)
    both = dprime.Composition(PLD(losses, masses), training).curve().advantage()
    alone, infinite = training.curve().advantage(), masses[0] if losses[0] > 700 else 0.0
    assert alone <= both == pytest.approx(alone + infinite * (1 - alone), rel=2e-3)


def test_a_guarantee_holds_for_the_adjacency_it_was_stated_for():
    assert EpsilonDelta(1.0, adjacency="replace").curve("replace").advantage() > 0
    assert dprime.RandomizedResponse(1.0).default_adjacency == "replace"


test_what_is_refused = refuses(
    {
        "adjacency be 'add-remove' for this": lambda: EpsilonDelta(1.0).curve("replace"),
        "adjacency be one of": lambda: EpsilonDelta(1.0, adjacency="near"),
        "epsilon be above 0": lambda: EpsilonDelta(-1.0),
        "epsilon be at most 500": lambda: EpsilonDelta(501.0),
        "delta be below 1": lambda: EpsilonDelta(1.0, 1.0),
        "delta be a number": lambda: EpsilonDelta(1.0, None),
        "delta be between 0 and 1": lambda: EpsilonDeltaProfile(((1.0, 2.0),)),
        "steps be at least 1": lambda: EpsilonDelta(1.0, steps=0),
        "points hold at least one": lambda: EpsilonDeltaProfile(()),
        "orders be as many as epsilons": lambda: RDP((2.0, 3.0), (0.1,)),
        "orders be as many as epsilons and at least one": lambda: RDP((), ()),
        "orders be above 1": lambda: RDP((1.0,), (0.1,)),
        "rho be above 0": lambda: ZCDP(0.0),
        "xi be 0 or more": lambda: ZCDP(0.1, -1.0),
        "mu be a finite number": lambda: GDP(math.nan),
        "masses be as many as": lambda: PLD((1.0,), (0.5, 0.5)),
        "masses add up to at most 1": lambda: PLD((-3.0,), (1.0,)),  # in world `out`
        "masses add up to at most 1 in each": lambda: PLD((0.0, 0.0), (0.9, 0.9)),
        "noise_multiplier be at least 0.002": lambda: Laplace(0.001),
        "categories be at least 2": lambda: dprime.RandomizedResponse(1.0, 1),
    }
)
