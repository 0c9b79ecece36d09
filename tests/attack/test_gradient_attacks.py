"""Adversaries that set gradients reach the certified curve: their scores have the analysis' law.

Full batch, k steps, noise z: the log ratio is N(±μ²/2, μ²) with μ = √k/z for add-remove and 2√k/z
for replace (Dong, Roth and Su 2022, section 2.2).
"""

import numpy as np
import pytest
import scipy.stats

from dprime import DPSGD
from dprime.attack import AttackTarget, EngineTrainer, Gradient, MaliciousDataset, OpposingDataset
from dprime.attack.gradient_attacks import Movement
from dprime.data.dataset import Dataset
from dprime.train import TrainingConfig, train
from dprime.train.models import model_named
from games import by_world, engine_setting, played

STEPS, NOISE = 6, 3.0


def assert_law(found, mu):
    """The scores are log ratios of Gaussians so far apart: N(±μ²/2, μ²)."""
    for scores, sign in zip(by_world(found), (1, -1), strict=True):
        assert scipy.stats.kstest(scores, scipy.stats.norm(sign * mu**2 / 2, mu).cdf).pvalue > 1e-3


def dead_columns(adjacency="zero-out"):
    """A table whose last two features are 0 in every record; 6 of 18 weights never move."""
    rng = np.random.default_rng(0)
    records = rng.normal(size=(12, 5)).astype(np.float32)
    records[:, 3:] = 0
    data = Dataset.of(records, rng.integers(0, 3, 12), classes=3)
    recipe = TrainingConfig(steps=STEPS, learning_rate=0.5, clip_norm=1.0, noise_multiplier=NOISE)
    trainer = EngineTrainer(model_named("linear", data.take(range(10))), recipe)
    return AttackTarget(trainer, data.take(range(10)), adjacency, pool=data.take([10, 11]), seed=2)


@pytest.mark.parametrize("share", [0.01, 0.1, 1.0])
def test_it_takes_the_share_that_moved_least(share):
    setting = engine_setting()
    attack = Gradient(share=share).craft(setting)
    chosen = attack.canary._direction != 0
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
def test_a_gradients_score_is_the_exact_log_ratio(adjacency, factor):
    """It lies where nobody else contributes."""
    setting = dead_columns(adjacency)
    attack = Gradient(share=0.3).craft(setting)
    direction = attack.canary._direction
    assert int((direction != 0).sum()) == 5  # 0.3 of 18 weights
    assert not direction[:15].view(3, 5)[:, :3].any()
    assert not direction[15:].any()
    assert float(direction.norm()) == pytest.approx(1.0)
    assert_law(played(setting, attack, trials=500), factor * STEPS**0.5 / NOISE)


@pytest.mark.parametrize("kind", [MaliciousDataset, OpposingDataset])
@pytest.mark.parametrize(("adjacency", "factor"), [("add-remove", 1), ("replace", 2)])
def test_among_copies_the_score_is_the_exact_log_ratio(kind, adjacency, factor):
    setting = engine_setting(adjacency=adjacency, noise_multiplier=NOISE, steps=STEPS)
    assert_law(played(setting, kind().craft(setting), trials=1000), factor * STEPS**0.5 / NOISE)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_with_sampling_it_reaches_the_certified_advantage(adjacency):
    """Score above 0 is the optimal test of the mixtures; e^±L has mean 1 in the other world."""
    setting = engine_setting(
        adjacency=adjacency, noise_multiplier=1.0, steps=STEPS, sample_rate=0.3
    )
    found = played(setting, MaliciousDataset().craft(setting), trials=3000)
    inside, outside = by_world(found)
    for values in (np.exp(outside), np.exp(-inside)):
        assert abs(values.mean() - 1) < 4.5 * values.std() / 3000**0.5
    advantage = (inside > 0).mean() - (outside > 0).mean()
    claim = DPSGD(1.0, 0.3, STEPS).curve(adjacency).advantage()
    assert abs(advantage - claim) < 4.5 * (2 * 0.25 / 3000) ** 0.5


@pytest.mark.parametrize("kind", [MaliciousDataset, OpposingDataset])
def test_copies_of_the_first_record(kind):
    setting = engine_setting(records=130)
    for copies, expected in ((None, 100), (3, 3), (130, 130)):
        attack = kind(copies=copies).craft(setting)
        common = attack.worlds.common
        assert len(common) == expected
        assert (common.records == setting.dataset.records[0]).all()
        assert (common.labels == setting.dataset.labels[0]).all()
        assert attack.about.startswith(f"{expected} copies of one record, and a gradient")


def test_the_direction_is_drawn_from_the_seed():
    first, again, other = (
        MaliciousDataset().craft(engine_setting(seed=seed)).canary._along for seed in (1, 1, 2)
    )
    assert (first == again).all()
    assert abs(float(first @ other)) < 0.3
    assert float(first.norm()) == pytest.approx(1.0)


def test_frozen_weights_get_no_gradient():
    setting = engine_setting(model="dense-5")
    setting.trainer.model[1].requires_grad_(False)
    found = played(setting, MaliciousDataset().craft(setting))
    assert np.isfinite(found["score"]).all()


def test_layers_that_learn_nothing_leave_the_right_angle():
    """Without noise on the way the others' sum has no share along the direction."""
    setting = engine_setting(noise_multiplier=1e-4, model="conv-4")
    found = played(setting, MaliciousDataset().craft(setting), trials=5)
    mu = 4**0.5 / 1e-4
    np.testing.assert_allclose(found["score"] / (mu**2 / 2), [1, -1] * 5, atol=0.02)
