"""Bernau's numbers: against plain formulas, against simulation, and never called a bound."""

import math

import numpy as np
import pytest
import scipy

from dprime import DPSGD, TradeOff
from dprime.audit import identifiability as di
from told import refuses

SIGMA, STEPS = 8.0, 30
MU = math.sqrt(STEPS) / SIGMA


def simulated(trials, sensitivities, sigma=SIGMA, seed=0):
    """L of every step, for worlds LS_t/σ_t apart at step t: N(±u²/2, u²) with u = LS_t/σ_t."""
    draw = np.random.default_rng(seed)
    in_world = np.arange(trials) % 2 == 0
    u = np.broadcast_to(np.asarray(sensitivities) / sigma, (trials, STEPS))
    sign = np.where(in_world, 1.0, -1.0)[:, None]
    return np.cumsum(sign * u**2 / 2 + u * draw.normal(size=u.shape), axis=1), in_world


def test_the_advantage_is_the_difference_of_the_rates():
    logs = [2.0, 0.5, -1.0, 3.0, -2.0, 0.1]
    in_world = [True, True, True, False, False, False]
    for limit, expected in ((0.0, 2 / 3 - 2 / 3), (1.0, 1 / 3 - 1 / 3), (2.5, 0 - 1 / 3)):
        found = di.advantage(logs, in_world, prior=1 / (1 + math.exp(limit)))  # in where L > limit
        assert found.value == pytest.approx(expected)
    assert found.standard_error == pytest.approx(math.sqrt((1 / 3) * (2 / 3) / 3))


def test_what_is_seen_agrees_with_theory():
    """20,000 simulated trials of 30 steps: within four standard errors of the closed forms."""
    logs, in_world = simulated(20_000, 1.0)
    shown = di.identify(logs, in_world, noise=SIGMA, sensitivities=[1.0] * STEPS, delta=1e-5)
    truth = TradeOff.gaussian(MU)
    assert shown.advantage == di.advantage(logs[:, -1], in_world)
    assert {estimate.kind for estimate in shown.epsilons.values()} == {"point estimate"}
    assert abs(shown.advantage.value - truth.advantage()) < 4 * shown.advantage.standard_error
    assert shown.advantage.standard_error == pytest.approx(0.0068, abs=2e-4)
    assert shown.predicted.value == pytest.approx(truth.advantage(), rel=1e-12)
    assert shown.predicted.standard_error == 0.0
    above = scipy.special.ndtr(MU / 2 - math.log(9) / MU)  # Pr[L > ln 9] in world `in`
    assert shown.exceedance.low < above < shown.exceedance.high
    assert shown.exceedance.high < 2 * above
    exact, classical = shown.epsilons["advantage"], shown.epsilons["advantage_classical"]
    assert exact.value == pytest.approx(truth.epsilon(1e-5), rel=0.1)
    assert classical.value == pytest.approx(math.sqrt(2 * math.log(1.25e5)) * MU, rel=0.1)


@pytest.mark.parametrize("prior", [0.1, 0.5, 1e-9, 1 - 1e-9])
@pytest.mark.parametrize("belief", [0.6, 0.99])
def test_exceedance_counts_beliefs(belief, prior):
    logs, in_world = simulated(2000, 3.0, seed=3)
    beliefs = 1 / (1 + np.exp(-(logs[:, -1] + math.log(prior / (1 - prior)))))
    found = di.exceedance(logs, in_world, belief=belief, prior=prior, confidence=0.9)
    assert found.value == np.mean(beliefs[in_world] > belief)
    count = round(found.value * 1000)
    assert found.trials == 1000
    interval = scipy.stats.binomtest(count, 1000).proportion_ci(0.9, method="exact")
    assert found.low == pytest.approx(interval.low, abs=1e-12)
    assert found.high == pytest.approx(interval.high, abs=1e-12)


def of_belief(logs, in_world):
    return di.identify(logs, in_world, delta=1e-5).epsilons["belief"].value


def test_beliefs_that_round_to_one_are_told_apart():
    logs, in_world = np.array([40.0, 60.0, -1.0]), np.array([True, True, False])
    assert 1 / (1 + math.exp(-40.0)) == 1 / (1 + math.exp(-60.0)) == 1.0
    assert of_belief(logs, in_world) == 60.0
    assert di.exceedance(logs, in_world, belief=1 - 1e-16).value == 1.0
    assert of_belief([np.inf, 0.0], [True, False]) == math.inf
    assert of_belief([1.0, 9.0, -9.0], [True, False, False]) == 1.0  # of the true world only
    assert of_belief([-1.0, 9.0], [True, False]) == 0.0


def of_sensitivities(noise, seen, delta):
    given = {"noise": noise, "sensitivities": seen, "delta": delta}
    found = di.identify([1.0, 0.0], [True, False], **given).epsilons
    return found["sensitivities"].value, found["sensitivities_rdp"].value


def test_epsilon_from_sensitivities_is_that_of_the_worst_trial():
    seen = np.array([[1.0, 2.0, 0.0], [0.5, 0.5, 0.5], [2.0, 1.0, 2.0]])
    sigma = np.array([2.0, 4.0, 3.0])
    mu = math.sqrt((2 / 2) ** 2 + (1 / 4) ** 2 + (2 / 3) ** 2)
    exact, rdp = of_sensitivities(sigma, seen, 1e-3)
    assert exact == pytest.approx(TradeOff.gaussian(mu).epsilon(1e-3), rel=1e-9)
    orders = np.linspace(1.001, 100, 2_000_000)
    naive = np.min(orders * mu**2 / 2 + math.log(1e3) / (orders - 1))
    assert rdp == pytest.approx(naive, rel=1e-6)
    assert rdp > exact
    assert of_sensitivities(np.tile(sigma, (3, 1)), seen, 1e-3) == (exact, rdp)


def test_published_setting():
    """B's table 3: ρ_β = 0.9 at δ = 0.01 has ε = 2.2 and ρ_α = 0.28."""
    _, found = di.epsilons_from_advantage(0.28, 0.01)
    assert found == pytest.approx(math.log(9), abs=0.05)
    assert di.epsilons_from_advantage(-0.3, 1e-5) == (0.0, 0.0)
    assert di.epsilons_from_advantage(1.0, 1e-5) == (math.inf, math.inf)
    # as printed, without the factor 2, it would be half of that
    printed = math.sqrt(2 * math.log(125)) * scipy.special.ndtri((0.28 + 1) / 2)
    assert found == pytest.approx(2 * printed)


def test_a_step_without_sensitivity_tells_nothing_whatever_its_noise():
    found = di.predicted_advantage([1.0, 0.0], [[1.0, 0.0]])
    assert found.value == pytest.approx(math.erf(1 / math.sqrt(8)))
    assert of_sensitivities(0.0, [[0.0, 0.0]], 1e-5) == (0.0, 0.0)


def test_the_prediction_holds_where_sensitivities_vary_by_trial():
    draw = np.random.default_rng(9)
    seen = draw.uniform(0.2, 3.0, size=(20_000, STEPS)) * draw.uniform(0, 1, size=(20_000, 1))
    logs, in_world = simulated(20_000, seen, seed=9)
    found, predicted = di.advantage(logs, in_world), di.predicted_advantage(SIGMA, seen)
    error = math.hypot(found.standard_error, predicted.standard_error)
    assert abs(found.value - predicted.value) < 4 * error
    assert 0 < predicted.standard_error < found.standard_error
    each = [math.erf(math.sqrt(sum((ls / SIGMA) ** 2)) / math.sqrt(8)) for ls in seen[:50]]
    first = di.predicted_advantage(SIGMA, seen[:50])
    assert first.value == pytest.approx(np.mean(each))
    assert first.standard_error == pytest.approx(np.std(each, ddof=1) / math.sqrt(50))


BOTH = [True, False]
test_bad_input = refuses(
    {
        "in_world be true or false": lambda: di.worlds([1.0, 2.0], [True, True]),
        "in_world be true or": lambda: di.worlds([1.0, 2.0], [1, 0]),
        "in_world be true": lambda: di.worlds([1.0, np.nan], BOTH),
        "prior be strictly": lambda: di.advantage([1.0, 2.0], BOTH, prior=1.0),
        "belief be strictly": lambda: di.exceedance([1.0, 2.0], BOTH, belief=1.0),
    }
)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_between_computed_steps_the_certified_belief_is_rounded_up(adjacency):
    training = DPSGD(2.0, 0.05, 500)
    limits = di.belief_bound(training, adjacency, prior=0.5)
    assert len(limits) == 500
    assert limits == sorted(limits)
    assert len(set(limits)) <= 30
    for step in (1, 2, 37, 101, 250, 499, 500):
        assert limits[step - 1] >= DPSGD(2.0, 0.05, step).curve(adjacency).belief(0.5, 1e-3)


def test_the_certified_belief_is_exceeded_as_rarely_as_it_says():
    """Full batches: N(mu, 1) against N(0, 1), mu = sqrt(k) / z, after k steps."""
    rng, mu, trials = np.random.default_rng(3), 0.5, 10_000
    logs = (mu**2 / 2 + mu * rng.normal(size=(trials, 10))).cumsum(axis=1)
    limits = di.belief_bound(DPSGD(2.0, 1.0, 10), "add-remove", prior=0.5, exceeded=0.02)
    allowed = 0.02 * trials
    exceeded = (scipy.special.expit(logs) > np.array(limits)).sum(axis=0)
    assert (exceeded <= allowed + 3 * np.sqrt(allowed)).all()
