"""Credible bounds, against draws from the posterior."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprime.audit.estimators.bayesian import _Region, credible_epsilon

PAIRS = [
    ((0.5, 1000.5), (0.5, 1000.5)),
    ((3.5, 100.5), (50.5, 40.5)),
    ((0.5, 50.5), (30.5, 20.5)),
    ((2.5, 10_000.5), (5000.5, 5000.5)),
    ((10.5, 90.5), (900.5, 9100.5)),
    ((300.5, 200.5), (250.5, 250.5)),
    ((0.5, 300.5), (290.5, 10.5)),
    ((100.5, 0.5), (3.5, 97.5)),
]


def epsilons_of_draws(fp, fn, delta, draws):
    """The smallest epsilon whose region holds each drawn pair of rates."""
    rng = np.random.default_rng(0)
    a, b = rng.beta(*fp, draws), rng.beta(*fn, draws)
    with np.errstate(divide="ignore"):
        logs = [
            np.log(np.maximum(1 - delta - a, 0) / b),
            np.log(np.maximum(1 - delta - b, 0) / a),
            np.log(np.maximum(a - delta, 0) / (1 - b)),
            np.log(np.maximum(b - delta, 0) / (1 - a)),
        ]
    return np.maximum(np.max(logs, axis=0), 0)


@pytest.mark.parametrize(("fp", "fn"), PAIRS)
@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-2])
def test_against_draws_from_the_posterior(fp, fn, delta):
    draws = 200_000
    drawn = epsilons_of_draws(fp, fn, delta, draws)
    found = credible_epsilon(fp, fn, delta, 0.05)
    share = (drawn <= found).mean() if found > 0 else 0.05
    assert share == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / draws))
    region = _Region(fp, fn, delta)
    for epsilon in (0.2, 1.0, 3.0):
        share = (drawn <= epsilon).mean()
        error = 4 * np.sqrt(max(share * (1 - share), 1e-4) / draws)
        assert region.probability(epsilon) == pytest.approx(share, abs=error)


@given(fp=st.integers(0, 100), fn=st.integers(0, 100), delta=st.sampled_from([0.0, 1e-5, 0.05]))
def test_it_is_symmetric_and_falls_with_confidence(fp, fn, delta):
    one, other = (fp + 0.5, 100.5 - fp), (fn + 0.5, 100.5 - fn)
    half = credible_epsilon(one, other, delta, 0.5)
    assert credible_epsilon(one, other, delta, 0.05) <= half + 1e-6
    assert credible_epsilon(other, one, delta, 0.5) == pytest.approx(half, abs=1e-4)
