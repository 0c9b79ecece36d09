import math

import pytest
from scipy.special import erf

from dprime import DPSGD, Estimate, TradeOff, estimates

Q10, Z10 = 0.001, 0.7


def test_every_estimate_says_so():
    made = [
        estimates.cherubin(1.0, 0.01, 100),
        estimates.central_limit(1.0, 0.01, 100),
        estimates.attribute_inference(3.0, 1.0, 0.01),
        estimates.attribute_inference_central_limit([(1.0, 0.5, 0.2)], 1.0, 0.01),
    ]
    for estimate in made:
        assert isinstance(estimate, Estimate)
        assert not isinstance(estimate, TradeOff)
        assert estimate.kind == "estimate"
        assert estimate.source


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
    certified = DPSGD(*setting).curve(adjacency)
    estimate = estimates.central_limit(*setting, adjacency)
    capped = estimates.capped(estimate, certified)
    assert capped.kind == "estimate"
    for reading in (
        lambda curve: curve.advantage(),
        lambda curve: curve.epsilon(1e-5),
        lambda curve: curve.tpr(0.01),
        lambda curve: curve.precision(0.1, 0.01),
        lambda curve: curve.belief(0.5, 1e-3),
    ):
        assert reading(capped) == min(reading(estimate), reading(certified))
    assert estimates.is_capped(capped, 0.01) == (
        estimate.advantage() > certified.advantage() or estimate.tpr(0.01) > certified.tpr(0.01)
    )
    assert not estimates.is_capped(estimate, 0.01)


def test_cherubin_is_the_printed_form_and_understates():
    estimate = estimates.cherubin(Z10, Q10, 10_000)
    assert estimate.bayes_security() == pytest.approx(
        1 - erf(Q10 * 100 / (math.sqrt(2) * Z10)), rel=1e-12
    )
    assert estimate.advantage() == pytest.approx(0.1136, abs=5e-5)
    assert estimate.advantage() < 0.9 * DPSGD(Z10, Q10, 10_000).curve("replace").advantage()
    assert "advise against" in estimate.warning
    assert estimates.cherubin(1.0, 0.01, 10).warning is None


@pytest.mark.parametrize(
    ("setting", "value"), [((0.7, 0.001, 10_000), 0.1542), ((1.0, 0.001, 50_000), 0.1915)]
)
def test_central_limit_check_values(setting, value):
    found = estimates.central_limit(*setting, "replace").advantage()
    assert found == pytest.approx(value, abs=5e-5)


def test_central_limit_errs_where_it_is_said_to():
    """Upwards at large rates, to the unsafe side in the tails."""
    over = estimates.central_limit(0.5, 0.01, 1000).advantage()
    assert over == pytest.approx(DPSGD(0.5, 0.01, 1000).curve().advantage() + 0.21, abs=0.02)
    tail = estimates.central_limit(0.7, 0.001, 10_000).epsilon(1e-5)
    assert tail == pytest.approx(0.962, abs=1e-3)
    assert tail < 0.8 * DPSGD(0.7, 0.001, 10_000).curve().epsilon(1e-5)


def test_central_limit_is_the_limit():
    """With ever rarer sampling and ever more steps the exact curve approaches it."""
    gaps = []
    for rate in (0.05, 0.01, 0.002):
        setting = (1.0, rate, round(4 / rate**2 / 100))
        exact = DPSGD(*setting).curve().advantage()
        gaps.append(abs(estimates.central_limit(*setting).advantage() / exact - 1))
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.005


def test_tpr_from_the_curve_is_far_below_the_one_from_security():
    """Cherubin et al., figure 7."""
    curve = DPSGD(2.0, 1e-4, 500_000).curve("replace")
    for fpr, from_security, from_curve in ((0.1, 0.128, 0.1130), (0.01, 0.038, 0.0121)):
        loose = TradeOff.from_lines([(0.0, curve.advantage())]).tpr(fpr)
        assert loose == pytest.approx(from_security, abs=6e-4)
        assert curve.tpr(fpr) == pytest.approx(from_curve, abs=6e-5)


def test_attribute_inference_is_membership_at_opposite_gradients():
    steps = 400
    opposite = estimates.attribute_inference_central_limit([(1.0, 1.0, -1.0)] * steps, 2.0, 0.02)
    membership = estimates.central_limit(2.0, 0.02, steps, "replace")
    assert opposite.d_prime() == pytest.approx(membership.d_prime(), rel=1e-12)
    assert estimates.attribute_inference(
        2 * math.sqrt(steps), 2.0, 0.02
    ).d_prime() == pytest.approx(estimates.cherubin(2.0, 0.02, steps).d_prime(), rel=1e-12)


@pytest.mark.parametrize("noise", [0.01, 0.03, 0.2, 1.0])
def test_hardly_any_noise_hides_no_difference(noise):
    near = estimates.attribute_inference_central_limit([(1.0, 1.0, 0.999)], noise, 0.5)
    assert near.d_prime() > 0.01
    same = estimates.attribute_inference_central_limit([(0.7, 0.7, 0.49)] * 100, noise, 0.1)
    assert same.advantage() == pytest.approx(0, abs=1e-6 / noise**2)
    if noise > 0.1:  # where nothing overflows: the form as it is printed
        term = 2 * math.exp(1 / noise**2) - 2 * math.exp(0.999 / noise**2)
        assert near.d_prime() == pytest.approx(0.5 * math.sqrt(term), rel=1e-9)


@pytest.mark.parametrize(
    "call",
    [
        lambda: estimates.attribute_inference_central_limit([(1.0, 2.0, 0.0)], 1.0, 0.1),
        lambda: estimates.attribute_inference_central_limit([(0.1, 0.1, 0.5)], 1.0, 0.1),
        lambda: estimates.cherubin(0.0, 0.1, 10),
        lambda: estimates.central_limit(1.0, 2.0, 10),
        lambda: estimates.central_limit(1.0, 0.5, 10, "near"),
        lambda: estimates.cherubin(1.0, 0.1, 0),
        lambda: estimates.attribute_inference(-1.0, 1.0, 0.1),
    ],
)
def test_bad_input(call):
    with pytest.raises(ValueError, match="must be"):
        call()
