"""What the ready observers compute, against the formula written out in double precision."""

import numpy as np
import pytest
import torch

from dprime.train import LikelihoodRatio, LocalSensitivity, TrainingConfig, train
from dprime.train.observers import AccuracyEvery, log_mixture
from trials import Keeper, blobs, dense, pairs

DATA = blobs(9, (5,))
PAIRS = pairs(DATA, blobs(1, (5,), seed=9))
C = 0.6
RECIPE = {"steps": 3, "learning_rate": 0.5, "clip_norm": C, "noise_multiplier": 2.0}


def by_densities(rest, gradient, sigma, rate):
    """ln of ((1 − q) N(r; 0, σ²) + q N(r; g, σ²)) / N(r; 0, σ²), from the densities themselves."""
    rest, gradient, sigma = rest.double(), gradient.double(), sigma.double()
    variance = 2 * sigma**2
    without = torch.exp(-rest.square().sum(1) / variance)
    drawn = torch.exp(-(rest - gradient).square().sum(1) / variance)
    return torch.log(((1 - rate) * without + rate * drawn) / without)


@pytest.mark.parametrize("rate", [1.0, 0.5, 0.01])
def test_log_mixture_is_the_ratio_of_the_densities(rate):
    torch.manual_seed(0)
    rest, gradient = torch.randn(50, 7), 0.5 * torch.randn(50, 7)
    sigma = 0.8 + torch.rand(50)
    found = log_mixture(rest, gradient, sigma, rate)
    assert found.dtype == torch.float64
    torch.testing.assert_close(
        found, by_densities(rest, gradient, sigma, rate), rtol=2e-6, atol=1e-6
    )


def test_log_mixture_far_out():
    """Where e^u is beyond all numbers, and where it is nothing: ln q + u, and ln(1 − q)."""
    rest = torch.tensor([[2000.0, 0.0], [-2000.0, 0.0]])
    gradient, sigma = torch.tensor([[1.0, 0.0]] * 2), torch.tensor([0.5, 0.5])
    found = log_mixture(rest, gradient, sigma, 0.1)
    expected = [np.log(0.1) + (2000 - 0.5) / 0.25, np.log(0.9)]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    whole = log_mixture(rest, gradient, sigma, 1.0)
    np.testing.assert_allclose(whole.numpy(), [(2000 - 0.5) / 0.25, (-2000 - 0.5) / 0.25])
    nothing = torch.zeros(2, 3)
    for rate in (1.0, 0.3):  # without noise the step tells nothing
        found = log_mixture(nothing, nothing, torch.zeros(2), rate)
        torch.testing.assert_close(found, torch.zeros(2, dtype=torch.float64))


@pytest.mark.parametrize(("pair", "rate"), [("remove", 0.3), ("replace", 1.0), ("replace", 0.3)])
def test_local_sensitivity(pair, rate):
    """‖g(x)‖, or ‖g(x) − g(x′)‖, of the clipped gradients, whether they were drawn or not."""
    keeper, sensitivity = Keeper(), LocalSensitivity()
    training = TrainingConfig(**RECIPE, sample_rate=rate)
    train(dense(5, 4, 3), PAIRS[pair], training, trials=5, seed=5, observers=[keeper, sensitivity])
    assert sensitivity.norms.shape == (5, 3)
    for index, found in enumerate(sensitivity.norms.T):
        seen = [step for step in keeper.steps if step["index"] == index]
        for step in seen:
            first, *second = (g.double() for g in step["differing"])
            change = (first - second[0] if second else first).norm(dim=1)
            np.testing.assert_allclose(found[step["rows"]], change, rtol=1e-6)
            if not second:
                raw = step["norms"][:, -1].double().clamp(max=C)
                np.testing.assert_allclose(found[step["rows"]], raw, rtol=1e-4)


def test_the_sum_of_squares_over_the_noise_is_the_variance_of_the_ratio():
    """Full batch: L is N(±d′²/2, d′²) with d′² = Σ (LS/σ)² of the trial's own steps."""
    ratio, sensitivity = LikelihoodRatio(), LocalSensitivity()
    done = train(
        dense(5, 4, 3), PAIRS["replace"], TrainingConfig(**RECIPE), trials=3000, seed=5,
        observers=[ratio, sensitivity],
    )  # fmt: skip
    squares = (sensitivity.norms / (2.0 * C)) ** 2
    d_prime = np.sqrt(squares.sum(1))
    means = np.where(done.in_world, 1, -1) * d_prime**2 / 2
    standard = (ratio.logs[:, 0] - means) / d_prime
    assert abs(standard.mean()) < 4.5 / np.sqrt(3000)
    assert abs(standard.var() - 1) < 4.5 * np.sqrt(2 / 3000)


def test_one_world_has_no_local_sensitivity():
    with pytest.raises(ValueError, match="data must be two worlds that differ in a record"):
        train(dense(5, 3), DATA, TrainingConfig(**RECIPE), observers=[LocalSensitivity()])


@pytest.mark.parametrize(
    ("every", "after"), [(3, (3, 6, 7)), (7, (7,)), (9, (7,)), (1, (1, 2, 3, 4, 5, 6, 7))]
)
def test_accuracy_every_few_steps_is_that_of_shorter_trainings(every, after):
    """The model after k steps is the one that a training of k steps ends with."""
    held_out = blobs(200, (5,), seed=4)
    recipe = {**RECIPE, "learning_rate": 3.0, "noise_multiplier": 0.2}
    seen = AccuracyEvery(held_out, every)
    longest = TrainingConfig(**{**recipe, "steps": 7})
    train(dense(5, 3), DATA, longest, trials=12, seed=3, observers=[seen])
    assert seen.after == after
    for place, steps in enumerate(after):
        short = TrainingConfig(**{**recipe, "steps": steps})
        done = train(dense(5, 3), DATA, short, trials=12, seed=3)
        assert seen.values[:, place].tolist() == done.accuracy(held_out).tolist()
    assert len(np.unique(seen.values)) > 4


def test_accuracy_every_few_steps_wants_a_number_of_steps():
    with pytest.raises(ValueError, match="steps must be at least 1, but it is 0"):
        AccuracyEvery(DATA, 0)


def test_accuracy_in_slices_goes_to_its_own_trials():
    """However little memory there is, and however the trials are cut."""
    recipe = TrainingConfig(**{**RECIPE, "steps": 4, "learning_rate": 3.0}, block=3)
    found = []
    for blocks in (None, [0], [1]):
        seen = AccuracyEvery(blobs(300, (5,), seed=4), 2)
        train(dense(5, 3), DATA, recipe, trials=6, seed=3, blocks=blocks, observers=[seen])
        found.append(seen.values)
    np.testing.assert_array_equal(found[0], np.concatenate(found[1:]))
