"""Scores by formula: gains of a loss that is linear in the weights, and projections by hand."""

import numpy as np
import pytest
import torch
from torch import nn

from dprime.attack.adversary import Probes
from dprime.attack.inserts import Fixed
from dprime.attack.scorers import FinalLoss, Gain, Projection, always
from dprime.data.dataset import Dataset
from dprime.train import SGD, Decay, Observer, Training, Worlds, train
from trials import blobs, dense

C = 0.8
RECIPE = {"steps": 3, "learning_rate": 0.5, "clip_norm": C, "noise_multiplier": 0.7}


def linear(outputs, labels):
    """A loss whose gradient is the record itself."""
    return outputs[:, 0]


def records(*rows):
    return Dataset("rows", np.array(rows), np.zeros(len(rows)), "table", classes=None)


X, OTHER = [3.0, 0.0, 4.0], [0.0, 1.0, -1.0]
BLANK = [0.0, 0.0, 0.0]
NATURAL = [[1.0, 2.0, 0.0], [-1.0, 0.5, 2.0]]


class Keeper(Observer):
    """Weights and sums of every step, and the weights at the end [step, trial, parameter]."""

    def begin(self, run):
        shape = (run.training.steps, len(run.trials), 3)
        self.noisy, self.own, self.common = (torch.zeros(shape) for _ in range(3))
        self.weights = torch.zeros(shape[0] + 1, *shape[1:])

    def see(self, step):
        at = (step.index, step.rows)
        self.noisy[at], self.own[at], self.common[at] = (
            step.noisy_sum, step.own_sum, step.common_sum,
        )  # fmt: skip
        self.weights[at] = step.weights

    def end(self, final):
        self.weights[-1, final.rows] = final.weights


def gains(worlds, training, trials=6):
    scorer, keeper = Gain(always(worlds.differing)), Keeper()
    done = train(
        nn.Linear(3, 1, bias=False), worlds, training, trials=trials, seed=4,
        observers=[scorer, keeper],
    )  # fmt: skip
    return scorer.arrays()["score"], keeper, done.in_world


def along(vector, steps):
    """Σ over the steps of ⟨x/‖x‖, v_t⟩ [trial]."""
    unit = torch.tensor(vector) / torch.tensor(vector).norm()
    return (steps.double() @ unit.double()).sum(0).numpy()


def test_gain_with_no_others_is_noise_and_the_clipped_gradient():
    """lr/n (⟨x̂, noise⟩ + C in world `in`) at every step, as ‖x‖ = 5 is clipped to C."""
    worlds = Worlds.add(records(BLANK), records(X))
    scores, keeper, in_world = gains(worlds, Training(**RECIPE, loss=linear))
    noise = along(X, keeper.noisy - keeper.own)
    expected = 0.5 / 2 * (noise + 3 * C * in_world)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-6)


def test_what_the_others_explain_is_taken_off():
    worlds = Worlds.add(records(*NATURAL), records(X))
    scores, keeper, in_world = gains(worlds, Training(**RECIPE, loss=linear))
    noise = along(X, keeper.noisy - keeper.own)
    assert np.abs(along(X, keeper.common)).min() > 0.1
    np.testing.assert_allclose(scores, 0.5 / 3 * (noise + 3 * C * in_world), rtol=1e-4, atol=1e-5)


def test_gains_on_the_other_record_count_against():
    worlds = Worlds(records(*NATURAL), records(X, OTHER))
    scores, keeper, _ = gains(worlds, Training(**RECIPE, loss=linear))
    rest = keeper.noisy - keeper.common
    expected = 0.5 / 3 * (along(X, rest) - along(OTHER, rest))
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "options", [{"sample_rate": 0.5}, {"optimizer": SGD(momentum=0.9)}], ids=["sampled", "momentum"]
)
def test_else_the_others_are_left_in(options):
    """What the weights moved along the record, whatever moved them."""
    worlds = Worlds.add(records(*NATURAL), records(X))
    scores, keeper, _ = gains(worlds, Training(**RECIPE, loss=linear, **options))
    expected = along(X, keeper.weights[:-1] - keeper.weights[1:])
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)


def test_the_rate_of_a_schedule_is_known():
    worlds = Worlds.add(records(*NATURAL), records(X))
    training = Training(**RECIPE, loss=linear, schedule=Decay(0.5, 1))
    scores, keeper, _ = gains(worlds, training)
    rest = keeper.noisy - keeper.common
    rates = torch.tensor([training.rate_at(step) for step in range(3)])[:, None, None]
    np.testing.assert_allclose(scores, along(X, rates * rest) / 3, rtol=1e-4, atol=1e-5)


def test_gain_sees_slices_in_turns(monkeypatch):
    worlds = Worlds.add(records(*NATURAL), records(X))
    training = Training(**RECIPE, loss=linear)
    whole = gains(worlds, training)[0]
    monkeypatch.setattr("dprime.train.slices.CACHE", 1)
    monkeypatch.setattr("dprime.train.slices.WORTH_A_WORKER", 1)
    np.testing.assert_allclose(gains(worlds, training)[0], whole, rtol=1e-4, atol=1e-6)


def test_final_loss():
    data = blobs(6, (5,))
    scorer = FinalLoss(Probes(data.take([1])))
    worlds, training = Worlds.remove(data, 1), Training(steps=3, learning_rate=0.5)
    done = train(dense(5, 4, 3), worlds, training, trials=5, seed=1, observers=[scorer])
    expected = -done.mean_loss(data.take([1]))
    np.testing.assert_allclose(scorer.arrays()["score"], expected, rtol=1e-6)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_projection_by_the_densities(adjacency, rate):
    """ln of the mixtures' densities along the direction, added up over the steps."""
    rows = [*NATURAL, BLANK]
    differing = records(X) if adjacency == "add-remove" else records(X, OTHER)
    worlds = Worlds(records(*rows), differing)
    insert, keeper = Fixed(torch.tensor([1.0, -2.0, 2.0])), Keeper()
    scorer = Projection(insert)
    training = Training(**RECIPE, loss=linear, sample_rate=rate)
    train(
        nn.Linear(3, 1, bias=False), worlds, training, trials=8, seed=4, insert=insert,
        observers=[scorer, keeper],
    )  # fmt: skip
    direction, sigma = torch.tensor([1.0, -2.0, 2.0]).double() / 3, 0.7 * C
    expected = np.zeros(8)
    for step in range(3):
        seen = (keeper.noisy[step].double() @ direction).numpy() * (-1) ** step

        def mixture(mean, seen=seen):
            drawn = np.exp(-((seen - mean) ** 2) / (2 * sigma**2))
            return (1 - rate) * np.exp(-(seen**2) / (2 * sigma**2)) + rate * drawn

        expected += np.log(mixture(C))
        expected -= np.log(mixture(-C if adjacency == "replace" else 0.0))
    np.testing.assert_allclose(scorer.scores, expected, rtol=1e-4, atol=1e-5)
