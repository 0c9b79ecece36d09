"""Private trainings with Opacus, watched for attribute inference: figures 1 and 9, section 6.2.

    python -m papers.cherubin.trainings adult --full --seed 2024 [--device cuda]    # raw/adult.json
    python -m papers.cherubin.trainings retail100 --full --seed 2024 [--device cuda --processes 8]

The noise is the one that the paper's equation 4 gives for a Bayes security of 0.9 against
membership after 20 epochs; trainings have 30. Full and approximate analysis watch the same ones.

Files say from which seed their trainings are. Those that are kept for the usual seed were made from
2024, and results say so; another seed makes new ones, in a file of its own.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader

from dprime.attributes import AttributeInference, AttributeRisk
from dprime.attributes.risks import FORMS, Form
from dprime.data import Split
from dprime.data.devices import device_title, one_thread
from dprime.monitor import Monitor
from papers.cherubin.cases import CASES, OTHER, Case, network, secrets, tensors
from papers.cherubin.securities import noise_of
from papers.reproduce import SEED, Kept, Scale, add_options, kept_in, plainly, scale_of

RAW = Path(__file__).resolve().parent / "raw"
EPOCHS, AT_EPOCHS, SECURITY = 30, 20, 0.9
CLIP_NORM, FPR = 1.0, 0.1
PAPERS: Form = "closed-form"


Trained = Mapping[str, Any]


@functools.cache
def trained(case: Case, scale: Scale) -> Trained:
    """The trainings of a case: once in a process, and full ones from their file if there is one."""
    if scale.size != "full":
        return train(case, scale)
    place = kept_file(case, scale.seed)
    if not place.exists():
        print(f"{place.name} is not there: trained on {scale.device}", file=sys.stderr)
        keep(train(case, scale), place)
    found: Trained = json.loads(place.read_text())
    return found


def kept_file(case: Case, seed: int) -> Path:
    """Where full trainings are kept: the usual file where it is of this seed."""
    usual = kept_in(RAW, case.data, SEED)
    if usual.exists() and json.loads(usual.read_text())["seed"] == seed:
        return usual
    return kept_in(RAW, case.data, seed)


def keep(found: Trained, place: Path) -> None:
    """Write trainings."""
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps(found, indent=1) + "\n")


def kept(scale: Scale, *found: Trained) -> Kept | None:
    """The trainings that a full version rests on, all from one seed."""
    if scale.size != "full":
        return None
    seeds = {each["data"]: each["seed"] for each in found}
    if len(set(seeds.values())) > 1:
        told = ", ".join(f"{seed} ({data})" for data, seed in seeds.items())
        raise ValueError(f"trainings in {RAW.name}/ must be from one seed, these are from {told}")
    return Kept.of(found)


def train(case: Case, scale: Scale, processes: int = 1) -> Trained:
    """All repetitions, watched; in several processes they are the same."""
    started = time.perf_counter()
    recipe = Recipe.of(case, scale)
    split = scale.data(case.data)
    drawn = split.train.draw(recipe.records, scale.seed)
    data = Split(drawn, split.test)
    epochs = scale.pick(2, EPOCHS, EPOCHS)
    run_all = _in_turn if processes == 1 else functools.partial(_side_by_side, processes)
    tried = _tried(case, recipe, data, epochs, scale, run_all)
    best = max(tried, key=tried.__getitem__) if tried else case.learning_rates[0]
    repetitions = scale.pick(2, case.quick_repetitions, case.repetitions)
    runs = run_all(
        [
            functools.partial(watched, case, recipe, data, best, seed, epochs, scale)
            for seed in range(scale.seed + 1, scale.seed + 1 + repetitions)
        ]
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


RunAll = Callable[[Sequence[Callable[[], Any]]], list[Any]]
"""Runs tasks; what they return is in their order."""


def _in_turn(tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    return [task() for task in tasks]


def _side_by_side(processes: int, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        return [each.result() for each in [pool.submit(task) for task in tasks]]


def _tried(
    case: Case, recipe: Recipe, data: Split, epochs: int, scale: Scale, run_all: RunAll
) -> dict[float, float]:
    """The accuracy at the end by learning rate, where all are tried."""
    if scale.size != "full":
        return {}
    rates = case.learning_rates
    found = run_all(
        [functools.partial(_ends_at, case, recipe, data, x, epochs, scale) for x in rates]
    )
    return dict(zip(rates, found, strict=True))


def _ends_at(
    case: Case, recipe: Recipe, data: Split, learning_rate: float, epochs: int, scale: Scale
) -> float:
    run = Run(case, recipe, data, learning_rate, scale.seed, scale.device)
    return run.accuracies(epochs)[-1]


class Run:
    """One private training with Opacus."""

    def __init__(
        self, case: Case, recipe: Recipe, data: Split, learning_rate: float, seed: int, device: str
    ) -> None:
        torch.manual_seed(seed)
        self.test, self.device = tensors(data.test).tensors, device
        module = network(data.train, case.widths).to(device)
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
        return self._accuracy()

    def _accuracy(self) -> float:
        x, y = self.test
        self.model.eval()
        with torch.no_grad():
            guessed = self.model(x.to(self.device)).argmax(dim=1).cpu()
        self.model.train()
        return float((guessed == y).double().mean())

    def monitored(self, watchers: Sequence[AttributeInference]) -> Monitor:
        """The training, watched."""
        return Monitor(
            self.engine, model=self.model, optimizer=self.optimizer, data_loader=self.loader,
            criterion=self.criterion, watchers=list(watchers), show=None,
        )  # fmt: skip


def watched(
    case: Case, recipe: Recipe, data: Split, learning_rate: float, seed: int, epochs: int,
    scale: Scale,
) -> dict[str, Any]:  # fmt: skip
    """One training with both analyses; of two values both are the same."""
    kinds = ("full", "approximate") if len(case.values) > 2 else ("full",)
    watchers = {
        kind: AttributeInference(*secrets(case), analysis=kind, every=recipe.every)  # type: ignore[arg-type]
        for kind in kinds
    }
    run = Run(case, recipe, data, learning_rate, seed, scale.device)
    with one_thread(), run.monitored(list(watchers.values())):
        accuracies = run.accuracies(epochs)
    full, name = watchers["full"], case.attribute
    other = {} if case.other is None else {OTHER: 1 - full.risk(OTHER, PAPERS).bayes_security()}
    return {
        **other,
        "accuracy": accuracies,
        "security": {
            form: {
                **{
                    kind: [one.attribute for one in watcher.over_epochs(name, form)]
                    for kind, watcher in watchers.items()
                },
                "membership": [one.membership for one in full.over_epochs(name, form)],
            }
            for form in FORMS
        },
        "differences": {
            kind: _summary(watcher.steps.differences[name]) for kind, watcher in watchers.items()
        },
        "table": {form: _row(full.risk(name, form)) for form in FORMS},
    }


def _summary(values: Sequence[float]) -> dict[str, float]:
    return {"least": min(values), "mean": sum(values) / len(values), "largest": max(values)}


def _row(risk: AttributeRisk) -> dict[str, float]:
    """What the paper's table has, for attribute inference and for membership."""
    assert risk.certified is not None
    membership = risk.membership.bayes_security()
    return {
        "attribute": risk.bayes_security(), "membership": membership,
        "certified": risk.certified.bayes_security(),
        "attribute_success": risk.success(), "membership_success": risk.success(risk.membership),
        "attribute_tpr": risk.tpr(FPR), "membership_tpr": risk.membership.tpr(FPR),
        "attribute_tpr_of_security": risk.paper_tpr(FPR),
        "membership_tpr_of_security": min(1.0, 1 + FPR - membership),
    }  # fmt: skip


def settings_of(found: Trained) -> dict[str, Any]:
    """What trainings rest on, and where they come from."""
    kept = (
        "records", "batch", "epochs", "clip_norm", "noise_multiplier", "network", "values",
        "learning_rate", "accuracy_by_learning_rate",
    )  # fmt: skip
    return {
        **{name: found[name] for name in kept if name in found},
        "repetitions": len(found["runs"]),
        "steps analysed": f"one in {found.get('every', 1)}",
    }


def public_accuracy(case: Case, found: Trained, scale: Scale) -> float:
    """Of the same network and records, on test records, after 30 epochs without privacy."""
    split = scale.data(case.data)
    x, y = tensors(split.train.draw(found["records"], found["seed"])).tensors
    torch.manual_seed(found["seed"])
    module = network(split.train, case.widths).to(scale.device)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for _ in range(scale.pick(2, EPOCHS, EPOCHS)):
        for part in torch.randperm(len(x)).split(case.batch):
            optimizer.zero_grad()
            criterion(module(x[part].to(scale.device)), y[part].to(scale.device)).backward()
            optimizer.step()
    records_, labels = tensors(split.test).tensors
    with torch.no_grad():
        guessed = module(records_.to(scale.device)).argmax(dim=1).cpu()
    return float((guessed == labels).double().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("data", choices=list(CASES))
    parser.add_argument("--processes", type=int, default=1, help="trainings at a time")
    add_options(parser)
    options = parser.parse_args()
    scale = scale_of(parser, options)
    case = CASES[options.data]
    with plainly(parser):
        found = train(case, scale, options.processes)
        full = scale.size == "full"
        keep(found, kept_file(case, scale.seed) if full else RAW / f"{case.data}-{scale.size}.json")


if __name__ == "__main__":
    main()
