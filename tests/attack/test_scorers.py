"""Scores by formula: projections by hand, on a loss whose gradient is the record itself."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from dprime.attack.gradient_attacks import DirectedGradient, fixed
from dprime.attack.scorers import CanaryProjection, RecordProjection, unexplained
from dprime.data.dataset import Dataset
from dprime.train import (
    SGD,
    Adam,
    Constant,
    Decay,
    LikelihoodRatio,
    TrainingConfig,
    TrainingData,
    train,
)
from trials import Keeper

C = 0.8
RECIPE = {"steps": 3, "learning_rate": 0.5, "clip_norm": C, "noise_multiplier": 0.7}
SIGMA = 1.001 * 0.7 * C


def linear(outputs, labels):
    """A loss whose gradient is the record itself."""
    return outputs[:, 0]


def records(*rows):
    return Dataset("rows", np.array(rows), np.zeros(len(rows)), "table", classes=None)


X, OTHER = [3.0, 0.0, 4.0], [0.0, 1.0, -1.0]
BLANK = [0.0, 0.0, 0.0]
SUMS = ("noisy", "common")
NATURAL = [[1.0, 2.0, 0.0], [-1.0, 0.5, 2.0]]


def scored(differing=(X,), scorer=None, trials=6, common=NATURAL, canary=None, **options):
    """The scores of a scorer, the sums [step, trial, 3], and the scores of one who knows all."""
    scorer, keeper, knowing = scorer or RecordProjection(), Keeper(), LikelihoodRatio()
    noisy = options.get("noise_multiplier", 1.0) > 0
    worlds = TrainingData(records(*common), records(*differing))
    recipe = TrainingConfig(**{**RECIPE, "loss": linear, **options})
    game = {"trials": trials, "seed": 4, "canary": canary}
    watching = [scorer, keeper, *[knowing][:noisy]]
    train(nn.Linear(3, 1, bias=False), worlds, recipe, observers=watching, **game)
    at = {name: [keeper.at(step, name) for step in range(recipe.steps)] for name in SUMS}
    sums = SimpleNamespace(**{name: torch.stack(each) for name, each in at.items()})
    return scorer.arrays()["score"], sums, knowing.logs


def clipped(row):
    vector = torch.tensor(row).double()
    return vector * min(1.0, C / float(vector.norm()))


def log_ratio(rest, row, rate=1.0):
    """ln((1 − q) + q e^u) of every step, u = ⟨r, g⟩/σ² − ‖g‖²/(2σ²), added up [trial]."""
    gradient = clipped(row)
    u = (rest.double() @ gradient - gradient @ gradient / 2) / SIGMA**2
    return np.log(1 - rate + rate * u.exp().numpy()).sum(0)


def close(scores, expected):
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)


WAYS = {
    "plain": {},
    "momentum": {"optimizer": SGD(momentum=0.9)},
    "nesterov": {"optimizer": SGD(momentum=0.9, nesterov=True)},
    "adam": {"optimizer": Adam()},
    "schedule": {"schedule": Decay(0.5)},
    "local": {"sensitivity": "local"},
    "lost in rounding": {"learning_rate": 1e-12, "optimizer": SGD(momentum=0.9)},
}


@pytest.mark.parametrize("differing", [[X], [X, OTHER]], ids=["add-remove", "replace"])
@pytest.mark.parametrize("way", WAYS)
def test_a_whole_batch_tells_all_that_there_is(differing, way):
    """By the densities along the record; no adversary does better than the likelihood ratio."""
    scores, keeper, best = scored(differing, **WAYS[way])
    np.testing.assert_allclose(scores, best[:, -1], rtol=1e-4, atol=1e-5)
    if differing == [X] and way != "local":
        assert np.abs((keeper.common.double() @ clipped(X)).numpy()).min() > 0.1
        close(scores, log_ratio(keeper.noisy - keeper.common, X))


def test_the_sums_are_those_that_the_models_give_away(monkeypatch):
    plain = SGD.move

    def further(rule, weights, gradient, *rest):
        plain(rule, weights, 1.1 * gradient, *rest)

    monkeypatch.setattr(SGD, "move", further)
    scores, keeper, _ = scored()
    close(scores, log_ratio(1.1 * keeper.noisy - keeper.common, X))


def test_a_step_that_moves_nothing_shows_nothing():
    class Rest(Constant):
        def share(self, step, steps):
            return float(step != 1)

    scores, keeper, _ = scored(schedule=Rest())
    moved = [0, 2]
    close(scores, log_ratio(keeper.noisy[moved] - keeper.common[moved], X))


def test_what_neither_world_explains_adds_to_the_score():
    """0 for noise with or without the record; else ln of the excess over ten deviations."""
    generator = torch.Generator().manual_seed(1)
    noise = 0.5 * torch.randn(1000, 300, generator=generator)
    x, other = 40 * torch.eye(300)[:1], -40 * torch.eye(300)[1:2]
    sigma = torch.full((1000,), 0.5)
    for rest in (noise, noise + x, noise + other):
        assert not unexplained(rest, (x, other), sigma).any()
    longer = noise + 40 * torch.eye(300)[2]
    length = longer.double().square().sum(1)
    expected = ((length / 0.25 - 300) / 600**0.5 / 10).log()
    torch.testing.assert_close(unexplained(longer, (x,), sigma), expected, rtol=1e-4, atol=1e-4)
    assert not unexplained(longer, (x,), torch.zeros(1000)).any()


def test_of_a_drawn_batch_the_others_are_not_known():
    scores, keeper, best = scored((X, OTHER), sample_rate=0.5)
    close(scores, log_ratio(keeper.noisy, X, 0.5) - log_ratio(keeper.noisy, OTHER, 0.5))
    assert np.abs(scores - best[:, -1]).max() > 0.1


@pytest.mark.parametrize("sensitivity", ["global", "local"])
def test_noise_that_was_left_out_is_noticed(sensitivity):
    scores, _, _ = scored(noise_multiplier=0.0, sensitivity=sensitivity)
    steps, gradient = 3, C
    np.testing.assert_allclose(np.abs(scores), steps * gradient**2 / 2 / C**2, rtol=1e-3)


def test_slices_come_in_turns(monkeypatch):
    whole = scored()[0]
    monkeypatch.setattr("dprime.train.slices.CACHE", 1)
    monkeypatch.setattr("dprime.train.slices.WORTH_A_WORKER", 1)
    close(scored()[0], whole)


def linear_share(steps):
    """What a sum along the direction counts beside its log ratio: signs alone leave S over.

    Weights s_t + c add up to a quarter of √steps, or to S where that is more.
    """
    over = sum((-1) ** step for step in range(steps))
    return max(0.25 * steps**0.5, over) / steps - over / steps


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize(("rate", "steps"), [(1.0, 1), (1.0, 4), (0.3, 3), (0.3, 4)])
def test_projection_by_the_densities(adjacency, rate, steps):
    canary = DirectedGradient(partial(fixed, torch.tensor([1.0, -2.0, 2.0]) / 3))
    game = {"trials": 8, "common": (*NATURAL, BLANK), "steps": steps, "sample_rate": rate}
    differing = (X,) if adjacency == "add-remove" else (X, OTHER)
    scores, keeper, _ = scored(differing, CanaryProjection(canary), canary=canary, **game)
    direction = torch.tensor([1.0, -2.0, 2.0]).double() / 3
    expected = np.zeros(8)
    second, apart = (-C, 2 * C) if adjacency == "replace" else (0.0, C)
    for step in range(steps):
        shown = (keeper.noisy[step].double() @ direction).numpy()
        seen = shown * (-1) ** step
        undrawn, first, other = (
            np.exp(-((seen - mean) ** 2) / (2 * SIGMA**2)) for mean in (0.0, C, second)
        )
        expected += np.log((1 - rate) * undrawn + rate * first)
        expected -= np.log((1 - rate) * undrawn + rate * other)
        expected += rate * linear_share(steps) * shown * apart / SIGMA**2
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
