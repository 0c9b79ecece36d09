"""How models are made, by the engine and by a function of the user's own."""

import functools

import numpy as np
import pytest
import torch
from torch import nn

from dprime.attack import EngineTrainer, FunctionTrainer, function_named
from dprime.train import Adam, TrainingConfig, TrainingData, train
from dprime.train.losses import plain_cross_entropy
from games import IMAGES, RECIPE
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


def test_the_engines_losses_are_those_of_its_models():
    data = blobs(8, (5,))
    trainer = EngineTrainer(dense(5, 4, 3), TrainingConfig(**RECIPE))
    found = trainer.losses(TrainingData.alone(data), data.take([0, 3]), models=4, seed=9)
    done = train(dense(5, 4, 3), data, TrainingConfig(**RECIPE), trials=4, seed=9)
    assert found.shape == (4, 2)
    for column, record in enumerate((0, 3)):
        np.testing.assert_allclose(found[:, column], done.mean_loss(data.take([record])), rtol=1e-6)


def double(outputs, labels):
    return 2 * plain_cross_entropy(outputs, labels)


def test_ones_own_models_are_judged_out_of_training():
    found = FunctionTrainer(seeded).model_losses(DATA, DATA, seed=5)
    doubled = FunctionTrainer(seeded, double).model_losses(DATA, DATA, seed=5)
    np.testing.assert_allclose(doubled, 2 * found, rtol=1e-6)
    with torch.no_grad():
        logits = Seeded(5).logits.expand(6, 10)
        expected = plain_cross_entropy(logits, torch.tensor(DATA.labels))
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-6)
    assert found.dtype == np.float64


def test_every_model_has_a_seed_of_its_own():
    seeds = []

    def function(dataset, seed):
        seeds.append(seed)
        return Seeded(seed)

    trainer = FunctionTrainer(function)
    first, again, _ = (trainer.losses(ALONE, DATA.take([0]), 5, seed) for seed in (1, 1, 2))
    assert first.shape == (5, 1)
    assert np.array_equal(first, again)
    assert seeds[:5] == seeds[5:10]
    assert len(set(seeds)) == 10
    assert all(type(seed) is int for seed in seeds)


def test_what_is_no_model_is_refused():
    trainer = FunctionTrainer(lambda dataset, seed: {"model": 1})
    with pytest.raises(ValueError, match="but it is a function that returned dict: return the"):
        trainer.losses(ALONE, DATA, models=1, seed=0)


class Doubling:
    def __call__(self, outputs, labels):
        return double(outputs, labels)


def test_the_same_words_in_every_process_and_other_words_for_other_recipes():
    recipe = TrainingConfig(**RECIPE)
    others = [
        TrainingConfig(**{**RECIPE, "noise_multiplier": 0.51}),
        TrainingConfig(**RECIPE, optimizer=Adam()),
        TrainingConfig(**RECIPE, sensitivity="local"),
        TrainingConfig(**RECIPE, loss=plain_cross_entropy),
        TrainingConfig(**RECIPE, loss=Doubling()),
    ]
    trainers = [
        EngineTrainer(dense(5, 3), recipe), EngineTrainer(dense(5, 4, 3), recipe),
        *(EngineTrainer(dense(5, 3), other) for other in others),
        FunctionTrainer(seeded), FunctionTrainer(functools.partial(seeded, seed=1), Doubling()),
    ]  # fmt: skip
    words = [trainer.describe() for trainer in trainers]
    assert "0x" not in str(words)  # no address, which would be another in another process
    assert len(set(map(str, words))) == len(trainers)
    assert words[0]["steps"] == "4"
    assert words[0]["model"] == str(dense(5, 3))
    assert words[3]["optimizer"].startswith("Adam(")
    assert words[5]["loss"] == "dprime.train.losses:plain_cross_entropy"
    assert "Doubling" in words[6]["loss"]
    assert words[7] == {"function": f"{__name__}:seeded", "loss": "cross-entropy"}
    assert "seeded" in words[8]["function"]
    assert "seed=1" in words[8]["function"]
    one = EngineTrainer(dense(5, 3), TrainingConfig(**RECIPE, block=7))
    assert one.describe() == words[0]  # how it is cut changes nothing


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("module", "trainer must be of the form module:function, but it is 'module'"),
        ("os.path:", "trainer must be of the form module:function, but it is 'os.path:'"),
        ("no_such_module:train", "importable .ModuleNotFoundError: No module named 'no_such_mod"),
        ("half_written:train", r"importable \(SyntaxError: .*half_written.py, line 1"),
        ("os.path:sep", "trainer must be a function in os.path, but it is 'os.path:sep'"),
    ],
)
def test_functions_that_are_not_there(tmp_path, monkeypatch, path, message):
    (tmp_path / "half_written.py").write_text("def train(dataset, seed)\n    return None\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=message):
        function_named(path)
