"""How much less time do 64 shadow models take than loops over Opacus and over plain PyTorch?

Claim: docs/membership.md. Each model has its own half of 5,000 MNIST images and trains for 20
epochs. With DP the peer is Opacus in the mode that is fastest here; without, a plain PyTorch loop.
Both are measured with the ordinary data loader and with batches indexed straight from tensors, in
processes of their own, in turns with the engine. The engine trains all models in one call, for a
tenth of the steps, and once to the end; peers train one model for some steps. What was not run to
its end is scaled to all models and steps, and the result says how many were run. On a GPU only the
engine runs, 1,024 models.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.networks import loop, tensors, tramer_boneh
from benchmarks.timing import Found, fresh, in_turns, medians, memory_of, say, seconds
from dprime.data import Dataset, load
from dprime.train import Compute, TrainingConfig, TrainingData, train
from dprime.train.models import model_named

POOL, PROBABILITY, EPOCHS = 5000, 0.5, 20
OWN = int(POOL * PROBABILITY)
BATCHES = (64, 32, 128)
LEARNING_RATE, CLIP_NORM, NOISE = 0.1, 1.0, 1.0
MODES = ("hooks", "ew", "functorch", "ghost")
LOADERS = ("loader", "indexed")
NETWORKS: dict[str, Callable[[Dataset], nn.Module]] = {
    "Tramèr and Boneh": lambda _: tramer_boneh(),
    "conv-16-32": lambda data: model_named("conv-16-32", data),
}
FULL = ("Tramèr and Boneh", 64)
"""Where the engine also trains all models to their end."""

ROUNDS, PEER_STEPS, SHORT = 2, 150, 40
KINDS = ("private", "plain")


def measure(quick: bool, device: str) -> Found:
    models = 16 if quick else 64 if device == "cpu" else 1024
    cases = [FULL] if quick or device != "cpu" else itertools.product(NETWORKS, BATCHES)
    rows = []
    for name, batch in cases:
        row = _beside_peers if device == "cpu" else _alone
        rows.append(row(name, batch, models, quick, device))
        say(rows[-1])
    pool = {"pool": POOL, "probability": PROBABILITY, "epochs": EPOCHS}
    return {"models": models, **pool, "threads": torch.get_num_threads(), "rows": rows}


def _pool() -> Dataset:
    return load("mnist").train.take(range(POOL))


def _engine(name: str, batch: int, steps: int, models: int, kind: str, device: str) -> float:
    """Seconds of one call that trains all models."""
    pool = _pool()
    members = np.random.default_rng(1).random((models, POOL)) < PROBABILITY
    recipe = TrainingConfig(
        steps=steps, learning_rate=LEARNING_RATE, sample_rate=batch / OWN,
        clip_norm=CLIP_NORM if kind == "private" else None,
        noise_multiplier=NOISE if kind == "private" else 0.0,
    )  # fmt: skip
    data = TrainingData.parts(pool, members, PROBABILITY)
    compute = Compute(device, memory_of(device))
    options = {"seed": 1, "keep_weights": False, "compute": compute, "progress": False}
    return seconds(lambda: train(NETWORKS[name](pool), data, recipe, **options))  # type: ignore[arg-type]


def _alone(name: str, batch: int, models: int, quick: bool, device: str) -> Found:
    steps = EPOCHS * OWN // batch // (20 if quick else 1)
    _engine(name, batch, 2, models, "private", device)
    taken = {kind: _engine(name, batch, steps, models, kind, device) for kind in KINDS}
    return {"network": name, "batch": batch, "steps": steps, "seconds": taken}


def _beside_peers(name: str, batch: int, models: int, quick: bool, device: str) -> Found:
    """Milliseconds per model and step, in turns; the engine's also for all models and steps."""
    rounds, short = (1, 15) if quick else (ROUNDS, PEER_STEPS)
    steps = EPOCHS * OWN // batch
    share = 30 if quick else steps // 10
    tried = fresh(peers, name, batch, 5 if quick else SHORT, [f"{mode}, indexed" for mode in MODES])
    mode = min(MODES, key=lambda mode: tried[f"{mode}, indexed"])
    pairs = [f"{peer}, {loader}" for peer in (mode, "plain") for loader in LOADERS]
    works = {
        pair: lambda pair=pair: fresh(peers, name, batch, short, [pair])[pair] for pair in pairs
    }
    works |= {
        kind: lambda kind=kind: _engine(name, batch, share, models, kind, device) / share / models
        for kind in KINDS
    }
    times = medians(in_turns(works, rounds, first=0))
    full = (name, batch) == FULL and not quick
    return {
        "network": name, "batch": batch, "steps": steps, "opacus_mode": mode,
        "engine_run": {"models": models, "steps": share}, "peer_run": {"steps": rounds * short},
        "ms_per_model_step": {kind: 1e3 * each for kind, each in times.items()},
        "seconds_for_all": {kind: models * steps * each for kind, each in times.items()},
        "full_seconds": {
            kind: _engine(name, batch, steps, models, kind, device) for kind in KINDS if full
        },
        "ratio": {
            peer: times[peer] / times["plain" if peer.startswith("plain") else "private"]
            for peer in pairs
        },
    }  # fmt: skip


def peers(name: str, batch: int, steps: int, pairs: list[str]) -> dict[str, float]:
    """Seconds per step of peers with a way to load batches."""
    warnings.filterwarnings("ignore")  # Opacus' notes on its own generator and hooks
    pool = _pool()
    part = tensors(pool.take(np.flatnonzero(np.random.default_rng(1).random(POOL) < PROBABILITY)))
    times = {}
    for pair in pairs:
        peer, way = pair.split(", ")
        private = {"noise_multiplier": NOISE, "max_grad_norm": CLIP_NORM, "grad_sample_mode": peer}
        options: Found = {} if peer == "plain" else private
        made = loop(NETWORKS[name](pool), part, batch, rate=LEARNING_RATE, **options)
        x, y = part.tensors
        drawn = made.batches() if way == "loader" else _indexed(x, y, batch, bool(options))
        advance = partial(lambda made, drawn: made.step(*next(drawn)), made, drawn)
        seconds(advance, 3)
        times[pair] = seconds(advance, steps)
    return times


def _indexed(x: Tensor, y: Tensor, batch: int, poisson: bool) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches straight from the tensors: Poisson, or epochs in random order."""
    while True:
        if poisson:
            rows = (torch.rand(len(x)) < batch / len(x)).nonzero()[:, 0]
            yield x[rows], y[rows]
        else:
            for rows in torch.randperm(len(x)).split(batch):
                yield x[rows], y[rows]
