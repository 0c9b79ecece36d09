"""Models on parts of a pool: who is in which, what they answer, and how attacks score them."""

import numpy as np
import pytest

from dprime import InputError
from dprime.attack import EngineTrainer, FunctionTrainer
from dprime.membership import shadows as module
from dprime.membership.attacks import ATTACKS, attack_named
from dprime.membership.shadows import Cohort, answers, score
from dprime.membership.signals import signals_of
from dprime.train import TrainingConfig, TrainingData, train
from pools import OTHERS, POOL, by_hand, clouds, network, trainers


def engine(steps=30):
    return EngineTrainer(network(), TrainingConfig(steps=steps, learning_rate=0.5, sample_rate=0.5))


TRAINER = engine()


def asked(trainer=TRAINER, pool=POOL, models=40, probability=0.5, seed=3, **given):
    return answers(Cohort.of(trainer, models, probability, seed=seed), pool, OTHERS, **given)


def same(first, second):
    return all(
        np.array_equal(getattr(first, name), getattr(second, name))
        if name == "members"
        else np.array_equal(getattr(first, name).log_p, getattr(second, name).log_p)
        and np.array_equal(getattr(first, name).log1m_p, getattr(second, name).log1m_p)
        for name in ("members", "pool", "population")
    )


@pytest.fixture(scope="module")
def made():
    return asked()


def test_each_record_is_in_as_often_as_its_probability_says():
    share = asked(engine(1), models=200, probability=0.2).members.mean()
    assert abs(share - 0.2) < 4 * np.sqrt(0.2 * 0.8 / (200 * len(POOL)))


def test_answers_are_those_of_models_that_learn_their_own_part_only(made):
    inside, outside = made.pool.loss[made.members], made.pool.loss[~made.members]
    assert inside.mean() < outside.mean()
    assert outside.mean() == pytest.approx(made.population.loss.mean(), rel=0.3)
    own = int(np.random.SeedSequence([3, 1]).generate_state(1, np.uint64)[0])
    parts = TrainingData.parts(POOL, made.members[:16], 0.5)
    again = signals_of(train(TRAINER.model, parts, TRAINER.training, seed=own).model(5), POOL)
    np.testing.assert_allclose(made.pool.loss[5], again.loss, rtol=1e-4, atol=1e-5)


def test_the_seed_gives_everything(made):
    assert same(made, asked())
    assert not np.array_equal(made.members, asked(seed=4).members)


def test_a_file_is_used_again_for_the_same_settings_and_refused_for_others(
    made, tmp_path, monkeypatch
):
    kept = tmp_path / "shadows"
    assert same(made, asked(file=kept))
    monkeypatch.setattr(module, "_trained", lambda *_: pytest.fail("trained again"))
    assert same(made, asked(file=kept))
    for given, words in (
        ({"models": 20}, r"\(models 20\), but it is of models 40"),
        ({"seed": 4}, r"\(another seed\), but it is of another seed"),
        ({"probability": 0.4}, r"\(probability 0.4\), but it is of probability 0.5"),
        ({"trainer": engine(31)}, r"trainer steps 31.*trainer steps 30"),
        ({"pool": clouds(80, 9)}, "but it is of another pool"),
    ):
        with pytest.raises(InputError, match=f"shadows must be of the same settings .*{words}"):
            asked(file=kept, **given)


def test_an_interrupted_training_goes_on(made, tmp_path, monkeypatch):
    kept, calls, real = tmp_path / "shadows", [], module._trained

    def stopped(*given):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(module, "_trained", stopped)
    with pytest.raises(KeyboardInterrupt):
        asked(file=kept)
    assert same(made, asked(file=kept))
    assert len(calls) == 4  # three blocks, one of them twice


def test_a_training_function():
    found = asked(FunctionTrainer(by_hand), models=3, seed=2)
    seeds = np.random.SeedSequence([2, 1]).generate_state(1, np.uint64)
    own = int(np.random.SeedSequence(int(seeds[0])).generate_state(1, np.uint32)[0])
    model = by_hand(POOL.take(found.members[0]), own)
    np.testing.assert_allclose(found.pool.loss[0], signals_of(model, POOL).loss)

    def fails(dataset, seed):
        raise RuntimeError("out of luck")

    with pytest.raises(ValueError, match="out of luck"):
        asked(FunctionTrainer(fails), models=2)


@pytest.fixture(scope="module")
def models():
    trainer = trainers()(0.5)
    return asked(trainer, models=3, seed=1), asked(trainer, models=32, seed=2)


def test_every_attack_scores_every_record_of_every_target(models):
    targets, _ = models
    for attack in ATTACKS.values():
        found = score(attack, *models, range(30))
        assert found.scores.shape == found.members.shape == (3, 30)
        assert np.isfinite(found.scores).all()
        assert np.array_equal(found.members, targets.members[:, :30])
    found = score(attack_named("lira"), *models, range(80))
    assert found.scores[found.members].mean() > found.scores[~found.members].mean()


def test_the_evidence_is_of_the_records_that_are_attacked(models):
    targets, shadows = models
    seen = targets.evidence(1, shadows, np.array([7, 3]))
    assert np.array_equal(seen.target.loss, targets.pool.loss[1, [7, 3]])
    assert np.array_equal(seen.shadows.loss, shadows.pool.loss[:, [7, 3]])
    assert np.array_equal(seen.members, shadows.members[:, [7, 3]])
    assert np.array_equal(seen.population.loss, targets.population.loss[1])
