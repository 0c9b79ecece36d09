"""Table 2 of Bernau et al. (2021): 12,000 trainings, and the belief of their adversary in each.

    DPRIME_DATA=… python benchmarks/table2.py [--device cuda] [--trials 1000] [--out FILE]

MNIST (100 records), Adult (1,000) and retail100 (1,000, in the place of Purchase-100), local and
global sensitivity, bounded and unbounded DP, 30 full-batch steps with noise for a posterior belief
of at most 0.9 (ε = ln 9, δ = 1/n, Rényi composition). D and D′ are the pair with the largest
dataset sensitivity. Half of the trials train on D. The adversary says D when its belief exceeds
one half; beside its advantage is the one that the local sensitivities seen on the way predict.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dprime.audit.identifiability import advantage, predicted_advantage
from dprime.bounds import epsilon_from_belief, rdp_noise_multiplier_from_epsilon
from dprime.data import Dataset
from dprime.data.dissimilarity import dataset_sensitivity, default_measure
from dprime.train import LikelihoodRatio, LocalSensitivity, NoiseScale, Training, Worlds, train
from networks import CLIP_NORM, LEARNING_RATE, SETTINGS, STEPS, Setting

BELIEF = 0.9
ROWS = (
    ("local", "replace"),
    ("local", "add-remove"),
    ("global", "replace"),
    ("global", "add-remove"),
)
NAMES = {"local": "LS", "global": "GS", "replace": "bounded", "add-remove": "unbounded"}
PUBLISHED = {
    "mnist": (0.24, 0.23, 0.18, 0.27),
    "retail100": (0.25, 0.23, 0.10, 0.24),  # of Purchase-100, another data set
    "adult": (0.17, 0.22, 0.13, 0.18),
}


def main() -> None:
    options = _options()
    prepared = {setting: _prepared(setting, options.device) for setting in SETTINGS}
    _warm_up(prepared, options)
    rows = [
        _row(setting, pairs[adjacency], sensitivity, adjacency, options)
        for setting, (_, pairs) in prepared.items()
        for sensitivity, adjacency in ROWS
    ]
    result = {
        "machine": _machine(options.device),
        "trainings": options.trials * len(rows),
        "training_seconds": sum(row["seconds"] for row in rows),
        "preparing_seconds": sum(seconds for seconds, _ in prepared.values()),
        "rows": rows,
    }
    _show(result)
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--trials", type=int, default=1000, help="repetitions of each row")
    parser.add_argument("--seed", type=int, default=2021)
    parser.add_argument("--memory", type=float, default=2.0, help="in GB")
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    return parser.parse_args()


def _machine(device: str) -> dict[str, str]:
    name = torch.cuda.get_device_name() if device == "cuda" else platform.machine()
    return {"device": name, "torch": torch.__version__, "python": platform.python_version()}


def _prepared(setting: Setting, device: str) -> tuple[float, dict[str, Worlds]]:
    """D, and D′ by the largest dataset sensitivity (their Definition 6), for both adjacencies."""
    source, data, rest = setting.data()
    if source != setting.name:
        raise SystemExit(f"{setting.name} is not in the folder that DPRIME_DATA names.")
    start = time.perf_counter()
    worlds = {
        "add-remove": Worlds.remove(data, _farthest(data, None, device)[0]),
        "replace": _replaced(data, rest, device),
    }
    return time.perf_counter() - start, worlds


def _farthest(data: Dataset, rest: Dataset | None, device: str) -> tuple[int, int]:
    ranking = dataset_sensitivity(
        data.records,
        None if rest is None else rest.records,
        adjacency="add-remove" if rest is None else "replace",
        measure=default_measure(data.kind),
        keep=1,
        device=device,
    ).top(1)
    partner = 0 if ranking.partners is None else int(ranking.partners[0])
    return int(ranking.records[0]), partner


def _replaced(data: Dataset, rest: Dataset, device: str) -> Worlds:
    record, partner = _farthest(data, rest, device)
    return Worlds.replace(data, record, rest.take([partner]))


def _recipe(setting: Setting, sensitivity: Any, adjacency: str) -> Training:
    return Training(
        steps=STEPS,
        learning_rate=LEARNING_RATE,
        clip_norm=CLIP_NORM,
        noise_multiplier=rdp_noise_multiplier_from_epsilon(
            epsilon_from_belief(BELIEF), delta=1 / setting.records, steps=STEPS, adjacency=adjacency
        ),
        sensitivity=sensitivity,
    )


def _warm_up(prepared: dict[Setting, tuple[float, dict[str, Worlds]]], options: Any) -> None:
    """Load the device's libraries."""
    for setting, (_, pairs) in prepared.items():
        recipe = _recipe(setting, "local", "replace")
        train(
            setting.network(), pairs["replace"], recipe, trials=4, seed=0, device=options.device,
            observers=[LikelihoodRatio()],
        )  # fmt: skip


def _row(
    setting: Setting, worlds: Worlds, sensitivity: str, adjacency: str, options: Any
) -> dict[str, Any]:
    recipe = _recipe(setting, sensitivity, adjacency)
    ratio, norms, noise = LikelihoodRatio(), LocalSensitivity(), NoiseScale()
    start = time.perf_counter()
    done = train(
        setting.network(), worlds, recipe, trials=options.trials, seed=options.seed,
        observers=[ratio, norms, noise], device=options.device, memory=options.memory,
        keep_weights=False,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    reached = advantage(ratio.logs, done.in_world)
    predicted = predicted_advantage(noise.sigmas, norms.norms)
    error = math.hypot(reached.standard_error, predicted.standard_error)
    beliefs = ratio.beliefs()[:, 0]
    confident = np.where(done.in_world, beliefs, 1 - beliefs)
    published = PUBLISHED[setting.name][ROWS.index((sensitivity, adjacency))]
    return {
        "data": setting.name,
        "sensitivity": sensitivity,
        "adjacency": adjacency,
        "label": done.label,
        "noise_multiplier": recipe.noise_multiplier,
        "advantage": reached.value,
        "standard_error": reached.standard_error,
        "predicted": predicted.value,
        "deviation": (reached.value - predicted.value) / error,
        "published": published,
        "belief_above_bound": float((confident > BELIEF).mean()),
        "delta": 1 / setting.records,
        "seconds": seconds,
    }


def _show(result: dict[str, Any]) -> None:
    print(
        f"{'data':<10} {'noise':<14} {'advantage':>16} {'predicted':>9} {'apart':>6} "
        f"{'printed':>8} {'δ′':>7} {'δ':>6} {'time':>7}"
    )
    for row in result["rows"]:
        kind = f"{NAMES[row['sensitivity']]} {NAMES[row['adjacency']]}"
        found = f"{row['advantage']:.3f} ± {row['standard_error']:.3f}"
        print(
            f"{row['data']:<10} {kind:<14} {found:>16} {row['predicted']:>9.3f} "
            f"{row['deviation']:>6.1f} {row['published']:>8.2f} "
            f"{row['belief_above_bound']:>7.4f} {row['delta']:>6.3f} {row['seconds']:>6.2f}s"
        )
    print("Predicted: from the local sensitivities that were seen; apart in standard errors.")
    print("LS rows are not DP: their noise is scaled to local sensitivity.")
    print(
        f"{result['trainings']:,} trainings in {result['training_seconds']:.2f} s on "
        f"{result['machine']['device']}, {result['preparing_seconds']:.2f} s to find the pairs."
    )


if __name__ == "__main__":
    main()
