"""What the adversaries reach: power, crafted records, chosen weights, false alarms.

    DPRIME_DATA=… python benchmarks/audits.py [--only PART] [--device cuda] [--out FILE]

- power: the malicious data set's bound beside the certified ε, full batch, δ = 1e-5.
- crafted: how far apart a natural record and a made one bring the scores.
- weights: chosen initial weights (Annamalai and De Cristofaro 2024), MNIST, 1,000 records, ε = 10.
- alarms: how often a correct DP-SGD is refuted, in 200 audits of each method, assumptions accepted.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
import torch
from numpy.typing import NDArray

from dprime import Reading
from dprime.audit import AuditConfig, judge, lower_bound
from dprime.audit.audits import adversary_of, target_of
from dprime.audit.game import Game
from dprime.audit.planner import Criterion

DELTA = 1e-5
PUBLISHED = 7.21
"""Annamalai and De Cristofaro 2024, ε = 10, MNIST."""

CRAFTED = (
    ("mnist", "linear", 0.5, 20_000, 600),
    ("mnist", "conv-16-32", 0.1, 40_000, 1500),
    ("adult", "dense-6-6", 0.5, 10_000, 400),
    ("location30", "linear", 0.5, 40_000, 1000),
)
"""Data, network, learning rate, trials in each world, shadow models."""

Floats = NDArray[np.float64]
Found = dict[str, Any]


def played(settings: AuditConfig) -> tuple[Floats, Floats, str]:
    """The scores of both worlds, in one block."""
    setting = target_of(settings)
    attack = adversary_of(settings).craft(setting)
    game = Game(setting, attack, settings.trials, 2 * settings.trials, settings.seed)
    arrays = game.play(0)
    inside = arrays["in_world"]
    return arrays["score"][inside], arrays["score"][~inside], attack.about


def epsilons(inside: Floats, outside: Floats) -> dict[str, float]:
    """The bound of each method at 95 % confidence."""
    return {
        method: lower_bound(inside, outside, delta=DELTA, method=method).epsilon
        for method in ("gaussian", "band", "clopper-pearson")
    }


def distance(inside: Floats, outside: Floats) -> tuple[float, float]:
    """d′ with its standard error (Hedges and Olkin 1985, chapter 5)."""
    n, m = len(inside), len(outside)
    spread = math.sqrt((inside.var(ddof=1) * (n - 1) + outside.var(ddof=1) * (m - 1)) / (n + m - 2))
    d = float((inside.mean() - outside.mean()) / spread)
    return d, math.sqrt(1 / n + 1 / m + d**2 / (2 * (n + m)))


def power(options: argparse.Namespace) -> Found:
    rows = []
    for epsilon, trials in ((4.0, 1000), (2.0, 10_000), (1.0, 10_000), (1.0, 1000)):
        shares = []
        for seed in range(20):
            settings = AuditConfig.from_words(
                claim={"epsilon": epsilon}, data="digits", max_records=100, trials=trials,
                seed=seed,
                training={"steps": 30}, device=options.device, memory=options.memory,
            )  # fmt: skip
            inside, outside, _ = played(settings)
            certified = settings.curve.epsilon(DELTA)
            shares.append({k: v / certified for k, v in epsilons(inside, outside).items()})
        row = {
            "epsilon": epsilon, "trials": trials, "first": shares[0],
            "median": {k: float(np.median([s[k] for s in shares])) for k in shares[0]},
            "reached_85": float(np.mean([s["gaussian"] >= 0.85 for s in shares])),
            "audits": len(shares),
        }  # fmt: skip
        print(row, flush=True)
        rows.append(row)
    return {"rows": rows}


def crafted(options: argparse.Namespace) -> Found:
    rows = []
    for data, model, rate, trials, shadows in CRAFTED:
        row: Found = {"data": data, "model": model, "trials": trials}
        for name, adversary, extra in (
            ("natural", "api-access", {"record": 0}),
            ("crafted", "static-poisoning", {"options": {"shadows": shadows}}),
        ):
            settings = AuditConfig.from_words(
                adversary=adversary, claim={"epsilon": 4.0}, data=data, max_records=100,
                model=model,
                trials=trials, seed=11, device=options.device, memory=options.memory,
                training={"steps": 30, "learning_rate": rate, "clip_norm": 1.0},
                **extra,
            )  # fmt: skip
            inside, outside, about = played(settings)
            d, error = rank_distance(inside, outside)
            row[name] = {"d_prime": d, "standard_error": error, "about": about}
        error = math.hypot(row["natural"]["standard_error"], row["crafted"]["standard_error"])
        row["apart"] = (row["crafted"]["d_prime"] - row["natural"]["d_prime"]) / error
        print(row, flush=True)
        rows.append(row)
    return {"rows": rows}


def rank_distance(inside: Floats, outside: Floats) -> tuple[float, float]:
    """d′ from the area under the ROC curve, √2 Φ⁻¹(AUC), with its standard error.

    Losses have long tails, which ranks do not mind. Error by DeLong et al. 1988.
    """
    both = scipy.stats.rankdata(np.concatenate([inside, outside]))
    n, m = len(inside), len(outside)
    beaten = (both[:n] - scipy.stats.rankdata(inside)) / m  # share of `out` below each of `in`
    beats = 1 - (both[n:] - scipy.stats.rankdata(outside)) / n
    area = float(beaten.mean())
    error = math.sqrt(beaten.var(ddof=1) / n + beats.var(ddof=1) / m)
    z = scipy.special.ndtri(area)
    return math.sqrt(2) * z, math.sqrt(2) * error / scipy.stats.norm.pdf(z)


def weights(options: argparse.Namespace) -> Found:
    settings = AuditConfig.from_words(
        adversary="chosen-weights", claim={"epsilon": 10.0}, data="mnist", max_records=1000,
        model="conv-16-32", trials=options.trials, seed=3, device=options.device,
        memory=options.memory,
        training={"steps": 100, "learning_rate": options.rate, "clip_norm": 1.0},
    )  # fmt: skip
    start = time.perf_counter()
    inside, outside, about = played(settings)
    d, error = distance(inside, outside)
    found = {
        "claimed": settings.curve.epsilon(DELTA), "published": PUBLISHED, "about": about,
        "trials": options.trials, "learning_rate": options.rate,
        "d_prime": d, "standard_error": error, "certified_d_prime": settings.curve.d_prime(),
        "objection": lower_bound(inside, outside, method="gaussian").objection,
        **epsilons(inside, outside), "seconds": time.perf_counter() - start,
    }  # fmt: skip
    print(found, flush=True)
    return found


def alarms(options: argparse.Namespace) -> Found:
    rows = []
    for adversary, rate in (
        ("malicious-dataset", 1.0),
        ("gradient", 1.0),
        ("malicious-dataset", 0.2),
    ):
        refuted = dict.fromkeys(("gaussian", "band", "clopper-pearson"), 0)
        refuted["curve"] = objections = 0
        claim = None
        for seed in range(200):
            settings = AuditConfig.from_words(
                adversary=adversary, claim={"epsilon": 4.0}, data="digits", max_records=20,
                trials=500,
                seed=10_000 + seed, training={"steps": 10, "sample_rate": rate},
                device=options.device, memory=options.memory,
            )  # fmt: skip
            claim = claim or settings.curve
            inside, outside, _ = played(settings)
            for name in refuted:
                method = "band" if name == "curve" else name
                metric: Criterion = "curve" if name == "curve" else Reading("epsilon")
                bound = lower_bound(inside, outside, delta=DELTA, method=method, assume="gaussian")
                refuted[name] += judge(bound, claim, metric).refuted
                objections += bound.objection is not None
        row = {"adversary": adversary, "sample_rate": rate, "audits": 200, "trials": 500,
               "refuted": refuted, "objections": objections}  # fmt: skip
        print(row, flush=True)
        rows.append(row)
    return {"rows": rows, "limit": 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)}


PARTS: dict[str, Callable[[argparse.Namespace], Found]] = {
    "power": power, "crafted": crafted, "weights": weights, "alarms": alarms,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--memory", type=float, default=2.0, help="in GB")
    parser.add_argument("--trials", type=int, default=1000, help="of the chosen weights, a world")
    parser.add_argument("--rate", type=float, default=0.05, help="their learning rate")
    parser.add_argument("--out", type=Path, help="merge the numbers into this JSON file")
    options = parser.parse_args()
    for name in options.only or PARTS:
        found = PARTS[name](options)
        if options.out:
            before = json.loads(options.out.read_text()) if options.out.exists() else {}
            options.out.write_text(json.dumps({**before, name: found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
