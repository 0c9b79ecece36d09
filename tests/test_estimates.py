import math

import pytest
from scipy.special import erf

from dprime import DPSGD, estimates
from dprime.estimates import attribute_inference, attribute_inference_central_limit, central_limit
from told import refuses

SETTING = (0.7, 0.001, 10_000)
READINGS = {"advantage": (), "epsilon": (1e-5,), "tpr": (0.01,), "precision": (0.1,), "belief": ()}


@pytest.mark.parametrize(
    ("setting", "adjacency"),
    [
        ((0.5, 0.05, 200), "replace"),
        ((0.5, 0.01, 1000), "add-remove"),
        ((2.0, 1.0, 4), "replace"),
        ((1.0, 0.001, 50_000), "replace"),
        ((4.0, 0.1, 300), "replace"),
    ],
)
def test_a_capped_estimate_is_never_past_the_certified_curve(setting, adjacency):
    certified, estimate = DPSGD(*setting).curve(adjacency), central_limit(*setting, adjacency)
    capped = estimates.capped(estimate, certified)
    assert capped.kind == "estimate"
    for name, at in READINGS.items():
        kept, ours, theirs = (getattr(each, name)(*at) for each in (capped, estimate, certified))
        assert kept == min(ours, theirs)
    above = estimate.advantage() > certified.advantage(), estimate.tpr(0.01) > certified.tpr(0.01)
    assert estimates.is_capped(capped, 0.01) == any(above)
    assert not estimates.is_capped(estimate, 0.01)


def test_cherubin_is_the_printed_form_and_understates():
    estimate = estimates.cherubin(*SETTING)
    printed = 1 - erf(0.001 * 100 / (math.sqrt(2) * 0.7))
    assert estimate.bayes_security() == pytest.approx(printed, rel=1e-12)
    assert estimate.advantage() == pytest.approx(0.1136, abs=5e-5)
    assert estimate.advantage() < 0.9 * DPSGD(*SETTING).curve("replace").advantage()
    assert "advise against" in estimate.warning
    assert estimates.cherubin(1.0, 0.01, 10).warning is None


def test_central_limit_check_values_and_where_it_errs():
    """Upwards at large rates, to the unsafe side in the tails."""
    for setting, value in ((SETTING, 0.1542), ((1.0, 0.001, 50_000), 0.1915)):
        assert central_limit(*setting, "replace").advantage() == pytest.approx(value, abs=5e-5)
    over, exact = central_limit(0.5, 0.01, 1000), DPSGD(0.5, 0.01, 1000).curve()
    assert over.advantage() == pytest.approx(exact.advantage() + 0.21, abs=0.02)
    tail = central_limit(*SETTING).epsilon(1e-5)
    assert tail == pytest.approx(0.962, abs=1e-3)
    assert tail < 0.8 * DPSGD(*SETTING).curve().epsilon(1e-5)


def test_central_limit_is_the_limit():
    """With ever rarer sampling and ever more steps the exact curve approaches it."""
    gaps = []
    for rate in (0.05, 0.01, 0.002):
        setting = (1.0, rate, round(4 / rate**2 / 100))
        exact = DPSGD(*setting).curve().advantage()
        gaps.append(abs(central_limit(*setting).advantage() / exact - 1))
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.005


def test_attribute_inference_is_membership_at_opposite_gradients():
    opposite = attribute_inference_central_limit([(1.0, 1.0, -1.0)] * 400, 2.0, 0.02).d_prime()
    assert opposite == pytest.approx(central_limit(2.0, 0.02, 400, "replace").d_prime(), rel=1e-12)
    closed = attribute_inference(2 * math.sqrt(400), 2.0, 0.02).d_prime()
    assert closed == pytest.approx(estimates.cherubin(2.0, 0.02, 400).d_prime(), rel=1e-12)


@pytest.mark.parametrize("noise", [0.01, 0.03, 0.2, 1.0])
def test_hardly_any_noise_hides_no_difference(noise):
    near = attribute_inference_central_limit([(1.0, 1.0, 0.999)], noise, 0.5)
    assert near.d_prime() > 0.01
    same = attribute_inference_central_limit([(0.7, 0.7, 0.49)] * 100, noise, 0.1)
    assert same.advantage() == pytest.approx(0, abs=1e-6 / noise**2)
    if noise > 0.1:  # where nothing overflows: the form as it is printed
        term = 2 * math.exp(1 / noise**2) - 2 * math.exp(0.999 / noise**2)
        assert near.d_prime() == pytest.approx(0.5 * math.sqrt(term), rel=1e-9)


def of_gradients(*step):
    return lambda: attribute_inference_central_limit([step], 1.0, 0.1)


test_what_is_refused = refuses(
    {
        "gradients be norms of at most 1": of_gradients(1.0, 2.0, 0.0),
        "gradients be norms of at most 1 and": of_gradients(0.1, 0.1, 0.5),
        "noise_multiplier be above 0": lambda: estimates.cherubin(0.0, 0.1, 10),
        "steps be at least 1": lambda: estimates.cherubin(1.0, 0.1, 0),
        "sample_rate be above 0 and at most 1": lambda: central_limit(1.0, 2.0, 10),
        "adjacency be one of": lambda: central_limit(1.0, 0.5, 10, "near"),
        "difference_norm be 0 or more": lambda: attribute_inference(-1.0, 1.0, 0.1),
    }
)
