"""How often is an audit in one run wrong on real trainings, and which mistakes does it find?

Claim: docs/one-run.md. Opacus trains a small network on MNIST with ε = 8 at δ = 1e-5, as its users
would, and canaries watch. Right trainings must be refuted in no more than 5 % of cases, but for
chance; trainings with one of four mistakes should be. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import math
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import TensorDataset

import dprime
from benchmarks.networks import dense, loop, tensors
from benchmarks.timing import Found, Kept, say
from dprime.canaries.base import Canaries
from dprime.canaries.gradients import GradientCanaries
from dprime.canaries.inputs import InputCanaries
from dprime.data import load
from dprime.monitor.monitor import Monitor
from planted_opacus import MISTAKES  # type: ignore[import-not-found]

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


def measure(quick: bool, kept: Path | None) -> Found:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    split, runs, summary = load("mnist"), Kept(kept), []
    data, test = tensors(split.train.take(range(RECORDS))), tensors(split.test.take(range(2000)))
    for wrong, watching, trainings in PLANS:

        def own(kind: tuple[str, str] = (wrong, watching)) -> list[Found]:
            return [run for run in runs.rows if (run["wrong"], run["watching"]) == kind]

        known = {run["seed"] for run in own()}
        for seed in range(2 if quick else trainings):
            if seed not in known:
                runs.add(_training(data, test, wrong, watching, seed))
        summary.append(_group(own(), wrong, watching))
        say(summary[-1])
    setting = {
        "data": "mnist", "records": RECORDS, "batch": BATCH, "steps": STEPS, "hidden": HIDDEN,
        "learning_rate": LEARNING_RATE, "epsilon": EPSILON, "delta": DELTA,
        "confidence": CONFIDENCE, "gradient_canaries": GRADIENT, "input_canaries": INPUT,
        "every": EVERY,
    }  # fmt: skip
    return {"setting": setting, "summary": summary}


def _training(
    data: TensorDataset, test: TensorDataset, wrong: str, watching: str, seed: int
) -> Found:
    start = time.perf_counter()
    torch.manual_seed(seed)
    canaries, mixed = _canaries(data, watching, seed)
    plan = dprime.DPSGD(sample_rate=1.0 / math.ceil(len(mixed) / BATCH), steps=STEPS)
    noise = dprime.choose(plan, epsilon=EPSILON, delta=DELTA).noise_multiplier
    model = nn.Sequential(nn.Flatten(), dense(784, HIDDEN, 10))
    torch.manual_seed(seed)
    private = loop(
        model, mixed, BATCH, rate=LEARNING_RATE, noise_multiplier=noise, max_grad_norm=1.0
    )
    if wrong != NOTHING:
        MISTAKES[wrong](private)
    if canaries is not None:
        Monitor(**private.parts(), watchers=[canaries], show=None)
    private.train(STEPS)
    found: Found = {"wrong": wrong, "watching": watching, "seed": seed, "noise": noise}
    if canaries is not None:
        result = canaries.result(delta=DELTA)
        names = ("verdict", "guesses", "needed", "bound", "claimed")
        found |= {name: getattr(result, name) for name in names} | {"right": dict(result.counted)}
    records, labels = test.tensors
    with torch.no_grad():
        accuracy = (private.model.eval()(records).argmax(1) == labels).float().mean()
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


def _group(own: list[Found], wrong: str, watching: str) -> Found:
    """What the trainings of one kind say together."""
    group = {"wrong": wrong, "watching": watching, "trainings": len(own)}
    watched, right = watching != "no canaries", wrong == NOTHING
    if watched:
        refuted = sum(run["verdict"] == "refuted" for run in own)
        bounds = sorted(run["bound"] for run in own)
        group |= {"refuted": refuted, "median_bound": bounds[len(bounds) // 2]}
    if right:
        accuracies = torch.tensor([run["accuracy"] for run in own])
        error = float(accuracies.std()) / math.sqrt(len(own)) if len(own) > 1 else 0.0
        group |= {"accuracy": float(accuracies.mean()), "accuracy_error": error}
    if right and watched:
        nominal = 1.0 - CONFIDENCE
        error = math.sqrt(nominal * CONFIDENCE / len(own))
        group |= {
            "largest_bound": bounds[-1],
            "bound_above_claim": sum(run["bound"] > run["claimed"] for run in own),
            "within_nominal": refuted / len(own) <= nominal + 3 * error,
        }
    return group
