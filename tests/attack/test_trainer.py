"""How models are made, by the engine and by a function of the user's own."""

import functools
import json
import subprocess
import sys

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


DESCRIBE = """
import functools, json, sys
sys.path.insert(0, sys.argv[1])
from planted import trained_with_batch_norm
from torch import nn
from dprime.attack import EngineTrainer, FunctionTrainer
from dprime.train import Adam, TrainingConfig
from dprime.train.losses import plain_cross_entropy
class Adding:
    def __call__(self, outputs, labels): return plain_cross_entropy(outputs, labels)
spacer = [object() for _ in range(int(sys.argv[2]))]
recipe = dict(steps=3, learning_rate=0.1, clip_norm=1.0, noise_multiplier=2.0, optimizer=Adam())
print(json.dumps([
    EngineTrainer(
        nn.Sequential(nn.Flatten(), nn.Linear(64, 10)), TrainingConfig(**recipe)
    ).describe(),
    EngineTrainer(nn.Linear(4, 2), TrainingConfig(**recipe, loss=plain_cross_entropy)).describe(),
    EngineTrainer(nn.Linear(4, 2), TrainingConfig(**recipe, loss=Adding())).describe(),
    FunctionTrainer(trained_with_batch_norm).describe(),
    FunctionTrainer(functools.partial(trained_with_batch_norm, steps=3), Adding()).describe(),
]))
"""


@pytest.mark.slow
def test_the_same_words_in_every_process(request, monkeypatch, capsys):
    tests = str(request.config.rootpath / "tests")
    elsewhere = subprocess.run(
        [sys.executable, "-c", DESCRIBE, tests, "100000"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["-c", tests, "0"])
    exec(DESCRIBE, {"__name__": "__main__"})
    assert capsys.readouterr().out == elsewhere
    plain, named, own_loss, function, partial = json.loads(elsewhere)
    assert plain["steps"] == "3"
    assert plain["optimizer"].startswith("Adam(")
    assert "Linear(in_features=64, out_features=10, bias=True)" in plain["model"]
    assert named["loss"] == "dprime.train.losses:plain_cross_entropy"
    assert "Adding" in own_loss["loss"]
    assert function == {"function": "planted:trained_with_batch_norm", "loss": "cross-entropy"}
    assert "trained_with_batch_norm" in partial["function"]
    assert "steps=3" in partial["function"]


def test_other_recipes_have_other_words():
    trainers = [
        EngineTrainer(dense(5, 3), TrainingConfig(**RECIPE)),
        EngineTrainer(dense(5, 4, 3), TrainingConfig(**RECIPE)),
        EngineTrainer(dense(5, 3), TrainingConfig(**{**RECIPE, "noise_multiplier": 0.51})),
        EngineTrainer(dense(5, 3), TrainingConfig(**RECIPE, optimizer=Adam())),
        EngineTrainer(dense(5, 3), TrainingConfig(**RECIPE, sensitivity="local")),
        FunctionTrainer(seeded),
        FunctionTrainer(functools.partial(seeded, seed=1)),
    ]
    described = [json.dumps(trainer.describe()) for trainer in trainers]
    assert len(set(described)) == 7
    assert "0x" not in "".join(described)
    one = EngineTrainer(dense(5, 3), TrainingConfig(**RECIPE, block=7))
    assert one.describe() == trainers[0].describe()  # how it is cut changes nothing


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
