"""Mistakes by which one record acts on the others, on the noise, or on the model, are seen.

Each adversary is tried on 200 trainings a world with noise for ε = 4. An area under the curve near
0 is as good as one near 1: which way the scores are read is the audit's to choose.
"""

from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial

import pytest

import dprime
import games
from dprime.attack import AttackTarget, EngineTrainer
from dprime.train import TrainingConfig
from dprime.train.models import model_named
from games import IMAGES, TABLE, played, quick
from planted import MISTAKES, TOLD_BY_THE_OTHERS, all_but_the_last_unclipped, exchanged

STEPS, TRIALS = 20, 200
CONSTANT, RATE = "a constant where the record is", "a learning rate from the loss"
HALVED = TOLD_BY_THE_OTHERS["the record halves the sum"]


@cache
def setting_for(name, clip_norm=3.0):
    chosen = dprime.choose(dprime.DPSGD(sample_rate=1.0, steps=STEPS), epsilon=4.0, delta=1e-5)
    split, adjacency, loss = IMAGES, "zero-out", "cross-entropy"
    if name == "attribute":
        split, adjacency, loss = TABLE, "replace", "squared-error"
    data, noise = split.train.take(range(20)), chosen.noise_multiplier
    private = {"clip_norm": clip_norm, "noise_multiplier": noise}
    recipe = TrainingConfig(steps=STEPS, learning_rate=0.05, loss=loss, **private)
    return AttackTarget(EngineTrainer(model_named("linear", data), recipe), data, adjacency, seed=1)


def area(name, fault=nullcontext, attack=None, **options):
    """Under the curve of the scores; the adversary prepares with the same trainer."""
    setting = setting_for(name, **options)
    with fault():
        return games.area(played(setting, attack or quick(name).craft(setting), trials=TRIALS))


def seen(value):
    """How well the scores tell the worlds apart, whichever way they are read."""
    return max(value, 1 - value)


SEE_UPDATES = ("intermediate-models", "adaptive-poisoning", "gradient", "malicious-dataset")


@pytest.mark.parametrize("name", ["di", "attribute", *SEE_UPDATES])
def test_a_constant_that_comes_with_the_record_is_seen(name):
    """The trainer's own sum less the record hides it; so do signs that cancel in pairs."""
    assert STEPS % 2 == 0
    assert seen(area(name)) < 0.85
    assert seen(area(name, TOLD_BY_THE_OTHERS[CONSTANT])) > 0.99


@pytest.mark.parametrize("name", ["gradient", "malicious-dataset"])
def test_noise_that_comes_again_still_hides_little(name):
    attack = quick(name).craft(setting_for(name))
    assert area(name, MISTAKES["the same noise every step"], attack) > 0.98


def test_a_record_that_changes_the_others_share_is_seen():
    assert seen(area("opposing-dataset", HALVED)) > 0.99
    assert area("di") - area("di", HALVED) > 0.08  # it would see no change in the trainer's own sum


def test_what_a_trainer_does_after_the_noisy_sum_is_seen_in_the_models():
    """No adversary that is shown the noisy sums alone sees it: they are a correct trainer's."""
    fault = TOLD_BY_THE_OTHERS[RATE]
    assert seen(area("intermediate-models", fault)) > 0.85
    for name in ("di", "malicious-dataset"):
        assert abs(area(name, fault) - area(name)) < 0.02


def test_a_mistake_that_spares_the_last_record_is_seen_at_another_place():
    attack = quick("di").craft(setting_for("di"))
    last = replace(attack, worlds=replace(attack.worlds, place=None))
    assert attack.worlds.place < len(attack.worlds.common)
    fault = partial(exchanged, clip_factors=all_but_the_last_unclipped)
    assert area("di", fault, last, clip_norm=0.5) < 0.85
    assert area("di", fault, attack, clip_norm=0.5) > 0.99
