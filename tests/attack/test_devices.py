"""The same game on a processor and on a GPU: the attack is crafted once, the scores agree."""

import dataclasses

import numpy as np
import pytest
import torch

from dprime.attack import ADVERSARIES
from games import GAMES, played, quick, setting_for

DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
    ),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("name", "adjacency", "model"),
    [
        (*game, model)
        for game in GAMES
        for model in ("linear", "conv-4")
        if (game[0], model) != ("attribute", "conv-4")
    ],
)
def test_scores_agree(name, adjacency, model, device):
    here = setting_for(name, adjacency=adjacency, model=model)
    there = dataclasses.replace(here, trainer=here.trainer.placed(device, 2.0))
    attack = quick(name).craft(here)
    first, second = played(here, attack)["score"], played(there, attack)["score"]
    np.testing.assert_allclose(first, second, rtol=1e-2, atol=1e-2 * first.std())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", list(ADVERSARIES))
def test_attacks_are_crafted_there(name, device):
    setting = setting_for(name, model="linear" if name == "attribute" else "conv-4")
    setting = dataclasses.replace(setting, trainer=setting.trainer.placed(device, 2.0))
    scores = played(setting, quick(name).craft(setting))["score"]
    assert np.isfinite(scores).all()
    assert len(np.unique(scores)) > 1
