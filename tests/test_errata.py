"""One test for each printed formula that is wrong, or is an approximation called a bound.

Each test writes the printed formula out, lets an exact mechanism or a seeded simulation contradict
it, and shows that what dprime computes holds. docs/errata.md tells the same in words, which
tests/test_errata_page.py holds to its form and to its numbers.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

import dprime
from dprime import TradeOff, bounds, choose, estimates
from reference import composed_advantage, subsampled_advantage


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def gaussian_tail(mu: float, loss: float) -> float:
    """Pr[L > loss] in world `in` for the worlds N(0, 1) and N(μ, 1); L is N(μ²/2, μ²) there."""
    return float(stats.norm.sf(loss / mu - mu / 2))


def largest_mu(epsilon: float, delta: float) -> float:
    """The distance of the worlds of a Gaussian that is exactly (ε, δ)-DP."""
    return choose(dprime.GDP(), epsilon=epsilon, delta=delta).curve().d_prime()


def clipped(gradients: np.ndarray, norm: float = 1.0) -> np.ndarray:
    """Rows scaled down to at most this norm."""
    lengths = np.linalg.norm(gradients, axis=-1, keepdims=True)
    return gradients / np.maximum(1.0, lengths / norm)


def error_term(q: float, z: float, steps: int) -> float:
    """O(√(qT)/z) of C, with the constant of its proof."""
    return math.sqrt(q * (1 - q) * steps) / z


# --- B: Bernau et al. 2021, and M: MOSAICrOWN D5.3 ------------------------------------------


def test_belief_bound_fails_with_more_than_delta() -> None:
    """B Theorem 2(ii): belief <= 1/(1 + e^(-ε)) with probability 1 - δ for any (ε, δ)-DP."""
    for epsilon, delta, times, certified in [(2.2, 0.01, 3.54, 7.80), (1.0, 1e-5, 16.1, 41.3)]:
        mu = largest_mu(epsilon, delta)
        exceeded = gaussian_tail(mu, epsilon)
        assert exceeded > 3 * delta  # the printed probability
        assert exceeded / delta == pytest.approx(times, rel=5e-3)
        curve = TradeOff.gaussian(mu)
        assert curve.belief_exceeds(logistic(epsilon)) / delta == pytest.approx(certified, rel=5e-3)
        # ours, from (ε, δ) alone
        allowed = dprime.EpsilonDelta(epsilon, delta).curve()
        belief = allowed.belief(exceeded=exceeded)
        assert gaussian_tail(mu, math.log(belief / (1 - belief))) <= exceeded
        above = logistic(epsilon) + 1e-9
        assert allowed.belief_exceeds(above) > exceeded

    # randomised response, just above ε = 1: it is (1, 1e-5)-DP, and every true report exceeds
    larger = 1.0000136
    high = logistic(larger)
    assert high - math.e * (1 - high) <= 1e-5
    assert high == pytest.approx(0.731, abs=5e-4)
    assert high > 70_000 * 1e-5
    assert high <= allowed.belief_exceeds(logistic(1.0000135))


def test_belief_bound_holds_for_an_epsilon_from_rdp() -> None:
    """B section 4.4, where Theorem 2(ii) is true: the conversion from RDP proves the tail."""
    for z in (0.5, 1.0, 3.0, 10.0):
        for delta in (1e-5, 1e-2):
            epsilon = bounds.rdp_epsilon_from_noise_multiplier(z, delta=delta, steps=30)
            assert gaussian_tail(math.sqrt(30) / z, epsilon) <= delta


def test_classical_noise_fails_for_large_epsilon() -> None:
    """B eq. 1: σ = Δ √(2 ln(1.25/δ)) / ε, proved for ε <= 1 only."""
    delta = 1e-5

    def printed_noise(epsilon: float) -> float:
        return math.sqrt(2 * math.log(1.25 / delta)) / epsilon

    def true_delta(epsilon: float) -> float:
        return TradeOff.gaussian(1 / printed_noise(epsilon)).delta(epsilon)

    last_tail = optimize.brentq(lambda e: gaussian_tail(1 / printed_noise(e), e) - delta, 2, 8)
    last_dp = optimize.brentq(lambda e: true_delta(e) - delta, 2, 12)
    assert (last_tail, last_dp) == pytest.approx((5.62, 8.42), abs=5e-3)
    assert true_delta(8.43) > delta
    assert gaussian_tail(1 / printed_noise(8.0), 8.0) == pytest.approx(2.9e-5, rel=0.01)
    with pytest.raises(ValueError, match="at most 1"):
        bounds.classical_noise_multiplier_from_epsilon(8.43, delta=delta)
    unproved = bounds.classical_noise_multiplier_from_epsilon(8.43, delta=delta, beyond_proof=True)
    assert unproved == pytest.approx(printed_noise(8.43))
    exact = 1 / largest_mu(8.43, delta)
    assert TradeOff.gaussian(1 / exact).delta(8.43) <= delta * (1 + 1e-12)
    assert exact > unproved
    # where it is proved it holds, with more noise than needed
    assert true_delta(1.0) < delta
    assert 1 / largest_mu(1.0, delta) < printed_noise(1.0)


def test_advantage_bound_needs_the_classical_noise() -> None:
    """B Theorem 3: ρ_α = 2Φ(ε / (2 √(2 ln(1.25/δ)))) - 1 for "the (ε, δ)-DP Gaussian mechanism"."""
    epsilon, delta = 2.2, 0.01
    printed = 2 * stats.norm.cdf(epsilon / (2 * math.sqrt(2 * math.log(1.25 / delta)))) - 1
    mu = largest_mu(epsilon, delta)  # a Gaussian that is exactly (ε, δ)-DP
    advantage = 2 * stats.norm.cdf(mu / 2) - 1
    assert (printed, advantage) == pytest.approx((0.277, 0.369), abs=5e-4)
    assert TradeOff.gaussian(mu).advantage() == pytest.approx(advantage)
    assert dprime.EpsilonDelta(epsilon, delta).curve().advantage() > advantage
    # that noise is below the classical one; with it the printed value is exact, with more a bound
    noise = bounds.classical_noise_multiplier_from_epsilon(epsilon, delta=delta, beyond_proof=True)
    assert 1 / mu < noise
    reached = [dprime.Gaussian(more * noise).curve().advantage() for more in (1.0, 1.01, 2.0, 10.0)]
    ours = bounds.classical_advantage_from_epsilon(epsilon, delta=delta)
    assert (reached[0], ours) == pytest.approx((printed, printed))
    assert max(reached[1:]) < printed


def test_epsilon_from_advantage_lacks_a_factor_of_two() -> None:
    """B eq. 6: ε = √(2 ln(1.25/δ)) Φ⁻¹((ρ_α + 1)/2) as the inverse of Theorem 3."""
    delta = 1e-5
    noise = bounds.classical_noise_multiplier_from_epsilon(1.0, delta=delta)
    mu = 1 / noise
    advantage = 2 * stats.norm.cdf(mu / 2) - 1  # exactly this mechanism's
    printed = math.sqrt(2 * math.log(1.25 / delta)) * stats.norm.ppf((advantage + 1) / 2)
    assert printed == pytest.approx(0.5)
    assert TradeOff.gaussian(mu).delta(printed) > 10 * delta
    ours = bounds.classical_epsilon_from_advantage(advantage, delta=delta)
    assert ours == pytest.approx(1.0)
    assert TradeOff.gaussian(mu).delta(ours) <= delta
    exact = bounds.empirical_epsilon_from_advantage(advantage, delta=delta)
    assert TradeOff.gaussian(mu).delta(exact) == pytest.approx(delta, rel=1e-6)
    # B table 3 has theorem 3, M beside table 5.1 the noise of the trainings, which is from RDP
    theorem = bounds.classical_advantage_from_epsilon(2.2, delta=0.01)
    noise = bounds.rdp_noise_multiplier_from_epsilon(math.log(9), delta=0.01, steps=30)
    trained = dprime.Gaussian(noise, 30).curve().advantage()
    assert (round(theorem, 2), round(trained, 4)) == (0.28, 0.2562)


def test_local_sensitivity_is_the_change_of_the_sum() -> None:
    """M section 5 (unbounded): n ‖n ĝ(D') - (n - 1) ĝ(D)‖, with n and n - 1 interchanged."""
    rng = np.random.default_rng(0)
    gradients = clipped(rng.normal(size=(50, 8)))
    n, kept = len(gradients), gradients[1:]
    printed = n * float(np.linalg.norm(n * kept.mean(axis=0) - (n - 1) * gradients.mean(axis=0)))
    change = float(np.linalg.norm(gradients.sum(axis=0) - kept.sum(axis=0)))
    assert printed > 20 * change
    assert np.linalg.norm(gradients[0]) == pytest.approx(change)


def test_epsilon_from_belief_needs_the_logarithm() -> None:
    """B section 5.3: ε' = β/(1 - β) at the largest final belief."""
    epsilon = math.log(9)  # randomised response: the largest belief is exactly 0.9
    largest_belief = logistic(epsilon)
    printed = largest_belief / (1 - largest_belief)
    assert 4 * epsilon < printed == pytest.approx(9.0)
    assert bounds.epsilon_from_belief(largest_belief) == pytest.approx(epsilon)


def test_batch_normalisation_breaks_clipping() -> None:
    """B and M train with batch normalisation, whose outputs depend on the other records."""
    clip = printed = 1.0  # adding one record moves the clipped sum by at most C

    def clipped_sum(inputs: np.ndarray, targets: np.ndarray, axis: int) -> np.ndarray:
        centred = inputs - inputs.mean(axis=axis, keepdims=True)
        normalised = centred / np.sqrt(centred.var(axis=axis, keepdims=True) + 1e-5)
        errors = normalised @ np.array([1.0, 2.0, 3.0]) - targets
        return clipped(errors[:, None] * normalised, clip).sum(axis=0)

    rng = np.random.default_rng(1)
    inputs, targets = rng.normal(size=(30, 3)), rng.normal(size=30)
    outlier = np.array([[50.0, -20.0, 10.0]])
    both = np.vstack([inputs, outlier]), np.append(targets, 0.0)
    change = {
        axis: float(np.linalg.norm(clipped_sum(*both, axis) - clipped_sum(inputs, targets, axis)))
        for axis in (0, 1)
    }
    assert change[0] > 3 * printed  # over the batch
    assert 0.5 < change[1] <= printed + 1e-12  # within a record


def test_rdp_belief_has_the_sign_of_the_exponent() -> None:
    """M eq. 4.8: the term ln(1/δ)/(α - 1) enters the belief with the wrong sign."""
    order, delta, z = 4.0, 0.01, 1.0
    rdp = order / (2 * z**2)
    printed = 1 / (1 + math.exp(math.log(1 / delta) / (order - 1) - rdp))

    def exceeded(belief: float) -> float:
        return gaussian_tail(1 / z, math.log(belief / (1 - belief)))

    assert exceeded(printed) > 50 * delta
    ours = bounds.belief_from_rdp([rdp], orders=[order], exceeded=delta)
    assert exceeded(ours) <= delta


# --- N: Nasr et al. 2021 --------------------------------------------------------------------


def test_error_rates_of_an_attacker_are_bounded_from_below() -> None:
    """N section III-C: FN + e^ε FP <= 1 - δ for the error rates of every attacker."""
    epsilon, delta = 1.0, 1e-5
    mu = largest_mu(epsilon, delta)
    largest = 0.0
    for threshold in np.linspace(-6, 6, 241):
        fp, fn = float(stats.norm.sf(threshold)), float(stats.norm.cdf(threshold - mu))
        assert not fn + math.exp(epsilon) * fp <= 1 - delta  # as it is printed
        assert fn + math.exp(epsilon) * fp >= 1 - delta - 1e-12
        assert fp + math.exp(epsilon) * fn >= 1 - delta - 1e-12
        largest = max(largest, bounds.epsilon_from_error_rates(fp, fn, delta=delta))
    assert largest <= epsilon
    assert largest == pytest.approx(epsilon, rel=0.01)  # the best threshold reaches it


# --- T: Thudi et al. 2024 -------------------------------------------------------------------


def test_precision_bound_lacks_the_prior_in_its_delta_term() -> None:
    """T Theorem 3.3: 1/(1 + e^(-ε)(1-π)/π - δ e^(-ε)(1-π)/t)."""
    epsilon, delta, prior, tpr = 1.0, 1e-5, 0.1, 1e-4
    shrink = math.exp(-epsilon) * (1 - prior)
    printed = 1 / (1 + shrink / prior - delta * shrink / tpr)
    mu = largest_mu(epsilon, delta)
    fpr = float(stats.norm.cdf(stats.norm.ppf(tpr) - mu))  # of the best attacker
    precision = prior * tpr / (prior * tpr + (1 - prior) * fpr)
    allowed = dprime.EpsilonDelta(epsilon, delta).curve()
    ours = allowed.precision(prior, tpr)
    assert (printed, precision, ours) == pytest.approx((0.23376, 0.24936, 0.25127), abs=5e-6)
    assert allowed.negative_accuracy(1 - prior, tpr) == pytest.approx(ours)


def test_deletion_capacity_needs_the_lower_bound() -> None:
    """T Corollary 5.2: m <= ln B / ln L with L = 1/(1 + e^(-ε) π/(1-π))."""
    deniability, epsilon, prior = 0.8, 1.0, 10 / 10_000
    log_kept = -math.log1p(math.exp(-epsilon) * prior / (1 - prior))
    assert math.floor(math.log(deniability) / log_kept) == 606  # as it is printed

    def none_used(records: int) -> float:
        """Randomised response on each record, all of which report "used": an ε-DP mechanism."""
        used, unused = logistic(epsilon), logistic(-epsilon)
        return ((1 - prior) * unused / ((1 - prior) * unused + prior * used)) ** records

    ours = bounds.deletion_capacity(deniability, epsilon=epsilon, prior=prior)
    assert none_used(606) < 0.2
    assert ours.records == 82
    assert none_used(83) < deniability <= none_used(82)
    assert none_used(82) >= ours.deniability - 1e-12


def test_reference_attack_sets_its_rate_on_models_without_the_record() -> None:
    """T figure 15: Attack R takes its false-positive rate from the models that had the record."""
    rng = np.random.default_rng(2)
    records, models = 20_000, 19  # of each kind; the quantiles below are then whole ranks
    difficulty = rng.normal(size=(records, 1))
    with_record = np.sort(difficulty - 1 + rng.normal(size=(records, models)), axis=1)
    without_record = np.sort(difficulty + rng.normal(size=(records, models)), axis=1)
    fresh = difficulty[:, 0] + rng.normal(size=records)  # targets that did not have the record

    for rate in (0.05, 0.1, 0.3, 0.5):
        error, rank = 4 * math.sqrt(rate * (1 - rate) / records), round(rate * (models + 1)) - 1
        assert abs(np.mean(fresh < without_record[:, rank]) - rate) < error
        assert np.mean(fresh < with_record[:, rank]) < rate / 2  # the printed threshold


def test_best_of_many_thresholds_flatters_random_scores() -> None:
    """T section 4.2: the best precision of 40 thresholds, chosen on the records that are scored."""
    rng = np.random.default_rng(3)
    records, thresholds, trials = 1000, 40, 300

    def precisions(scores: np.ndarray, members: np.ndarray) -> np.ndarray:
        counts = np.arange(1, thresholds + 1) * len(scores) // thresholds
        return np.cumsum(members[np.argsort(-scores)])[counts - 1] / counts

    def held_out_gain(scores: np.ndarray, members: np.ndarray) -> float:
        half = len(scores) // 2
        best = int(precisions(scores[:half], members[:half]).argmax())
        gains = precisions(scores[half:], members[half:]) - members[half:].mean()
        return float(gains[best])

    gains = {}
    for prior in (0.1, 0.5, 0.9):
        drawn = [(rng.random(records), rng.random(records) < prior) for _ in range(trials)]
        printed = [precisions(*pair).max() - pair[1].mean() for pair in drawn]
        gains[prior] = float(np.mean(printed))
        honest = np.array([held_out_gain(*pair) for pair in drawn])
        assert abs(honest.mean()) < 4 * honest.std() / math.sqrt(trials)
    assert 0.03 < gains[0.1] < gains[0.5] > gains[0.9] > 0.03  # the shape of T's figure 4
    assert gains[0.5] == pytest.approx(0.06, abs=0.01)


# --- C: Cherubin et al. 2024 ----------------------------------------------------------------


def test_closed_form_understates_the_attacker() -> None:
    """C Corollary 7: advantage <= erf(q √T / (√2 z)) up to O(√(qT)/z)."""
    q, pair = 0.001, (np.array([1.0]), np.array([-1.0]))

    def printed_advantage(z: float, steps: int) -> float:  # without the error term
        return math.erf(q * math.sqrt(steps) / (math.sqrt(2) * z))

    settings = {(1.0, 50_000): (0.1769, 0.1912), (0.7, 10_000): (0.1136, 0.1520)}
    for (z, steps), (printed, certified) in settings.items():
        assert printed_advantage(z, steps) == pytest.approx(printed, abs=5e-5)
        assert error_term(q, z, steps) > 1  # with it, the statement says nothing
        composed = composed_advantage(*pair, q=q, z=z, steps=steps)
        assert printed_advantage(z, steps) < composed - 0.01
        curve = dprime.DPSGD(z, q, steps).curve(adjacency="replace")
        assert curve.advantage() == pytest.approx(certified, abs=5e-5)
        assert curve.advantage() == pytest.approx(composed, rel=1e-3)
    simulated, error = subsampled_advantage(*pair, q=q, z=0.7, steps=10_000, trials=2000, seed=4)
    assert printed_advantage(0.7, 10_000) < simulated - 5 * error
    assert abs(curve.advantage() - simulated) < 4 * error


def test_tpr_bound_needs_no_second_case() -> None:
    """C Proposition 9: TPR <= π/(1-π) (1 + FPR - β*) for priors above ½."""
    prior, fpr = 0.9, 0.05

    def printed_tpr(bayes_security: float) -> float:
        return prior / (1 - prior) * (1 + fpr - bayes_security)

    def proved_tpr(bayes_security: float) -> float:  # from β* <= π/(1-π) (FPR + 1 - TPR)
        return 1 + fpr - bayes_security * (1 - prior) / prior

    assert (printed_tpr(0.90), proved_tpr(0.90)) == pytest.approx((1.35, 0.95))
    assert (printed_tpr(0.99), proved_tpr(0.99)) == pytest.approx((0.54, 0.94))
    advantage = 0.1
    # the mechanism that reveals membership with probability 0.1: TPR = FPR + 0.1, at any prior
    reached = fpr + advantage
    ours = TradeOff.from_lines([(0.0, advantage)])
    assert ours.tpr(fpr) == pytest.approx(reached)
    assert printed_tpr(1 - advantage) > 1 > 6 * reached
    # ours holds for a Gaussian at every false-positive rate
    mu = choose(dprime.GDP(), advantage=advantage).curve().d_prime()
    for rate in np.linspace(0, 1, 101):
        tpr = float(stats.norm.cdf(stats.norm.ppf(rate) + mu))
        assert tpr <= ours.tpr(float(rate)) + 1e-12


def test_attribute_risk_depends_on_the_norms() -> None:
    """C Corollary 10: the risk is erf(q ‖R‖ / (2√2 z C)), whatever the norms of the gradients."""
    q, steps, difference = 0.02, 400, 0.5

    def printed_advantage(z: float) -> float:  # without the error term
        return math.erf(q * difference * math.sqrt(steps) / (2 * math.sqrt(2) * z))

    def central_limit(g0: np.ndarray, g1: np.ndarray, z: float) -> float:
        products = math.exp(g0 @ g0 / z**2) + math.exp(g1 @ g1 / z**2)
        mu = q * math.sqrt(steps * (products - 2 * math.exp(g0 @ g1 / z**2)))
        return TradeOff.gaussian(mu).advantage()

    cosine = 1 - difference**2 / 2
    long = np.array([1.0, 0.0]), np.array([cosine, math.sqrt(1 - cosine**2)])
    short = np.array([difference / 2]), np.array([-difference / 2])
    assert np.linalg.norm(long[0] - long[1]) == pytest.approx(difference)
    for z, printed, reached in [(1.0, 0.0797, 0.1205), (0.7, 0.1136, 0.2376)]:
        assert printed_advantage(z) == pytest.approx(printed, abs=5e-5)
        assert error_term(q, z, steps) > 1  # with it, the statement says nothing
        simulated, error = subsampled_advantage(*long, q=q, z=z, steps=steps, trials=4000, seed=5)
        composed = composed_advantage(*long, q=q, z=z, steps=steps)
        assert composed == pytest.approx(reached, abs=5e-5)
        assert abs(simulated - composed) < 4 * error
        assert printed_advantage(z) < simulated - 10 * error
        assert printed_advantage(z) < composed < central_limit(*long, z)
        assert abs(central_limit(*long, z) - composed) < abs(printed_advantage(z) - composed)
        composed = composed_advantage(*short, q=q, z=z, steps=steps)  # same R, much less risk
        assert composed == pytest.approx(printed_advantage(z), rel=1e-3)
        assert central_limit(*short, z) == pytest.approx(printed_advantage(z), rel=0.01)


def test_attribute_risk_of_a_record_outside_the_batch() -> None:
    """C Corollary 10: R_t is the largest distance in the batch of step t alone."""
    q, z, steps = 0.01, 1.0, 10_000
    batches = np.random.default_rng(8).random((200, steps)) < q  # is the record in them?

    def printed_advantage(drawn: np.ndarray) -> float:
        return math.erf(q * 2 * math.sqrt(drawn.sum()) / (2 * math.sqrt(2) * z))

    assert error_term(q, z, steps) > 1  # with it, the statement says nothing
    # the signs of the sums of all steps, for gradients of +C and of -C
    times = np.arange(steps + 1)
    signs = 2 * stats.norm.cdf(times / (z * math.sqrt(steps))) - 1
    reached = float(stats.binom.pmf(times, steps, q) @ signs)
    rng = np.random.default_rng(9)
    sums = batches.sum(axis=1) + z * math.sqrt(steps) * rng.standard_normal(len(batches))
    error = math.sqrt((1 - reached**2) / len(batches))  # of a mean of signs
    assert abs(np.sign(sums).mean() - reached) < 4 * error
    assert max(printed_advantage(drawn) for drawn in batches) < reached / 6
    # over all records it is a good estimate here, and the certified number holds
    over_data = estimates.attribute_inference(2 * math.sqrt(steps), z, q).advantage()
    assert over_data == pytest.approx(printed_advantage(np.ones(steps)))
    assert over_data == pytest.approx(reached, rel=0.01)
    curve = dprime.DPSGD(noise_multiplier=z, sample_rate=q, steps=steps).curve(adjacency="replace")
    assert reached < curve.advantage() < 1.1 * reached


def test_approximate_analysis_reports_less_security() -> None:
    """C section 6.1: β* = 0.945 for the full and 0.950 for the approximate analysis."""
    printed_full, printed_approximate = 0.945, 0.950
    rng = np.random.default_rng(7)

    def security(spread: float) -> float:
        return 1 - math.erf(0.01 * spread / (2 * math.sqrt(2)))

    for values in (2, 3, 10):
        for _ in range(100):
            gradients = clipped(rng.normal(size=(values, 4)))  # one for each value of the attribute
            pairs = gradients[:, None] - gradients[None]
            full = float(np.linalg.norm(pairs, axis=-1).max())
            from_mean = np.linalg.norm(gradients - gradients.mean(axis=0), axis=-1)
            approximate = 2 * float(from_mean.max())
            assert security(approximate) <= security(full) + 1e-12
    assert not printed_approximate <= printed_full  # so they are not of one and the same training


def test_smaller_slips() -> None:
    """Sentences and numbers of B and C that are wrong; the page has what is right."""
    for delta, share, smaller in [(0.01, 0.004, True), (0.001, 0.001, False)]:  # B tables 3 and 2
        assert (share < delta) is smaller  # printed: always
    pair = np.array([1.0]), np.array([-1.0])
    reached = composed_advantage(*pair, q=0.00035, z=1.0, steps=5000)
    certified = dprime.DPSGD(1.0, 0.00035, 5000).curve("replace").bayes_security()
    assert (1 - reached, certified) == pytest.approx((0.9786, 0.9786), abs=5e-5)  # C section 4
    reached = composed_advantage(*pair, q=0.001, z=1.0, steps=50_000)
    closed = estimates.cherubin(1.0, 0.001, 50_000).advantage()
    assert reached - closed == pytest.approx(0.0143, abs=5e-5)  # C section 4.1: at most 0.01
    for security, printed in [(0.88, 0.20), (0.93, 0.16)]:  # C section 6.2, whatever was rounded
        allowed = TradeOff.from_lines([(0.0, 1 - security - 0.005)]).tpr(0.1)
        assert allowed >= printed + 0.005 - 1e-12
    for z, negligible in [(1.0, False), (2.0, False), (4.0, True)]:  # C appendix A: below 1e-4
        p, x = 0.00099 * z, np.linspace(-9 * z, 1 + 9 * z, 20_001)
        mixture = (1 - p) * stats.norm.cdf(x, 0, z) + p * stats.norm.cdf(x, 1, z)
        error = np.maximum(0, np.diff(mixture - stats.norm.cdf(x, p, z))).sum()
        assert (error < 1e-4) == negligible
