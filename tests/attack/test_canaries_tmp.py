"""Gradients in a record's place: how long, how they turn, at what angle, and of which record."""

import copy

import pytest
import torch
from torch.nn.functional import cross_entropy, mse_loss

from dprime.attack import AdaptivePoisoning
from dprime.attack.gradient_attacks import (
    UNCLIPPED_NORM,
    Fixed,
    Opposing,
    Orthogonal,
    unit,
)
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


def watched(canary, adjacency="add-remove", **options):
    """What the canary expects of every step, what it was given, and the sum of the others."""
    steps = []

    class Watching(Observer):
        def see(self, step):
            expected = step.memo[canary]
            steps.append(
                (step.index, expected, step.weights.clone(), step.differing, step.common_sum)
            )

    train(
        dense(5, 4, 3), PAIRS[adjacency], TrainingConfig(**{**RECIPE, **options}), trials=4, seed=2,
        canary=canary, observers=[Watching()],
    )  # fmt: skip
    return steps


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
        norms = expected.gradients[0].norm(dim=1)
        torch.testing.assert_close(norms, torch.full_like(norms, C))
        torch.testing.assert_close(differing[0], expected.gradients[0], rtol=1e-4, atol=1e-5)
        assert len(expected.gradients) == (2 if adjacency == "replace" else 1)
        for gradients in (differing, expected.gradients):
            torch.testing.assert_close(gradients[-1], gradients[0] * (-1) ** (len(gradients) - 1))


def test_far_longer_before_clipping():
    """A trainer that does not clip lets it count a thousandfold."""
    for _, _, _, differing, _ in watched(
        Fixed(torch.ones(SIZE)), clip_norm=None, noise_multiplier=0.0
    ):
        torch.testing.assert_close(differing[0].norm(dim=1), torch.full((4,), UNCLIPPED_NORM))


@pytest.mark.parametrize("kind", ["fixed", "orthogonal"])
def test_signs_alternate(kind):
    """At nearly the same weights the next step's direction is the opposite one."""
    steps = watched(DIRECTIONS[kind](), learning_rate=1e-12)
    assert [index for index, *_ in steps] == [0, 1, 2, 3]
    first = steps[0][1].gradients[0]
    for index, expected, *_ in steps:
        sign = 1 if index % 2 == 0 else -1
        torch.testing.assert_close(expected.gradients[0], sign * first, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("adjacency", PAIRS)
def test_orthogonal_is_at_right_angles_to_the_others(adjacency):
    for _, expected, weights, _, common in watched(DIRECTIONS["orthogonal"](), adjacency):
        direction = unit(expected.gradients[0])
        assert torch.linalg.vecdot(direction, unit(others(weights))).abs().max() < 1e-5
        assert expected.common is None
        assert torch.linalg.vecdot(direction, common).abs().max() < 1e-4 * C
        assert common.norm(dim=1).min() > C  # the others do move, only not there


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_opposing_expects_what_a_correct_trainer_makes_of_the_copies(rate):
    for _, expected, weights, _, common in watched(DIRECTIONS["opposing"](), sample_rate=rate):
        theirs = others(weights)
        torch.testing.assert_close(unit(expected.gradients[0]), -unit(theirs))
        clipped = unit(theirs) * theirs.norm(dim=1, keepdim=True).clamp(max=C)
        torch.testing.assert_close(expected.common, 7 * rate * clipped, rtol=1e-4, atol=1e-5)
        if rate == 1:
            torch.testing.assert_close(common, expected.common, rtol=1e-4, atol=1e-5)


# Records that are made anew at every step ---------------------------------------------------------


def made_in(setting, attack):
    """At every step: the weights, the record with its worst and best label, and the step."""
    seen = []

    class Making(Observer):
        def see(self, step):
            context = StepContext(self.run, step.index, step.rows, step.weights, step.memo)
            seen.append((step.weights.clone(), *attack.canary.made(context), step))

        def begin(self, run):
            self.run = run

    train(
        setting.trainer.model, attack.worlds, setting.trainer.training, trials=4,
        seed=setting.seed, canary=attack.canary, observers=[Making()],
    )  # fmt: skip
    return seen


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
    attack = AdaptivePoisoning(pgd_steps, size=0.1).craft(setting)
    natural = torch.tensor(attack.worlds.differing.records[:1])
    low, high = setting.dataset.records.min(), setting.dataset.records.max()
    for weights, x, worst, best, _ in made_in(setting, attack):
        assert low <= x.min() <= x.max() <= high
        assert (x - natural).abs().max() <= pgd_steps * 0.1 * (high - low) * (1 + 1e-6)
        for trial, vector in enumerate(weights):
            before, after = (losses_of(setting, vector, each) for each in (natural, x[trial]))
            assert int(worst[trial]) == int(before.argmax())
            assert int(best[trial]) == int(before.argmin())
            assert (after[worst[trial]] > before[worst[trial]]) == (pgd_steps > 0)


def autograd(setting, vector, x, y):
    model = copy.deepcopy(setting.trainer.model)
    set_flat(model, vector.clone())
    loss = mse_loss if setting.dataset.classes is None else cross_entropy

    def each(outputs, labels):
        outputs = outputs[:, 0] if loss is mse_loss else outputs
        return loss(outputs, labels, reduction="none")

    return one_gradient(model, each, x, y)


@pytest.mark.parametrize(("split", "mirrors"), [(IMAGES, False), (TABLE, True)])
def test_the_other_record_is_the_one_whose_gradient_is_further_away(split, mirrors):
    """On the images the likeliest label; where both labels pull alike, the mirror image."""
    setting = engine_setting(split, adjacency="replace")
    data = setting.dataset
    low, high = data.records.min(), data.records.max()
    attack = AdaptivePoisoning(pgd_steps=1).craft(setting)
    mirrored = []
    for weights, x, worst, best, step in made_in(setting, attack):
        if data.classes is None:  # a regression has the ends of its range
            ends = {float(data.labels.min()), float(data.labels.max())}
            assert {*worst.flatten().tolist(), *best.flatten().tolist()} <= ends
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
