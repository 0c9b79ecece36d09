"""Directions of inserted gradients: how long, how they turn, and at what angle."""

import pytest
import torch

from dprime.attack.canary_gradients import (
    UNCLIPPED_NORM,
    Fixed,
    Opposing,
    Orthogonal,
    gradient_of,
    unit,
)
from dprime.attack.scorers import ExpectedUpdate
from dprime.train import Observer, TrainingConfig, TrainingData, train
from dprime.train.losses import plain_cross_entropy
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
    """What the insert expects of every step, and what it was given."""

    def __init__(self, insert):
        self.canary = insert

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


def watched(insert, adjacency="add-remove", **options):
    watching = Watching(insert)
    train(
        dense(5, 4, 3), PAIRS[adjacency], TrainingConfig(**RECIPE, **options), trials=4, seed=2,
        canary=insert, observers=[watching],
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


INSERTS = {
    "fixed": lambda: Fixed(torch.arange(1.0, SIZE + 1)),
    "aside": lambda: Orthogonal(DATA.take([2]), unit(torch.ones(1, SIZE))[0]),
    "against": lambda: Opposing(DATA.take([2]), 7),
}


@pytest.mark.parametrize("kind", INSERTS)
@pytest.mark.parametrize("adjacency", PAIRS)
def test_of_norm_c_and_opposite_in_the_other_world(kind, adjacency):
    for _, expected, _, differing, _ in watched(INSERTS[kind](), adjacency):
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
    insert, watching = Fixed(torch.ones(SIZE)), []

    class Raw(Observer):
        def see(self, step):
            watching.append(step.differing[0].norm(dim=1))

    training = TrainingConfig(steps=1, learning_rate=0.1)
    train(dense(5, 4, 3), PAIRS["add-remove"], training, trials=2, canary=insert, observers=[Raw()])
    torch.testing.assert_close(watching[0], torch.full((2,), UNCLIPPED_NORM))


@pytest.mark.parametrize("kind", ["fixed", "aside"])
def test_signs_alternate(kind):
    """At nearly the same weights the next step's direction is the opposite one."""
    insert = INSERTS[kind]()
    watching = Watching(insert)
    still = TrainingConfig(**{**RECIPE, "learning_rate": 1e-12})
    train(
        dense(5, 4, 3), PAIRS["add-remove"], still, trials=4, seed=2, canary=insert,
        observers=[watching],
    )  # fmt: skip
    steps = watching.steps
    assert len({index for index, *_ in steps}) == 4
    first = next(expected.gradients[0] for index, expected, *_ in steps if index == 0)
    for index, expected, *_ in steps:
        sign = 1 if index % 2 == 0 else -1
        torch.testing.assert_close(expected.gradients[0], sign * first, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("adjacency", PAIRS)
def test_aside_is_at_right_angles_to_the_others(adjacency):
    for _, expected, weights, _, common in watched(INSERTS["aside"](), adjacency):
        theirs = unit(others(weights))
        angles = torch.linalg.vecdot(unit(expected.gradients[0]), theirs)
        assert angles.abs().max() < 1e-5
        assert expected.common is None
        share = torch.linalg.vecdot(unit(expected.gradients[0]), common)
        assert share.abs().max() < 1e-4 * C
        assert common.norm(dim=1).min() > C  # the others do move, only not there


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_against_expects_what_a_correct_trainer_makes_of_the_copies(rate):
    for _, expected, weights, _, common in watched(INSERTS["against"](), sample_rate=rate):
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
        def gradients(self, moment):
            seen.append((moment.weights.clone(), gradient_of(moment, COPIES.take([0]))))
            return super().gradients(moment)

    watched(Asking(torch.ones(SIZE)))
    for weights, found in seen:
        torch.testing.assert_close(found, others(weights), rtol=1e-4, atol=1e-5)


def test_nothing_has_no_direction():
    assert torch.equal(unit(torch.zeros(2, 3)), torch.zeros(2, 3))
