"""What adversaries share: the target, its seeds, their options, and the score of losses."""

import numpy as np
import pytest

from dprime.attack import ADVERSARIES, AttackTarget, FunctionTrainer, Probes, adversary_named
from dprime.validate import InputError
from games import IMAGES, engine_setting, played, quick

DATA = IMAGES.train.take(range(5))


def test_the_adjacency_is_the_one_that_holds():
    sized = engine_setting(adjacency=None)
    public = engine_setting(adjacency=None, expected_batch_size=12)
    assert (sized.adjacency, public.adjacency) == ("zero-out", "add-remove")
    own = FunctionTrainer(len)
    assert AttackTarget(own, DATA).adjacency == "add-remove"
    for trainer, wrong in ((sized.trainer, "add-remove"), (own, "zero-out"), (own, "near")):
        with pytest.raises(InputError) as refused:
            AttackTarget(trainer, DATA, wrong)
        assert (refused.value.parameter, refused.value.value) == ("adjacency", wrong)


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
            with pytest.raises(InputError, match=f"nothing but a model, but it is {name}"):
                adversary_named(name).craft(target)
    with pytest.raises(InputError, match=r"adversary must be one of di, api-access,.* it is 'eve'"):
        adversary_named("eve")


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("static-poisoning", "shadows", 0),
        ("intermediate-models", "outliers", 1.5),
        ("adaptive-poisoning", "pgd_steps", -1),
        ("adaptive-poisoning", "size", "wide"),
        ("gradient", "share", 2),
        ("gradient", "shadows", [4]),
        ("malicious-dataset", "copies", 0),
        ("chosen-weights", "steps", 0),
        ("chosen-weights", "learning_rate", 0),
    ],
)
def test_options_out_of_range(name, option, value):
    with pytest.raises(InputError) as refused:
        ADVERSARIES[name](**{option: value})
    assert (refused.value.parameter, refused.value.value) == (option, value)
