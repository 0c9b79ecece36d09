"""Gaussian scores: an exact bound, and a test that objects to others."""

import itertools
import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from dprime.audit import lower_bound
from dprime.audit.estimators.gaussian import (
    _anderson_p,
    d_prime_bound,
    equal_variances,
    noncentrality_bound,
    normality,
    objection,
    tail,
)
from dprime.audit.scores import Scores


@pytest.mark.parametrize(
    ("t", "freedom", "noncentrality"),
    [(2, 10, 0), (5, 10, 3), (20, 198, 15), (3, 2, 1), (50, 1998, 45), (1000, 1998, 950)],
)
def test_the_tail_is_the_noncentral_t(t, freedom, noncentrality):
    exact = scipy.stats.nct.sf(t, freedom, noncentrality)
    assert tail(t, freedom, noncentrality) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize(
    ("t", "freedom", "noncentrality"), [(40, 38, 33), (300, 19_998, 297), (9000, 1998, 8800)]
)
def test_the_tail_by_simulation_where_libraries_struggle(t, freedom, noncentrality):
    rng = np.random.default_rng(0)
    draws = 400_000
    spread = np.sqrt(rng.chisquare(freedom, draws) / freedom)
    share = scipy.special.ndtr(noncentrality - t * spread).mean()
    assert tail(t, freedom, noncentrality) == pytest.approx(share, abs=4 * 0.5 / math.sqrt(draws))


@given(t=st.floats(0.1, 500), freedom=st.integers(2, 5000), alpha=st.floats(0.001, 0.4))
def test_the_bound_inverts_the_tail(t, freedom, alpha):
    found = noncentrality_bound(t, freedom, alpha)
    if found > 0:
        assert tail(t, freedom, found) == pytest.approx(alpha, rel=1e-6)
    else:
        assert tail(t, freedom, 0.0) >= alpha


@pytest.mark.parametrize("true", [0.3, 1.0, 6.0])
@pytest.mark.parametrize(("n_in", "n_out"), [(4, 4), (30, 80)])
def test_the_bound_is_exact(true, n_in, n_out):
    """Not only valid: it fails in 5 % of audits, no less."""
    rng = np.random.default_rng(0)
    audits = 1500
    failed = sum(
        d_prime_bound(Scores(rng.normal(5 + 2 * true, 2, n_in), rng.normal(5, 2, n_out)), 0.05)
        > true
        for _ in range(audits)
    )
    assert failed / audits == pytest.approx(0.05, abs=3 * math.sqrt(0.05 * 0.95 / audits))


@given(
    seed=st.integers(0, 20),
    scale=st.sampled_from([1e-200, 1e-3, 7.0, 1e200]),
    shift=st.floats(-5, 5),
)
def test_units_do_not_matter(seed, scale, shift):
    rng = np.random.default_rng(seed)
    inside, outside = rng.normal(1, 1, 50), rng.normal(0, 1, 40)
    plain = d_prime_bound(Scores(inside, outside), 0.05)
    moved = d_prime_bound(Scores(scale * (inside + shift), scale * (outside + shift)), 0.05)
    assert moved == pytest.approx(plain, rel=1e-8)
    assert d_prime_bound(Scores(-outside, -inside), 0.05) == pytest.approx(plain, rel=1e-10)


def test_gaussian_scores_are_objected_to_in_few_audits():
    rng = np.random.default_rng(0)
    for n in (20, 100, 1000):
        audits = 1500
        objected = sum(
            objection(Scores(rng.normal(1, 1, n), rng.normal(0, 1, n))) is not None
            for _ in range(audits)
        )
        assert objected / audits <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / audits)


def subsampled(rng, n, world):
    """The privacy loss of one step that has the record with probability 0.2, noise 0.4."""
    x = 0.4 * rng.normal(size=n) + (rng.random(n) < 0.2) * world
    return np.log(0.8 + 0.2 * np.exp((2 * x - 1) / (2 * 0.4**2)))


DRAWS = {
    "laplace": lambda rng, n, world: rng.laplace(world, 1, n),
    "randomised response": lambda rng, n, world: (rng.random(n) < 0.3 + 0.4 * world) * 1.0,
    "subsampled": subsampled,
    "few values": lambda rng, n, world: np.round(rng.normal(world, 1, n)),
    "other spread": lambda rng, n, world: rng.normal(world, 1 + world, n),
    "infinite": lambda rng, n, world: np.append(rng.normal(world, 1, n - 1), math.inf),
}


@pytest.mark.parametrize("kind", DRAWS)
def test_other_scores_are_objected_to(kind):
    rng = np.random.default_rng(0)
    draw = DRAWS[kind]
    objected = [
        objection(Scores(draw(rng, 100, 1), draw(rng, 100, 0))) is not None for _ in range(200)
    ]
    assert np.mean(objected) >= 0.85
    assert objection(Scores(draw(rng, 1000, 1), draw(rng, 1000, 0))) is not None


def test_the_normality_test_agrees_with_its_tabulated_points():
    """D'Agostino and Stephens, table 4.7: 5 % at 0.752 and 1 % at 1.035."""
    assert _anderson_p(0.752) == pytest.approx(0.05, abs=0.002)
    assert _anderson_p(1.035) == pytest.approx(0.01, abs=0.0005)
    xs = np.linspace(0.01, 20, 4000)
    p = [_anderson_p(x) for x in xs]
    assert all(a >= b - 2e-3 for a, b in itertools.pairwise(p))


def test_the_normality_statistic_is_anderson_and_darlings():
    rng = np.random.default_rng(0)
    world = np.sort(rng.normal(3, 2, 80))
    z = (world - world.mean()) / world.std(ddof=1)
    cdf = scipy.stats.norm.cdf(z)
    i = np.arange(1, 81)
    a = -80 - ((2 * i - 1) * (np.log(cdf) + np.log(1 - cdf[::-1]))).mean()
    assert normality(world) == pytest.approx(_anderson_p(a * (1 + 0.75 / 80 + 2.25 / 6400)))


def test_equal_variances_is_the_f_test():
    rng = np.random.default_rng(0)
    scores = Scores(rng.normal(0, 1.3, 40), rng.normal(0, 1, 60))
    ratio = scores.inside.var(ddof=1) / scores.outside.var(ddof=1)
    expected = 2 * min(scipy.stats.f.sf(ratio, 39, 59), scipy.stats.f.cdf(ratio, 39, 59))
    assert equal_variances(scores) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ([1.0, 1.0, 1.0], [0.0, 0.0, 0.0]),  # no spread at all
        ([math.inf, 2.0, 3.0], [0.0, 1.0, 0.5]),
        ([-1.0, -2.0, -1.5], [0.0, 1.0, 0.5]),  # the wrong way round
    ],
)
def test_where_nothing_can_be_said_nothing_is_claimed(inside, outside):
    bound = lower_bound(inside, outside, method="gaussian")
    assert bound.epsilon == 0.0
