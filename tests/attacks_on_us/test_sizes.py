"""A model tells 100 records from 99 where the sums are divided by rate times number of records.

The attacker knows the recipe and the weights that every training starts from, and sees one final
model. The squared length of the update, in units of the noise, is about the same in all trainings,
and 2 % larger where the divisor is 99 times the rate.
"""

import numpy as np
import pytest
import torch
from torch import nn

import dprime
from dprime.attack import AttackTarget, EngineTrainer
from dprime.audit import AuditConfig
from dprime.data import load
from dprime.train import TrainingConfig, TrainingData, train

RECORDS, TRIALS, NOISE, RATE = 100, 100, 12.0, 0.5
DATA = load("digits").train.take(range(RECORDS))
WITHOUT = DATA.take(range(RECORDS - 1))
RECIPE = {"steps": 1, "learning_rate": 1.0, "clip_norm": 1.0, "noise_multiplier": NOISE}
CERTIFIED = dprime.Gaussian(NOISE).curve().advantage()
LUCK = 4 * np.sqrt(2 * 0.25 / TRIALS)


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 10))


def reached(training, rate):
    """The advantage of calling 100 records what moves the weights little."""
    model, shares = network(), []
    start = torch.cat([each.detach().flatten() for each in model.parameters()]).double()
    middle = 0.5 + 0.5 * (RECORDS / (RECORDS - 1)) ** 2
    for seed, data in enumerate((DATA, WITHOUT)):
        done = train(model, data, training, trials=TRIALS, seed=seed, initial="given")
        noise = (done.weights.double() - start) * (RECORDS * rate / NOISE)
        shares.append(float((noise.square().mean(1) < middle).double().mean()))
    return shares[0] - shares[1]


@pytest.mark.parametrize("rate", [1.0, RATE])
def test_add_remove_is_not_claimed_where_the_size_shows(rate):
    training = TrainingConfig(**RECIPE, sample_rate=rate)
    assert reached(training, rate) > 0.8 > 20 * CERTIFIED
    with pytest.raises(ValueError, match="from the number of records, but it is 'add-remove'"):
        training.mechanism().curve("add-remove")
    with pytest.raises(ValueError, match="from the number of records"):
        dprime.PoolSampled(training.mechanism(), 0.1).curve()
    trainer = EngineTrainer(network(), training)
    with pytest.raises(ValueError, match="the number of records, but it is 'add-remove'"):
        AttackTarget(trainer, DATA, "add-remove")
    assert (
        AttackTarget(trainer, DATA).adjacency
        == training.mechanism().default_adjacency
        == "zero-out"
    )
    assert AuditConfig.from_words(training=RECIPE).adjacency == "zero-out"


@pytest.mark.parametrize("rate", [1.0, RATE])
def test_a_public_divisor_hides_the_size(rate):
    training = TrainingConfig(**RECIPE, sample_rate=rate, expected_batch_size=RECORDS * rate)
    certified = training.mechanism().curve("add-remove").advantage()
    assert certified <= CERTIFIED * (1 + 1e-9)
    assert abs(reached(training, rate)) <= certified + LUCK


@pytest.mark.parametrize("rate", [1.0, 0.7, 0.2])
def test_with_a_public_divisor_nothing_else_depends_on_the_size(rate):
    """World `out` of a pair, which counts 100 places, and 99 records alone train alike."""
    recipe = {**RECIPE, "steps": 4, "sample_rate": rate}
    pair = TrainingData.remove(DATA, RECORDS - 1)

    def apart(training):
        model, found = nn.Sequential(nn.Flatten(), nn.Linear(64, 10)), []
        for data in (pair, WITHOUT):
            done = train(model, data, training, trials=3, seed=1, world="out")
            found.append(done.weights.double())
        return float((found[0] - found[1]).abs().max())

    assert apart(TrainingConfig(**recipe, expected_batch_size=40)) < 1e-5
    assert apart(TrainingConfig(**recipe)) > 1e-3
