"""Mistakes that people make in DP-SGD are found; the correct trainer passes the same test.

The claim is the curve of ε = 4 at δ = 1e-5, judged by the default audit (the whole curve by the
band at 95 % confidence), with 400 trials a world.
"""

from contextlib import nullcontext
from functools import cache, partial

import pytest

import dprime
from dprime.attack import (
    AttackTarget,
    EngineTrainer,
    FunctionTrainer,
    StaticPoisoning,
    adversary_named,
)
from dprime.attack.trainer import Game
from dprime.audit import judge, lower_bound
from dprime.data import load
from dprime.train import TrainingConfig
from dprime.train.models import model_named
from planted import MISTAKES, SIZE, TOLD_BY_THE_OTHERS, trained_with_batch_norm

SEEDS, TRIALS, STEPS = 20, 400, 10
PLANTED = MISTAKES | TOLD_BY_THE_OTHERS
FINDER = dict.fromkeys(PLANTED, "malicious-dataset") | {
    "averaged by the true batch size": "opposing-dataset",
    "the record halves the sum": "opposing-dataset",
}
del FINDER["a learning rate from the loss"]  # who reads the noisy sums cannot see it


def claimed(rate=1.0, steps=STEPS):
    """The noise of ε = 4 and its certified curve."""
    found = dprime.choose(dprime.DPSGD(sample_rate=rate, steps=steps), epsilon=4.0, delta=1e-5)
    return found.noise_multiplier, found.curve()


def refuted(setting, adversary, claim, fault=nullcontext, trials=TRIALS):
    attack = adversary.craft(setting)
    with fault():
        played = Game(setting.trainer, attack, trials, 2 * trials, setting.seed).play(0)
    inside, outside = played["score"][played["in_world"]], played["score"][~played["in_world"]]
    return judge(lower_bound(inside, outside), claim, "curve").refuted


def engine_setting(seed, noise, rate=1.0):
    digits = load("digits").train.take(range(SIZE))
    recipe = TrainingConfig(
        steps=STEPS, learning_rate=0.05, clip_norm=3.0, noise_multiplier=noise, sample_rate=rate
    )
    return AttackTarget(EngineTrainer(model_named("linear", digits), recipe), digits, seed=seed)


@cache
def correct_passes(name, seeds):
    """In how many seeds the correct trainer is not refuted by an adversary."""
    noise, claim = claimed()
    settings = [engine_setting(seed, noise) for seed in range(seeds)]
    return sum(not refuted(setting, adversary_named(name), claim) for setting in settings)


@pytest.mark.parametrize("mistake", FINDER)
@pytest.mark.parametrize("seeds", [1, pytest.param(SEEDS, marks=pytest.mark.slow)])
def test_found(mistake, seeds):
    noise, claim = claimed()
    adversary = adversary_named(FINDER[mistake])
    settings = [engine_setting(seed, noise) for seed in range(seeds)]
    found = sum(refuted(setting, adversary, claim, PLANTED[mistake]) for setting in settings)
    assert found >= 0.95 * seeds
    assert correct_passes(adversary.name, seeds) >= 0.95 * seeds


@pytest.mark.slow
def test_sampling_accounted_at_a_tenth_of_its_rate():
    noise, claim = claimed(rate=0.02)
    adversary = adversary_named("malicious-dataset")
    outcomes = {
        rate: sum(
            refuted(engine_setting(seed, noise, rate), adversary, claim) for seed in range(SEEDS)
        )
        for rate in (0.02, 0.2)
    }
    assert outcomes[0.2] >= 19
    assert outcomes[0.02] <= 1


@pytest.mark.slow
def test_batch_normalisation():
    noise, claim = claimed(steps=5)
    digits = load("digits").train.take(range(SIZE - 1))
    adversary = StaticPoisoning(shadows=10, outliers=1)
    outcomes = {}
    for normalise in (True, False):
        recipe = {"steps": 5, "rate": 0.5, "clip_norm": 1.0, "noise": noise}
        function = partial(trained_with_batch_norm, **recipe, normalise=normalise)
        settings = [
            AttackTarget(FunctionTrainer(function), digits, seed=seed) for seed in range(SEEDS)
        ]
        outcomes[normalise] = sum(
            refuted(setting, adversary, claim, trials=100) for setting in settings
        )
    assert outcomes[True] >= 19
    assert outcomes[False] <= 1


@pytest.mark.parametrize("adversary", ["malicious-dataset", "opposing-dataset", "gradient"])
@pytest.mark.parametrize("clip_norm", [1.0, None])
def test_a_recipe_without_noise(adversary, clip_norm):
    _, claim = claimed()
    digits = load("digits").train.take(range(SIZE))
    recipe = TrainingConfig(steps=STEPS, learning_rate=0.01, clip_norm=clip_norm)
    setting = AttackTarget(EngineTrainer(model_named("linear", digits), recipe), digits, seed=1)
    assert refuted(setting, adversary_named(adversary), claim, trials=100)
