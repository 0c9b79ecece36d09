"""The same game on a processor and on a GPU: the attack is crafted once, the scores agree."""

import dataclasses

import numpy as np
import pytest
import torch

from dprime.attack import ADVERSARIES
from games import engine_setting, played, quick

DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
    ),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("model", ["linear", "conv-4"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("name", list(ADVERSARIES))
def test_scores_agree(name, adjacency, model, device):
    here = engine_setting(adjacency=adjacency, model=model)
    there = dataclasses.replace(here, trainer=dataclasses.replace(here.trainer, device=device))
    attack = quick(name).craft(here)
    first, second = played(here, attack)["score"], played(there, attack)["score"]
    np.testing.assert_allclose(first, second, rtol=1e-2, atol=1e-2 * first.std())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", list(ADVERSARIES))
def test_attacks_are_crafted_there(name, device):
    setting = engine_setting(model="conv-4")
    setting = dataclasses.replace(
        setting, trainer=dataclasses.replace(setting.trainer, device=device)
    )
    scores = played(setting, quick(name).craft(setting))["score"]
    assert np.isfinite(scores).all()
    assert len(np.unique(scores)) > 1
