"""Gradients in a record's place: how long, how they turn, at what angle, and of which record."""

import copy

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, mse_loss

from dprime.attack import AdaptivePoisoning
from dprime.attack.canary_gradients import (
    UNCLIPPED_NORM,
    Fixed,
    Opposing,
    Orthogonal,
    gradient_of,
    unit,
)
from dprime.attack.scorers import ExpectedUpdate
from dprime.train import Observer, StepContext, TrainingConfig, TrainingData, train
from dprime.train.losses import plain_cross_entropy
from games import IMAGES, TABLE, engine_setting
from trials import blobs, dense, set_flat
from trials import gradient_of as one_gradient

DATA = blobs(6, (5,))
COPIES = DATA.take([2] * 7)
PAIRS = {
    "add-remove": TrainingData(COPIES, DATA.take([2])),
    "replace": TrainingData(COPIES, DATA.take([2, 2])),
}
SIZE = 39
C = 0.6
RECIPE = {"steps": 4, "learning_rate": 0.5, "clip_norm": C, "noise_multiplier": 0.5}


class Watching(Observer):
    """What the canary expects of every step, and what it was given."""

    def __init__(self, canary):
        self.canary = canary

    def begin(self, run):
        self.steps = []

    def see(self, step):
        self.steps.append(
            (
                step.index,
                step.memo[self.canary],
                step.weights.clone(),
                step.differing,
                step.common_sum,
            )
        )


def watched(canary, adjacency="add-remove", **options):
    watching = Watching(canary)
    train(
        dense(5, 4, 3), PAIRS[adjacency], TrainingConfig(**RECIPE, **options), trials=4, seed=2,
        canary=canary, observers=[watching],
    )  # fmt: skip
    return watching.steps


def others(weights):
    """The gradient of the record of which there are copies, by autograd [trial, parameter]."""
    model = dense(5, 4, 3)
    x, y = torch.tensor(COPIES.records[0]), torch.tensor(COPIES.labels[0])
    found = []
    for vector in weights:
        set_flat(model, vector.clone())
        found.append(one_gradient(model, plain_cross_entropy, x, y))
    return torch.stack(found)


DIRECTIONS = {
    "fixed": lambda: Fixed(torch.arange(1.0, SIZE + 1)),
    "orthogonal": lambda: Orthogonal(DATA.take([2]), unit(torch.ones(1, SIZE))[0]),
    "opposing": lambda: Opposing(DATA.take([2]), 7),
}


@pytest.mark.parametrize("kind", DIRECTIONS)
@pytest.mark.parametrize("adjacency", PAIRS)
def test_of_norm_c_and_opposite_in_the_other_world(kind, adjacency):
    for _, expected, _, differing, _ in watched(DIRECTIONS[kind](), adjacency):
        assert isinstance(expected, ExpectedUpdate)
        norms = expected.gradients[0].norm(dim=1)
        torch.testing.assert_close(norms, torch.full_like(norms, C))
        torch.testing.assert_close(differing[0], expected.gradients[0], rtol=1e-4, atol=1e-5)
        if adjacency == "replace":
            torch.testing.assert_close(differing[1], -differing[0])
            torch.testing.assert_close(expected.gradients[1], -expected.gradients[0])
        else:
            assert len(expected.gradients) == 1


def test_far_longer_before_clipping():
    """A trainer that does not clip lets it count a thousandfold."""
    canary, watching = Fixed(torch.ones(SIZE)), []

    class Raw(Observer):
        def see(self, step):
            watching.append(step.differing[0].norm(dim=1))

    training = TrainingConfig(steps=1, learning_rate=0.1)
    train(dense(5, 4, 3), PAIRS["add-remove"], training, trials=2, canary=canary, observers=[Raw()])
    torch.testing.assert_close(watching[0], torch.full((2,), UNCLIPPED_NORM))


@pytest.mark.parametrize("kind", ["fixed", "orthogonal"])
def test_signs_alternate(kind):
    """At nearly the same weights the next step's direction is the opposite one."""
    canary = DIRECTIONS[kind]()
    watching = Watching(canary)
    still = TrainingConfig(**{**RECIPE, "learning_rate": 1e-12})
    train(
        dense(5, 4, 3), PAIRS["add-remove"], still, trials=4, seed=2, canary=canary,
        observers=[watching],
    )  # fmt: skip
    steps = watching.steps
    assert len({index for index, *_ in steps}) == 4
    first = next(expected.gradients[0] for index, expected, *_ in steps if index == 0)
    for index, expected, *_ in steps:
        sign = 1 if index % 2 == 0 else -1
        torch.testing.assert_close(expected.gradients[0], sign * first, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("adjacency", PAIRS)
def test_orthogonal_is_at_right_angles_to_the_others(adjacency):
    for _, expected, weights, _, common in watched(DIRECTIONS["orthogonal"](), adjacency):
        theirs = unit(others(weights))
        angles = torch.linalg.vecdot(unit(expected.gradients[0]), theirs)
        assert angles.abs().max() < 1e-5
        assert expected.common is None
        share = torch.linalg.vecdot(unit(expected.gradients[0]), common)
        assert share.abs().max() < 1e-4 * C
        assert common.norm(dim=1).min() > C  # the others do move, only not there


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_opposing_expects_what_a_correct_trainer_makes_of_the_copies(rate):
    for _, expected, weights, _, common in watched(DIRECTIONS["opposing"](), sample_rate=rate):
        theirs = others(weights)
        angles = torch.linalg.vecdot(unit(expected.gradients[0]), unit(theirs))
        torch.testing.assert_close(angles, -torch.ones_like(angles))
        clipped = unit(theirs) * theirs.norm(dim=1, keepdim=True).clamp(max=C)
        torch.testing.assert_close(expected.common, 7 * rate * clipped, rtol=1e-4, atol=1e-5)
        if rate == 1:
            torch.testing.assert_close(common, expected.common, rtol=1e-4, atol=1e-5)


def test_gradient_of_a_record_is_autograds():
    seen = []

    class Asking(Fixed):
        def gradients(self, context):
            seen.append((context.weights.clone(), gradient_of(context, COPIES.take([0]))))
            return super().gradients(context)

    watched(Asking(torch.ones(SIZE)))
    for weights, found in seen:
        torch.testing.assert_close(found, others(weights), rtol=1e-4, atol=1e-5)


# Records that are made anew at every step ---------------------------------------------------------


class Making(Observer):
    """The remade records, with the weights that they were made against."""

    def __init__(self, canary):
        self.canary = canary

    def begin(self, run):
        self.run, self.seen = run, []

    def see(self, step):
        context = StepContext(self.run, step.index, step.rows, step.weights, step.memo)
        x, *labels = self.canary.made(context)
        made = [(x, y) for y in labels[: self.run.sampler.differing]]
        self.seen.append((step.index, step.weights.clone(), made, step))


def made_in(setting, attack):
    watching = Making(attack.canary)
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
    for _, weights, made, _ in made_in(setting, attack):
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

    return one_gradient(model, each, x, y)


def test_its_gradient_is_what_the_engine_takes():
    setting = engine_setting(clip_norm=1e6, noise_multiplier=1e-6)
    attack = AdaptivePoisoning(pgd_steps=2, size=0.2).craft(setting)
    for _, weights, ((x, y),), step in made_in(setting, attack):
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
    for _, weights, ((x, worst), (_, best)), step in made_in(setting, attack):
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


def test_no_step_goes_further_than_it_may():
    setting = engine_setting()
    attack = AdaptivePoisoning(pgd_steps=2, size=0.1).craft(setting)
    natural = torch.tensor(attack.worlds.differing.records[:1])
    reach = 2 * 0.1 * (setting.dataset.records.max() - setting.dataset.records.min())
    for _, _, made, _ in made_in(setting, attack):
        assert (made[0][0] - natural).abs().max() <= reach * (1 + 1e-6)


def test_a_regression_has_the_ends_of_its_range():
    setting = engine_setting(TABLE, adjacency="replace")
    ends = {float(setting.dataset.labels.min()), float(setting.dataset.labels.max())}
    for _, _, made, _ in made_in(setting, AdaptivePoisoning().craft(setting)):
        labels = np.concatenate([y.numpy().ravel() for _, y in made])
        assert set(labels.tolist()) <= ends


def test_without_steps_only_the_label_is_new():
    setting = engine_setting(model="dense-5", records=40)
    attack = AdaptivePoisoning(pgd_steps=0).craft(setting)
    natural = torch.tensor(attack.worlds.differing.records[:1])
    for _, weights, made, _ in made_in(setting, attack):
        for trial, vector in enumerate(weights):
            assert torch.equal(made[0][0][trial], natural)
            assert int(made[0][1][trial]) == int(losses_of(setting, vector, natural).argmax())
