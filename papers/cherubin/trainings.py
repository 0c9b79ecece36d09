"""Private trainings with Opacus, watched for attribute inference: figures 1 and 9, section 6.2.

    python -m papers cherubin/figure1 --full --seed 2024 [--device cuda --processes 8]  # raw.json

The noise is the one that the paper's equation 4 gives for a Bayes security of 0.9 against
membership after 20 epochs; trainings have 30. Full and approximate analysis watch the same ones.

What is kept says from which seed it is. Trainings for the usual seed were made from 2024, and
results say so; another seed makes new ones, in a file of its own.
"""

from __future__ import annotations

import functools
import multiprocessing
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.networks import dense, loop, tensors
from dprime.attributes import Attribute, AttributeInference, AttributeRisk
from dprime.attributes.risks import FORMS
from dprime.data import Dataset, Split
from dprime.data.adult import RANGES
from dprime.data.devices import device_title, one_thread
from dprime.monitor import Monitor
from papers.cherubin.closed_form import noise_of
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
        assert data.classes is not None
        return dense(data.records.shape[1], *self.widths, data.classes)

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


def train(case: Case, scale: Scale) -> Trained:
    """All repetitions, watched; in several processes they are the same."""
    started, recipe, split = time.perf_counter(), Recipe.of(case, scale), scale.data(case.data)
    drawn = split.train.draw(recipe.records, scale.seed)
    data, epochs = Split(drawn, split.test), scale.pick(2, EPOCHS, EPOCHS)
    rates = case.learning_rates if scale.full else ()
    ends = _all(
        [functools.partial(_ends_at, case, recipe, data, each, epochs, scale) for each in rates],
        scale.processes,
    )
    tried = dict(zip(rates, ends, strict=True))
    best = max(tried, key=tried.__getitem__) if tried else case.learning_rates[0]
    seeds = range(scale.seed + 1, scale.seed + 1 + scale.pick(2, 3, case.repetitions))
    runs = _all(
        [functools.partial(watched, case, recipe, data, best, s, epochs, scale) for s in seeds],
        scale.processes,
    )
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
    case: Case, recipe: Recipe, data: Split, rate: float, epochs: int, scale: Scale
) -> float:
    return accuracies(case, recipe, data, rate, scale.seed, epochs, scale)[-1]


def accuracies(
    case: Case, recipe: Recipe, data: Split, rate: float, seed: int, epochs: int, scale: Scale,
    watchers: Sequence[AttributeInference] = (),
) -> list[float]:  # fmt: skip
    """Of one private training with Opacus, on the test records, after every epoch."""
    torch.manual_seed(seed)
    found, device = [], scale.device
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the random numbers are not secure; Opacus' hooks
        private = loop(
            case.network(data.train).to(device), tensors(data.train), recipe.batch, rate=rate,
            accountant="rdp", noise_multiplier=recipe.noise, max_grad_norm=CLIP_NORM,
        )  # fmt: skip
        watch = Monitor(**private.parts(), watchers=[*watchers], show=None) if watchers else None
        with watch or nullcontext():
            for _ in range(epochs):
                for x, y in private.loader:
                    private.step(x.to(device), y.to(device))
                private.model.eval()
                found.append(accuracy(private.model, data.test, device))
                private.model.train()
    return found


def accuracy(model: nn.Module, data: Dataset, device: str) -> float:
    """The share of records whose class is predicted."""
    x, y = tensors(data).tensors
    with torch.no_grad():
        guessed = model(x.to(device)).argmax(dim=1).cpu()
    return float((guessed == y).double().mean())


def watched(
    case: Case, recipe: Recipe, data: Split, rate: float, seed: int, epochs: int, scale: Scale
) -> Run:
    """One training with both analyses; of two values both are the same."""
    kinds = ("full", "approximate") if len(case.values) > 2 else ("full",)
    watchers = {
        kind: AttributeInference(*case.secrets(), analysis=kind, every=recipe.every)  # type: ignore[arg-type]
        for kind in kinds
    }
    with one_thread():
        reached = accuracies(case, recipe, data, rate, seed, epochs, scale, [*watchers.values()])
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
        **other, "accuracy": reached, "differences": differences,
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
    for _ in range(scale.pick(2, EPOCHS, EPOCHS)):
        for part in torch.randperm(len(x)).split(case.batch):
            optimizer.zero_grad()
            outputs = module(x[part].to(scale.device))
            nn.functional.cross_entropy(outputs, y[part].to(scale.device)).backward()
            optimizer.step()
    return accuracy(module, split.test, scale.device)
