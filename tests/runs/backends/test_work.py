"""The product's own work on every backend: audits, shadow models and points of a frontier."""

import numpy as np
import pytest

from dprime.attack import EngineTrainer
from dprime.audit import audit
from dprime.data.dataset import Split
from dprime.membership.frontiers import frontier
from dprime.membership.planner import plan
from dprime.membership.shadows import Cohort, answers
from dprime.train import TrainingConfig
from games import engine_setting
from pools import OTHERS, POOL, network

ELSEWHERE = ("processes", pytest.param("ray", marks=pytest.mark.ray))
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ELSEWHERE)
def test_an_audit(name, backend):
    setting = engine_setting()
    here = audit("di", setting, trials=12, block=5)
    there = audit("di", setting, trials=12, block=5, backend=backend(name))
    np.testing.assert_array_equal(there.played.in_scores, here.played.in_scores)
    np.testing.assert_array_equal(there.played.out_scores, here.played.out_scores)
    assert there.to_dict() == here.to_dict()


@pytest.mark.parametrize("name", ELSEWHERE)
def test_shadow_models(name, backend):
    trainer = EngineTrainer(network(), TrainingConfig(steps=5, learning_rate=0.5, sample_rate=0.5))
    cohort = Cohort.of(trainer, 20, seed=3)
    here = answers(cohort, POOL, OTHERS)
    there = answers(cohort, POOL, OTHERS, backend=backend(name))
    np.testing.assert_array_equal(there.members, here.members)
    np.testing.assert_allclose(there.pool.log_p, here.pool.log_p, rtol=1e-4)
    np.testing.assert_allclose(there.population.log1m_p, here.population.log1m_p, rtol=1e-4)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_points_of_a_frontier(name, backend):
    points = plan(0.7, pool_size=80, batch_size=20, epochs=1, sampling_probabilities=[0.3, 0.5])
    given = {"learning_rate": 0.5, "clip_norm": 1.0, "seed": 5, "repetitions": 3}
    data = Split(POOL, OTHERS)
    here = frontier(points, data, network(), **given)
    there = frontier(points, data, network(), **given, backend=backend(name))
    for one, other in zip(here.points, there.points, strict=True):
        np.testing.assert_allclose(other.accuracies, one.accuracies)
