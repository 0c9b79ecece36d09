"""Gradients in a record's place, and adversaries that reach the certified curve with them.

Full batch, k steps, noise z: the log ratio is N(±μ²/2, μ²) with μ = √k/z for add-remove and 2√k/z
for replace (Dong, Roth and Su 2022, section 2.2).
"""

import copy

import numpy as np
import pytest
import scipy.stats
import torch
from torch.nn.functional import cross_entropy, mse_loss, normalize

from dprime import DPSGD
from dprime.attack import AttackTarget, EngineTrainer
from dprime.attack import gradient_attacks as attacks
from dprime.data.dataset import Dataset
from dprime.train import Observer, StepContext, TrainingConfig
from dprime.train.models import model_named
from games import IMAGES, TABLE, by_world, engine_setting, played
from trials import gradient_of as one_gradient
from trials import set_flat

every_adjacency = pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
both_factors = pytest.mark.parametrize(("adjacency", "factor"), [("add-remove", 1), ("replace", 2)])
copied = pytest.mark.parametrize("adversary", [attacks.MaliciousDataset, attacks.OpposingDataset])


class Watching(Observer):
    """What a canary makes and expects of every step."""

    def __init__(self, canary):
        self.canary, self.steps = canary, []

    def begin(self, run):
        self.run = run

    def see(self, step):
        weights = step.weights.clone()
        if self.canary in step.memo:
            expected = step.memo[self.canary]
            self.steps.append((expected, weights, step.differing, step.common_sum))
        else:
            context = StepContext(self.run, step.index, step.rows, step.weights, step.memo)
            self.steps.append((*self.canary.made(context), weights, step.differing))


def watched(setting, attack):
    trainer, watching = setting.trainer, Watching(attack.canary)
    game = {"trials": 4, "seed": setting.seed, "canary": attack.canary}
    trainer.watch(watching, attack.worlds, trainer.training, **game)
    return watching.steps


def autograd(setting, vector, x, y):
    """The clipped gradient of one record."""
    model = copy.deepcopy(setting.trainer.model)
    set_flat(model, vector.clone())

    def loss(outputs, labels):
        if setting.dataset.classes is None:
            return mse_loss(outputs[:, 0], labels, reduction="none")
        return cross_entropy(outputs, labels, reduction="none")

    found = one_gradient(model, loss, x, y)
    return found / found.norm().clamp_min(1.0)


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_opposing_expects_what_a_correct_trainer_makes_of_the_copies(rate):
    setting = engine_setting(sample_rate=rate)
    attack = attacks.OpposingDataset(copies=7).craft(setting)
    x, y = (torch.tensor(each[0]) for each in (setting.dataset.records, setting.dataset.labels))
    for expected, weights, _, common in watched(setting, attack):
        theirs = torch.stack([autograd(setting, vector, x, y) for vector in weights])
        torch.testing.assert_close(normalize(expected.gradients[0]), -normalize(theirs))
        torch.testing.assert_close(expected.common, 7 * rate * theirs, rtol=1e-4, atol=1e-5)
        if rate == 1:
            torch.testing.assert_close(common, expected.common, rtol=1e-4, atol=1e-5)


# Records that are made anew at every step ---------------------------------------------------------


def losses_of(setting, vector, x):
    """The loss of one record under every label, at some weights."""
    model = copy.deepcopy(setting.trainer.model)
    set_flat(model, vector.clone())
    with torch.no_grad():
        outputs = model(x).expand(10, -1)
    return cross_entropy(outputs, torch.arange(10), reduction="none")


@pytest.mark.parametrize("pgd_steps", [0, 3])
def test_worst_and_best_label_and_a_larger_loss_within_reach(pgd_steps):
    setting = engine_setting(adjacency="replace", model="dense-5", records=40)
    assert set(setting.dataset.labels) == set(range(10))
    attack = attacks.AdaptivePoisoning(pgd_steps, size=0.1).craft(setting)
    natural = torch.tensor(attack.worlds.differing.records[:1])
    low, high = setting.dataset.records.min(), setting.dataset.records.max()
    for x, worst, best, weights, _ in watched(setting, attack):
        assert low <= x.min() <= x.max() <= high
        assert (x - natural).abs().max() <= pgd_steps * 0.1 * (high - low) * (1 + 1e-6)
        for trial, vector in enumerate(weights):
            before, after = (losses_of(setting, vector, each) for each in (natural, x[trial]))
            assert int(worst[trial]) == int(before.argmax())
            assert int(best[trial]) == int(before.argmin())
            assert (after[worst[trial]] > before[worst[trial]]) == (pgd_steps > 0)


@pytest.mark.parametrize(("split", "mirrors"), [(IMAGES, False), (TABLE, True)])
def test_the_other_record_is_the_one_whose_gradient_is_further_away(split, mirrors):
    setting = engine_setting(split, adjacency="replace")
    data = setting.dataset
    ends = data.records.min() + data.records.max()
    attack = attacks.AdaptivePoisoning(pgd_steps=1).craft(setting)
    mirrored = []
    for x, worst, best, weights, differing in watched(setting, attack):
        if data.classes is None:  # a regression has the ends of its range
            labels = {*worst.flatten().tolist(), *best.flatten().tolist()}
            assert labels <= {float(data.labels.min()), float(data.labels.max())}
        for trial, vector in enumerate(weights):
            shown, y = x[trial, 0], worst[trial, 0]
            choices = [(shown, y), (shown, best[trial, 0]), (ends - shown, y)]
            first, label, mirror = (autograd(setting, vector, *each) for each in choices)
            mirrored.append(bool((mirror - first).norm() > (label - first).norm()))
            expected = mirror if mirrored[-1] else label
            torch.testing.assert_close(differing[0][trial], first, rtol=1e-3, atol=1e-4)
            torch.testing.assert_close(differing[1][trial], expected, rtol=1e-3, atol=1e-4)
    assert any(mirrored) == mirrors


# The law of the scores ----------------------------------------------------------------------------

STEPS, NOISE = 6, 3.0


def assert_law(found, mu):
    """The scores are log ratios of Gaussians so far apart: N(±μ²/2, μ²)."""
    for scores, sign in zip(by_world(found), (1, -1), strict=True):
        assert scipy.stats.kstest(scores, scipy.stats.norm(sign * mu**2 / 2, mu).cdf).pvalue > 1e-3


def dead_columns(adjacency):
    """A table whose last two features are 0 in every record; 6 of 18 weights never move."""
    rng = np.random.default_rng(0)
    records = rng.normal(size=(12, 5)).astype(np.float32)
    records[:, 3:] = 0
    data = Dataset.of(records, rng.integers(0, 3, 12), classes=3)
    recipe = TrainingConfig(steps=STEPS, learning_rate=0.5, clip_norm=1.0, noise_multiplier=NOISE)
    trainer = EngineTrainer(model_named("linear", data.take(range(10))), recipe)
    return AttackTarget(trainer, data.take(range(10)), adjacency, pool=data.take([10, 11]), seed=2)


@pytest.mark.parametrize(("adjacency", "factor"), [("zero-out", 1), ("replace", 2)])
def test_a_gradients_score_is_the_exact_log_ratio(adjacency, factor):
    setting = dead_columns(adjacency)
    attack = attacks.Gradient(share=0.3).craft(setting)
    direction = attack.canary.direction.args[0]
    assert int((direction != 0).sum()) == 5  # 0.3 of 18 weights
    assert not direction[:15].view(3, 5)[:, :3].any()
    assert not direction[15:].any()
    assert float(direction.norm()) == pytest.approx(1.0)
    assert_law(played(setting, attack, trials=500), factor * STEPS**0.5 / NOISE)


@copied
@both_factors
def test_among_copies_the_score_is_the_exact_log_ratio(adversary, adjacency, factor):
    setting = engine_setting(adjacency=adjacency, noise_multiplier=NOISE, steps=STEPS)
    attack = adversary().craft(setting)
    assert_law(played(setting, attack, trials=1000), factor * STEPS**0.5 / NOISE)


@every_adjacency
def test_with_sampling_it_reaches_the_certified_advantage(adjacency):
    """Score above 0 is the optimal test of the mixtures; e^±L has mean 1 in the other world."""
    options = {"noise_multiplier": 1.0, "steps": STEPS, "sample_rate": 0.3}
    setting = engine_setting(adjacency=adjacency, **options)
    found = played(setting, attacks.MaliciousDataset().craft(setting), trials=3000)
    inside, outside = by_world(found)
    for values in (np.exp(outside), np.exp(-inside)):
        assert abs(values.mean() - 1) < 4.5 * values.std() / 3000**0.5
    advantage = (inside > 0).mean() - (outside > 0).mean()
    claim = DPSGD(1.0, 0.3, STEPS).curve(adjacency).advantage()
    assert abs(advantage - claim) < 4.5 * (2 * 0.25 / 3000) ** 0.5


@copied
def test_copies_of_the_first_record(adversary):
    setting = engine_setting(records=130)
    for copies, expected in ((None, 100), (3, 3), (130, 130)):
        attack = adversary(copies=copies).craft(setting)
        first = setting.dataset.take([0] * expected)
        assert attack.worlds.common.digest() == first.digest()
        assert attack.about.startswith(f"{expected} copies of one record, and a gradient")


def test_frozen_weights_get_no_gradient():
    setting = engine_setting(model="dense-5")
    setting.trainer.model[1].requires_grad_(False)
    found = played(setting, attacks.MaliciousDataset().craft(setting))
    assert np.isfinite(found["score"]).all()


def test_layers_that_learn_nothing_leave_the_right_angle():
    """Without noise on the way the others' sum has no share along the direction."""
    setting = engine_setting(noise_multiplier=1e-4, model="conv-4")
    found = played(setting, attacks.MaliciousDataset().craft(setting), trials=5)
    mu = 4**0.5 / 1e-4
    np.testing.assert_allclose(found["score"] / (mu**2 / 2), [1, -1] * 5, atol=0.02)
