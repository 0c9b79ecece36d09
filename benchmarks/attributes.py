"""What does the analysis of an attribute cost, and does an attacker reach what it says?

Claim: docs/attributes.md. The parts:

- times: figure 8 of Cherubin et al. (2024) on Adult, in the setting of papers/cherubin: the time of
  an epoch without privacy, with Opacus, with its accountant asked for ε after every epoch, with the
  risk of membership inference, and with both analyses of attribute inference. The trainings take
  turns, epoch by epoch, so that what else the machine does meets all of them.
- attack: plays the adversary that the analysis is about, on the record of the diabetes data that
  shows most, and holds its advantage against the estimate for that record along Opacus' trainings
  of the same recipe.
"""

from __future__ import annotations

import math
import statistics
import warnings
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from benchmarks.networks import dense, loop, tensors
from benchmarks.timing import Found, in_turns, medians, parts
from dprime.attack import AttackTarget, EngineTrainer
from dprime.attack.attribute import OneAttribute
from dprime.attack.trainer import Game
from dprime.attributes.attribute import Attribute
from dprime.attributes.inference import AttributeInference
from dprime.data import Dataset, load
from dprime.monitor.monitor import Monitor
from dprime.train import TrainingConfig
from papers.cherubin.times import epochs_of
from papers.cherubin.trainings import ADULT
from papers.cherubin.trainings import Recipe as AdultRecipe
from papers.entry import Scale

SEED = 2024


def measure(quick: bool, only: list[str] | None) -> Found:
    warnings.simplefilter("ignore")  # of Opacus' hooks, at every step
    epochs, threads = (1, (1,)) if quick else (10, (1, 2))
    recipes, trials = (RECIPES[:1], 20) if quick else (RECIPES, 1000)
    made = {
        "times": lambda: [times(epochs, each) for each in threads],
        "attack": lambda: [attack(each, trials, 2 if quick else TRAININGS) for each in recipes],
    }
    return parts(made, only)


def times(epochs: int, threads: int) -> Found:
    """Of an epoch, in turns; the first of each is not counted."""
    torch.set_num_threads(threads)
    recipe = AdultRecipe.of(ADULT, Scale("full"))
    train = load("adult").train.draw(recipe.records, SEED)
    taken = in_turns(epochs_of(train, SEED, recipe), epochs)
    plain = taken["Opacus"]
    ratios = {
        name: [a / b for a, b in zip(found, plain, strict=True)] for name, found in taken.items()
    }
    return {
        "network": [train.records.shape[1], *ADULT.widths, 2], "values": len(ADULT.values),
        "records": recipe.records, "batch": recipe.batch, "epochs": epochs, "threads": threads,
        "seconds": medians(taken), "times the epoch of Opacus": medians(ratios), "all": taken,
    }  # fmt: skip


# The attack ---------------------------------------------------------------------------------------

TRAININGS = 30
"""Of Opacus, over which the estimate for the record is averaged."""


@dataclass(frozen=True)
class Recipe:
    """How the diabetes data is trained on."""

    noise_multiplier: float
    sample_rate: float
    steps: int
    clip_norm: float = 0.2
    width: int = 16
    learning_rate: float = 0.1


# With little noise the central-limit form itself is above what any attacker reaches.
RECIPES = (Recipe(0.8, 0.05, 200), Recipe(1.0, 0.03, 900), Recipe(1.5, 0.05, 1000))


def attack(recipe: Recipe, trials: int, trainings: int) -> Found:
    """The advantage that is reached on the record that shows most, and the one estimated."""
    torch.set_num_threads(1)
    data = load("diabetes").train
    training = TrainingConfig(
        steps=recipe.steps, learning_rate=recipe.learning_rate, clip_norm=recipe.clip_norm,
        noise_multiplier=recipe.noise_multiplier, sample_rate=recipe.sample_rate,
        loss="squared-error",
    )  # fmt: skip
    torch.manual_seed(SEED)
    trainer = EngineTrainer(dense(10, recipe.width, 1), training)
    setting = AttackTarget(trainer, data, "replace", seed=SEED)
    crafted = OneAttribute(columns=("sex",)).craft(setting)
    found = Game(setting.trainer, crafted, trials, 2 * trials, SEED).play(0)
    says_in, in_world = found["score"] > 0, found["in_world"]
    inside, outside = says_in[in_world], says_in[~in_world]
    reached = float(inside.mean() - outside.mean())
    assert crafted.worlds.differing is not None
    estimated = estimate(recipe, data, crafted.worlds.differing.take([0]), trainings)
    return {
        "data": "diabetes", "attribute": "sex", "records": len(data), **vars(recipe),
        "trials": trials, "advantage": reached,
        "standard_error": math.sqrt((np.var(inside) + np.var(outside)) / trials),
        "estimated": estimated, "share": reached / estimated["central-limit"],
    }  # fmt: skip


def estimate(recipe: Recipe, data: Dataset, record: Dataset, trainings: int) -> dict[str, float]:
    """The advantage for one record along a training of Opacus, the mean over several."""
    attribute = Attribute.column("sex", [0.0, 1.0], columns=data.columns)
    advantages: dict[str, list[float]] = {"central-limit": [], "closed-form": []}
    for number in range(trainings):
        watcher = AttributeInference(
            attribute, scope="data", loss=squared_error,
            data=(torch.tensor(record.records), torch.tensor(record.labels)),
        )  # fmt: skip
        _watched(recipe, data, watcher, SEED + number)
        for form, found in advantages.items():
            found.append(watcher.risk(form=form).curve.advantage())  # type: ignore[arg-type]
    return {form: statistics.mean(found) for form, found in advantages.items()}


def squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs[:, 0] - targets) ** 2


def _watched(recipe: Recipe, data: Dataset, watcher: AttributeInference, seed: int) -> None:
    torch.manual_seed(seed)
    private = loop(
        dense(10, recipe.width, 1), tensors(data), round(recipe.sample_rate * len(data)),
        rate=recipe.learning_rate, accountant="rdp", noise_multiplier=recipe.noise_multiplier,
        criterion=lambda outputs, targets: squared_error(outputs, targets).mean(),
        max_grad_norm=recipe.clip_norm,
    )  # fmt: skip
    own = {name: part for name, part in private.parts().items() if name != "criterion"}
    with Monitor(**own, watchers=[watcher], show=None):
        private.train(recipe.steps)
