"""How long does one large private training take beside Opacus, and how good is it?

Claim: docs/training.md. MNIST, 60,000 records, ε ≤ 3 at δ = 1e-5. The noise is chosen by dprime for
the rate and the steps. On a processor Opacus trains too, in the mode that is fastest here, on the
same batches' sizes and steps, drawn by its own loader.
"""

from __future__ import annotations

import warnings

import numpy as np
import torch

import dprime
from benchmarks.networks import loop, tensors, tramer_boneh
from benchmarks.timing import Found, seconds
from dprime.data import Dataset, load
from dprime.train import SGD, Compute, TrainingConfig, train

EPSILON, DELTA = 3.0, 1e-5
RECORDS, BATCH, EPOCHS = 60_000, 1024, 15
RATE = BATCH / RECORDS
STEPS = EPOCHS * RECORDS // BATCH
CLIP_NORM, LEARNING_RATE, MOMENTUM = 0.1, 1.0, 0.9
MODES = ("hooks", "ew", "ghost")


def measure(quick: bool, device: str) -> Found:
    mnist, steps = load("mnist"), 20 if quick else STEPS
    training = dprime.DPSGD(sample_rate=RATE, steps=steps)
    chosen = dprime.choose(training, epsilon=EPSILON, delta=DELTA)
    noise, curve = chosen.noise_multiplier or 0.0, chosen.curve()
    found: Found = {
        "steps": steps, "sample_rate": RATE, "noise_multiplier": noise,
        "epsilon": curve.epsilon(delta=DELTA), "advantage": curve.advantage(),
        "engine": _engine(mnist.train, mnist.test, noise, steps, device),
    }  # fmt: skip
    return found | (
        {"opacus": _opacus(mnist.train, mnist.test, noise, steps)} if device == "cpu" else {}
    )


def _engine(data: Dataset, test: Dataset, noise: float, steps: int, device: str) -> Found:
    recipe = TrainingConfig(
        steps=steps, learning_rate=LEARNING_RATE, clip_norm=CLIP_NORM, noise_multiplier=noise,
        sample_rate=RATE, optimizer=SGD(momentum=MOMENTUM),
    )  # fmt: skip
    done = []
    taken = seconds(
        lambda: done.append(train(tramer_boneh(), data, recipe, seed=1, compute=Compute(device)))
    )
    return {"seconds": taken, "accuracy": done[0].accuracy(test).tolist(), "label": done[0].label}


def _opacus(data: Dataset, test: Dataset, noise: float, steps: int) -> Found:
    warnings.filterwarnings("ignore")  # Opacus' notes on its own generator and hooks

    def trained(mode: str, steps: int) -> tuple[torch.nn.Module, float]:
        torch.manual_seed(1)
        made = loop(
            tramer_boneh(), tensors(data), BATCH, rate=LEARNING_RATE, momentum=MOMENTUM,
            noise_multiplier=noise, max_grad_norm=CLIP_NORM, grad_sample_mode=mode,
        )  # fmt: skip
        return made.model, seconds(lambda: made.train(steps))

    speeds = {mode: trained(mode, 12)[1] / 12 for mode in MODES}
    fastest = min(MODES, key=lambda mode: speeds[mode])
    model, taken = trained(fastest, steps)
    with torch.no_grad():
        right = model(torch.tensor(test.records)).argmax(1).numpy() == test.labels
    return {
        "mode": fastest, "seconds": taken, "accuracy": float(np.mean(right)),
        "seconds_per_step": speeds,
    }  # fmt: skip
