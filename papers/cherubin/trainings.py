"""Private trainings with Opacus, watched for attribute inference: figures 1 and 9, section 6.2.

    python -m papers.cherubin.trainings adult --seed 2024 [--device cuda]      # into raw.json
    python -m papers.cherubin.trainings retail100 --seed 2024 [--device cuda --processes 8]

The noise is the one that the paper's equation 4 gives for a Bayes security of 0.9 against
membership after 20 epochs; trainings have 30. Full and approximate analysis watch the same ones.

What is kept says from which seed it is. Trainings for the usual seed were made from 2024, and
results say so; another seed makes new ones, in a file of its own.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dprime.attributes import Attribute, AttributeInference, AttributeRisk
from dprime.attributes.risks import FORMS
from dprime.data import Dataset, Split
from dprime.data.adult import RANGES
from dprime.data.devices import device_named, device_title, one_thread
from dprime.monitor import Monitor
from papers.__main__ import plainly
from papers.cherubin.securities import noise_of
from papers.entry import Kept, Scale, kept_or

HERE = Path(__file__).resolve().parent
EPOCHS, AT_EPOCHS, SECURITY = 30, 20, 0.9
CLIP_NORM, FPR = 1.0, 0.1

OTHER = "other"
"""The name of an attribute to compare with."""

Trained = Mapping[str, Any]
Run = Mapping[str, Any]
"""What was seen of one training."""


@dataclass(frozen=True)
class Case:
    """A data set of the paper's section 6.

    Attributes:
        data: its name.
        title: as it is called on the page.
        records: that are drawn for training.
        batch: L.
        quick: the same two for a quick version.
        attribute: what is secret, which is the first column.
        values: that it may have.
        widths: of the hidden layers.
        learning_rates: of which the best is taken; a quick version takes the first.
        repetitions: of the full version.
        other: the column of another attribute with the same values, to compare with.
    """

    data: str
    title: str
    records: int
    batch: int
    quick: tuple[int, int]
    attribute: str
    values: tuple[float, ...]
    widths: tuple[int, ...]
    learning_rates: tuple[float, ...]
    repetitions: int = 10
    other: int | None = None

    def network(self, data: Dataset) -> nn.Module:
        """Hidden layers of these widths."""
        layers: list[nn.Module] = []
        before = data.records.shape[1]
        for width in self.widths:
            layers += [nn.Linear(before, width), nn.ReLU()]
            before = width
        assert data.classes is not None
        return nn.Sequential(*layers, nn.Linear(before, data.classes))

    def secrets(self) -> list[Attribute]:
        """The attribute with all its values, and the one to compare with, where there is one."""
        columns = {self.attribute: 0, OTHER: self.other}
        return [
            Attribute.column(column, list(self.values), name=name)
            for name, column in columns.items()
            if column is not None
        ]


LOW, HIGH = RANGES["age"]
AGES = tuple((years - LOW) / (HIGH - LOW) for years in range(LOW, HIGH + 1))
"""All of 17 to 90, in the loader's scaling."""

ADULT = Case(
    "adult", "Adult", 26_300, 256, (26_300, 256), "age", AGES, (64, 32), (0.25, 0.5, 1.0, 2.0, 4.0)
)
"""The paper does not say how many it trained on: its noise of 3.51 follows from about 26,300."""

RETAIL = Case(
    "retail100", "retail100 in the place of Purchase", 67_390, 512, (1_500, 38), "first item",
    (0.0, 1.0), (128,), (0.1, 0.25, 0.5, 1.0, 2.0), 5, 599,
)  # fmt: skip
"""All training records of retail100, in the place of Purchase; the last item is a rare one."""

CASES = {case.data: case for case in (ADULT, RETAIL)}


def tensors(data: Dataset) -> TensorDataset:
    """Records and labels."""
    return TensorDataset(
        torch.tensor(np.asarray(data.records, np.float32)), torch.tensor(data.labels)
    )


@dataclass(frozen=True)
class Recipe:
    """What follows from the case and the size."""

    records: int
    batch: int
    noise: float
    every: int

    @classmethod
    def of(cls, case: Case, scale: Scale) -> Recipe:
        """The noise is the one for the security that is wanted, at every size."""
        records, batch = scale.pick((300, 15), case.quick, (case.records, case.batch))
        rate = batch / records
        noise = noise_of(SECURITY, rate, round(AT_EPOCHS / rate))
        return cls(records, batch, noise, scale.pick(1, 10, 1))

    @property
    def steps(self) -> int:
        """Of an epoch."""
        return -(-self.records // self.batch)


@functools.cache
def trained(case: Case, scale: Scale) -> Trained:
    """The trainings of a case: once in a process, and full ones from what is kept."""
    if not scale.full:
        return train(case, scale)
    return kept_or(HERE, case.data, scale, lambda: dict(train(case, scale)))


def both(scale: Scale) -> dict[str, Trained]:
    """Of both cases, by the name of the data."""
    return {case.data: trained(case, scale) for case in CASES.values()}


def kept(scale: Scale, *found: Trained) -> Kept | None:
    """The trainings that a full version rests on, all from one seed."""
    return Kept.of(found) if scale.full else None


def train(case: Case, scale: Scale, processes: int = 1) -> Trained:
    """All repetitions, watched; in several processes they are the same."""
    started = time.perf_counter()
    recipe = Recipe.of(case, scale)
    split = scale.data(case.data)
    drawn = split.train.draw(recipe.records, scale.seed)
    data = Split(drawn, split.test)
    epochs = scale.pick(2, EPOCHS, EPOCHS)
    one = functools.partial(watched, case, recipe, data, epochs=epochs, scale=scale)
    ends_at = functools.partial(_ends_at, case, recipe, data, epochs, scale)
    rates = case.learning_rates if scale.full else ()
    ends = _all([functools.partial(ends_at, rate) for rate in rates], processes)
    tried = dict(zip(rates, ends, strict=True))
    best = max(tried, key=tried.__getitem__) if tried else case.learning_rates[0]
    seeds = range(scale.seed + 1, scale.seed + 1 + scale.pick(2, 3, case.repetitions))
    runs = _all([functools.partial(one, best, seed) for seed in seeds], processes)
    return {
        "data": case.data, "records": recipe.records, "batch": recipe.batch, "epochs": epochs,
        "clip_norm": CLIP_NORM, "noise_multiplier": recipe.noise, "attribute": case.attribute,
        "network": [drawn.records.shape[1], *case.widths, drawn.classes],
        "values": len(case.values), "fpr": FPR, "learning_rate": best,
        "accuracy_by_learning_rate": tried, "every": recipe.every, "runs": runs,
        "seconds": time.perf_counter() - started, "device": device_title(scale.device),
        "seed": scale.seed,
    }  # fmt: skip


def _all(tasks: Sequence[Callable[[], Any]], processes: int) -> list[Any]:
    """What tasks return, in their order."""
    if processes == 1:
        return [task() for task in tasks]
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        return [each.result() for each in [pool.submit(task) for task in tasks]]


def _ends_at(
    case: Case, recipe: Recipe, data: Split, epochs: int, scale: Scale, learning_rate: float
) -> float:
    """The accuracy at the end."""
    training = Training(case, recipe, data, learning_rate, scale.seed, scale.device)
    return training.accuracies(epochs)[-1]


class Training:
    """One private training with Opacus."""

    def __init__(
        self, case: Case, recipe: Recipe, data: Split, learning_rate: float, seed: int, device: str
    ) -> None:
        torch.manual_seed(seed)
        self.test, self.device = data.test, device
        module = case.network(data.train).to(device)
        self.criterion = nn.CrossEntropyLoss()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the random numbers are not secure
            self.engine = PrivacyEngine(accountant="rdp")
            self.model, self.optimizer, self.loader = self.engine.make_private(
                module=module, optimizer=torch.optim.SGD(module.parameters(), lr=learning_rate),
                data_loader=DataLoader(tensors(data.train), batch_size=recipe.batch),
                noise_multiplier=recipe.noise, max_grad_norm=CLIP_NORM,
            )  # fmt: skip

    def accuracies(self, epochs: int) -> list[float]:
        """On the test records, after every epoch."""
        return [self._epoch() for _ in range(epochs)]

    def _epoch(self) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Opacus' hooks
            for x, y in self.loader:
                self.optimizer.zero_grad()
                self.criterion(self.model(x.to(self.device)), y.to(self.device)).backward()
                self.optimizer.step()
        self.model.eval()
        found = accuracy(self.model, self.test, self.device)
        self.model.train()
        return found

    def monitored(self, watchers: Sequence[AttributeInference]) -> Monitor:
        """The training, watched."""
        return Monitor(
            self.engine, model=self.model, optimizer=self.optimizer, data_loader=self.loader,
            criterion=self.criterion, watchers=list(watchers), show=None,
        )  # fmt: skip


def accuracy(model: nn.Module, data: Dataset, device: str) -> float:
    """The share of records whose class is predicted."""
    x, y = tensors(data).tensors
    with torch.no_grad():
        guessed = model(x.to(device)).argmax(dim=1).cpu()
    return float((guessed == y).double().mean())


def watched(
    case: Case, recipe: Recipe, data: Split, learning_rate: float, seed: int, epochs: int,
    scale: Scale,
) -> Run:  # fmt: skip
    """One training with both analyses; of two values both are the same."""
    kinds = ("full", "approximate") if len(case.values) > 2 else ("full",)
    watchers = {
        kind: AttributeInference(*case.secrets(), analysis=kind, every=recipe.every)  # type: ignore[arg-type]
        for kind in kinds
    }
    training = Training(case, recipe, data, learning_rate, seed, scale.device)
    with one_thread(), training.monitored(list(watchers.values())):
        accuracies = training.accuracies(epochs)
    full, name = watchers["full"], case.attribute

    def over_epochs(form: Any) -> dict[str, list[float]]:
        found = {
            kind: [one.attribute for one in watcher.over_epochs(name, form)]
            for kind, watcher in watchers.items()
        }
        return {**found, "membership": [one.membership for one in full.over_epochs(name, form)]}

    def summary(values: Sequence[float]) -> dict[str, float]:
        return {"least": min(values), "mean": sum(values) / len(values), "largest": max(values)}

    other = {}
    if case.other is not None:
        other = {OTHER: 1 - full.risk(OTHER, "closed-form").bayes_security()}
    differences = {kind: summary(each.steps.differences[name]) for kind, each in watchers.items()}
    return {
        **other, "accuracy": accuracies, "differences": differences,
        "security": {form: over_epochs(form) for form in FORMS},
        "table": {form: _row(full.risk(name, form)) for form in FORMS},
    }  # fmt: skip


def _row(risk: AttributeRisk) -> dict[str, float]:
    """What the paper's table has, for attribute inference and for membership."""
    assert risk.certified is not None
    membership = risk.membership.bayes_security()
    return {
        "attribute": risk.bayes_security(), "membership": membership,
        "certified": risk.certified.bayes_security(),
        "attribute_success": risk.success(), "membership_success": risk.success(risk.membership),
        "attribute_tpr": risk.tpr(FPR), "membership_tpr": risk.membership.tpr(FPR),
        "attribute_tpr_of_security": min(1.0, 1.0 + FPR - risk.bayes_security()),
        "membership_tpr_of_security": min(1.0, 1 + FPR - membership),
    }  # fmt: skip


def settings_of(found: Trained) -> dict[str, Any]:
    """What trainings rest on, and where they come from."""
    shown = (
        "records", "batch", "epochs", "clip_norm", "noise_multiplier", "network", "values",
        "learning_rate", "accuracy_by_learning_rate",
    )  # fmt: skip
    return {
        **{name: found[name] for name in shown if name in found},
        "repetitions": len(found["runs"]),
        "steps analysed": f"one in {found.get('every', 1)}",
    }


def public_accuracy(case: Case, found: Trained, scale: Scale) -> float:
    """Of the same network and records, on test records, after 30 epochs without privacy."""
    split = scale.data(case.data)
    x, y = tensors(split.train.draw(found["records"], found["seed"])).tensors
    torch.manual_seed(found["seed"])
    module = case.network(split.train).to(scale.device)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for _ in range(scale.pick(2, EPOCHS, EPOCHS)):
        for part in torch.randperm(len(x)).split(case.batch):
            optimizer.zero_grad()
            criterion(module(x[part].to(scale.device)), y[part].to(scale.device)).backward()
            optimizer.step()
    return accuracy(module, split.test, scale.device)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("data", choices=list(CASES))
    parser.add_argument("--processes", type=int, default=1, help="trainings at a time")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--seed", type=int, required=True, help="of all random numbers")
    options = parser.parse_args()
    case, scale = CASES[options.data], Scale("full", options.device, seed=options.seed)
    with plainly(parser):
        device_named(options.device)
        kept_or(HERE, case.data, scale, lambda: dict(train(case, scale, options.processes)))


if __name__ == "__main__":
    main()
