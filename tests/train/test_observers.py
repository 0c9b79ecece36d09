"""What the ready observers compute."""

import numpy as np
import pytest
import torch

from dprime.train import FinalAccuracy, LikelihoodRatio, LocalSensitivity
from dprime.train.observers import AccuracyEvery, log_mixture
from trials import SMALL, C, Keeper, blobs, dense, trained


@pytest.mark.parametrize(
    ("pair", "local"), [("remove", False), ("replace", False), ("replace, within", True)]
)
def test_likelihood_ratios_by_hand(pair, local):
    """Full batch: (‖noisy − D′ sum‖² − ‖noisy − D sum‖²)/(2σ²), added up."""
    keeper, ratio, last = Keeper(), LikelihoodRatio(every_step=True), LikelihoodRatio()
    options = {"trials": 6, "block": 4, "sensitivity": "local" if local else "global"}
    trained(pair, keeper, ratio, last, **options)
    total = torch.zeros(6, dtype=torch.float64)
    for step in range(3):
        noisy, ins, outs = (keeper.at(step, name).double() for name in ("noisy", "in", "out"))
        far, near = (noisy - outs).square().sum(1), (noisy - ins).square().sum(1)
        total = total + (far - near) / (2 * keeper.at(step, "sigma").double() ** 2)
        np.testing.assert_allclose(ratio.logs[:, step], total.numpy(), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(last.logs[:, 0], ratio.logs[:, -1])
    np.testing.assert_allclose(last.beliefs(prior=0.2), 1 / (1 + 4 * np.exp(-last.logs)))


@pytest.mark.parametrize(
    ("pair", "rate"), [("remove", 1.0), ("remove, first", 0.3), ("replace", 0.3)]
)
def test_likelihood_ratios_are_calibrated(pair, rate):
    """Over many trials E[e^L] = 1 in world out and E[e^-L] = 1 in world in: L is a true ratio."""
    ratio = LikelihoodRatio()
    options = {"steps": 4, "noise_multiplier": 2.5, "sample_rate": rate}
    done = trained(pair, ratio, model=dense(5, 3), trials=8000, seed=3, **options)
    logs = ratio.logs[:, 0]
    for values in (np.exp(logs[~done.in_world]), np.exp(-logs[done.in_world])):
        assert abs(values.mean() - 1) < 4.5 * values.std() / np.sqrt(len(values))
    assert logs[done.in_world].mean() > logs[~done.in_world].mean()


def test_the_adversary_stays_below_the_certified_curve_and_near_it():
    """With a record whose gradient always fills C, the full-batch adversary reaches the claim."""
    ratio = LikelihoodRatio()
    options = {"steps": 5, "learning_rate": 1e-3, "clip_norm": 1e-3, "noise_multiplier": 3.0}
    done = trained("remove", ratio, model=dense(5, 3), trials=20_000, seed=3, **options)
    says = ratio.logs[:, 0] > 0
    advantage = says[done.in_world].mean() - says[~done.in_world].mean()
    claim = done.mechanism().curve().advantage()
    assert abs(advantage - claim) < 4.5 * np.sqrt(2 * 0.25 / 10_000)


def by_densities(rest, gradient, sigma, rate):
    """ln of ((1 − q) N(r; 0, σ²) + q N(r; g, σ²)) / N(r; 0, σ²), from the densities themselves."""
    rest, gradient, variance = rest.double(), gradient.double(), 2 * sigma.double() ** 2
    without = torch.exp(-rest.square().sum(1) / variance)
    drawn = torch.exp(-(rest - gradient).square().sum(1) / variance)
    return torch.log(((1 - rate) * without + rate * drawn) / without)


@pytest.mark.parametrize("rate", [1.0, 0.5, 0.01])
def test_log_mixture_is_the_ratio_of_the_densities(rate):
    torch.manual_seed(0)
    given = torch.randn(50, 7), 0.5 * torch.randn(50, 7), 0.8 + torch.rand(50), rate
    torch.testing.assert_close(log_mixture(*given), by_densities(*given), rtol=2e-6, atol=1e-6)


def test_log_mixture_far_out():
    """Where e^u is beyond all numbers, and where it is nothing: ln q + u, and ln(1 − q)."""
    rest = torch.tensor([[2000.0, 0.0], [-2000.0, 0.0]])
    gradient, sigma = torch.tensor([[1.0, 0.0]] * 2), torch.tensor([0.5, 0.5])
    ends = (2000 - 0.5) / 0.25, (-2000 - 0.5) / 0.25
    for rate, expected in ((0.1, [np.log(0.1) + ends[0], np.log(0.9)]), (1.0, ends)):
        found = log_mixture(rest, gradient, sigma, rate)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
        nothing = torch.zeros(2, 3)  # without noise the step tells nothing
        assert log_mixture(nothing, nothing, torch.zeros(2), rate).abs().max() < 1e-12


@pytest.mark.parametrize(("pair", "rate"), [("remove", 0.3), ("replace", 1.0), ("replace", 0.3)])
def test_local_sensitivity(pair, rate):
    """‖g(x)‖, or ‖g(x) − g(x′)‖, of the clipped gradients, whether they were drawn or not."""
    keeper, sensitivity = Keeper(), LocalSensitivity()
    trained(pair, keeper, sensitivity, trials=5, block=2, sample_rate=rate)
    for step in keeper.steps:
        found = sensitivity.norms[step["rows"], step["index"]]
        first, *second = (g.double() for g in step["differing"])
        change = (first - second[0] if second else first).norm(dim=1)
        np.testing.assert_allclose(found, change, rtol=1e-6)
        if not second:
            np.testing.assert_allclose(found, step["norms"][:, -1].clamp(max=C), rtol=1e-4)


@pytest.mark.parametrize(
    ("every", "after"), [(3, (3, 6, 7)), (7, (7,)), (9, (7,)), (1, (1, 2, 3, 4, 5, 6, 7))]
)
def test_accuracy_every_few_steps_is_that_of_shorter_trainings(every, after):
    """The model after k steps is the one that a training of k steps ends with."""
    held_out = blobs(200, (5,), seed=4)
    options = {"trials": 12, "block": 5, "learning_rate": 3.0, "noise_multiplier": 0.2}
    seen = AccuracyEvery(held_out, every)
    trained(SMALL, seen, steps=7, **options)
    assert seen.after == after
    for place, steps in enumerate(after):
        final = FinalAccuracy(held_out)
        done = trained(SMALL, final, steps=steps, **options)
        assert np.array_equal(seen.values[:, place], done.accuracy(held_out))
        assert np.array_equal(final.values, done.accuracy(held_out))
    assert len(np.unique(seen.values)) > 4
