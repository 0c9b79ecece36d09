"""The game: each attack sees each target, and nothing of who was in it."""

import numpy as np
import pytest

from dprime.membership.attacks import ATTACKS, attack_named
from dprime.membership.game import evidence, score
from dprime.membership.shadows import answers
from pools import OTHERS, POOL, trainers


@pytest.fixture(scope="module")
def models():
    made = trainers()(0.5)
    return (
        answers(made, POOL, OTHERS, models=3, seed=1),
        answers(made, POOL, OTHERS, models=32, seed=2),
    )


def test_every_attack_scores_every_record_of_every_target(models):
    targets, shadows = models
    for attack in ATTACKS.values():
        found = score(attack, targets, shadows, range(30))
        assert found.scores.shape == found.members.shape == (3, 30)
        assert np.isfinite(found.scores).all()
        assert np.array_equal(found.members, targets.members[:, :30])


def test_the_evidence_is_of_the_records_in_question(models):
    targets, shadows = models
    places = np.array([7, 3])
    seen = evidence(targets, 1, shadows, places)
    assert np.array_equal(seen.target.loss, targets.pool.loss[1, [7, 3]])
    assert np.array_equal(seen.shadows.loss, shadows.pool.loss[:, [7, 3]])
    assert np.array_equal(seen.members, shadows.members[:, [7, 3]])
    assert np.array_equal(seen.population.loss, targets.population.loss[1])


def test_learned_by_heart_is_found_out(models):
    found = score(attack_named("lira"), *models, range(80))
    assert found.scores[found.members].mean() > found.scores[~found.members].mean()


def test_a_record_that_no_shadow_model_had(models):
    targets, shadows = models
    few = shadows.take(slice(0, 2))
    with pytest.raises(ValueError, match="records lack models with"):
        score(attack_named("lira"), targets, few, range(80))


def test_an_attack_without_the_shadow_models_that_it_needs(models):
    with pytest.raises(ValueError, match="shadows must be given for rmia"):
        score(attack_named("rmia"), models[0], None, range(5))
    with pytest.raises(ValueError, match="records must be"):
        score(attack_named("yeom"), models[0], None, [])
