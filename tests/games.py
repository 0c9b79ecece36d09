"""Small settings that tests play in, and adversaries that prepare little."""

import dataclasses

import numpy as np
import scipy.stats
import torch
from torch import nn

from dprime.attack import ADVERSARIES, AttackTarget, EngineTrainer
from dprime.attack.trainer import Game
from dprime.audit.config import blocks_of
from dprime.data import load
from dprime.train import TrainingConfig
from dprime.train.models import model_named

IMAGES = load("digits")
TABLE = load("diabetes")
FEW = {
    "static-poisoning": {"shadows": 6, "outliers": 1},
    "intermediate-models": {"shadows": 6, "outliers": 1},
    "chosen-weights": {"steps": 60, "learning_rate": 0.05},
}
RECIPE = {"steps": 4, "learning_rate": 0.2, "clip_norm": 1.0, "noise_multiplier": 0.5}


class Constant(nn.Module):
    """A model that gives each record the same ten logits."""

    def __init__(self, value):
        super().__init__()
        self.value = float(value)

    def forward(self, x):
        logits = torch.zeros(len(x), 10)
        logits[:, 0] = self.value
        return logits


def network():
    """A network for the images, to be named as games:network."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))


def quick(name):
    """An adversary whose preparation takes no time."""
    return ADVERSARIES[name](**FEW.get(name, {}))


def engine_setting(split=IMAGES, records=12, model="linear", adjacency="add-remove", **options):
    """An attacked training; `options` are those of the recipe or of the setting."""
    dataset = split.train.take(range(records))
    names = {field.name for field in dataclasses.fields(TrainingConfig)}
    recipe = {**RECIPE, **{name: options.pop(name) for name in names & set(options)}}
    if dataset.classes is None:
        recipe.setdefault("loss", "squared-error")
    if adjacency == "add-remove":
        recipe.setdefault("expected_batch_size", recipe.get("sample_rate", 1.0) * records)
    trainer = EngineTrainer(model_named(model, dataset), TrainingConfig(**recipe))
    given = {"pool": split.test.take(range(6)), "seed": 3, **options}
    return AttackTarget(trainer, dataset, adjacency, **given)


def played(setting, attack, trials=10, block=None, reverse=False):
    """The arrays of a whole game, in the order of the trials, however the blocks were played."""
    game = Game(setting.trainer, attack, trials, block or 2 * trials, setting.seed)
    numbers = range(blocks_of(game.trials, game.block))
    blocks = {n: game.play(n) for n in (reversed(numbers) if reverse else numbers)}
    parts = [blocks[n] for n in numbers]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def by_world(found):
    """The scores of both worlds."""
    return found["score"][found["in_world"]], found["score"][~found["in_world"]]


def area(found):
    """Under the curve of the scores."""
    inside, outside = by_world(found)
    return scipy.stats.mannwhitneyu(inside, outside).statistic / (len(inside) * len(outside))


GAMES = [
    (name, adjacency)
    for name in ADVERSARIES
    for adjacency in ("add-remove", "replace")
    if (name, adjacency) != ("attribute", "add-remove")  # its record is there in both worlds
]


def setting_for(name, **options):
    """What an adversary is tried on: attributes are columns of a table."""
    if name == "attribute":
        options = {"split": TABLE, "adjacency": "replace", **options}
    return engine_setting(**options)
