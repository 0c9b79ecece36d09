"""At an equal bound on precision, which share of a pool gives the best model?

    DPRIME_DATA=… python -m benchmarks frontier --device cuda --out benchmarks/results.json

Claim: docs/frontier.md. After Thudi et al. (2024, figures 5 and 6): the bounds are those of π = ½
with ε = 1 and ε = 2, for attackers who find at least 1 % of the members. The noise is chosen by the
certified curve. On MNIST the network is that of Tramèr and Boneh (2021), as in `large.py`. Finished
points are kept beside FILE, so that a run can be taken up again. The parts are the data sets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from benchmarks import large
from benchmarks.networks import tramer_boneh
from benchmarks.timing import Found, memory_of, parts
from dprime.data import Dataset, Split, load
from dprime.membership.frontiers import frontier
from dprime.membership.planner import plan
from dprime.plain import to_json
from dprime.train import SGD, Compute
from dprime.train.models import model_named

SEED, REPETITIONS, RATES = 2024, 5, (0.25, 1.0, 4.0)
"""Each π takes the best of the learning rates."""

PRECISIONS = (0.731, 0.881)


@dataclass(frozen=True)
class Setting:
    """How a data set is trained on."""

    network: Callable[[Dataset], nn.Module]
    model: str
    batch: int
    epochs: float
    clip_norm: float
    momentum: float


SETTINGS = {
    "mnist": Setting(
        lambda _: tramer_boneh(), "Tramèr and Boneh", large.BATCH, large.EPOCHS,
        large.CLIP_NORM, large.MOMENTUM,
    ),
    "adult": Setting(
        lambda pool: model_named("dense-6-6", pool), "dense-6-6", 512, 15, 1.0, 0.0
    ),
}  # fmt: skip


def measure(quick: bool, device: str, only: list[str] | None, kept: Path | None) -> Found:
    precisions = PRECISIONS[:1] if quick else PRECISIONS
    made = {
        name: lambda name=name: [_run(name, each, quick, device, kept) for each in precisions]
        for name in SETTINGS
    }
    return {"runs": parts(made, only)}


def _run(name: str, precision: float, quick: bool, device: str, kept: Path | None) -> Found:
    setting, data = SETTINGS[name], load(name)
    file = kept and kept.with_name(f"frontier-{name}-{precision}.run")
    pool = data.train.take(range(4000)) if quick else data.train
    data = Split(pool.distinct(), data.test)
    made = plan(
        precision, pool_size=len(data.train), batch_size=setting.batch,
        epochs=1 if quick else setting.epochs, sampling_probabilities=[0.3, 0.5] if quick else None,
    )  # fmt: skip
    found = frontier(
        made, data, setting.network(data.train), learning_rate=RATES[1:2] if quick else RATES,
        clip_norm=setting.clip_norm, optimizer=SGD(momentum=setting.momentum),
        repetitions=2 if quick else REPETITIONS, seed=SEED, file=file,
        compute=Compute(device, memory_of(device)),
    )  # fmt: skip
    result: Found = to_json(found)
    for point in result["points"]:  # of all epochs, only the last is read
        point["accuracies"] = [each[-1:] for each in point["accuracies"]]
    return {
        **result, "left_out": len(pool) - len(data.train), "test_records": len(data.test),
        "model": setting.model, "clip_norm": setting.clip_norm, "momentum": setting.momentum,
        "seed": SEED,
    }  # fmt: skip
