"""Shadow models: 64 trainings on random halves of a pool, the engine beside loops over its peers.

    DPRIME_DATA=… python benchmarks/shadows.py [--device cuda] [--models 64] [--quick] [--out FILE]

Each model has its own half of 5,000 MNIST images and trains for 20 epochs. With DP the peer is
Opacus in the mode that is fastest here; without, a plain PyTorch loop. Both are measured with the
ordinary data loader and with batches indexed straight from tensors, in processes of their own, in
turns with the engine. The engine trains all models in one call, for a tenth of the steps, and once
to the end; peers train one model for some steps. What was not run to its end is scaled to all
models and steps, and the result says how many were run. On a GPU only the engine runs.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dprime.data import Dataset, load
from dprime.train import Compute, TrainingConfig, TrainingData, train
from dprime.train.models import model_named
from large import network as tramer_boneh

POOL, PROBABILITY, EPOCHS = 5000, 0.5, 20
OWN = int(POOL * PROBABILITY)
BATCHES = (64, 32, 128)
LEARNING_RATE, CLIP_NORM, NOISE = 0.1, 1.0, 1.0
MODES = ("hooks", "ew", "functorch", "ghost")
LOADERS = ("loader", "indexed")
FULL = ("Tramèr and Boneh", 64)
"""Where the engine also trains all models to their end."""

ROUNDS, PEER_STEPS, SHORT = 2, 150, 40
NETWORKS: dict[str, Callable[[Dataset], nn.Module]] = {
    "Tramèr and Boneh": lambda _: tramer_boneh(),
    "conv-16-32": lambda data: model_named("conv-16-32", data),
}


def main() -> None:
    options = _options()
    if options.child:
        _print_peers(*options.child)
        return
    result: dict[str, Any] = {
        "machine": {
            "python": platform.python_version(), "torch": torch.__version__,
            "opacus": version("opacus") if options.device == "cpu" else None,
            "threads": torch.get_num_threads(), "device": options.device,
        },
        "models": options.models, "pool": POOL, "probability": PROBABILITY, "epochs": EPOCHS,
        "rows": [],
    }  # fmt: skip
    batches = BATCHES[:1] if options.quick else BATCHES
    for batch in [options.batch] if options.batch else batches:
        for name in [options.network] if options.network else NETWORKS:
            row = _on_gpu(name, batch, options) if options.device != "cpu" else None
            result["rows"].append(row or _beside_peers(name, batch, options))
            _show(result["rows"][-1])
            if options.out:
                options.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--models", type=int, help="64, or 1,024 on a GPU")
    parser.add_argument("--memory", type=float, help="for the engine, in GB: 2, or 60 on a GPU")
    parser.add_argument("--network", choices=tuple(NETWORKS), help="one of them only")
    parser.add_argument("--batch", type=int, help="one batch size only")
    parser.add_argument("--quick", action="store_true", help="few models and steps, one batch size")
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    found = parser.parse_args()
    found.models = found.models or (64 if found.device == "cpu" else 1024)
    found.memory = found.memory or (2.0 if found.device == "cpu" else 60.0)
    return found


def _pool() -> Dataset:
    """The first images of MNIST's training set."""
    return load("mnist").train.take(range(POOL))


def _engine(name: str, batch: int, steps: int, models: int, private: bool, options: Any) -> float:
    """Seconds of one call that trains all models."""
    pool = _pool()
    members = np.random.default_rng(1).random((models, POOL)) < PROBABILITY
    noise = {"clip_norm": CLIP_NORM, "noise_multiplier": NOISE} if private else {}
    recipe = TrainingConfig(
        steps=steps, learning_rate=LEARNING_RATE, sample_rate=batch / OWN,
        **noise,  # type: ignore[arg-type]
    )  # fmt: skip
    start = time.perf_counter()
    train(
        NETWORKS[name](pool), TrainingData.parts(pool, members, PROBABILITY), recipe, seed=1,
        keep_weights=False, compute=Compute(options.device, options.memory), progress=False,
    )  # fmt: skip
    return time.perf_counter() - start


def _on_gpu(name: str, batch: int, options: Any) -> dict[str, Any]:
    steps = EPOCHS * OWN // batch // (20 if options.quick else 1)
    _engine(name, batch, 2, options.models, True, options)
    seconds = {
        kind: _engine(name, batch, steps, options.models, kind == "private", options)
        for kind in ("private", "plain")
    }
    return {"network": name, "batch": batch, "steps": steps, "seconds": seconds}


def _beside_peers(name: str, batch: int, options: Any) -> dict[str, Any]:
    """Milliseconds per model and step, in turns; the engine's also for all models and steps."""
    rounds, short = (1, 15) if options.quick else (ROUNDS, PEER_STEPS)
    mode = _fastest_mode(name, batch, 5 if options.quick else SHORT)
    times: dict[str, list[float]] = {}
    steps = EPOCHS * OWN // batch
    models = 16 if options.quick else options.models
    share = 30 if options.quick else steps // 10
    pairs = [f"{peer}, {loader}" for peer in (mode, "plain") for loader in LOADERS]
    for _ in range(rounds):
        for peer, seconds in _child(name, batch, short, *pairs).items():
            times.setdefault(peer, []).append(seconds)
        for kind in ("private", "plain"):
            taken = _engine(name, batch, share, models, kind == "private", options)
            times.setdefault(kind, []).append(taken / share / models)
    middle = {name: statistics.median(values) for name, values in times.items()}
    own = {kind: middle.pop(kind) for kind in ("private", "plain")}
    peers = middle
    whole = options.models * steps
    full = {}
    if name == FULL[0] and batch == FULL[1] and not options.quick:
        full = {
            kind: _engine(name, batch, steps, models, kind == "private", options)
            for kind in ("private", "plain")
        }
    return {
        "network": name, "batch": batch, "steps": steps, "opacus_mode": mode,
        "engine_run": {"models": models, "steps": share}, "peer_run": {"steps": rounds * short},
        "ms_per_model_step": {k: 1e3 * v for k, v in (own | peers).items()},
        "seconds_for_all": {k: whole * v for k, v in (own | peers).items()},
        "full_seconds": full,
        "ratio": {
            peer: seconds / own["plain" if peer.startswith("plain") else "private"]
            for peer, seconds in peers.items()
        },
    }  # fmt: skip


def _fastest_mode(name: str, batch: int, steps: int) -> str:
    times = _child(name, batch, steps, *(f"{mode}, indexed" for mode in MODES))
    return min(MODES, key=lambda mode: times[f"{mode}, indexed"])


def _child(*task: object) -> dict[str, float]:
    """Seconds per step of some peers, in a fresh process."""
    command = [sys.executable, __file__, "--child", *map(str, task)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _print_peers(name: str, batch: str, steps: str, *peers: str) -> None:
    warnings.filterwarnings("ignore")  # Opacus' notes on its own generator and hooks
    pool = _pool()
    part = pool.take(np.flatnonzero(np.random.default_rng(1).random(POOL) < PROBABILITY))
    times = {}
    for peer in peers:
        kind, loader = peer.split(", ")
        step, batches = _prepared(NETWORKS[name](pool), part, kind, loader, int(batch))
        for _ in range(3):
            step(*next(batches))
        start = time.perf_counter()
        for _ in range(int(steps)):
            step(*next(batches))
        times[peer] = (time.perf_counter() - start) / int(steps)
    print(json.dumps(times))


def _prepared(
    model: Any, part: Dataset, peer: str, loader: str, batch: int
) -> tuple[Callable[[Tensor, Tensor], None], Iterator[tuple[Tensor, Tensor]]]:
    """One step of a training, and batches without end."""
    x, y = torch.tensor(part.records), torch.tensor(part.labels)
    records = torch.utils.data.TensorDataset(x, y)
    source: Any = torch.utils.data.DataLoader(records, batch_size=batch, shuffle=True)
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    loss: Any = nn.CrossEntropyLoss()
    if peer != "plain":
        from opacus import PrivacyEngine  # noqa: PLC0415

        extra = {"criterion": loss} if peer == "ghost" else {}
        made = PrivacyEngine().make_private(
            module=model, optimizer=optimizer, data_loader=source, noise_multiplier=NOISE,
            max_grad_norm=CLIP_NORM, grad_sample_mode=peer, **extra,
        )  # fmt: skip
        model, optimizer, source = made[0], made[1], made[-1]
        loss = made[2] if peer == "ghost" else loss

    def step(x: Tensor, y: Tensor) -> None:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()

    return step, _loaded(source) if loader == "loader" else _indexed(x, y, batch, peer != "plain")


def _loaded(source: Any) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        yield from source


def _indexed(x: Tensor, y: Tensor, batch: int, poisson: bool) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches straight from the tensors: Poisson, or epochs in random order."""
    while True:
        if poisson:
            rows = (torch.rand(len(x)) < batch / len(x)).nonzero()[:, 0]
            yield x[rows], y[rows]
        else:
            for rows in torch.randperm(len(x)).split(batch):
                yield x[rows], y[rows]


def _show(row: dict[str, Any]) -> None:
    print(f"{row['network']}, batch {row['batch']}, {row['steps']:,} steps")
    if "seconds" in row:
        for kind, seconds in row["seconds"].items():
            print(f"   {kind:<22} {seconds:8.1f} s", flush=True)
        return
    print(f"   engine: {row['engine_run']}, peers: {row['peer_run']}; the rest is scaled")
    for kind, ms in row["ms_per_model_step"].items():
        seconds = row["seconds_for_all"][kind]
        ratio = f"{row['ratio'][kind]:6.2f} times" if kind in row["ratio"] else ""
        print(f"   {kind:<22} {ms:7.2f} ms a model and step {seconds:8.0f} s   {ratio}", flush=True)


if __name__ == "__main__":
    main()
