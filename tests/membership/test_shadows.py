"""Models on parts of a pool: who is in which, what they answer, and what a file keeps of them."""

import numpy as np
import pytest

from dprime.attack import EngineTrainer, FunctionTrainer
from dprime.membership import shadows as module
from dprime.membership.shadows import answers
from dprime.membership.signals import signals_of
from dprime.train import TrainingConfig, TrainingData, train
from pools import OTHERS, POOL, by_hand, clouds, network

TRAINER = EngineTrainer(network(), TrainingConfig(steps=30, learning_rate=0.5, sample_rate=0.5))


def asked(**given):
    return answers(TRAINER, POOL, OTHERS, **{"models": 40, "seed": 3, **given})


def arrays_of(found):
    return (
        found.members, found.pool.right, found.pool.wrong, found.population.right,
        found.population.wrong,
    )  # fmt: skip


def same(first, second):
    return all(
        np.array_equal(a, b) for a, b in zip(arrays_of(first), arrays_of(second), strict=True)
    )


@pytest.fixture(scope="module")
def made():
    return asked()


def test_each_record_is_in_as_often_as_its_probability_says():
    found = answers(
        EngineTrainer(network(), TrainingConfig(steps=1, learning_rate=0.1, sample_rate=0.5)),
        POOL, OTHERS, models=200, probability=0.2, seed=1,
    )  # fmt: skip
    share = found.members.mean()
    assert abs(share - 0.2) < 4 * np.sqrt(0.2 * 0.8 / found.members.size)


def test_models_learn_their_own_part_only(made):
    inside, outside = made.pool.loss[made.members], made.pool.loss[~made.members]
    assert inside.mean() < outside.mean()
    assert outside.mean() == pytest.approx(made.population.loss.mean(), rel=0.3)


def test_answers_are_those_of_the_models(made):
    own = int(np.random.SeedSequence([3, 1]).generate_state(1, np.uint64)[0])
    trained = train(
        TRAINER.model, TrainingData.parts(POOL, made.members[:16], 0.5), TRAINER.training, seed=own
    )
    again = signals_of(trained.model(5), POOL)
    np.testing.assert_allclose(made.pool.loss[5], again.loss, rtol=1e-4, atol=1e-5)


def test_the_seed_gives_everything(made):
    assert same(made, asked())
    assert not np.array_equal(made.members, asked(seed=4).members)


def test_a_file_is_used_again_for_the_same_settings(made, tmp_path, monkeypatch):
    kept = tmp_path / "shadows"
    assert same(made, asked(file=kept))
    monkeypatch.setattr(module, "_trained", lambda *_: pytest.fail("trained again"))
    assert same(made, asked(file=kept))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"models": 20}, r"\(models 20\), but it is of models 40"),
        ({"seed": 4}, r"\(another seed\), but it is of another seed"),
        ({"probability": 0.4}, r"\(probability 0.4\), but it is of probability 0.5"),
    ],
)
def test_a_file_of_other_settings_is_refused(given, words, tmp_path):
    kept = tmp_path / "shadows"
    asked(file=kept)
    with pytest.raises(ValueError, match=f"shadows must be of the same settings {words}"):
        asked(file=kept, **given)


def test_a_file_of_another_recipe_or_pool_is_refused(tmp_path):
    kept = tmp_path / "shadows"
    asked(file=kept)
    other = EngineTrainer(network(), TrainingConfig(steps=31, learning_rate=0.5, sample_rate=0.5))
    with pytest.raises(ValueError, match=r"trainer steps 31.*trainer steps 30"):
        answers(other, POOL, OTHERS, models=40, seed=3, file=kept)
    with pytest.raises(ValueError, match="but it is of another pool"):
        answers(TRAINER, clouds(80, 9), OTHERS, models=40, seed=3, file=kept)


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


def test_a_function_of_ones_own():
    found = answers(FunctionTrainer(by_hand), POOL, OTHERS, models=3, seed=2)
    seeds = np.random.SeedSequence([2, 1]).generate_state(1, np.uint64)
    own = int(np.random.SeedSequence(int(seeds[0])).generate_state(1, np.uint32)[0])
    model = by_hand(POOL.take(found.members[0]), own)
    np.testing.assert_allclose(found.pool.loss[0], signals_of(model, POOL).loss)


def test_a_function_that_fails_says_why():
    def fails(dataset, seed):
        raise RuntimeError("out of luck")

    with pytest.raises(ValueError, match="out of luck"):
        answers(FunctionTrainer(fails), POOL, OTHERS, models=2, seed=1)


@pytest.mark.parametrize("given", [{"models": 0}, {"probability": 1.0}, {"probability": 0.0}])
def test_bad_input(given):
    with pytest.raises(ValueError, match=f"{next(iter(given))} must be"):
        asked(**given)
