"""The first adversary: the final model's loss on a natural record."""

import numpy as np
import pytest
import torch
from torch import nn

from dprime.attack import ApiAccess, AttackTarget, FunctionTrainer
from dprime.train import train
from games import IMAGES, engine_setting, played


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_the_score_is_the_loss_of_the_record_in_question(adjacency):
    setting = engine_setting(adjacency=adjacency, record=4, model="dense-5")
    attack = ApiAccess().craft(setting)
    worlds = attack.worlds
    assert np.array_equal(worlds.differing.records[0], setting.dataset.records[4])
    done = train(
        setting.trainer.model, worlds, setting.trainer.training, trials=20, seed=setting.seed
    )
    x, y = torch.tensor(worlds.differing.records), torch.tensor(worlds.differing.labels)
    expected = []
    for trial in range(20):
        with torch.no_grad():
            losses = nn.functional.cross_entropy(done.model(trial)(x), y, reduction="none").tolist()
        expected.append(-losses[0] if adjacency == "add-remove" else losses[1] - losses[0])
    np.testing.assert_allclose(played(setting, attack)["score"], expected, rtol=1e-4, atol=1e-6)


def test_a_function_of_ones_own_is_asked_the_same():
    """The model's output is how many records it was given: the score tells the worlds apart."""

    class Counting(nn.Module):
        def __init__(self, count):
            super().__init__()
            self.count = float(count)

        def forward(self, x):
            logits = torch.zeros(len(x), 10)
            logits[:, 0] = self.count
            return logits

    data = IMAGES.train.take(range(6))
    trainer = FunctionTrainer(lambda dataset, seed: Counting(len(dataset)))
    label_0 = int(np.flatnonzero(data.labels == 0)[0])
    setting = AttackTarget(trainer, data, record=label_0)
    found = played(setting, ApiAccess().craft(setting), trials=3)
    expected = [-np.log1p(9 * np.exp(-count)) for count in (6, 5)]
    np.testing.assert_allclose(found["score"], expected * 3, rtol=1e-4)
