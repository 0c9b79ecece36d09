"""How models are made, by the engine and by a function of the user's own; and the game."""

import functools
import json

import numpy as np
import pytest
import torch
from torch import nn

from dprime.attack import (
    ApiAccess,
    Attack,
    AttackTarget,
    EngineTrainer,
    FunctionTrainer,
    Probes,
    function_named,
)
from dprime.attack.trainer import Game
from dprime.audit.config import blocks_of
from dprime.train import Adam, TrainingConfig, TrainingData, train
from dprime.train.losses import plain_cross_entropy
from dprime.validate import InputError
from games import (
    GAMES,
    IMAGES,
    RECIPE,
    Constant,
    engine_setting,
    network,
    played,
    quick,
    setting_for,
)
from trials import blobs, dense

DATA = IMAGES.train.take(range(6))
ALONE = TrainingData.alone(DATA)


class Seeded(nn.Module):
    """Its logits are drawn from a seed; dropout shows whether it is being trained."""

    def __init__(self, seed):
        super().__init__()
        rng = np.random.default_rng(seed)
        self.logits = nn.Parameter(torch.tensor(rng.normal(size=10), dtype=torch.float32))
        self.dropout = nn.Dropout(0.9)

    def forward(self, x):
        return self.dropout(self.logits).expand(len(x), 10)


def seeded(dataset, seed):
    return Seeded(seed)


def double(outputs, labels):
    return 2 * plain_cross_entropy(outputs, labels)


class Doubling:
    def __call__(self, outputs, labels):
        return double(outputs, labels)


TRAINERS = {
    "engine": EngineTrainer(network(), TrainingConfig(**RECIPE)),
    "function": FunctionTrainer(seeded),
}


@pytest.mark.parametrize("trainer", TRAINERS.values(), ids=TRAINERS)
def test_contract(trainer):
    """A seed gives the same models again, each with random numbers of its own."""
    losses = [trainer.losses(ALONE, DATA.take([0, 3]), models=4, seed=seed) for seed in (1, 1, 2)]
    assert losses[0].shape == (4, 2)
    assert losses[0].dtype == np.float64
    assert np.array_equal(losses[0], losses[1])
    assert len({row.tobytes() for row in (*losses[0], *losses[2])}) == 8
    assert json.loads(json.dumps(trainer.describe())) == trainer.describe()


def test_the_engines_losses_are_those_of_its_models():
    data = blobs(8, (5,))
    trainer = EngineTrainer(dense(5, 4, 3), TrainingConfig(**RECIPE))
    found = trainer.losses(TrainingData.alone(data), data.take([0, 3]), models=4, seed=9)
    done = train(dense(5, 4, 3), data, TrainingConfig(**RECIPE), trials=4, seed=9)
    for column, record in enumerate((0, 3)):
        np.testing.assert_allclose(found[:, column], done.mean_loss(data.take([record])), rtol=1e-6)


def test_ones_own_models_are_judged_out_of_training():
    found = FunctionTrainer(seeded).model_losses(DATA, DATA, seed=5)
    doubled = FunctionTrainer(seeded, double).model_losses(DATA, DATA, seed=5)
    np.testing.assert_allclose(doubled, 2 * found, rtol=1e-6)
    with torch.no_grad():
        expected = plain_cross_entropy(Seeded(5).logits.expand(6, 10), torch.tensor(DATA.labels))
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-6)
    assert found.dtype == np.float64


def test_what_is_no_model_is_refused():
    trainer = FunctionTrainer(lambda dataset, seed: {"model": 1})
    with pytest.raises(InputError, match="but it is a function that returned dict"):
        trainer.losses(ALONE, DATA, models=1, seed=0)


def test_the_same_words_in_every_process_and_other_words_for_other_recipes():
    recipe = TrainingConfig(**RECIPE)
    changes = [
        {"noise_multiplier": 0.51},
        {"optimizer": Adam()},
        {"sensitivity": "local"},
        {"loss": plain_cross_entropy},
        {"loss": Doubling()},
    ]
    engines = [EngineTrainer(dense(5, 3), recipe), EngineTrainer(dense(5, 4, 3), recipe)]
    engines += [EngineTrainer(dense(5, 3), TrainingConfig(**{**RECIPE, **own})) for own in changes]
    own = FunctionTrainer(seeded), FunctionTrainer(functools.partial(seeded, seed=1), Doubling())
    words = [trainer.describe() for trainer in (*engines, *own)]
    assert "0x" not in str(words)  # no address, which would be another in another process
    assert len(set(map(str, words))) == len(words)
    assert (words[0]["steps"], words[0]["model"]) == ("4", str(dense(5, 3)))
    assert words[3]["optimizer"].startswith("Adam(")
    assert words[5]["loss"] == "dprime.train.losses:plain_cross_entropy"
    assert "Doubling" in words[6]["loss"]
    assert words[7] == {"function": f"{__name__}:seeded", "loss": "cross-entropy"}
    assert all(each in words[8]["function"] for each in ("seeded", "seed=1"))
    one = EngineTrainer(dense(5, 3), TrainingConfig(**RECIPE, block=7))
    assert one.describe() == words[0]  # how it is cut changes nothing


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("no_such_module:train", "ModuleNotFoundError: No module named"),
        ("half_written:train", "SyntaxError: "),
        ("os.path:sep", "it is not callable"),
    ],
)
def test_functions_that_are_not_there(tmp_path, monkeypatch, path, reason):
    (tmp_path / "half_written.py").write_text("def train(dataset, seed)\n    return None\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError) as refused:
        function_named(path)
    assert (refused.value.parameter, refused.value.value) == ("trainer", path)
    assert refused.value.requirement.startswith(f"be a function to import ({reason}")


# The game -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "adjacency"), GAMES)
def test_a_model_that_has_diverged_is_least_like_in(name, adjacency):
    setting = setting_for(
        name, adjacency=adjacency, model="dense-4", learning_rate=3e38, clip_norm=100.0
    )
    found = played(setting, quick(name).craft(setting), trials=3)
    if name in ("api-access", "static-poisoning"):  # the others read sums, which stay finite
        assert found["diverged"].all()
    assert ((found["score"] == -np.inf) == found["diverged"]).all()
    assert np.isfinite(found["score"][~found["diverged"]]).all()


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_ones_own_function_gets_its_worlds_data_set_and_a_seed_of_its_own(adjacency):
    def given_in(seed, block):
        given = []
        trainer = FunctionTrainer(lambda *each: given.append(each) or Constant(0.0))
        target = AttackTarget(trainer, DATA, adjacency, IMAGES.test.take(range(3)), 2, seed)
        attack = ApiAccess().craft(target)
        for number in range(blocks_of(4, block)):
            Game(target.trainer, attack, trials=4, block=block, seed=seed).play(number)
        return attack, given

    attack, given = given_in(seed=7, block=3)
    assert len(given) == 8
    for trial, (dataset, _) in enumerate(given):
        expected = attack.worlds.dataset("in" if trial % 2 == 0 else "out")
        assert np.array_equal(dataset.records, expected.records)
        assert np.array_equal(dataset.labels, expected.labels)
    seeds = [seed for _, seed in given]
    assert len(set(seeds)) == 8
    assert [seed for _, seed in given_in(seed=7, block=8)[1]] == seeds
    assert not set(seeds) & {seed for _, seed in given_in(seed=8, block=8)[1]}


def test_the_score_is_that_of_the_probes():
    trainer, worlds = FunctionTrainer(lambda *_: Constant(2.0)), TrainingData.remove(DATA, 0)
    label_0 = DATA.take([int(np.flatnonzero(DATA.labels == 0)[0])])
    loss = float(np.log(9 + np.e**2) - 2)
    for sign in (-1.0, 1.0):
        attack = Attack(worlds, lambda: None, "by hand", probes=Probes(label_0, sign))
        found = Game(trainer, attack, 1, 2, seed=0).play(0)
        np.testing.assert_allclose(found["score"], sign * loss, rtol=1e-5)


@pytest.mark.slow
def test_workers_with_other_memory_have_the_same_scores():
    """Each slices by its own; 0.14 GB is next to nothing, beside what PyTorch needs anyway."""
    setting = engine_setting(records=60, model="dense-256")
    game = Game(
        setting.trainer, quick("di").craft(setting), trials=100, block=200, seed=setting.seed
    )
    usual = game.play(0)
    memory = game.trainer.compute.memory
    for other, expected in (
        (game.with_compute(lambda compute: compute.with_memory_fraction(1 / 2)), memory / 2),
        (game.with_compute(lambda compute: compute.placed("cpu", 0.14)), 0.14),
    ):
        assert other.trainer.compute.memory == expected
        found = other.play(0)
        np.testing.assert_array_equal(found["in_world"], usual["in_world"])
        np.testing.assert_allclose(found["score"], usual["score"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("path", ["pwned", "pwned:", ":net"])
def test_what_is_no_function_of_a_module_is_not_imported(path, tmp_path, monkeypatch):
    """A run file may name it, and its code is known by the colon."""
    (tmp_path / "pwned.py").write_text("import pathlib\npathlib.Path('pwned').touch()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="of the form module:function"):
        function_named(path)
    assert not (tmp_path / "pwned").exists()
