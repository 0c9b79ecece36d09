"""Recipes: rate, steps and noise from the expected size, never from who was drawn."""

import pytest

from dprime import DPSGD
from dprime.membership.recipe import Recipe, rate_and_steps


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_batches_keep_their_size_and_epochs_their_length(probability):
    rate, steps = rate_and_steps(1000, probability, batch=50, epochs=4)
    assert rate * 1000 * probability == pytest.approx(50)
    assert steps == pytest.approx(4 * 1000 * probability / 50, abs=1)


def test_the_noise_keeps_the_claim_at_every_share():
    recipe = Recipe(batch=50, epochs=4, epsilon=3.0, delta=1e-5)
    for probability in (0.2, 0.8):
        training = recipe.training(1000, probability)
        epsilon = training.mechanism().curve().epsilon(delta=1e-5)
        assert 2.99 < epsilon <= 3.0


def test_noise_may_be_given_and_without_any_nothing_is_clipped():
    training = Recipe(noise_multiplier=2.0).training(1000, 0.5)
    assert training.mechanism() == DPSGD(2.0, training.sample_rate, training.steps)
    open_ = Recipe().training(1000, 0.5)
    assert open_.clip_norm is None
    assert not open_.private


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"batch": 0}, "batch must be"),
        ({"epochs": -1.0}, "epochs must be"),
        ({"epsilon": 1.0, "noise_multiplier": 2.0}, "noise_multiplier must be left out with ε"),
        ({"noise_multiplier": 0.0}, "noise_multiplier must be"),
        ({"delta": 0.0}, "delta must be"),
    ],
)
def test_bad_recipes(given, words):
    with pytest.raises(ValueError, match=words):
        Recipe(**given)


def test_a_pool_smaller_than_a_batch():
    with pytest.raises(ValueError, match=r"batch must be at most the 40 records .* but it is 50"):
        Recipe(batch=50).training(80, 0.5)


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.2, 1.5])
def test_probabilities_that_leave_nothing_to_guess(probability):
    with pytest.raises(ValueError, match="probability must be"):
        Recipe(batch=5).training(80, probability)
