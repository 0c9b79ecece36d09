"""The fifth adversary: a gradient along weights that the natural records leave alone."""

import numpy as np
import pytest
import scipy.stats
import torch

from dprime.attack import AttackTarget, EngineTrainer, Gradient
from dprime.attack.gradient_attacks import Movement
from dprime.data.dataset import Dataset
from dprime.train import TrainingConfig, train
from dprime.train.models import model_named
from games import engine_setting, played

STEPS, NOISE = 5, 2.0


def dead_columns(adjacency="zero-out", **options):
    """A table whose last two features are 0 in every record; 6 of 18 weights never move."""
    rng = np.random.default_rng(0)
    records = rng.normal(size=(12, 5)).astype(np.float32)
    records[:, 3:] = 0
    data = Dataset.of(records, rng.integers(0, 3, 12), classes=3)
    recipe = TrainingConfig(
        steps=STEPS, learning_rate=0.5, clip_norm=1.0, noise_multiplier=NOISE, **options
    )
    trainer = EngineTrainer(model_named("linear", data.take(range(10))), recipe)
    return AttackTarget(trainer, data.take(range(10)), adjacency, pool=data.take([10, 11]), seed=2)


def direction(attack):
    """The direction as one vector."""
    return attack.canary._direction


def test_it_lies_where_the_others_do_not_move():
    attack = Gradient(share=0.3).craft(dead_columns())
    found = direction(attack)
    assert int((found != 0).sum()) == 5  # 0.3 of 18 weights
    weight = found[:15].view(3, 5)
    assert (weight[:, :3] == 0).all()
    assert (found[15:] == 0).all()
    assert float(found.norm()) == pytest.approx(1.0)


@pytest.mark.parametrize("share", [0.01, 0.1, 1.0])
def test_it_takes_the_share_that_moved_least(share):
    setting = engine_setting()
    attack = Gradient(share=share).craft(setting)
    chosen = direction(attack) != 0
    movement = Movement()
    train(
        setting.trainer.model, attack.worlds.common, setting.trainer.training, trials=4,
        seed=setting.shadow_seed, observers=[movement],
    )  # fmt: skip
    assert int(chosen.sum()) == max(1, round(share * 650))
    if share < 1:
        assert movement.squares[chosen].max() <= movement.squares[~chosen].min()
    assert f"along the {int(chosen.sum()):,} weights" in attack.about


@pytest.mark.parametrize(("adjacency", "factor"), [("zero-out", 1), ("replace", 2)])
def test_the_score_is_the_exact_log_ratio_there(adjacency, factor):
    """N(±μ²/2, μ²), μ = √k/z, or 2√k/z for replace: nobody else contributes along it."""
    setting = dead_columns(adjacency)
    attack = Gradient(share=0.3).craft(setting)
    found = played(setting, attack, trials=500)
    mu = factor * STEPS**0.5 / NOISE
    for inside, sign in ((True, 1), (False, -1)):
        scores = found["score"][found["in_world"] == inside]
        law = scipy.stats.norm(sign * mu**2 / 2, mu)
        assert scipy.stats.kstest(scores, law.cdf).pvalue > 1e-3


def test_movement_adds_up_squares():
    movement = Movement()
    setting = dead_columns()
    train(
        setting.trainer.model, setting.dataset, setting.trainer.training, trials=3, seed=1,
        observers=[movement],
    )  # fmt: skip
    assert movement.squares.shape == (18,)
    weight = movement.squares[:15].view(3, 5)
    assert torch.equal(weight[:, 3:], torch.zeros(3, 2, dtype=torch.float64))
    assert (weight[:, :3] > 0).all()
