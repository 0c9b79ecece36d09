"""What adversaries share: the setting, its seeds, their options, and the score of losses."""

import numpy as np
import pytest

from dprime.attack import ADVERSARIES, AttackTarget, FunctionTrainer, Probes, adversary_named
from games import IMAGES, engine_setting, played, quick

DATA = IMAGES.train.take(range(5))


def test_the_adjacency_is_the_one_that_holds():
    sized = engine_setting(adjacency=None)
    public = engine_setting(adjacency=None, expected_batch_size=12)
    assert (sized.adjacency, public.adjacency) == ("zero-out", "add-remove")
    assert AttackTarget(FunctionTrainer(len), DATA).adjacency == "add-remove"
    with pytest.raises(ValueError, match="the number of records, but it is 'add-remove': give the"):
        AttackTarget(sized.trainer, DATA, "add-remove")
    with pytest.raises(ValueError, match="of your own, but it is 'zero-out': it is called with a"):
        AttackTarget(FunctionTrainer(len), DATA, "zero-out")


@pytest.mark.parametrize("name", ["di", "malicious-dataset"])
def test_zero_out_is_add_remove_at_the_divisor_of_world_in(name):
    sized = engine_setting(adjacency="zero-out")
    attack = quick(name).craft(sized)
    public = engine_setting(adjacency="add-remove", expected_batch_size=attack.worlds.size)
    same = played(public, quick(name).craft(public))
    # Without the record the others move up: then sums are made in double precision throughout.
    np.testing.assert_allclose(played(sized, attack)["score"], same["score"], rtol=1e-5, atol=1e-5)


def test_the_adversarys_own_trainings_have_another_seed():
    seeds = [*range(100), 2**63 - 1, 2**63, 2**64 - 1]
    shadows = [AttackTarget(FunctionTrainer(len), DATA, seed=seed).shadow_seed for seed in seeds]
    assert len(set(shadows[:100])) == 100
    assert not set(shadows) & set(seeds)
    assert 0 <= min(shadows) <= max(shadows) < 2**63


def test_the_score_of_losses():
    """A low loss speaks for the record, and a second record counts against."""
    losses = np.array([[2.0, 3.0], [0.5, 0.1]])
    one, two = DATA.take([0]), DATA.take([0, 1])
    assert Probes(one).score(losses[:, :1]).tolist() == [-2.0, -0.5]
    assert Probes(one, sign=1.0).score(losses[:, :1]).tolist() == [2.0, 0.5]
    np.testing.assert_allclose(Probes(two).score(losses), [1.0, -0.4])


def test_names_and_who_needs_more_than_a_model():
    target = AttackTarget(FunctionTrainer(len), DATA, pool=DATA)
    for name, kind in ADVERSARIES.items():
        assert type(adversary_named(name)) is kind
        if not kind.any_trainer:
            with pytest.raises(ValueError, match=f"nothing but a model, but it is {name}: give"):
                adversary_named(name).craft(target)
    with pytest.raises(ValueError, match=r"adversary must be one of di, api-access,.* it is 'eve'"):
        adversary_named("eve")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("static-poisoning", {"shadows": 0}, "shadows must be at least 1, but it is 0"),
        ("intermediate-models", {"outliers": 1.5}, "outliers must be a whole number"),
        ("adaptive-poisoning", {"pgd_steps": -1}, "pgd_steps must be at least 0, but it is -1"),
        ("adaptive-poisoning", {"size": "wide"}, "size must be a number, but it is 'wide'"),
        ("gradient", {"share": 2}, "share must be above 0 and at most 1, but it is 2"),
        ("gradient", {"shadows": [4]}, r"shadows must be a number, but it is \[4\]"),
        ("malicious-dataset", {"copies": 0}, "copies must be at least 1, but it is 0"),
        ("chosen-weights", {"steps": 0}, "steps must be at least 1, but it is 0"),
        ("chosen-weights", {"learning_rate": 0}, "learning_rate must be above 0, but it is 0"),
    ],
)
def test_options_out_of_range(name, options, message):
    with pytest.raises(ValueError, match=message):
        ADVERSARIES[name](**options)
