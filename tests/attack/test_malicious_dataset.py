"""The sixth adversary reaches the certified curve: its score has exactly the law of the analysis.

Full batch, k steps, noise z: the log ratio is N(±μ²/2, μ²) with μ = √k/z for add-remove and 2√k/z
for replace (FORMULAS of the Gaussian mechanism; Dong, Roth and Su 2022, section 2.2).
"""

import numpy as np
import pytest
import scipy.stats

from dprime import DPSGD
from dprime.attack import MaliciousDataset, OpposingDataset
from games import engine_setting, played

STEPS, NOISE, TRIALS = 6, 3.0, 1000
KINDS = [MaliciousDataset, OpposingDataset]
LAWS = [("add-remove", 1.0), ("replace", 2.0)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("adjacency", "factor"), LAWS)
def test_the_score_has_the_law_of_the_analysis(kind, adjacency, factor):
    setting = engine_setting(adjacency=adjacency, noise_multiplier=NOISE, steps=STEPS)
    found = played(setting, kind().craft(setting), trials=TRIALS)
    mu = factor * STEPS**0.5 / NOISE
    for inside, sign in ((True, 1), (False, -1)):
        scores = found["score"][found["in_world"] == inside]
        law = scipy.stats.norm(sign * mu**2 / 2, mu)
        assert scipy.stats.kstest(scores, law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_with_sampling_it_reaches_the_certified_advantage(adjacency):
    """Score above 0 is the optimal test of the mixtures; e^±L has mean 1 in the other world."""
    setting = engine_setting(
        adjacency=adjacency, noise_multiplier=1.0, steps=STEPS, sample_rate=0.3
    )
    found = played(setting, MaliciousDataset().craft(setting), trials=3000)
    inside, outside = found["score"][found["in_world"]], found["score"][~found["in_world"]]
    for values in (np.exp(outside), np.exp(-inside)):
        assert abs(values.mean() - 1) < 4.5 * values.std() / 3000**0.5
    advantage = (inside > 0).mean() - (outside > 0).mean()
    claim = DPSGD(1.0, 0.3, STEPS).curve(adjacency).advantage()
    assert abs(advantage - claim) < 4.5 * (2 * 0.25 / 3000) ** 0.5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("copies", "expected"), [(None, 12), (3, 3), (30, 30)])
def test_copies_of_the_first_record(kind, copies, expected):
    setting = engine_setting()
    attack = kind(copies=copies).craft(setting)
    common = attack.worlds.common
    assert len(common) == expected
    assert (common.records == setting.dataset.records[0]).all()
    assert (common.labels == setting.dataset.labels[0]).all()
    assert attack.about.startswith(f"{expected} copies of one record, and a gradient")


def test_a_hundred_copies_at_most_unless_more_are_asked_for():
    setting = engine_setting(records=130)
    assert len(MaliciousDataset().craft(setting).worlds.common) == 100
    assert len(MaliciousDataset(copies=130).craft(setting).worlds.common) == 130


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
    shown = found["score"] / (mu**2 / 2)
    np.testing.assert_allclose(shown, [1, -1] * 5, atol=0.02)
