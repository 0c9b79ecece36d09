"""What do the adversaries of an audit reach, and how often is a correct training refuted?

Claim: docs/auditing.md. The parts:

- power: the malicious data set's bound beside the certified ε, full batch, δ = 1e-5.
- crafted: how far apart a natural record and a made one bring the scores.
- weights: chosen initial weights (Annamalai and De Cristofaro 2024), MNIST, 1,000 records, ε = 10.
- alarms: how often a correct DP-SGD is refuted, in 200 audits of each method, assumptions accepted.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from benchmarks.timing import Found, memory_of, parts, say
from dprime import Reading
from dprime.attack.trainer import Game
from dprime.audit import AuditConfig, judge, lower_bound
from dprime.audit.audits import adversary_of, target_of
from dprime.audit.planner import Criterion
from dprime.audit.scores import separation

DELTA = 1e-5
METHODS = ("gaussian", "band", "clopper-pearson")
POWERS = ((4.0, 1000), (2.0, 10_000), (1.0, 10_000), (1.0, 1000))
"""ε, trials in each world."""

CRAFTED = (
    ("mnist", "linear", 0.5, 20_000, 600),
    ("mnist", "conv-16-32", 0.1, 40_000, 1500),
    ("adult", "dense-6-6", 0.5, 10_000, 400),
    ("location30", "linear", 0.5, 40_000, 1000),
)
"""Data, network, learning rate, trials in each world, shadow models."""

WORLDS = (("malicious-dataset", 1.0), ("gradient", 1.0), ("malicious-dataset", 0.2))
"""Adversaries of correct trainings, and the sampling rate."""

PUBLISHED = 7.21
"""Annamalai and De Cristofaro 2024, ε = 10, MNIST."""

Floats = NDArray[np.float64]
Played = tuple[AuditConfig, Floats, Floats, str]


def measure(quick: bool, device: str, only: list[str] | None) -> Found:
    made = {"power": power, "crafted": crafted, "weights": weights, "alarms": alarms}
    return parts({name: partial(part, quick, device) for name, part in made.items()}, only)


def played(device: str, **words: Any) -> Played:
    """The configuration, the scores of both worlds, in one block, and what was attacked."""
    config = AuditConfig.from_words(**words, device=device, memory=memory_of(device))
    setting = target_of(config)
    attack = adversary_of(config).craft(setting)
    arrays = Game(setting.trainer, attack, config.trials, 2 * config.trials, config.seed).play(0)
    inside = arrays["in_world"]
    return config, arrays["score"][inside], arrays["score"][~inside], attack.about


def epsilons(inside: Floats, outside: Floats) -> dict[str, float]:
    """The bound of each method at 95 % confidence."""
    return {m: lower_bound(inside, outside, delta=DELTA, method=m).epsilon for m in METHODS}


def power(quick: bool, device: str) -> Found:
    rows = []
    for epsilon, trials in POWERS[:1] if quick else POWERS:
        shares = []
        for seed in range(2 if quick else 20):
            config, inside, outside, _ = played(
                device, claim={"epsilon": epsilon}, data="digits", max_records=100, trials=trials,
                seed=seed, training={"steps": 30},
            )  # fmt: skip
            certified = config.curve.epsilon(DELTA)
            shares.append({k: v / certified for k, v in epsilons(inside, outside).items()})
        row = {
            "epsilon": epsilon, "trials": trials, "first": shares[0],
            "median": {k: float(np.median([s[k] for s in shares])) for k in shares[0]},
            "reached_85": float(np.mean([s["gaussian"] >= 0.85 for s in shares])),
            "audits": len(shares),
        }  # fmt: skip
        say(row)
        rows.append(row)
    return {"rows": rows}


def crafted(quick: bool, device: str) -> Found:
    rows = []
    for data, model, rate, trials, shadows in CRAFTED[2:3] if quick else CRAFTED:
        many, models = (500, 50) if quick else (trials, shadows)
        row: Found = {"data": data, "model": model, "trials": many}
        for name, words in (
            ("natural", {"adversary": "api-access", "record": 0}),
            ("crafted", {"adversary": "static-poisoning", "options": {"shadows": models}}),
        ):
            _, inside, outside, about = played(
                device, claim={"epsilon": 4.0}, data=data, max_records=100, model=model,
                trials=many, seed=11,
                training={"steps": 30, "learning_rate": rate, "clip_norm": 1.0}, **words,
            )  # fmt: skip
            found = separation(inside, outside)  # by ranks: losses have long tails
            error = (found.high - found.low) / 2 / float(scipy.stats.norm.ppf(0.975))
            row[name] = {"d_prime": found.value, "standard_error": error, "about": about}
        error = math.hypot(*(row[name]["standard_error"] for name in ("natural", "crafted")))
        row["apart"] = (row["crafted"]["d_prime"] - row["natural"]["d_prime"]) / error
        say(row)
        rows.append(row)
    return {"rows": rows}


def weights(quick: bool, device: str) -> Found:
    trials, records, steps, rate = (20, 100, 10, 0.05) if quick else (1000, 1000, 100, 0.05)
    config, inside, outside, about = played(
        device, adversary="chosen-weights", claim={"epsilon": 10.0}, data="mnist",
        max_records=records, model="conv-16-32", trials=trials, seed=3,
        training={"steps": steps, "learning_rate": rate, "clip_norm": 1.0},
    )  # fmt: skip
    n = trials  # d′ with its standard error: Hedges and Olkin 1985, chapter 5
    spread = math.sqrt((inside.var(ddof=1) + outside.var(ddof=1)) / 2)
    d = float(inside.mean() - outside.mean()) / spread
    return {
        "claimed": config.curve.epsilon(DELTA), "published": PUBLISHED, "about": about,
        "trials": trials, "learning_rate": rate, "d_prime": d,
        "standard_error": math.sqrt(2 / n + d**2 / (4 * n)),
        "certified_d_prime": config.curve.d_prime(),
        "objection": lower_bound(inside, outside, method="gaussian").objection,
        **epsilons(inside, outside),
    }  # fmt: skip


def alarms(quick: bool, device: str) -> Found:
    audits, rows = 4 if quick else 200, []
    for adversary, rate in WORLDS:
        refuted, objections = dict.fromkeys((*METHODS, "curve"), 0), 0
        for seed in range(audits):
            config, inside, outside, _ = played(
                device, adversary=adversary, claim={"epsilon": 4.0}, data="digits", max_records=20,
                trials=500, seed=10_000 + seed, training={"steps": 10, "sample_rate": rate},
            )  # fmt: skip
            for name in refuted:
                method = "band" if name == "curve" else name
                metric: Criterion = "curve" if name == "curve" else Reading("epsilon")
                bound = lower_bound(inside, outside, delta=DELTA, method=method, assume="gaussian")
                refuted[name] += judge(bound, config.curve, metric).refuted
                objections += bound.objection is not None
        rows.append({"adversary": adversary, "sample_rate": rate, "audits": audits, "trials": 500,
                     "refuted": refuted, "objections": objections})  # fmt: skip
        say(rows[-1])
    return {"rows": rows, "limit": 0.05 + 3 * math.sqrt(0.05 * 0.95 / audits)}
