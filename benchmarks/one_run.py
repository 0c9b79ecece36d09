"""The audit in one run, on real trainings: how often it is wrong, and what it finds.

    DPRIME_DATA=… python benchmarks/one_run.py [--out benchmarks/one_run.json]

Opacus trains a small network on MNIST with ε = 8 at δ = 1e-5, as its users would, and canaries
watch. Right trainings must be refuted in no more than 5 % of cases, but for chance; trainings
with one of four mistakes should be. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import TensorDataset

import dprime
from dprime.canaries.base import Canaries
from dprime.canaries.gradients import GradientCanaries
from dprime.canaries.inputs import InputCanaries
from dprime.data import load
from dprime.monitor.monitor import Monitor

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from planted_opacus import MISTAKES, made_private  # type: ignore # noqa: E402

EPSILON, DELTA, CONFIDENCE = 8.0, 1e-5, 0.95
RECORDS, BATCH, STEPS, HIDDEN, LEARNING_RATE = 5000, 128, 120, 64, 0.5
GRADIENT, INPUT, EVERY = 1000, 500, 3
RIGHT, WRONG, FEWER = 100, 20, 50

NOTHING = "nothing"
PLANS = [
    (NOTHING, "gradient canaries", RIGHT),
    *((mistake, "gradient canaries", WRONG) for mistake in MISTAKES),
    (NOTHING, "no canaries", FEWER),
    ("clipping left out", "input canaries", WRONG),
    (NOTHING, "input canaries", FEWER),
]
"""What is wrong, what watches, and how many trainings."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "one_run.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    data, test = _mnist()
    runs: list[dict[str, Any]] = []
    if options.out.exists():
        runs = json.loads(options.out.read_text())["runs"]
    for wrong, watching, trainings in PLANS:
        known = {r["seed"] for r in runs if (r["wrong"], r["watching"]) == (wrong, watching)}
        for seed in range(trainings):
            if seed not in known:
                runs.append(_training(data, test, wrong, watching, seed))
                _write(options.out, runs)
        print(_line(_group(runs, wrong, watching)), flush=True)


def _mnist() -> tuple[TensorDataset, TensorDataset]:
    split = load("mnist")
    parts = (split.train.take(range(RECORDS)), split.test.take(range(2000)))
    train, test = (TensorDataset(torch.tensor(p.records), torch.tensor(p.labels)) for p in parts)
    return train, test


def _training(
    data: TensorDataset, test: TensorDataset, wrong: str, watching: str, seed: int
) -> dict[str, Any]:
    """One training and what its canaries said."""
    start = time.perf_counter()
    torch.manual_seed(seed)
    canaries, mixed = _canaries(data, watching, seed)
    rate = 1.0 / math.ceil(len(mixed) / BATCH)
    plan = dprime.DPSGD(sample_rate=rate, steps=STEPS)
    noise = dprime.choose(plan, epsilon=EPSILON, delta=DELTA).noise_multiplier
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(784, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 10)
    )  # fmt: skip
    private = made_private(model, mixed, noise=noise, batch=BATCH, rate=LEARNING_RATE, seed=seed)
    if wrong != NOTHING:
        MISTAKES[wrong](private)
    found: dict[str, Any] = {"wrong": wrong, "watching": watching, "seed": seed, "noise": noise}
    if canaries is None:
        private.train(STEPS)
    else:
        Monitor(**private.parts(), watchers=[canaries], show=None)
        private.train(STEPS)
        result = canaries.result(delta=DELTA)
        found |= {
            "verdict": result.verdict,
            "guesses": result.guesses,
            "right": dict(result.counted),
            "needed": result.needed,
            "bound": result.bound,
            "claimed": result.claimed,
        }
    records, labels = test.tensors
    with torch.no_grad():
        accuracy = (model.eval()(records).argmax(1) == labels).float().mean()
    return found | {"accuracy": float(accuracy), "seconds": time.perf_counter() - start}


def _canaries(data: TensorDataset, watching: str, seed: int) -> tuple[Canaries | None, Any]:
    """The watcher, and the data that are trained on."""
    if watching == "gradient canaries":
        return GradientCanaries(GRADIENT, seed=1000 + seed, confidence=CONFIDENCE), data
    if watching == "input canaries":
        inputs = InputCanaries.crafted(
            data, INPUT, classes=10, seed=1000 + seed, every=EVERY, confidence=CONFIDENCE
        )
        return inputs, inputs.with_canaries(data)
    return None, data


def _group(runs: list[dict[str, Any]], wrong: str, watching: str) -> dict[str, Any]:
    """What the trainings of one kind say together."""
    own = [r for r in runs if (r["wrong"], r["watching"]) == (wrong, watching)]
    refuted = sum(r.get("verdict") == "refuted" for r in own)
    accuracies = torch.tensor([r["accuracy"] for r in own])
    group = {"wrong": wrong, "watching": watching, "trainings": len(own)}
    if watching != "no canaries":
        bounds = sorted(r["bound"] for r in own)
        group |= {"refuted": refuted, "median_bound": bounds[len(bounds) // 2]}
    if wrong == NOTHING:
        group |= {
            "accuracy": float(accuracies.mean()),
            "accuracy_error": float(accuracies.std() / math.sqrt(len(own))) if len(own) > 1 else 0,
        }
    if wrong == NOTHING and watching != "no canaries":
        nominal = 1.0 - CONFIDENCE
        error = math.sqrt(nominal * CONFIDENCE / len(own))
        group |= {
            "largest_bound": bounds[-1],
            "bound_above_claim": sum(r["bound"] > r["claimed"] for r in own),
            "within_nominal": refuted / len(own) <= nominal + 3 * error,
        }
    return group


def _line(group: dict[str, Any]) -> str:
    said = f"{group['refuted']} refuted" if "refuted" in group else ""
    accuracy = f"accuracy {group['accuracy']:.4f}" if "accuracy" in group else ""
    return f"{group['wrong']:28}{group['watching']:20}{group['trainings']:4}  {said:12}{accuracy}"


def _write(path: Path, runs: list[dict[str, Any]]) -> None:
    kinds = dict.fromkeys((run["wrong"], run["watching"]) for run in runs)
    setting = {
        "data": "mnist", "records": RECORDS, "batch": BATCH, "steps": STEPS, "hidden": HIDDEN,
        "learning_rate": LEARNING_RATE, "epsilon": EPSILON, "delta": DELTA,
        "confidence": CONFIDENCE, "gradient_canaries": GRADIENT, "input_canaries": INPUT,
        "every": EVERY,
    }  # fmt: skip
    found = {"setting": setting, "summary": [_group(runs, *kind) for kind in kinds], "runs": runs}
    path.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
