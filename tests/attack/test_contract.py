"""What every adversary owes, in both adjacencies, with images and tables, full batches and samples.

A score depends on its own trial alone: the statistics of the audit rest on that.
"""

import dataclasses
import pickle

import numpy as np
import pytest
import torch

from dprime.attack import ADVERSARIES
from dprime.attack.trainer import Game
from dprime.train import Compute
from games import GAMES, IMAGES, TABLE, by_world, engine_setting, played, quick, setting_for

CASES = {
    "images": {"split": IMAGES},
    "images, sampled": {"split": IMAGES, "sample_rate": 0.3},
    "images, convolutions": {"split": IMAGES, "model": "conv-4"},
    "table, regression": {"split": TABLE},
}

CONTRACTS = [
    pytest.param(*game, case, marks=[pytest.mark.slow] * ("convolutions" in case))
    for game in GAMES
    for case in CASES
    if game[0] != "attribute" or CASES[case]["split"] is TABLE
]
every_adversary = pytest.mark.parametrize("name", ADVERSARIES)
every_game = pytest.mark.parametrize(("name", "adjacency"), GAMES)


def snapshot(setting):
    """Everything that crafting could change, as bytes."""
    contents = [setting.dataset.digest(), setting.pool.digest(), torch.get_rng_state().tolist()]
    weights = [weight.tolist() for weight in setting.trainer.model.parameters()]
    return contents, weights, setting.trainer.describe()


def close(scores, others):
    np.testing.assert_allclose(scores, others, rtol=1e-4, atol=1e-5 * np.abs(others).max())


@pytest.mark.parametrize(("name", "adjacency", "case"), CONTRACTS)
def test_contract(name, adjacency, case):
    setting = engine_setting(adjacency=adjacency, **CASES[case])
    before = snapshot(setting)
    first = quick(name).craft(setting)
    assert snapshot(setting) == before
    again, worlds = quick(name).craft(setting), first.worlds
    assert worlds.adjacency == adjacency
    assert len(worlds.differing) == (1 if adjacency == "add-remove" else 2)
    assert worlds.union.digest() == again.worlds.union.digest()
    assert first.about == again.about
    whole = played(setting, first)
    scores = whole["score"]
    assert scores.shape == (20,)
    assert np.isfinite(scores).all()
    assert len(np.unique(scores)) == 20
    assert not whole["diverged"].any()
    assert whole["in_world"].tolist() == [True, False] * 10
    close(played(setting, again, block=7, reverse=True)["score"], scores)
    close(played(setting, first, trials=6, block=6)["score"], scores[:12])
    game = Game(setting.trainer, first, trials=3, block=3, seed=setting.seed)
    sent = pickle.loads(pickle.dumps(game)).play(1)
    assert all(np.array_equal(sent[kind], array) for kind, array in game.play(1).items())


@every_game
def test_little_noise_tells_the_worlds_apart(name, adjacency):
    setting = setting_for(name, adjacency=adjacency, noise_multiplier=0.1, steps=8)
    found = played(setting, quick(name).craft(setting), trials=25)
    inside, outside = by_world(found)
    error = np.sqrt((inside.var(ddof=1) + outside.var(ddof=1)) / 25)
    assert inside.mean() - outside.mean() > 3 * error


@every_adversary
def test_another_seed_is_another_game(name):
    settings = [setting_for(name, seed=seed) for seed in (3, 4)]
    scores = [played(each, quick(name).craft(each))["score"] for each in settings]
    assert not np.isclose(*scores).any()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@every_adversary
def test_a_gpu_gives_the_same_scores(name):
    here = setting_for(name, adjacency="replace")
    there = dataclasses.replace(here, trainer=here.trainer.with_compute(lambda _: Compute("cuda")))
    attack = quick(name).craft(here)
    first, second = played(here, attack)["score"], played(there, attack)["score"]
    np.testing.assert_allclose(first, second, rtol=1e-2, atol=1e-2 * first.std())
    assert np.isfinite(played(there, quick(name).craft(there))["score"]).all()
