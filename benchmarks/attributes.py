"""What attribute inference costs on Adult, and whether an attacker reaches what it says.

    DPRIME_DATA=… python benchmarks/attributes.py [--epochs 10] [--threads 1 2] --out FILE

The first part is figure 8 of Cherubin et al. (2024): the time of an epoch without privacy, with
Opacus, with its accountant asked for ε after every epoch, with the risk of membership inference,
and with both analyses of attribute inference. The trainings take turns, epoch by epoch, so that
what else the machine does meets all of them. The setting is that of papers/cherubin/trainings.py.

The second part plays the adversary that the analysis is about, on the record of the diabetes data
that shows most, and holds its advantage against the estimate for that record along Opacus'
trainings of the same recipe.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import opacus
import torch
from opacus import PrivacyEngine
from scipy.special import erfinv
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dprime.attack import AttackTarget, EngineTrainer
from dprime.attack.attribute import OneAttribute
from dprime.attributes.attribute import Attribute
from dprime.attributes.inference import AttributeInference
from dprime.audit.game import Game
from dprime.data import Dataset, load
from dprime.data.adult import RANGES
from dprime.monitor.monitor import Monitor
from dprime.train import TrainingConfig
from measure import say

RECORDS, BATCH, WIDTHS, SEED = 26_300, 256, (64, 32), 2024
NOISE = BATCH / RECORDS * math.sqrt(round(20 * RECORDS / BATCH) / 2) / float(erfinv(1 - 0.9))
LEARNING_RATE, CLIP_NORM = 0.25, 1.0


def main() -> None:
    options = _options()
    warnings.simplefilter("ignore")  # of Opacus' hooks, at every step
    result = {
        "machine": {
            "python": platform.python_version(), "torch": torch.__version__,
            "opacus": opacus.__version__,
        },
        "times": [times(options.epochs, threads) for threads in options.threads],
        "attack": [attack(recipe, options.trials) for recipe in RECIPES],
    }  # fmt: skip
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    say(json.dumps(result, indent=1))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--epochs", type=int, default=10, help="of each training, after the first")
    parser.add_argument("--trials", type=int, default=1000, help="of the attack, in each world")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


# Times --------------------------------------------------------------------------------------------


@dataclass
class Loop:
    """A training, and what is asked after every epoch."""

    model: Any
    optimizer: Any
    loader: Any
    criterion: nn.Module
    ask: Callable[[], object] = lambda: None

    def epoch(self) -> float:
        """Seconds that an epoch takes, with what is asked after it."""
        start = time.perf_counter()
        for x, y in self.loader:
            self.optimizer.zero_grad()
            self.criterion(self.model(x), y).backward()
            self.optimizer.step()
        self.ask()
        return time.perf_counter() - start


def times(epochs: int, threads: int) -> dict[str, Any]:
    """Of an epoch, in turns; the first of each is not counted."""
    torch.set_num_threads(threads)
    train = load("adult").train.draw(RECORDS, SEED)
    loops = {
        "without privacy": public(train),
        "Opacus": private(train),
        "with its accountant": private(train, "accountant"),
        "membership": private(train, "membership"),
        "attribute, approximate": private(train, "approximate"),
        "attribute, full": private(train, "full"),
    }
    taken: dict[str, list[float]] = {name: [] for name in loops}
    for number in range(epochs + 1):
        for name, loop in loops.items():
            seconds = loop.epoch()
            if number:
                taken[name].append(seconds)
        say(", ".join(f"{name} {found[-1]:.2f} s" for name, found in taken.items() if found))
    plain = taken["Opacus"]
    return {
        "network": [train.records.shape[1], *WIDTHS, 2], "values": len(age(train).values),
        "records": RECORDS, "batch": BATCH, "epochs": epochs, "threads": threads,
        "seconds": {name: statistics.median(found) for name, found in taken.items()},
        "times the epoch of Opacus": {
            name: statistics.median(a / b for a, b in zip(found, plain, strict=True))
            for name, found in taken.items()
        },
        "all": taken,
    }  # fmt: skip


def network(features: int) -> nn.Module:
    first, second = WIDTHS
    return nn.Sequential(
        nn.Linear(features, first), nn.ReLU(), nn.Linear(first, second), nn.ReLU(),
        nn.Linear(second, 2),
    )  # fmt: skip


def age(dataset: Dataset) -> Attribute:
    low, high = RANGES["age"]
    values = [(years - low) / (high - low) for years in range(low, high + 1)]
    return Attribute.column("age", values, columns=dataset.columns)


def parts(train: Dataset) -> tuple[nn.Module, torch.optim.Optimizer, DataLoader[Any]]:
    torch.manual_seed(SEED)
    module = network(train.records.shape[1])
    data = TensorDataset(torch.tensor(train.records), torch.tensor(train.labels))
    optimizer = torch.optim.SGD(module.parameters(), lr=LEARNING_RATE)
    return module, optimizer, DataLoader(data, batch_size=BATCH, shuffle=True)


def public(train: Dataset) -> Loop:
    return Loop(*parts(train), nn.CrossEntropyLoss())


def private(train: Dataset, asked: str = "") -> Loop:
    """With Opacus, and with what is asked."""
    module, optimizer, loader = parts(train)
    engine = PrivacyEngine(accountant="rdp")
    made = engine.make_private(
        module=module, optimizer=optimizer, data_loader=loader, noise_multiplier=NOISE,
        max_grad_norm=CLIP_NORM,
    )  # fmt: skip
    model, private_optimizer, private_loader = made
    loop = Loop(model, private_optimizer, private_loader, nn.CrossEntropyLoss())
    if asked == "accountant":
        loop.ask = lambda: engine.get_epsilon(1e-5)
    elif asked:
        watchers = []
        if asked in ("full", "approximate"):
            watchers.append(AttributeInference(age(train), analysis=asked))  # type: ignore[arg-type]
        monitor = Monitor(
            engine, model=model, optimizer=private_optimizer, data_loader=private_loader,
            criterion=loop.criterion, watchers=watchers, show=None, metric="bayes_security",
        )  # fmt: skip
        loop.ask = watchers[0].risk if watchers else monitor.answer
    return loop


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


def attack(recipe: Recipe, trials: int) -> dict[str, Any]:
    """The advantage that is reached on the record that shows most, and the one estimated."""
    torch.set_num_threads(1)
    data = load("diabetes").train
    training = TrainingConfig(
        steps=recipe.steps, learning_rate=recipe.learning_rate, clip_norm=recipe.clip_norm,
        noise_multiplier=recipe.noise_multiplier, sample_rate=recipe.sample_rate,
        loss="squared-error",
    )  # fmt: skip
    torch.manual_seed(SEED)
    setting = AttackTarget(EngineTrainer(dense(recipe.width), training), data, "replace", seed=SEED)
    crafted = OneAttribute(columns=("sex",)).craft(setting)
    found = Game(setting, crafted, trials, 2 * trials, SEED).play(0)
    inside, outside = found["score"][found["in_world"]], found["score"][~found["in_world"]]
    reached = float((inside > 0).mean() - (outside > 0).mean())
    assert crafted.worlds.differing is not None
    estimated = estimate(recipe, data, crafted.worlds.differing.take([0]))
    return {
        "data": "diabetes", "attribute": "sex", "records": len(data), **vars(recipe),
        "trials": trials, "advantage": reached,
        "standard_error": math.sqrt(
            (np.var(inside > 0) + np.var(outside > 0)) / trials
        ),
        "estimated": estimated, "share": reached / estimated["central-limit"],
    }  # fmt: skip


def dense(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, 1))


def estimate(recipe: Recipe, data: Dataset, record: Dataset) -> dict[str, float]:
    """The advantage for one record along a training of Opacus, the mean over several."""
    attribute = Attribute.column("sex", [0.0, 1.0], columns=data.columns)
    advantages: dict[str, list[float]] = {"central-limit": [], "closed-form": []}
    for number in range(TRAININGS):
        watcher = AttributeInference(
            attribute, scope="data", loss=squared_error,
            data=(torch.tensor(record.records), torch.tensor(record.labels)),
        )  # fmt: skip
        _train(recipe, data, watcher, SEED + number)
        for form, found in advantages.items():
            found.append(watcher.risk(form=form).curve.advantage())  # type: ignore[arg-type]
    return {form: statistics.mean(found) for form, found in advantages.items()}


def squared_error(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return (outputs[:, 0] - targets) ** 2


def _train(recipe: Recipe, data: Dataset, watcher: AttributeInference, seed: int) -> None:
    torch.manual_seed(seed)
    module = dense(recipe.width)
    records = TensorDataset(torch.tensor(data.records), torch.tensor(data.labels))
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), lr=recipe.learning_rate),
        data_loader=DataLoader(records, batch_size=round(recipe.sample_rate * len(data))),
        noise_multiplier=recipe.noise_multiplier, max_grad_norm=recipe.clip_norm,
    )  # fmt: skip
    monitor = Monitor(
        engine, model=model, optimizer=optimizer, data_loader=loader, watchers=[watcher], show=None
    )
    left = recipe.steps
    with monitor:
        while left:
            for x, y in loader:
                if left:
                    optimizer.zero_grad()
                    squared_error(model(x), y).mean().backward()
                    optimizer.step()
                    left -= 1


if __name__ == "__main__":
    main()
