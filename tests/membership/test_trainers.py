"""Trainers: rate, steps and noise from the expected size, never from who was drawn; the claim."""

import pytest

from dprime import DPSGD, InputError
from dprime.attack import EngineTrainer, FunctionTrainer
from dprime.membership.config import Recipe
from dprime.membership.shadows import Trainers
from pools import POOL, PRIVATE, by_hand, trainers


@pytest.mark.parametrize("probability", [0.1, 0.8])
def test_batches_keep_their_size_epochs_their_length_and_noise_the_claim(probability):
    recipe = Recipe(batch=50, epochs=4, epsilon=3.0, delta=1e-5)
    training = recipe.training(1000, probability)
    assert training.sample_rate * 1000 * probability == pytest.approx(50)
    assert training.steps == pytest.approx(4 * 1000 * probability / 50, abs=1)
    assert 2.99 < training.mechanism().curve().epsilon(delta=1e-5) <= 3.0


def test_noise_may_be_given_and_without_any_nothing_is_clipped_or_claimed():
    training = Recipe(noise_multiplier=2.0).training(1000, 0.5)
    assert training.mechanism() == DPSGD(2.0, training.sample_rate, training.steps)
    assert Recipe().training(1000, 0.5).clip_norm is None
    assert not Recipe().private
    assert trainers(Recipe(batch=20)).claim(0.5) is None


def test_the_engine_and_its_claim_at_every_share():
    made = trainers(PRIVATE)
    for share in (0.3, 0.9):
        found = made(share)
        assert isinstance(found, EngineTrainer)
        assert found.training.sample_rate * share * len(POOL) == pytest.approx(20)
        assert made.claim(share).epsilon(delta=1e-5) <= 2.0


def test_a_function_is_held_to_what_is_claimed_of_it():
    made = Trainers(PRIVATE, POOL, own=by_hand)
    assert isinstance(made(0.5), FunctionTrainer)
    assert made.claim(0.5).epsilon(delta=1e-5) == pytest.approx(2.0)


def test_names():
    assert isinstance(Trainers.named(PRIVATE, POOL, model="dense-4")(0.5), EngineTrainer)
    own = Trainers.named(PRIVATE, POOL, model="", own="pools:by_hand")
    assert isinstance(own(0.5), FunctionTrainer)
    with pytest.raises(InputError, match="model must be"):
        Trainers.named(PRIVATE, POOL, model="deep")
