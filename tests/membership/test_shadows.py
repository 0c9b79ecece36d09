"""Models on parts of a pool: their recipes, who is in which, what they answer, how it scores."""

import numpy as np
import pytest

from dprime import DPSGD, InputError
from dprime.attack import EngineTrainer, FunctionTrainer
from dprime.membership import shadows as module
from dprime.membership.attacks import ATTACKS, attack_named
from dprime.membership.config import Recipe
from dprime.membership.shadows import Cohort, Trainers, answers, score
from dprime.membership.signals import signals_of
from dprime.train import TrainingConfig, TrainingData, train
from pools import OTHERS, POOL, PRIVATE, by_hand, clouds, network, trainers


@pytest.mark.parametrize("probability", [0.1, 0.8])
def test_batches_keep_their_size_epochs_their_length_and_noise_the_claim(probability):
    """Rate, steps and noise follow from the expected size, never from who was drawn."""
    recipe = Recipe(batch_size=50, epochs=4, epsilon=3.0, delta=1e-5)
    training = recipe.training(1000, probability)
    assert training.sample_rate * 1000 * probability == pytest.approx(50)
    assert training.steps == pytest.approx(4 * 1000 * probability / 50, abs=1)
    assert 2.99 < training.mechanism().curve().epsilon(delta=1e-5) <= 3.0


def test_noise_may_be_given_and_without_any_nothing_is_clipped_or_claimed():
    training = Recipe(noise_multiplier=2.0).training(1000, 0.5)
    assert training.mechanism() == DPSGD(2.0, training.sample_rate, training.steps)
    assert Recipe().training(1000, 0.5).clip_norm is None
    assert trainers(Recipe(batch_size=20)).claim(0.5) is None


def test_trainers_and_their_claims():
    engine, own = trainers(PRIVATE), Trainers(PRIVATE, POOL, own=by_hand)
    for share in (0.3, 0.9):
        assert engine(share).training.sample_rate * share * len(POOL) == pytest.approx(20)
        assert engine.claim(share).epsilon(delta=1e-5) <= 2.0
    assert own.claim(0.5).epsilon(delta=1e-5) == pytest.approx(2.0)
    named = Trainers.named(PRIVATE, POOL, model="", own="pools:by_hand")
    assert all(isinstance(each(0.5), FunctionTrainer) for each in (own, named))
    assert isinstance(Trainers.named(PRIVATE, POOL, model="dense-4")(0.5), EngineTrainer)
    with pytest.raises(InputError, match="model must be"):
        Trainers.named(PRIVATE, POOL, model="deep")


def engine(steps=30):
    return EngineTrainer(network(), TrainingConfig(steps=steps, learning_rate=0.5, sample_rate=0.5))


TRAINER = engine()


def asked(trainer=TRAINER, pool=POOL, models=40, probability=0.5, seed=3, **given):
    return answers(Cohort.of(trainer, models, probability, seed=seed), pool, OTHERS, **given)


def numbers(outputs):
    found = [outputs.members]
    for signals in (outputs.pool, outputs.population):
        found += [signals.log_p, signals.log1m_p]
    return [array.tolist() for array in found]


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


def test_a_file_is_used_again_for_the_same_settings_and_refused_for_others(
    made, tmp_path, monkeypatch
):
    kept = tmp_path / "shadows"
    assert numbers(made) == numbers(asked(file=kept))  # the seed gives everything
    monkeypatch.setattr(module, "_trained", lambda *_: pytest.fail("trained again"))
    assert numbers(made) == numbers(asked(file=kept))
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
    assert numbers(made) == numbers(asked(file=kept))
    assert len(calls) == 4  # three blocks, one of them twice


def test_a_training_function():
    found = asked(FunctionTrainer(by_hand), models=3, seed=2)
    seeds = np.random.SeedSequence([2, 1]).generate_state(1, np.uint64)
    own = int(np.random.SeedSequence(int(seeds[0])).generate_state(1, np.uint32)[0])
    model = by_hand(POOL.take(found.members[0]), own)
    np.testing.assert_allclose(found.pool.loss[0], signals_of(model, POOL).loss)

    def fails(dataset, seed):
        raise RuntimeError("out of luck")

    with pytest.raises(InputError, match="out of luck"):
        asked(FunctionTrainer(fails), models=2)


def test_every_attack_scores_the_records_that_are_attacked():
    trainer = trainers()(0.5)
    targets, shadows = asked(trainer, models=3, seed=1), asked(trainer, models=32, seed=2)
    places = np.random.default_rng(0).permutation(80)[:30]
    for attack in ATTACKS.values():
        whole = score(attack, targets, shadows, range(80))
        assert np.isfinite(whole.scores).all()
        assert np.array_equal(whole.members, targets.members)
        if not attack.name.endswith("fixed"):  # which looks at all that are attacked
            some = score(attack, targets, shadows, places)
            assert some.scores == pytest.approx(whole.scores[:, places], abs=1e-9)
            assert np.array_equal(some.members, whole.members[:, places])
    found = score(attack_named("lira"), targets, shadows, range(80))
    assert found.scores[found.members].mean() > found.scores[~found.members].mean()
