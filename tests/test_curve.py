import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import dprime
from dprime import DPSGD, Estimate, LowerCurve, TradeOff, best
from dprime.privacy_loss import PrivacyLoss
from dprime.shapes import GaussianShape, Polygon
from told import refuses

MUS = st.floats(0.01, 5)
PRIORS = st.floats(0.001, 0.999)

CURVES = {
    "blind": TradeOff.gaussian(0.0),
    "Gaussian": TradeOff.gaussian(1.0),
    "far apart": TradeOff.gaussian(1e5),
    "beyond numbers": TradeOff.gaussian(1e200),
    "pure": dprime.Laplace(1.0, 3).curve(),
    "hardly anything": dprime.Laplace(1e300, 2).curve(),
    "a leak": dprime.EpsilonDelta(1.0, 0.5, steps=2).curve(),
    "sampled": DPSGD(1.0, 0.01, 100).curve(),
    "everything": TradeOff.from_lines([(0.0, 1.0)]),
}
GAUSSIAN, SAMPLED = CURVES["Gaussian"], CURVES["sampled"]


def lower(*points):
    return LowerCurve(Polygon.from_points(points), confidence=0.95, method="band")


@given(mu=MUS, prior=PRIORS, t=st.floats(1e-4, 1))
def test_success_and_precision_are_those_of_the_best_test(mu, prior, t):
    curve, cut = TradeOff.gaussian(mu), np.linspace(-15, 15, 6001)  # any threshold test
    right = prior * norm.sf(cut - mu) + (1 - prior) * norm.cdf(cut)
    naive = max(right.max(), prior, 1 - prior)  # and the blind answers
    assert naive - 1e-12 <= curve.success(prior) == pytest.approx(naive, abs=1e-5)
    fpr = norm.cdf(norm.ppf(t) - mu) if t < 1 else 1.0
    exact = prior * t / (prior * t + (1 - prior) * fpr)
    assert curve.precision(prior, t) == pytest.approx(exact, rel=1e-9)
    assert curve.precision(prior, min(1.0, 1.5 * t)) <= curve.precision(prior, t) + 1e-12
    exchanged = SAMPLED.reversed().precision(1 - prior, t)
    assert SAMPLED.negative_accuracy(prior, t) == pytest.approx(exchanged, rel=1e-12)


@given(mu=MUS, prior=PRIORS, exceeded=st.floats(1e-4, 0.4))
def test_belief_and_how_often_it_is_exceeded_are_inverse(mu, prior, exceeded):
    curve = TradeOff.gaussian(mu)
    belief = curve.belief(prior, exceeded)
    if belief < 1 - 1e-6:
        assert curve.belief_exceeds(belief, prior) == pytest.approx(exceeded, rel=1e-4)


@given(mu=st.floats(0.05, 3), prior=PRIORS, belief=PRIORS)
def test_beliefs_by_simulation_never_exceed_the_certificate(mu, prior, belief):
    x = mu + np.random.default_rng(0).standard_normal(20_000)  # world `in`
    odds = mu * x - mu**2 / 2 + math.log(prior / (1 - prior))
    share = float(np.mean(odds > math.log(belief / (1 - belief))))
    curve = TradeOff.gaussian(mu)
    slack = 4 * math.sqrt(0.25 / len(x))
    assert share <= curve.belief_exceeds(belief, prior) + slack
    assert share == pytest.approx(curve.belief_exceeds_in_worst_pair(belief, prior), abs=slack)


def test_a_belief_that_hardly_anybody_comes_to():
    """Its probability is tiny, but not 0: ln(TPR/FPR) passes 770 at a TPR of 1e-294."""
    exceeded = TradeOff.gaussian(17.0).belief_exceeds(1 - 1e-16, prior=5e-324)
    assert 1e-320 < exceeded < 1e-280


@given(mu=MUS, delta=st.floats(1e-10, 0.3))
def test_epsilon_and_delta_are_inverse(mu, delta):
    curve = TradeOff.gaussian(mu)
    epsilon = curve.epsilon(delta)
    assert curve.delta(epsilon) <= delta
    if epsilon > 1e-9:
        assert curve.delta(epsilon * (1 - 1e-7)) > delta * (1 - 1e-5)


def test_secret_success_bounds_a_real_attack():
    """Three secrets on a line, the best guess: never above the bound for the two worst."""
    means, priors = np.array([0.0, 0.6, 1.2]), np.array([0.5, 0.3, 0.2])
    x = np.linspace(-10, 12, 40_001)
    density = priors[:, None] * norm.pdf(x[None, :], means[:, None])
    success = np.trapezoid(density.max(axis=0), x)
    curve = TradeOff.gaussian(1.2)
    assert success <= curve.secret_success(0.5)
    assert curve.secret_success(0.1) == pytest.approx(1 - curve.bayes_security() * 0.9, rel=1e-12)


def test_best_of_curves_is_the_pointwise_smallest():
    curves = [GAUSSIAN, TradeOff.from_lines([(0.9, 1e-3)]), DPSGD(1, 0.3, 5).curve()]
    combined = best(curves)
    for fpr in np.concatenate([np.geomspace(1e-8, 0.5, 60), 1 - np.geomspace(1e-8, 0.5, 60)]):
        smallest = min(curve.tpr(fpr) for curve in curves)
        assert smallest - 1e-12 <= combined.tpr(fpr) <= smallest * (1 + 1e-3) + 1e-9


def test_no_certificate_is_made_of_anything_else():
    estimate = Estimate(GaussianShape(1.0), source="a guess")
    assert not isinstance(estimate, TradeOff)
    assert (estimate.kind, GAUSSIAN.kind) == ("estimate", "certified")
    for other in (estimate, lower((0.1, 0.5))):
        with pytest.raises(dprime.InputError, match=f"but one is {type(other).__name__}: leave"):
            best([GAUSSIAN, other])


def test_delta_is_the_larger_of_both_directions():
    leak = Polygon.from_points([(0.0, 0.2)])
    assert [TradeOff(each).delta(1.0) for each in (leak, leak.reversed())] == [0.2, 0.2]


EXTREMES = [5e-324, 1e-300, 1e-17, 1e-5, 0.5, 1 - 1e-16]


@pytest.mark.parametrize("name", CURVES)
def test_readings_at_extreme_arguments(name):
    """Between what blind guessing reaches and certainty, to the last digits."""
    least, most = 1 - 1e-15, 1.0
    for curve in (CURVES[name], CURVES[name].reversed()):
        for a in EXTREMES:
            assert a <= curve.tpr(a) <= 1
            assert 0 <= curve.fpr(a) <= a
            assert max(a, 1 - a) * least <= curve.success(a) <= most
            assert a <= curve.secret_success(a) <= most
            assert 0 <= curve.epsilon(a) <= math.inf
            for t in EXTREMES:
                assert a * least <= curve.precision(a, t) <= most
                assert (1 - a) * least <= curve.negative_accuracy(a, t) <= most
                assert a * least <= curve.belief(a, t) <= most
                assert 0 <= curve.belief_exceeds(t, a) <= 1
        assert (curve.fpr(1.0), curve.tpr(1.0)) == (pytest.approx(1 - curve.reversed().tpr(0)), 1)


def test_a_lower_curve_says_what_it_is():
    curve = lower((0.1, 0.5))
    assert (curve.kind, curve.confidence, curve.method) == ("lower bound", 0.95, "band")
    assert curve.advantage() == pytest.approx(0.4)
    assert curve.epsilon(1e-3) == pytest.approx(math.log(4.99))
    # above (floor, 1 - floor) a certificate says infinite; what was seen says only so much
    point = (1e-6, 1 - 1e-6)
    assert TradeOff(Polygon.from_points([point])).d_prime(floor=1e-3) == math.inf
    found = lower(point).d_prime(floor=1e-3)
    assert -2 * norm.ppf(1e-6) > found == pytest.approx(-2 * norm.ppf(1e-3))


def test_a_reconstruction_that_reaches_the_bound():
    """Of k values, each is put out with p, the others alike; without the record all alike."""
    k, p = 20, 0.6
    losses, masses = np.log([(1 - p) * k / (k - 1), p * k]), np.array([1 - p, p])
    pair = PrivacyLoss(losses, masses, np.array([(k - 1) / k, 1 / k]), 0.0, 0.0)
    reached = TradeOff.from_privacy_loss(pair).reconstruction_success(1 / k)
    assert reached == pytest.approx(p, rel=1e-12)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), records=st.integers(2, 5), outputs=st.integers(2, 6))
def test_no_attack_reconstructs_more_than_the_curve_allows(seed, records, outputs):
    """Every mechanism with few records and outputs: the best attack, against the pairs' hull."""
    rng = np.random.default_rng(seed)
    without = rng.dirichlet(np.ones(outputs))
    laws = rng.dirichlet(0.5 * np.ones(outputs), size=records)
    prior = rng.dirichlet(np.ones(records))
    points = []
    for law in laws:
        order = np.argsort(-law / without)
        points += zip(np.cumsum(without[order]), np.cumsum(law[order]), strict=True)
    points = [(float(min(f, 1.0)), float(min(t, 1.0))) for f, t in points]
    most = float((prior[:, None] * laws).max(axis=0).sum())
    bound = TradeOff(Polygon.from_points(points)).reconstruction_success(float(prior.max()))
    assert most <= bound + 1e-12


# Arrays -------------------------------------------------------------------------------------------

OF_ARRAYS = {
    **{name: CURVES[name] for name in ("Gaussian", "sampled", "a leak")},
    "capped": dprime.estimates.capped(dprime.estimates.central_limit(1.0, 0.01, 100), SAMPLED),
    "lower": LowerCurve(GaussianShape(0.3), confidence=0.95, method="band"),
}
READINGS = (
    "tpr", "fpr", "precision", "negative_accuracy", "success", "secret_success", "delta", "epsilon",
    "reconstruction_success", "belief_exceeds", "belief_exceeds_in_worst_pair", "belief",
)  # fmt: skip
ENTRIES = np.array([[1e-300, 1e-9, 1e-5], [0.01, 0.5, 1 - 1e-16]])


@pytest.mark.parametrize("name", OF_ARRAYS)
@pytest.mark.parametrize("reading", READINGS)
def test_each_entry_is_what_a_number_gives_bit_for_bit(name, reading):
    read = getattr(OF_ARRAYS[name], reading)
    try:
        each = [[read(float(rate)) for rate in row] for row in ENTRIES]
    except dprime.InputError:  # no lower bound has it
        with pytest.raises(dprime.InputError):
            read(ENTRIES)
        return
    assert all(type(value) is float for row in each for value in row)
    assert np.array(each).tobytes() == read(ENTRIES).tobytes()


def test_arrays_are_broadcast_and_keep_their_shape():
    curve = SAMPLED
    both = curve.precision(prior=ENTRIES[1][:, None], min_tpr=[0.01, 0.1])
    assert both.shape == (3, 2)
    assert both[0, 1] == curve.precision(0.01, 0.1)
    assert curve.belief(ENTRIES[1], exceeded=0.01).shape == (3,)
    assert curve.tpr(np.zeros((0, 2))).shape == (0, 2)
    assert type(curve.epsilon(np.float64(1e-5))) is float


test_what_is_refused = refuses(
    {
        "fpr be between 0 and 1": lambda: GAUSSIAN.tpr(1.5),
        "fpr be between 0 and": lambda: GAUSSIAN.tpr([0.1, 1.5]),
        "prior be a number": lambda: GAUSSIAN.success(np.array([True, False])),
        "prior be strictly between 0 and 1": lambda: GAUSSIAN.precision(0.0),
        "min_tpr be above 0 and at most 1": lambda: GAUSSIAN.precision(0.5, 0.0),
        "epsilon be 0 or more": lambda: GAUSSIAN.delta(-1.0),
        "floor be below 0.5": lambda: GAUSSIAN.d_prime(0.5),
        "curves name at least one": lambda: best([]),
        "reconstruction_success be read": lambda: lower((0.1, 0.5)).reconstruction_success(0.1),
    }
)
