"""The fourth adversary: a record that is bent at every step against the model of the moment."""

import copy

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, mse_loss

from dprime.attack import AdaptivePoisoning
from dprime.train import Observer, StepContext, train
from games import IMAGES, TABLE, engine_setting
from trials import gradient_of, set_flat


class Watching(Observer):
    """The remade records, with the weights that they were made against."""

    def __init__(self, insert):
        self.canary = insert

    def begin(self, run):
        self.run, self.seen = run, []

    def see(self, step):
        moment = StepContext(self.run, step.index, step.rows, step.weights, step.memo)
        x, *labels = self.canary.made(moment)
        made = [(x, y) for y in labels[: self.run.sampler.differing]]
        self.seen.append((step.index, step.weights.clone(), made, step))


def watched(setting, attack):
    watching = Watching(attack.canary)
    train(
        setting.trainer.model, attack.worlds, setting.trainer.training, trials=4,
        seed=setting.seed, canary=attack.canary, observers=[watching],
    )  # fmt: skip
    return watching.seen


def losses_of(setting, vector, x):
    """The loss of one record under every label, at some weights."""
    model = copy.deepcopy(setting.trainer.model)
    set_flat(model, vector.clone())
    with torch.no_grad():
        outputs = model(x).expand(10, -1)
    return cross_entropy(outputs, torch.arange(10), reduction="none")


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_worst_and_best_label_and_a_larger_loss(adjacency):
    setting = engine_setting(adjacency=adjacency, model="dense-5", records=40)
    assert set(setting.dataset.labels) == set(range(10))
    attack = AdaptivePoisoning().craft(setting)
    natural = torch.tensor(attack.worlds.differing.records[:1])
    low, high = setting.dataset.records.min(), setting.dataset.records.max()
    for _, weights, made, _ in watched(setting, attack):
        assert len(made) == len(attack.worlds.differing)
        for trial, vector in enumerate(weights):
            x = made[0][0][trial]
            assert low <= x.min() <= x.max() <= high
            before, after = losses_of(setting, vector, natural), losses_of(setting, vector, x)
            worst = int(made[0][1][trial])
            assert worst == int(before.argmax())
            assert after[worst] > before[worst]
            if adjacency == "replace":
                assert int(made[1][1][trial]) == int(before.argmin())


def autograd(setting, vector, x, y):
    model = copy.deepcopy(setting.trainer.model)
    set_flat(model, vector.clone())
    loss = mse_loss if setting.dataset.classes is None else cross_entropy

    def each(outputs, labels):
        outputs = outputs[:, 0] if loss is mse_loss else outputs
        return loss(outputs, labels, reduction="none")

    return gradient_of(model, each, x, y)


def test_its_gradient_is_what_the_engine_takes():
    setting = engine_setting(clip_norm=1e6, noise_multiplier=1e-6)
    attack = AdaptivePoisoning(pgd_steps=2, size=0.2).craft(setting)
    for _, weights, ((x, y),), step in watched(setting, attack):
        for trial, vector in enumerate(weights):
            expected = autograd(setting, vector, x[trial, 0], y[trial, 0])
            torch.testing.assert_close(step.differing[0][trial], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("split", "mirrors"), [(IMAGES, False), (TABLE, True)])
def test_the_other_record_is_the_one_whose_gradient_is_further_away(split, mirrors):
    """On the images the likeliest label; where both labels pull alike, the mirror image."""
    setting = engine_setting(split, adjacency="replace")
    low, high = setting.dataset.records.min(), setting.dataset.records.max()
    attack = AdaptivePoisoning(pgd_steps=1).craft(setting)
    mirrored = []
    for _, weights, ((x, worst), (_, best)), step in watched(setting, attack):
        for trial, vector in enumerate(weights):
            shown, y = x[trial, 0], worst[trial, 0]
            choices = [(shown, y), (shown, best[trial, 0]), (low + high - shown, y)]
            gradients = [autograd(setting, vector, *each) for each in choices]
            first, label, mirror = (each / each.norm().clamp_min(1.0) for each in gradients)
            mirrored.append(bool((mirror - first).norm() > (label - first).norm()))
            expected = mirror if mirrored[-1] else label
            torch.testing.assert_close(step.differing[0][trial], first, rtol=1e-3, atol=1e-4)
            torch.testing.assert_close(step.differing[1][trial], expected, rtol=1e-3, atol=1e-4)
    assert any(mirrored) == mirrors


def test_it_is_made_anew_at_every_step():
    setting = engine_setting(learning_rate=5.0)
    seen = watched(setting, AdaptivePoisoning().craft(setting))
    steps = {}
    for index, _, made, _ in seen:
        steps.setdefault(index, made[0][0])
    assert len(steps) == 4
    assert not torch.equal(steps[0], steps[3])


def test_no_step_goes_further_than_it_may():
    setting = engine_setting()
    attack = AdaptivePoisoning(pgd_steps=2, size=0.1).craft(setting)
    natural = torch.tensor(attack.worlds.differing.records[:1])
    reach = 2 * 0.1 * (setting.dataset.records.max() - setting.dataset.records.min())
    for _, _, made, _ in watched(setting, attack):
        assert (made[0][0] - natural).abs().max() <= reach * (1 + 1e-6)


def test_a_regression_has_the_ends_of_its_range():
    setting = engine_setting(TABLE, adjacency="replace")
    ends = {float(setting.dataset.labels.min()), float(setting.dataset.labels.max())}
    for _, _, made, _ in watched(setting, AdaptivePoisoning().craft(setting)):
        labels = np.concatenate([y.numpy().ravel() for _, y in made])
        assert set(labels.tolist()) <= ends


def test_without_bends_only_the_label_is_new():
    setting = engine_setting(model="dense-5", records=40)
    attack = AdaptivePoisoning(pgd_steps=0).craft(setting)
    natural = torch.tensor(attack.worlds.differing.records[:1])
    for _, weights, made, _ in watched(setting, attack):
        for trial, vector in enumerate(weights):
            assert torch.equal(made[0][0][trial], natural)
            assert int(made[0][1][trial]) == int(losses_of(setting, vector, natural).argmax())
