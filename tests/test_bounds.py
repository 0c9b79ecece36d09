"""Bounds and conversions: check values, inverses, orderings, naive copies, bad input."""

from __future__ import annotations

import inspect
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import dprime
from dprime import TradeOff, bounds

EPSILON = st.floats(0.0, 800.0)
SMALL_EPSILON = st.floats(0.0, 12.0)
DELTA = st.floats(0.0, 0.5)
PRIOR = st.floats(1e-6, 1 - 1e-6)
INNER = st.floats(1e-6, 1 - 1e-6)

REPEATABLE = settings(deadline=None, max_examples=60, derandomize=True)


def allowed(epsilon: float, delta: float = 0.0) -> TradeOff:
    """The curve of everything that (ε, δ) allows."""
    return TradeOff.from_lines([(epsilon, delta)])


def canonical_pair(epsilon: float, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Four outputs that use up all that (ε, δ) allows, in both directions."""
    high = 1 / (1 + math.exp(-epsilon))
    p = np.array([delta, (1 - delta) * high, (1 - delta) * (1 - high), 0.0])
    return p, p[::-1]


def rates_of_every_test(p: np.ndarray, q: np.ndarray) -> list[tuple[float, float]]:
    """(TPR, FPR) of every set of outputs."""
    masks = itertools.product([0.0, 1.0], repeat=len(p))
    return [(float(np.dot(m, p)), float(np.dot(m, q))) for m in masks]


# --- check values ---------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "target"), [(3.0, 0.953), (2.0, 0.881), (1.0, 0.731)])
def test_target_bounds_of_thudi_figures(epsilon: float, target: float) -> None:
    assert bounds.precision_from_epsilon(epsilon, prior=0.5) == pytest.approx(target, abs=5e-4)
    assert bounds.belief_from_epsilon(epsilon) == bounds.mahloujifar_precision_from_epsilon(epsilon)


def test_identifiability_scores_of_bernau_and_mosaicrown() -> None:
    epsilon = bounds.epsilon_from_belief(0.9)
    assert epsilon == pytest.approx(math.log(9), rel=1e-14)
    assert bounds.classical_advantage_from_epsilon(epsilon, delta=0.01) == pytest.approx(
        0.28, abs=5e-3
    )
    assert bounds.classical_advantage_from_epsilon(epsilon, delta=0.001) == pytest.approx(
        0.23, abs=5e-3
    )
    z = bounds.rdp_noise_multiplier_from_epsilon(epsilon, delta=0.01, steps=30)
    assert bounds.advantage_from_noise_multiplier(z, steps=30) == pytest.approx(0.2562, abs=5e-5)


def test_full_batch_check_values() -> None:
    assert bounds.mu_from_noise_multiplier(8.0, steps=30) == pytest.approx(0.68465, abs=5e-6)
    assert bounds.advantage_from_noise_multiplier(8.0, steps=30) == pytest.approx(0.26789, abs=5e-6)
    epsilon = bounds.epsilon_from_noise_multiplier(8.0, delta=1e-5, steps=30)
    assert epsilon == pytest.approx(2.8376, abs=5e-5)


def test_replace_doubles_the_distance() -> None:
    for steps in (1, 30):
        one = bounds.mu_from_noise_multiplier(4.0, steps=steps)
        assert bounds.mu_from_noise_multiplier(4.0, steps=steps, adjacency="replace") == 2 * one
        half_noise = bounds.rdp_from_noise_multiplier(2.0, order=3.0, steps=steps)
        replaced = bounds.rdp_from_noise_multiplier(
            4.0, order=3.0, steps=steps, adjacency="replace"
        )
        assert replaced == half_noise


def test_cherubin_figure_7_from_bayes_security() -> None:
    bayes_security = 1 - 0.02835
    assert bounds.tpr_from_bayes_security(bayes_security, fpr=0.1) == pytest.approx(0.128, abs=5e-4)
    assert bounds.tpr_from_bayes_security(bayes_security, fpr=0.01) == pytest.approx(
        0.038, abs=5e-4
    )
    assert bounds.tpr_from_bayes_security(0.1, fpr=0.5) == 1.0


def test_deletion_capacity_check_value() -> None:
    result = bounds.deletion_capacity(0.8, epsilon=1.0, prior=10 / 10_000)
    assert result.records == 82
    assert 0.8 <= result.deniability < 0.802
    assert result.output_probability is None


def test_audit_without_an_error_in_a_thousand_trials() -> None:
    highest = stats.beta.ppf(0.975, 1, 1000)
    assert bounds.epsilon_from_error_rates(highest, highest) == pytest.approx(5.60, abs=5e-3)


def test_exact_small_cases() -> None:
    assert bounds.belief_from_epsilon(0.0) == 0.5
    assert bounds.advantage_from_epsilon(0.0) == 0.0
    assert bounds.advantage_from_epsilon(0.0, delta=0.25) == 0.25
    assert bounds.advantage_from_epsilon(3.0, delta=1.0) == 1.0
    assert bounds.advantage_from_epsilon(math.log(3)) == pytest.approx(0.5, rel=1e-15)
    assert bounds.epsilon_from_advantage(0.0) == 0.0
    assert bounds.epsilon_from_advantage(0.25, delta=0.25) == 0.0
    assert bounds.epsilon_from_belief(0.5) == 0.0
    assert allowed(math.log(3)).bayes_security() == pytest.approx(0.5)
    assert bounds.epsilon_from_bayes_security(1.0) == 0.0
    assert bounds.epsilon_from_bayes_security(0.9, delta=0.2) == 0.0
    assert bounds.success_from_bayes_security(1.0, max_prior=0.3) == pytest.approx(0.3)
    assert bounds.epsilon_from_error_rates(0.0, 0.0) == math.inf
    assert bounds.epsilon_from_error_rates(0.0, 1.0) == 0.0
    assert bounds.epsilon_from_error_rates(0.5, 0.5) == 0.0
    assert bounds.empirical_epsilon_from_belief(0.3) == 0.0
    assert bounds.empirical_epsilon_from_belief(0.9, prior=0.1) == pytest.approx(2 * math.log(9))
    assert bounds.empirical_epsilon_from_advantage(-0.1, delta=1e-5) == 0.0
    assert bounds.local_sensitivity_add_remove([0.0, 0.0]) == 0.0
    assert bounds.local_sensitivity_add_remove([3e200, 4e200]) == pytest.approx(5e200)
    assert bounds.local_sensitivity_replace([1.0, 0.0], [-1.0, 0.0]) == 2.0


def test_composition_is_never_worse_than_adding() -> None:
    composed = dprime.EpsilonDelta(0.1, 1e-6, steps=10).curve()
    assert composed.epsilon(1e-5) <= 1.0
    assert bounds.rdp_composition([1.0, 2.0], [0.5, 0.5]) == (1.5, 2.5)


def test_belief_composes_by_adding_epsilons() -> None:
    belief = 0.5
    for epsilon in (0.7, 0.9, 0.6):
        belief = bounds.belief_from_epsilon(epsilon, prior=belief)
    assert bounds.belief_from_epsilon(0.7 + 0.9 + 0.6) == pytest.approx(belief)


def test_empirical_epsilon_from_sensitivities_takes_the_worst_repetition() -> None:
    seen = [[1.0, 0.5], [1.0, 1.0]]
    worst = bounds.epsilon_from_mu(math.sqrt(2) / 4, delta=1e-5)
    assert bounds.empirical_epsilon_from_sensitivities(4.0, seen, delta=1e-5) == pytest.approx(
        worst
    )
    assert bounds.empirical_epsilon_from_sensitivities(4.0, [0.0], delta=1e-5) == 0.0


# --- naive copies ---------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.2])
def test_epsilon_delta_bounds_are_those_of_the_canonical_mechanism(
    epsilon: float, delta: float
) -> None:
    pairs = rates_of_every_test(*canonical_pair(epsilon, delta))
    advantage = max(tpr - fpr for tpr, fpr in pairs)
    assert bounds.advantage_from_epsilon(epsilon, delta=delta) == pytest.approx(advantage)
    assert 1 - allowed(epsilon, delta).bayes_security() == pytest.approx(advantage)
    for tpr, fpr in pairs:
        assert tpr <= allowed(epsilon, delta).tpr(min(1.0, fpr)) + 1e-15
        found = bounds.epsilon_from_error_rates(min(1.0, fpr), max(0.0, 1 - tpr), delta=delta)
        assert found <= epsilon + 1e-12
        if tpr <= delta:
            continue
        for prior in (0.01, 0.5, 0.9):
            precision = prior * tpr / (prior * tpr + (1 - prior) * fpr)
            limit = bounds.precision_from_epsilon(epsilon, prior=prior, delta=delta, min_tpr=tpr)
            assert precision <= limit + 1e-15
            mirrored = bounds.negative_accuracy_from_epsilon(
                epsilon, prior=1 - prior, delta=delta, min_tnr=tpr
            )
            assert mirrored == pytest.approx(limit)
    # the first two outputs together: TPR = e^ε FPR + δ, where the precision bound is reached
    p, q = canonical_pair(epsilon, delta)
    tpr, fpr = p[0] + p[1], q[0] + q[1]
    limit = bounds.precision_from_epsilon(epsilon, prior=0.3, delta=delta, min_tpr=tpr)
    assert limit == pytest.approx(0.3 * tpr / (0.3 * tpr + 0.7 * fpr))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.1])
def test_belief_exceedance_holds_for_the_canonical_mechanism(epsilon: float, delta: float) -> None:
    p, q = canonical_pair(epsilon, delta)
    for prior in (0.1, 0.5):
        seen = p + q > 0
        beliefs = prior * p[seen] / (prior * p[seen] + (1 - prior) * q[seen])
        for belief in np.linspace(0.02, 0.98, 49):
            truth = float(p[seen][beliefs > belief].sum())
            limit = bounds.belief_exceeds_from_epsilon(
                float(belief), epsilon=epsilon, delta=delta, prior=prior
            )
            assert truth <= limit + 1e-12


def test_belief_and_its_exceedance_agree() -> None:
    belief = bounds.belief_from_epsilon(1.0, delta=1e-3, exceeded=0.01)
    exceeded = bounds.belief_exceeds_from_epsilon(belief, epsilon=1.0, delta=1e-3)
    assert exceeded == pytest.approx(0.01)
    assert bounds.belief_from_epsilon(1.0, delta=1e-3, exceeded=1e-3) == 1.0


def test_tpr_is_reached_by_mixing_the_canonical_tests() -> None:
    p, q = canonical_pair(1.0, 0.1)
    tpr, fpr = np.cumsum(p), np.cumsum(q)
    for x in np.linspace(0, 1, 21):
        mixed = float(np.interp(x, np.r_[0, 0, fpr[1:]], np.r_[0, tpr]))
        if x > 0:
            assert allowed(1.0, 0.1).tpr(min(1.0, float(x))) == pytest.approx(mixed)
    assert allowed(1.0, 0.1).tpr(0.0) == pytest.approx(0.1, rel=1e-15)


@pytest.mark.parametrize(
    ("mu", "epsilon"), [(0.3, 0.0), (0.3, 1.0), (1.0, 2.0), (2.5, 1.0), (4.0, 9.0)]
)
def test_gaussian_delta_against_numerical_integration(mu: float, epsilon: float) -> None:
    def excess(x: float) -> float:
        return stats.norm.pdf(x, mu) - math.exp(epsilon) * stats.norm.pdf(x)

    start = epsilon / mu + mu / 2
    naive, _ = integrate.quad(excess, start, start + 40, epsabs=0, epsrel=1e-10, limit=200)
    assert bounds.delta_from_mu(mu, epsilon=epsilon) == pytest.approx(naive, rel=1e-8)


def test_gaussian_delta_is_never_below_the_truth() -> None:
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(80):
        for mu, epsilon in [(1e-6, 3e-5), (0.01, 0.0), (0.3, 9.0), (1.0, 1.0), (20.0, 800.0)]:
            m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
            truth = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
            assert (
                truth
                <= bounds.delta_from_mu(mu, epsilon=epsilon)
                <= truth * (1 + mpmath.mpf("1e-9"))
            )


def test_rdp_conversion_against_a_grid_of_orders() -> None:
    orders = np.linspace(1.01, 60, 20_000)
    curve = [bounds.rdp_from_noise_multiplier(8.0, order=a, steps=30) for a in orders]
    naive = bounds.epsilon_from_rdp(curve, orders=list(orders), delta=1e-5)
    closed = bounds.rdp_epsilon_from_noise_multiplier(8.0, delta=1e-5, steps=30)
    assert closed <= naive.epsilon == pytest.approx(closed, rel=1e-6)
    assert closed > bounds.epsilon_from_noise_multiplier(8.0, delta=1e-5, steps=30)


def test_belief_from_rdp_keeps_its_tail() -> None:
    orders = [1.5, 2.0, 4.0, 8.0, 16.0, 32.0]
    for z, exceeded in itertools.product((0.5, 1.0, 4.0), (1e-5, 1e-2, 0.3)):
        curve = [bounds.rdp_from_noise_multiplier(z, order=a) for a in orders]
        belief = bounds.belief_from_rdp(curve, orders=orders, exceeded=exceeded, prior=0.2)
        mu = 1 / z
        threshold = math.log(belief / (1 - belief)) - math.log(0.2 / 0.8)
        assert stats.norm.sf(threshold / mu - mu / 2) <= exceeded


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05])
def test_deletion_capacity_of_the_canonical_mechanism(delta: float) -> None:
    epsilon, prior = 0.8, 0.05
    p, q = canonical_pair(epsilon, delta)
    tpr, fpr = p[0] + p[1], q[0] + q[1]
    for records in (1, 2, 3):
        # every record is reported by its own mechanism, and every report says "in"
        none_used = ((1 - prior) * fpr / ((1 - prior) * fpr + prior * tpr)) ** records
        result = bounds.deletion_capacity(
            none_used, epsilon=epsilon, prior=prior, delta=delta, output_probability=fpr**records
        )
        assert result.records <= records
        if records == 1:  # tight: asking for a hair less deniability gives the record back
            result = bounds.deletion_capacity(
                none_used - 1e-9, epsilon=epsilon, prior=prior, delta=delta, output_probability=fpr
            )
            assert result.records == 1
            assert result.output_probability == (fpr if delta else None)


def test_success_with_many_values_on_random_channels() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        channel = rng.dirichlet(np.ones(5), size=4)  # (secret, output)
        pairs = itertools.combinations(channel, 2)
        bayes_security = 1 - max(0.5 * np.abs(a - b).sum() for a, b in pairs)
        prior = rng.dirichlet(np.ones(4))
        success = (prior[:, None] * channel).max(axis=0).sum()
        limit = bounds.success_from_bayes_security(bayes_security, max_prior=prior.max())
        assert success <= limit + 1e-12


def test_generalisation_gap_of_randomised_response() -> None:
    high = 1 / (1 + math.exp(-1.0))
    gap = 4.0 * (high - (1 - high))  # the model remembers x with loss 0, else has loss 4
    advantage = allowed(1.0).advantage()
    found = bounds.generalisation_gap_from_advantage(advantage, loss_bound=4.0)
    assert found == pytest.approx(gap)
    assert advantage == pytest.approx(math.tanh(0.5))


# --- properties -----------------------------------------------------------------------------


@REPEATABLE
@given(EPSILON, EPSILON, DELTA, PRIOR)
def test_risks_grow_with_epsilon(one: float, two: float, delta: float, prior: float) -> None:
    low, high = sorted((one, two))
    for risk in (
        lambda e: bounds.advantage_from_epsilon(e, delta=delta),
        lambda e: allowed(e, delta).tpr(prior),
        lambda e: bounds.precision_from_epsilon(e, prior=prior, delta=delta, min_tpr=0.7),
        lambda e: bounds.negative_accuracy_from_epsilon(e, prior=prior, delta=delta, min_tnr=0.7),
        lambda e: bounds.belief_from_epsilon(e, prior=prior),
        lambda e: bounds.belief_exceeds_from_epsilon(0.9, epsilon=e, delta=delta),
        lambda e: bounds.erlingsson_advantage_from_epsilon(e, delta=delta),
        lambda e: -allowed(e, delta).bayes_security(),
        lambda e: -bounds.deletion_capacity(0.8, epsilon=e, prior=prior).records,
    ):
        assert risk(low) <= risk(high) + 1e-13
        assert math.isfinite(risk(high))


@REPEATABLE
@given(EPSILON, DELTA, PRIOR)
def test_ours_is_never_above_the_literature(epsilon: float, delta: float, prior: float) -> None:
    tight = bounds.advantage_from_epsilon(epsilon)
    assert tight == pytest.approx(allowed(epsilon).advantage(), rel=1e-14, abs=1e-15)
    assert 0 <= tight <= bounds.mosaicrown_advantage_from_epsilon(epsilon) + 1e-15
    assert bounds.mosaicrown_advantage_from_epsilon(epsilon) <= bounds.yeom_advantage_from_epsilon(
        epsilon
    )
    with_delta = bounds.advantage_from_epsilon(epsilon, delta=delta)
    assert with_delta <= bounds.erlingsson_advantage_from_epsilon(epsilon, delta=delta) + 1e-15
    precision = bounds.precision_from_epsilon(epsilon, prior=prior)
    assert precision <= bounds.sablayrolles_precision_from_epsilon(epsilon, prior=prior) + 1e-15


@REPEATABLE
@given(st.floats(0.0, 1 - 1e-9), st.floats(0.0, 1.0))
def test_epsilon_from_advantage_inverts(advantage: float, share: float) -> None:
    delta = advantage * share
    epsilon = bounds.epsilon_from_advantage(advantage, delta=delta)
    back = bounds.advantage_from_epsilon(epsilon, delta=delta)
    assert back <= advantage
    assert back == pytest.approx(advantage, abs=1e-14)
    again = bounds.epsilon_from_bayes_security(1 - advantage, delta=delta)
    assert again == pytest.approx(epsilon, rel=1e-6, abs=1e-14)


@REPEATABLE
@given(INNER, INNER, st.floats(0.0, 0.9))
def test_epsilon_from_posterior_inverts(one: float, two: float, share: float) -> None:
    prior, target = sorted((one, two))
    epsilon = bounds.epsilon_from_belief(target, prior=prior)
    assert bounds.belief_from_epsilon(epsilon, prior=prior) <= target
    assert bounds.belief_from_epsilon(epsilon, prior=prior) == pytest.approx(target)
    delta = share * 0.01
    largest = bounds.prior_from_precision(target, epsilon=epsilon, delta=delta, min_tpr=0.01)
    reached = bounds.precision_from_epsilon(epsilon, prior=largest, delta=delta, min_tpr=0.01)
    assert reached <= target
    assert reached == pytest.approx(target)
    again = bounds.epsilon_from_precision(target, prior=largest, delta=delta, min_tpr=0.01)
    assert again == pytest.approx(epsilon, rel=1e-6, abs=1e-9)


@REPEATABLE
@given(st.floats(1e-4, 50.0), st.floats(-200.0, -0.1))
def test_gaussian_epsilon_inverts(mu: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    epsilon = bounds.epsilon_from_mu(mu, delta=delta)
    assert bounds.delta_from_mu(mu, epsilon=epsilon) <= delta * (1 + 1e-12)
    if epsilon > 0:
        back = bounds.mu_from_epsilon(epsilon, delta=delta)
        assert back == pytest.approx(mu, rel=1e-8)
    assert epsilon <= mu * mu / 2 + mu * math.sqrt(-2 * log_delta)


@REPEATABLE
@given(st.floats(0.0, 800.0), st.floats(-200.0, -0.01), st.integers(1, 10_000))
def test_exact_noise_keeps_its_promise(epsilon: float, log_delta: float, steps: int) -> None:
    delta = math.exp(log_delta)
    for adjacency in ("add-remove", "replace"):
        z = bounds.noise_multiplier_from_epsilon(
            epsilon, delta=delta, steps=steps, adjacency=adjacency
        )
        mu = bounds.mu_from_noise_multiplier(z, steps=steps, adjacency=adjacency)
        assert bounds.delta_from_mu(mu, epsilon=epsilon) <= delta * (1 + 1e-12)


@REPEATABLE
@given(SMALL_EPSILON.filter(lambda e: e > 1e-6), st.floats(1e-12, 0.5), st.integers(1, 500))
def test_rdp_noise_keeps_its_promise(epsilon: float, delta: float, steps: int) -> None:
    z = bounds.rdp_noise_multiplier_from_epsilon(epsilon, delta=delta, steps=steps)
    promised = bounds.rdp_epsilon_from_noise_multiplier(z, delta=delta, steps=steps)
    assert promised == pytest.approx(epsilon)
    assert promised <= epsilon * (1 + 1e-15)
    mu = bounds.mu_from_noise_multiplier(z, steps=steps)
    assert stats.norm.sf(epsilon / mu - mu / 2) <= delta  # the tail that B's Theorem 2(ii) wants
    assert bounds.noise_multiplier_from_epsilon(epsilon, delta=delta, steps=steps) <= z


@REPEATABLE
@given(st.floats(2e-3, 1 - 1e-9), st.integers(1, 10_000))
def test_noise_from_advantage_inverts(advantage: float, steps: int) -> None:
    open_noise = dprime.Gaussian(steps=steps)
    z = dprime.choose(open_noise, adjacency="replace", advantage=advantage).noise_multiplier
    reached = bounds.advantage_from_noise_multiplier(z, steps=steps, adjacency="replace")
    assert reached <= advantage
    assert reached == pytest.approx(advantage)


@REPEATABLE
@given(st.floats(1e-9, 1 - 1e-9))
def test_mu_from_advantage_inverts(advantage: float) -> None:
    mu = bounds.mu_from_advantage(advantage)
    assert bounds.advantage_from_mu(mu) <= advantage
    assert mu == pytest.approx(2 * stats.norm.ppf((advantage + 1) / 2), rel=1e-6)


@REPEATABLE
@given(st.floats(0.0, 0.999), st.floats(1e-9, 0.5))
def test_classical_epsilon_from_advantage_inverts(advantage: float, delta: float) -> None:
    epsilon = bounds.classical_epsilon_from_advantage(advantage, delta=delta)
    back = bounds.classical_advantage_from_epsilon(epsilon, delta=delta)
    assert back == pytest.approx(advantage, abs=1e-14)


@REPEATABLE
@given(st.floats(1e-3, 1.0), st.floats(1e-12, 0.5))
def test_classical_noise_is_enough_where_it_is_proved(epsilon: float, delta: float) -> None:
    z = bounds.classical_noise_multiplier_from_epsilon(epsilon, delta=delta)
    assert z >= bounds.noise_multiplier_from_epsilon(epsilon, delta=delta)
    again = bounds.classical_epsilon_from_noise_multiplier(z, delta=delta, beyond_proof=True)
    assert again == pytest.approx(epsilon)


@REPEATABLE
@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_error_rates_against_the_definition(fpr: float, fnr: float, delta: float) -> None:
    epsilon = bounds.epsilon_from_error_rates(fpr, fnr, delta=delta)
    assert epsilon >= 0
    if math.isfinite(epsilon) and epsilon < 600:
        slack = 1e-12 * math.exp(epsilon)
        assert fnr + math.exp(epsilon) * fpr >= 1 - delta - slack
        assert fpr + math.exp(epsilon) * fnr >= 1 - delta - slack


@REPEATABLE
@given(SMALL_EPSILON, PRIOR, st.floats(0.05, 0.99), st.floats(0.0, 0.1))
def test_deletion_capacity_shrinks_with_delta(
    epsilon: float, prior: float, deniability: float, delta: float
) -> None:
    pure = bounds.deletion_capacity(deniability, epsilon=epsilon, prior=prior)
    limit = math.log(deniability) / -math.log1p(math.exp(epsilon) * prior / (1 - prior))
    assert limit * (1 - 1e-9) - 1 <= pure.records <= limit
    approximate = bounds.deletion_capacity(
        deniability, epsilon=epsilon, prior=prior, delta=delta, output_probability=0.5
    )
    assert approximate.records <= pure.records
    assert approximate.deniability >= deniability


def test_huge_epsilon_gives_trivial_answers() -> None:
    assert bounds.belief_from_epsilon(800.0) == 1.0
    assert bounds.advantage_from_epsilon(800.0, delta=1e-5) == 1.0
    assert bounds.yeom_advantage_from_epsilon(800.0) == pytest.approx(1.0)
    assert bounds.mosaicrown_advantage_from_epsilon(800.0) == pytest.approx(1.0)
    assert bounds.precision_from_epsilon(800.0, prior=1e-6) == 1.0
    assert bounds.prior_from_precision(0.5, epsilon=600.0) > 0
    assert bounds.deletion_capacity(0.8, epsilon=800.0, prior=0.01).records == 0
    assert bounds.deletion_capacity(0.8, epsilon=700.0, prior=1e-306).records == 22
    assert bounds.epsilon_from_bayes_security(1e-20, delta=1.0) == 0.0
    assert bounds.delta_from_mu(1.0, epsilon=800.0) < 1e-300
    assert bounds.epsilon_from_mu(100.0, delta=1e-300) > 5000
    assert bounds.epsilon_from_bayes_security(1e-300) == pytest.approx(math.log(2e300))
    assert bounds.mu_from_epsilon(800.0, delta=1e-5) > 30


# --- bad input ------------------------------------------------------------------------------

BAD = [
    (lambda: bounds.belief_from_epsilon(-1.0), "epsilon", "-1.0"),
    (lambda: bounds.belief_from_epsilon(math.nan), "epsilon", "nan"),
    (lambda: bounds.belief_from_epsilon(math.inf), "epsilon", "inf"),
    (lambda: bounds.belief_from_epsilon(1.0, prior=1.0), "prior", "1.0"),
    (lambda: bounds.belief_from_epsilon(1.0, delta=1e-5), "exceeded", "None"),
    (lambda: bounds.belief_from_epsilon("much"), "epsilon", "'much'"),
    (lambda: bounds.epsilon_from_belief(0.3), "belief", "0.3"),
    (lambda: bounds.epsilon_from_belief(1.0), "belief", "1.0"),
    (lambda: bounds.epsilon_from_belief(0.9, delta=0.1, exceeded=0.1), "exceeded", "0.1"),
    (lambda: bounds.belief_exceeds_from_epsilon(0.0, epsilon=1.0), "belief", "0.0"),
    (lambda: bounds.advantage_from_epsilon(1.0, delta=2.0), "delta", "2.0"),
    (lambda: bounds.epsilon_from_advantage(1.0), "advantage", "1.0"),
    (lambda: bounds.epsilon_from_advantage(0.1, delta=0.2), "advantage", "0.1"),
    (lambda: bounds.precision_from_epsilon(1.0, prior=0.1, delta=1e-5), "min_tpr", "None"),
    (lambda: bounds.precision_from_epsilon(1.0, prior=0.1, min_tpr=0.0), "min_tpr", "0.0"),
    (lambda: bounds.negative_accuracy_from_epsilon(1.0, prior=0.1, delta=0.1), "min_tnr", "None"),
    (lambda: bounds.epsilon_from_precision(0.1, prior=0.5), "precision", "0.1"),
    (
        lambda: bounds.epsilon_from_precision(0.9, prior=0.5, delta=0.1, min_tpr=0.01),
        "min_tpr",
        "0.01",
    ),
    (lambda: bounds.prior_from_precision(0.5, epsilon=5000.0), "epsilon", "5000.0"),
    (lambda: bounds.deletion_capacity(1.0, epsilon=1.0, prior=0.1), "deniability", "1.0"),
    (
        lambda: bounds.deletion_capacity(0.8, epsilon=1.0, prior=0.1, delta=0.1),
        "output_probability",
        "None",
    ),
    (lambda: bounds.generalisation_gap_from_advantage(0.1, loss_bound=0.0), "loss_bound", "0.0"),
    (lambda: bounds.sablayrolles_precision_from_epsilon(1.0, prior=0.0), "prior", "0.0"),
    (lambda: bounds.mu_from_noise_multiplier(0.0), "noise_multiplier", "0.0"),
    (lambda: bounds.mu_from_noise_multiplier(1.0, steps=0), "steps", "0"),
    (lambda: bounds.mu_from_noise_multiplier(1.0, steps=10**20), "steps", str(10**20)),
    (lambda: bounds.mu_from_noise_multiplier(1.0, adjacency="swap"), "adjacency", "'swap'"),
    (lambda: bounds.epsilon_from_mu(1e200, delta=1e-5), "mu", "1e+200"),
    (lambda: bounds.epsilon_from_mu(1.0, delta=0.0), "delta", "0.0"),
    (lambda: bounds.mu_from_epsilon(1.0, delta=1.0), "delta", "1.0"),
    (lambda: bounds.mu_from_epsilon(1e308, delta=1e-5), "epsilon", "1e+308"),
    (lambda: bounds.classical_noise_multiplier_from_epsilon(1.5, delta=1e-5), "epsilon", "1.5"),
    (lambda: bounds.classical_epsilon_from_noise_multiplier(1.0, delta=1e-5), "epsilon", "4.84"),
    (lambda: bounds.rdp_from_noise_multiplier(1.0, order=1.0), "order", "1.0"),
    (lambda: bounds.epsilon_from_rdp([1.0], orders=[2.0, 3.0], delta=0.1), "rdp", "1 numbers"),
    (lambda: bounds.epsilon_from_rdp([], orders=[], delta=0.1), "rdp", "[]"),
    (lambda: bounds.epsilon_from_rdp([-1.0], orders=[2.0], delta=0.1), "rdp[0]", "-1.0"),
    (lambda: bounds.rdp_composition([1.0], [1.0, 2.0]), "curves[1]", "2 numbers"),
    (lambda: bounds.epsilon_from_bayes_security(0.0), "bayes_security", "0.0"),
    (lambda: bounds.tpr_from_bayes_security(1.1, fpr=0.1), "bayes_security", "1.1"),
    (lambda: bounds.success_from_bayes_security(0.9, max_prior=0.0), "max_prior", "0.0"),
    (lambda: bounds.epsilon_from_error_rates(1.5, 0.0), "false_positive_rate", "1.5"),
    (lambda: bounds.empirical_epsilon_from_belief(1.0), "belief", "1.0"),
    (lambda: bounds.empirical_epsilon_from_advantage(1.0, delta=1e-5), "advantage", "1.0"),
    (lambda: bounds.empirical_epsilon_from_sensitivities(0.0, [1.0], delta=0.1), "noise", "0.0"),
    (
        lambda: bounds.empirical_epsilon_from_sensitivities([1.0, 2.0], [1.0] * 3, delta=0.1),
        "noise",
        "(2,)",
    ),
    (lambda: bounds.local_sensitivity_add_remove([]), "gradient", "empty"),
    (lambda: bounds.local_sensitivity_add_remove([math.nan]), "gradient", "NaN"),
    (lambda: bounds.local_sensitivity_add_remove("abc"), "gradient", "'abc'"),
    (lambda: bounds.local_sensitivity_replace([1.0], [1.0, 2.0]), "replacement", "(2,)"),
]


@pytest.mark.parametrize(("call", "name", "value"), BAD)
def test_bad_input_is_one_sentence(call, name: str, value: str) -> None:
    with pytest.raises(ValueError, match=r"must be .*, but it is .*: .*\.$") as caught:
        call()
    sentence = str(caught.value)
    assert name in sentence.partition(" must be ")[0]
    assert value in sentence
    assert "\n" not in sentence


def test_every_public_function_has_an_example() -> None:
    for name in bounds.__all__:
        public = getattr(bounds, name)
        if inspect.isfunction(public):
            assert ">>> " in (public.__doc__ or ""), name
