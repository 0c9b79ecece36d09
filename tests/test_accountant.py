"""The accountant against four independent witnesses: an exact contour integral, a plain lattice,
simulation, and dp_accounting's optimistic and pessimistic results as a bracket.
"""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from dprime import DPSGD, Composition, Gaussian, NotCertifiableError, TradeOff
from dprime.accountant import compose
from dprime.privacy_loss import gaussian, randomized_response, subsampled_gaussian
from reference import Contour, FewSteps, Truth, simulated_advantage

SLACK = 2e-3
"""How far above the truth a certified value may lie, relative to it."""


def powers(low, high):
    return st.floats(low, high).map(lambda exponent: 10**exponent)


SETTINGS = st.tuples(powers(-0.52, 2), powers(-6, 0), powers(0, 7).map(int))


def never_below(value, truth, *, absolute=0.0):
    assert value >= truth * (1 - 1e-7) - 1e-12, f"{value} is below the truth {truth}"
    assert value <= truth * (1 + SLACK) + absolute, f"{value} is loose against {truth}"


@pytest.mark.parametrize(
    ("setting", "replace"),
    [
        ((1.0, 0.01, 2_000), False),
        ((4.0, 0.1, 300), True),
        ((60.0, 0.7, 10_007), False),
        pytest.param((1.3, 3e-6, 9_999_991), True, marks=pytest.mark.slow),
    ],
)
def test_against_the_contour_integral(setting, replace):
    curve = DPSGD(*setting).curve("replace" if replace else "add-remove")
    truth = Truth(Contour(*setting, replace), Contour(*setting, replace, exchanged=True))
    never_below(curve.advantage(), truth.advantage())
    never_below(curve.tpr(0.01), truth.tpr(0.01))
    never_below(curve.precision(0.1, 0.01), truth.precision(0.1, 0.01))
    never_below(curve.epsilon(1e-5), truth.epsilon(1e-5), absolute=1e-4)


def test_two_phases_against_the_contour_integral_of_their_product():
    first, second = Contour(1.0, 0.01, 700), Contour(2.0, 0.03, 300)

    class Both(Contour):
        def _log_moment(self, s):
            return first._log_moment(s) + second._log_moment(s)

    exact = Both(1.0, 0.01, 700)
    # The curve of the other direction is the smaller one for add/remove at delta = 1e-5.
    curve = Composition(DPSGD(1.0, 0.01, 700), DPSGD(2.0, 0.03, 300)).curve()
    never_below(curve.advantage(), exact.delta(0.0))
    for epsilon in (0.5, 1.0, 2.0):
        never_below(curve.delta(epsilon), exact.delta(epsilon))


@pytest.mark.parametrize(
    "setting", [(0.3, 0.01, 3), (1.0, 0.01, 200), (0.4, 1e-4, 30), (0.5, 1e-3, 17), (2.0, 0.9, 2)]
)
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_few_steps_against_a_plain_lattice(setting, epsilon):
    curve = DPSGD(*setting).curve()
    for exchanged, ours in ((False, curve), (True, curve.reversed())):
        exact, found = FewSteps(*setting, exchanged=exchanged), ours.shape.delta(epsilon)
        truth = exact.delta(epsilon)
        assert truth * (1 - 1e-5) - 1e-11 <= found <= truth * (1 + SLACK) + 1e-11


@pytest.mark.parametrize("setting", [(0.3, 1e-6, 10), (0.5, 1e-5, 100), (0.35, 1e-4, 4)])
def test_rare_huge_losses_by_simulation(setting):
    """Where one step in a million decides and no grid resolves both scales."""
    mean, error = simulated_advantage(*setting, samples=400_000, rng=np.random.default_rng(1))
    value = DPSGD(*setting).curve().advantage()
    assert mean - 4 * error <= value <= (mean + 4 * error) * (1 + SLACK)


RELATIONS = {
    "add-remove": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace": dp_accounting.NeighboringRelation.REPLACE_ONE,
}


@pytest.mark.parametrize(
    ("noise", "rate", "steps"),
    [
        (1.0, 0.01, 500),
        (3.0, 0.2, 300),
        pytest.param(0.6, 0.02, 100, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("adjacency", RELATIONS)
def test_within_the_bracket_of_another_library(noise, rate, steps, adjacency):
    curve = DPSGD(noise, rate, steps).curve(adjacency)

    def bracket(pessimistic):
        loss = privacy_loss_distribution.from_gaussian_mechanism(
            noise,
            sampling_prob=rate,
            pessimistic_estimate=pessimistic,
            value_discretization_interval=1e-4,
            neighboring_relation=RELATIONS[adjacency],
            use_connect_dots=pessimistic,
        )
        return loss.self_compose(steps)

    low, high = bracket(False), bracket(True)
    for epsilon in (0.0, 0.5, 1.0):
        assert low.get_delta_for_epsilon(epsilon) <= curve.delta(epsilon) * (1 + 1e-9)
        assert curve.delta(epsilon) <= high.get_delta_for_epsilon(epsilon) * (1 + SLACK) + 1e-10
    assert low.get_epsilon_for_delta(1e-5) <= curve.epsilon(1e-5)
    assert curve.epsilon(1e-5) <= high.get_epsilon_for_delta(1e-5) * (1 + SLACK)


@pytest.mark.parametrize(("mu", "count"), [(0.1, 30), (0.01, 12_345), (2.0, 7), (1e-3, 1_000_000)])
def test_composed_gaussians_are_gaussian(mu, count):
    curve = TradeOff.from_privacy_loss(compose([(gaussian(mu, count), count)]))
    exact = TradeOff.gaussian(mu * math.sqrt(count))
    never_below(curve.advantage(), exact.advantage())
    never_below(curve.tpr(0.01), exact.tpr(0.01))
    never_below(curve.epsilon(1e-5), exact.epsilon(1e-5), absolute=1e-4)
    never_below(curve.reversed().tpr(0.3), exact.tpr(0.3))


@pytest.mark.parametrize("count", [1, 2, 7, 100, 5000])
def test_randomized_responses_compose_exactly(count):
    curve = TradeOff.from_privacy_loss(compose([(randomized_response(0.3), count)]))
    k, yes = np.arange(count + 1), 1 / (1 + math.exp(-0.3))
    exact = np.maximum(0, binom.pmf(k, count, yes) - binom.pmf(k, count, 1 - yes)).sum()
    assert curve.advantage() == pytest.approx(exact, rel=1e-9, abs=1e-10)


@settings(max_examples=40)
@given(setting=SETTINGS, factor=st.floats(1.01, 3), adjacency=st.sampled_from([*RELATIONS]))
def test_risk_is_certified_or_refused_and_monotone_in_noise_rate_and_steps(
    setting, factor, adjacency
):
    noise, rate, steps = setting
    try:
        base = DPSGD(noise, rate, steps).curve(adjacency)
    except NotCertifiableError:
        assert noise < 0.5 or steps > 1_000_000 or rate < 1e-5
        return
    quieter = DPSGD(min(noise * factor, 300.0), rate, steps)
    rarer = DPSGD(noise, rate / factor, steps)
    fewer = DPSGD(noise, rate, max(1, int(steps / factor)))
    for safer in (each.curve(adjacency) for each in (quieter, rarer, fewer)):
        assert safer.advantage() <= base.advantage() * (1 + SLACK) + 1e-7
        assert safer.tpr(0.01) <= base.tpr(0.01) * (1 + SLACK) + 1e-7
        assert safer.epsilon(1e-5) <= base.epsilon(1e-5) * (1 + SLACK) + 1e-4


@settings(max_examples=25)
@given(
    noise=st.floats(0.5, 8),
    rate=powers(-4, -0.5),
    steps=st.tuples(*[st.integers(1, 3000)] * 3),
    extra=st.floats(2, 50),
)
def test_composition_is_associative_and_below_the_sum(noise, rate, steps, extra):
    whole = DPSGD(noise, rate, sum(steps))
    a, b, c = (DPSGD(noise, rate, each) for each in steps)
    advantage, tpr = whole.curve().advantage(), whole.curve().tpr(0.01)
    for other in (Composition(Composition(a, b), c), Composition(a, Composition(b, c))):
        assert other.curve().advantage() == pytest.approx(advantage, rel=SLACK, abs=1e-9)
        assert other.curve().tpr(0.01) == pytest.approx(tpr, rel=SLACK)
    more = Gaussian(extra, 3)
    both, least = Composition(whole, more).curve().advantage(), more.curve().advantage()
    assert max(advantage, least) * (1 - 1e-3) <= both <= (advantage + least) * (1 + SLACK) + 1e-9


LONG = [(1.0, 0.01, 2000), (0.5, 1e-5, 10**6), (2.0, 1e-4, 500_000), (1.0, 1e-6, 10**7)]


@pytest.mark.parametrize("setting", LONG)
def test_rounding_stays_within_its_budget(setting):
    """Both masses of a long composition add up to 1 within what is booked at infinity."""
    loss = compose([(subsampled_gaussian(*setting), setting[2])])
    assert abs(loss.p.sum() - 1) < loss.p_inf
    assert abs(loss.q.sum() - 1) < loss.q_inf
    assert 5e-16 * setting[2] < loss.p_inf < 1e-14 * setting[2] + 1e-11


def test_a_claim_beyond_the_grid_is_refused(monkeypatch):
    monkeypatch.setattr("dprime.accountant.LARGEST_GRID", 100)
    with pytest.raises(NotCertifiableError, match="more noise, a smaller rate or fewer steps"):
        DPSGD(1.0, 0.01, 2000).curve()
