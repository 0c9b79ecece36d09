"""One large private training: MNIST, 60,000 records, ε ≤ 3 at δ = 1e-5, beside Opacus.

    DPRIME_DATA=… python benchmarks/large.py [--device cuda] [--peer] [--out FILE]

The network is that of Tramèr and Boneh (2021, table 8): two convolutions with tanh. The noise is
chosen by dprime for the rate and the steps. `--peer` also trains with Opacus, in the mode that is
fastest here, on the same batches' sizes and steps.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import dprime
from dprime.data import Dataset, load
from dprime.train import SGD, Compute, TrainingConfig, train

EPSILON, DELTA = 3.0, 1e-5
RECORDS, BATCH, EPOCHS = 60_000, 1024, 15
RATE = BATCH / RECORDS
STEPS = EPOCHS * RECORDS // BATCH
CLIP_NORM, LEARNING_RATE, MOMENTUM = 0.1, 1.0, 0.9


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, stride=2, padding=3), nn.Tanh(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, stride=2), nn.Tanh(), nn.MaxPool2d(2, 1),
        nn.Flatten(), nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10),
    )  # fmt: skip


def main() -> None:
    options = _options()
    mnist = load("mnist")
    chosen = dprime.choose(
        dprime.DPSGD(sample_rate=RATE, steps=STEPS), epsilon=EPSILON, delta=DELTA
    )
    assert chosen.noise_multiplier is not None
    result: dict[str, Any] = {
        "machine": {"python": platform.python_version(), "torch": torch.__version__},
        "device": options.device,
        "steps": STEPS,
        "sample_rate": RATE,
        "noise_multiplier": chosen.noise_multiplier,
        "epsilon": chosen.curve().epsilon(delta=DELTA),
        "advantage": chosen.curve().advantage(),
    }
    result["engine"] = _engine(mnist.train, mnist.test, chosen.noise_multiplier, options)
    if options.peer:
        result["opacus"] = _opacus(mnist.train, mnist.test, chosen.noise_multiplier)
    print(json.dumps(result, indent=1))
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--peer", action="store_true", help="train with Opacus too")
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    return parser.parse_args()


def _engine(data: Dataset, test: Dataset, noise: float, options: Any) -> dict[str, Any]:
    recipe = TrainingConfig(
        steps=STEPS, learning_rate=LEARNING_RATE, clip_norm=CLIP_NORM, noise_multiplier=noise,
        sample_rate=RATE, optimizer=SGD(momentum=MOMENTUM),
    )  # fmt: skip
    start = time.perf_counter()
    done = train(
        network(), data, recipe, trials=options.trials, seed=1, compute=Compute(options.device)
    )
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "accuracy": done.accuracy(test).tolist(), "label": done.label}


def _opacus(data: Dataset, test: Dataset, noise: float) -> dict[str, Any]:
    warnings.filterwarnings("ignore")  # Opacus' notes on its own generator and hooks
    speeds = {
        mode: _peer_training(data, noise, mode, 12)[1] / 12 for mode in ("hooks", "ew", "ghost")
    }
    fastest = min(speeds, key=lambda mode: speeds[mode])
    model, seconds = _peer_training(data, noise, fastest, STEPS)
    with torch.no_grad():
        right = model(torch.tensor(test.records)).argmax(1).numpy() == test.labels
    return {
        "mode": fastest,
        "seconds": seconds,
        "accuracy": float(np.mean(right)),
        "seconds_per_step": speeds,
    }


def _peer_training(data: Dataset, noise: float, mode: str, steps: int) -> tuple[nn.Module, float]:
    """Poisson batches by Opacus' own loader."""
    from opacus import PrivacyEngine  # noqa: PLC0415

    torch.manual_seed(1)
    model: Any = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
    loss: Any = nn.CrossEntropyLoss()
    records = torch.utils.data.TensorDataset(torch.tensor(data.records), torch.tensor(data.labels))
    loader = torch.utils.data.DataLoader(records, batch_size=BATCH)
    extra = {"criterion": loss} if mode == "ghost" else {}
    made = PrivacyEngine().make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=noise,
        max_grad_norm=CLIP_NORM, grad_sample_mode=mode, **extra,
    )  # fmt: skip
    model, peer, loader = made[0], made[1], made[-1]
    loss = made[2] if mode == "ghost" else loss
    done, start = 0, time.perf_counter()
    while done < steps:
        for x, y in loader:
            peer.zero_grad()
            loss(model(x), y).backward()
            peer.step()
            done += 1
            if done == steps:
                break
    return model, time.perf_counter() - start


if __name__ == "__main__":
    main()
