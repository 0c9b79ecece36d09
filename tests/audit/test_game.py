"""The game: blocks in any order, models without a score, and functions of the user's own."""

import numpy as np
import pytest

from dprime.attack import ApiAccess, Attack, AttackTarget, FunctionTrainer, Probes
from dprime.audit.config import blocks_of
from dprime.audit.game import Game
from dprime.train import TrainingData
from games import GAMES, IMAGES, Constant, engine_setting, played, quick, setting_for

DATA = IMAGES.train.take(range(6))


@pytest.mark.parametrize("name", ["di", "api-access"])
def test_blocks_can_be_played_in_any_order_and_again(name):
    setting = engine_setting()
    game = Game(setting, quick(name).craft(setting), trials=9, block=5, seed=setting.seed)
    forward = {block: game.play(block) for block in range(blocks_of(9, 5))}
    for block in (3, 1, 0, 2, 1):
        again = game.play(block)
        for kind, array in forward[block].items():
            np.testing.assert_array_equal(again[kind], array)
    assert [len(block["score"]) for block in forward.values()] == [5, 5, 5, 3]
    worlds = np.concatenate([block["in_world"] for block in forward.values()])
    assert worlds.tolist() == [True, False] * 9
    whole = np.concatenate([block["score"] for block in forward.values()])
    for block in (1, 4, 100):
        other = played(setting, quick(name).craft(setting), trials=9, block=block, reverse=True)
        np.testing.assert_allclose(other["score"], whole, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "adjacency"), GAMES)
def test_a_model_that_has_diverged_is_least_like_in(name, adjacency):
    setting = setting_for(
        name, adjacency=adjacency, model="dense-4", learning_rate=3e38, clip_norm=100.0
    )
    found = played(setting, quick(name).craft(setting), trials=3)
    if name in ("api-access", "static-poisoning"):  # the others read sums, which stay finite
        assert found["diverged"].all()
    assert ((found["score"] == -np.inf) == found["diverged"]).all()
    assert np.isfinite(found["score"][~found["diverged"]]).all()


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_ones_own_function_gets_its_worlds_data_set_and_a_seed_of_its_own(adjacency):
    def given_in(seed, block):
        given = []
        trainer = FunctionTrainer(lambda *each: given.append(each) or Constant(0.0))
        target = AttackTarget(trainer, DATA, adjacency, IMAGES.test.take(range(3)), 2, seed)
        attack = ApiAccess().craft(target)
        for number in range(blocks_of(4, block)):
            Game(target, attack, trials=4, block=block, seed=seed).play(number)
        return attack, given

    attack, given = given_in(seed=7, block=3)
    assert len(given) == 8
    for trial, (dataset, _) in enumerate(given):
        expected = attack.worlds.dataset("in" if trial % 2 == 0 else "out")
        assert np.array_equal(dataset.records, expected.records)
        assert np.array_equal(dataset.labels, expected.labels)
    seeds = [seed for _, seed in given]
    assert len(set(seeds)) == 8
    assert [seed for _, seed in given_in(seed=7, block=8)[1]] == seeds
    assert not set(seeds) & {seed for _, seed in given_in(seed=8, block=8)[1]}


def test_the_score_is_that_of_the_probes():
    trainer = FunctionTrainer(lambda dataset, seed: Constant(2.0))
    worlds = TrainingData.remove(DATA, 0)
    label_0 = DATA.take([int(np.flatnonzero(DATA.labels == 0)[0])])
    loss = float(np.log(9 + np.e**2) - 2)
    for sign in (-1.0, 1.0):
        attack = Attack(worlds, lambda: None, "by hand", probes=Probes(label_0, sign))
        found = Game(AttackTarget(trainer, DATA), attack, 1, 2, seed=0).play(0)
        np.testing.assert_allclose(found["score"], sign * loss, rtol=1e-5)


@pytest.mark.slow
def test_workers_with_other_memory_have_the_same_scores():
    """Each slices by its own; 0.14 GB is next to nothing, beside what PyTorch needs anyway."""
    setting = engine_setting(records=60, model="dense-256")
    game = Game(setting, quick("di").craft(setting), trials=100, block=200, seed=setting.seed)
    usual = game.play(0)
    memory = game.target.trainer.compute.memory
    for other, expected in (
        (game.with_compute(lambda compute: compute.with_memory_fraction(1 / 2)), memory / 2),
        (game.with_compute(lambda compute: compute.placed("cpu", 0.14)), 0.14),
    ):
        assert other.target.trainer.compute.memory == expected
        found = other.play(0)
        np.testing.assert_array_equal(found["in_world"], usual["in_world"])
        np.testing.assert_allclose(found["score"], usual["score"], rtol=1e-4, atol=1e-5)
