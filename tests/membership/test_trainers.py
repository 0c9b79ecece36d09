"""Trainers for any share of a pool, and what is claimed of them."""

import pytest

from dprime.attack import EngineTrainer, FunctionTrainer
from dprime.membership.recipe import Recipe
from dprime.membership.trainers import Trainers
from pools import POOL, PRIVATE, by_hand, trainers


def test_the_engine_keeps_the_batch_at_every_share():
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


def test_without_noise_nothing_is_claimed():
    assert trainers(Recipe(batch=20)).claim(0.5) is None


def test_names():
    assert isinstance(Trainers.named(PRIVATE, POOL, model="dense-4")(0.5), EngineTrainer)
    assert isinstance(
        Trainers.named(PRIVATE, POOL, model="", own="pools:by_hand")(0.5), FunctionTrainer
    )
    with pytest.raises(ValueError, match="model must be"):
        Trainers.named(PRIVATE, POOL, model="deep")
