"""Attribute inference on Adult: figures 1 and 9 and the table of section 6.2.

    DPRIME_DATA=… python papers/cherubin/adult.py --out papers/cherubin/results/adult.json

Age is the sensitive attribute, all of 17 to 90. Batches of 256, 30 epochs, C = 1, and the noise
that the paper's equation 4 gives for a Bayes security of 0.9 against membership after 20 epochs.
The paper's noise of 3.51 follows from about 26,300 training records, so 26,300 of the 30,162
complete ones are drawn. The trainings are Opacus' own; full and approximate analysis watch the same
ones. `benchmarks/attributes.py` has the times of figure 8.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from opacus import PrivacyEngine
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from dprime import estimates
from dprime.data import Dataset, load
from dprime.data.adult import RANGES
from dprime.mechanisms import DPSGD
from dprime.monitor.attributes import Attribute
from dprime.monitor.inference import AttributeInference
from dprime.monitor.monitor import Monitor
from dprime.monitor.risks import FORMS, AttributeRisk

RECORDS, BATCH, EPOCHS = 26_300, 256, 30
SECURITY, AT_EPOCHS = 0.9, 20
CLIP_NORM, DELTA, FPR = 1.0, 1e-5, 0.1
WIDTHS = (64, 32)
LEARNING_RATES = (0.25, 0.5, 1.0, 2.0, 4.0)
REPETITIONS, SEED = 3, 2024
PAPER = {
    "full after 20 epochs": 0.945, "approximate after 20 epochs": 0.950,
    "attribute": 0.93, "membership": 0.88, "accuracy": 0.83,
}  # fmt: skip
"""The first two are swapped in print: the approximate analysis cannot report more security."""


def main() -> None:
    options = _options()
    started = time.perf_counter()
    split = load("adult")
    train = split.train.draw(options.records, SEED)
    rate = BATCH / len(train)
    noise = estimates.cherubin_noise(SECURITY, rate, round(AT_EPOCHS / rate))
    say(f"{len(train):,} records, noise {noise:.4f}")
    tried = {
        lr: Run(train, split.test, noise, lr, SEED).accuracies(options.epochs)[-1]
        for lr in options.learning_rates
    }
    best = max(tried, key=tried.__getitem__)
    say(f"learning rates {tried}: {best}")
    runs = [
        Run(train, split.test, noise, best, SEED + 1 + number).watched(options.epochs)
        for number in range(options.repetitions)
    ]
    result = {
        "records": len(train), "batch": BATCH, "epochs": options.epochs, "clip_norm": CLIP_NORM,
        "noise_multiplier": noise, "network": [train.records.shape[1], *WIDTHS, 2],
        "values": len(age(train).values), "delta": DELTA, "fpr": FPR,
        "learning_rate": best, "accuracy_by_learning_rate": tried, "paper": PAPER,
        "runs": runs, "claims": claims(runs), "seconds": time.perf_counter() - started,
    }  # fmt: skip
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    say(json.dumps(result["claims"], indent=1))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--learning-rates", type=float, nargs="+", default=LEARNING_RATES)
    return parser.parse_args()


def age(dataset: Dataset) -> Attribute:
    """All of 17 to 90, in the loader's scaling."""
    low, high = RANGES["age"]
    values = [(years - low) / (high - low) for years in range(low, high + 1)]
    return Attribute.column("age", values, columns=dataset.columns)


def network(features: int, classes: int = 2) -> nn.Module:
    """Two hidden layers."""
    first, second = WIDTHS
    return nn.Sequential(
        nn.Linear(features, first), nn.ReLU(), nn.Linear(first, second), nn.ReLU(),
        nn.Linear(second, classes),
    )  # fmt: skip


class Run:
    """One private training with Opacus."""

    def __init__(
        self, train: Dataset, test: Dataset, noise: float, learning_rate: float, seed: int
    ) -> None:
        torch.manual_seed(seed)
        self.train_set, self.test = train, test
        module = network(train.records.shape[1])
        data = TensorDataset(torch.tensor(train.records), torch.tensor(train.labels))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the random numbers are not secure
            self.engine = PrivacyEngine()
            self.model, self.optimizer, self.loader = self.engine.make_private(
                module=module, optimizer=torch.optim.SGD(module.parameters(), lr=learning_rate),
                data_loader=DataLoader(data, batch_size=BATCH),
                noise_multiplier=noise, max_grad_norm=CLIP_NORM,
            )  # fmt: skip
        self.noise = noise
        self.criterion = nn.CrossEntropyLoss()

    def epoch(self) -> float:
        """Train for an epoch; the accuracy on the test records after it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Opacus' hooks
            for x, y in self.loader:
                self.optimizer.zero_grad()
                self.criterion(self.model(x), y).backward()
                self.optimizer.step()
        return self.accuracy()

    def accuracies(self, epochs: int) -> list[float]:
        """After every epoch."""
        return [self.epoch() for _ in range(epochs)]

    def accuracy(self) -> float:
        """On the test records."""
        x, y = torch.tensor(self.test.records), torch.tensor(self.test.labels)
        self.model.eval()
        with torch.no_grad():
            guessed: Tensor = self.model(x).argmax(dim=1)
        self.model.train()
        return float((guessed == y).double().mean())

    def watched(self, epochs: int) -> dict[str, Any]:
        """With both analyses."""
        attribute = age(self.train_set)
        full = AttributeInference(attribute)
        rough = AttributeInference(attribute, analysis="approximate")
        monitor = Monitor(
            self.engine, model=self.model, optimizer=self.optimizer, data_loader=self.loader,
            criterion=self.criterion, watchers=[full, rough], show=None,
        )  # fmt: skip
        with monitor:
            accuracies = self.accuracies(epochs)
        say(full.report())
        rate = monitor.training.sample_rate
        steps = [round((epoch + 1) / rate) for epoch in range(epochs)]
        return {
            "accuracy": accuracies,
            "epsilon": [DPSGD(self.noise, rate, count).curve().epsilon(DELTA) for count in steps],
            "security": {
                form: {
                    "full": [one.attribute for one in full.over_epochs(form=form)],
                    "approximate": [one.attribute for one in rough.over_epochs(form=form)],
                    "membership": [one.membership for one in full.over_epochs(form=form)],
                }
                for form in FORMS
            },
            "differences": {
                "full": _summary(full.steps.differences["age"]),
                "approximate": _summary(rough.steps.differences["age"]),
            },
            "table": {form: _row(full.risk(form=form)) for form in FORMS},
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


def claims(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Whether what must hold does, over all repetitions and epochs."""
    found: dict[str, Any] = {}
    for form in FORMS:
        securities = [run["security"][form] for run in runs]
        rows = [
            row
            for one in securities
            for row in zip(one["full"], one["approximate"], one["membership"], strict=True)
        ]
        at = [
            {name: one[name][min(AT_EPOCHS, len(one[name])) - 1] for name in one}
            for one in securities
        ]
        found[form] = {
            "attribute is never below membership": all(full >= other for full, _, other in rows),
            "approximate is never above full": all(rough <= full for full, rough, _ in rows),
            "after 20 epochs": {name: sum(one[name] for one in at) / len(at) for name in at[0]},
        }
    found["best accuracy"] = max(max(run["accuracy"]) for run in runs)
    return found


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
