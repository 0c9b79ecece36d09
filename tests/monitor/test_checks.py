"""What is found before the first step, and how Opacus' accountant is compared."""

from types import SimpleNamespace

import pytest
from torch import nn

from dprime.monitor.checks import (
    NOT_RETURNED,
    SHUFFLED,
    at_start,
    disagreement,
    outside,
    recorded_for,
)
from dprime.monitor.layers import problems_of
from dprime.monitor.ledger import Ledger, StepRecord
from dprime.monitor.opacus_training import OpacusTraining
from dprime.monitor.problems import Problem


def attached(made):
    return OpacusTraining(made.engine, **made.named())


@pytest.mark.parametrize(
    ("layer", "found"),
    [
        (nn.BatchNorm1d(3), True),
        (nn.BatchNorm2d(3).eval(), False),
        (nn.BatchNorm1d(3, track_running_stats=False).eval(), True),
        (nn.SyncBatchNorm(3), True),
        (nn.InstanceNorm1d(3), False),
        (nn.InstanceNorm1d(3, track_running_stats=True), True),
        (nn.InstanceNorm1d(3, track_running_stats=True).eval(), False),
        (nn.GroupNorm(1, 3), False),
        (nn.LayerNorm(3), False),
    ],
    ids=str,
)
def test_layers_that_mix_records(layer, found):
    assert problems_of(layer, SimpleNamespace(ghost=False)) == ({Problem.MIXED} if found else set())


def test_what_can_be_seen_before_the_first_step(private):
    made = private(trained=lambda net: net[0].parameters(), poisson_sampling=False)
    made.model._module.append(nn.Sequential(nn.BatchNorm1d(2)))
    sentences = list(at_start(attached(made), 0.1))
    assert len(sentences) == 4
    assert Problem.MIXED.warning in sentences
    assert list(outside(attached(made))) == ["2.weight", "2.bias", "3.0.weight", "3.0.bias"]
    assert "(2.weight, 2.bias, 3.0.weight, ...)" in sentences[2]


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_the_loader_from_before_make_private_is_named(private, mode):
    made, shuffled = private(mode), private(mode, poisson_sampling=False)
    assert list(at_start(attached(made), 1e-3)) == []
    made.loader = private.loader()
    assert list(at_start(attached(made), 1e-3)) == [NOT_RETURNED]
    assert list(at_start(attached(shuffled), 1e-3)) == [SHUFFLED]


@pytest.mark.parametrize(
    ("rate", "batches", "recorded", "agree"),
    [
        (1 / 93, 1, 1 / 93, True),  # not Poisson
        (1 / 93, 1, 1 / 92, True),  # Poisson, and Opacus' rounding
        (1 / 93, 3, 3 / 92, True),
        (1 / 93, 3, 1 / 92, False),
        (1 / 93, 1, 1 / 91, False),
        (1.0, 1, 1.0, True),
    ],
)
def test_what_opacus_records_for_a_rate(rate, batches, recorded, agree):
    assert recorded_for(rate, batches, recorded) is agree


def test_entries_are_compared_by_noise_and_rate_and_not_by_order():
    ledger = Ledger(
        [(StepRecord(1.0, 0.1), 3), (StepRecord(2.0, 0.1, batches=2), 4), (StepRecord(1.0, 0.1), 1)]
    )
    assert disagreement([(2.0, 0.2, 4), (1.0, 0.1, 4)], ledger) is None
    assert "noise multipliers or rates" in disagreement([(1.0, 0.2, 4), (2.0, 0.1, 4)], ledger)
