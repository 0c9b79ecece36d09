"""Attacks on models that were trained on a part of a pool: figures 3, 4, 11, 12 and 14 to 17.

    DPRIME_DATA=… python papers/thudi/attacks.py --data mnist --epsilon 3 [--device cuda] --out FILE

One file of results for each data set and ε ("none" trains without privacy). For each π of 0.1 to
0.9 five targets are trained, each attacked with 20 shadow models of its own, so that the intervals
cover the shadow models too. The first 1,000 records of the pool are in question, as in the paper;
the pool has 5,000 of the training records (the paper's has all). `figures.py` draws the figures.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from dprime.attack import EngineTrainer
from dprime.data import load
from dprime.membership.attacks import RMIA, Attack, AttackP, AttackR, LiRA, YeomLoss
from dprime.membership.confidence import contradicts
from dprime.membership.game import Scored, score
from dprime.membership.recipe import Recipe
from dprime.membership.results import (
    ALPHAS,
    held_out_precision,
    precision_at_fpr,
    precision_over_quantiles,
    roc,
    shuffled_best,
    top_precision,
)
from dprime.membership.shadows import Answers, answers

PRIORS = (0.1, 0.3, 0.5, 0.7, 0.9)
POOL, RECORDS, POPULATION = 5000, 1000, 1000
SHADOWS, REPETITIONS, SHADOW_PRIOR = 20, 5, 0.5
DELTA, MIN_TPR = 1e-5, 0.01
BATCH, EPOCHS = 250, 20
TOP = 0.1
FPRS = tuple(float(f"{x:.3g}") for x in np.geomspace(1e-3, 1.0, 31))
LEARNING_RATES = {1.0: 0.5, 3.0: 1.0, 7.0: 1.0, 15.0: 2.0}
MATCHED = (3.0, 7.0)
"""Values of ε at which figure 17 trains shadow models at the target's own rate."""


def network(channels: int, flat: int) -> nn.Module:
    """Of Tramèr and Boneh (2021, table 8), for images of one or three channels."""
    return nn.Sequential(
        nn.Conv2d(channels, 16, 8, stride=2, padding=3), nn.Tanh(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, stride=2), nn.Tanh(), nn.MaxPool2d(2, 1),
        nn.Flatten(), nn.Linear(flat, 32), nn.Tanh(), nn.Linear(32, 10),
    )  # fmt: skip


NETWORKS = {"mnist": (1, 512), "cifar10": (3, 800)}


def main() -> None:
    options = _options()
    epsilon = None if options.epsilon == "none" else float(options.epsilon)
    start = time.perf_counter()
    found = Reproduction(options.data, epsilon, options).results()
    found["seconds"] = time.perf_counter() - start
    options.out.write_text(json.dumps(found) + "\n")
    print(f"{options.data} ε = {options.epsilon}: {found['seconds']:.0f} s")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--data", choices=tuple(NETWORKS), required=True)
    parser.add_argument("--epsilon", required=True, help="or none")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--memory", type=float, default=2.0)
    parser.add_argument("--small", action="store_true", help="a quick try, of no meaning")
    parser.add_argument("--skip-matched", action="store_true", help="leave figure 17 out")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


class Reproduction:
    """All of one data set and ε."""

    def __init__(self, name: str, epsilon: float | None, options: argparse.Namespace) -> None:
        self.name, self.epsilon, self.options = name, epsilon, options
        split = load(name)
        small = options.small
        self.pool = split.train.take(range(600 if small else POOL))
        self.population = split.test.take(range(200 if small else POPULATION))
        self.epochs = 2 if small else EPOCHS
        self.records = range(300 if small else RECORDS)
        self.rng = np.random.default_rng([5, self.own_seed(0)])

    def own_seed(self, purpose: int) -> int:
        """Draws that no other data set or ε has."""
        place = 0 if self.epsilon is None else round(10 * self.epsilon)
        return 1_000_000 * (1 + list(NETWORKS).index(self.name)) + 1000 * place + purpose

    def recipe(self) -> Recipe:
        """The training of targets and shadow models alike."""
        batch = min(BATCH, int(PRIORS[0] * len(self.pool)))
        if self.epsilon is None:
            return Recipe(batch, self.epochs, learning_rate=0.1, momentum=0.9)
        rate = LEARNING_RATES[self.epsilon]
        return Recipe(
            batch, self.epochs, learning_rate=rate,
            epsilon=self.epsilon, delta=DELTA,
        )  # fmt: skip

    def trained(self, prior: float, models: int, seed: int) -> Answers:
        """Models on parts of the pool."""
        trainer = EngineTrainer(
            network(*NETWORKS[self.name]), self.recipe().training(len(self.pool), prior),
            self.options.device, self.options.memory,
        )  # fmt: skip
        return answers(
            trainer, self.pool, self.population, models=models, probability=prior, seed=seed
        )

    def results(self) -> dict[str, Any]:
        """Of every π."""
        shadows = self.trained(SHADOW_PRIOR, SHADOWS * REPETITIONS, self.own_seed(1))
        cells = [self.cell(prior, shadows) for prior in PRIORS]
        return {
            "data": self.name, "epsilon": self.epsilon, "delta": DELTA, "pool": len(self.pool),
            "records": len(self.records), "shadows": SHADOWS, "repetitions": REPETITIONS,
            "batch": BATCH, "epochs": self.epochs, "min_tpr": MIN_TPR, "top": TOP,
            "fpr": list(FPRS), "cells": cells,
        }  # fmt: skip

    def cell(self, prior: float, shadows: Answers) -> dict[str, Any]:
        """Of one π: every attack on five targets."""
        targets = self.trained(prior, REPETITIONS, self.own_seed(100 + round(100 * prior)))
        claim = None
        training = self.recipe().training(len(self.pool), prior)
        if self.epsilon is not None:
            claim = training.mechanism().curve()
        found: dict[str, Any] = {
            "prior": prior, "noise_multiplier": training.noise_multiplier,
            "certified": None if claim is None else claim.precision(prior, MIN_TPR),
            "certified_tpr": None if claim is None else [claim.tpr(fpr) for fpr in FPRS],
            "confident": np.mean(targets.population.probability > 0.5, axis=1).tolist(),
            "members": targets.members[:, list(self.records)].mean(1).tolist(),
        }  # fmt: skip
        attacks: list[Attack] = [
            LiRA(missing="nan"), LiRA(variance="fixed", missing="nan"), RMIA(missing="nan"),
            AttackP(), AttackR(missing="nan"), AttackR(thresholds_from="in", missing="nan"),
            YeomLoss(),
        ]  # fmt: skip
        for attack in attacks:
            scored = self.scored(attack, targets, shadows)
            found[scored.attack] = self.measured(scored, prior, claim)
        if self.epsilon in MATCHED and not self.options.skip_matched:
            own = shadows
            if prior != SHADOW_PRIOR:
                seed = self.own_seed(200 + round(100 * prior))
                own = self.trained(prior, SHADOWS * REPETITIONS, seed)
            for attack in attacks[4:6]:
                scored = self.scored(attack, targets, own)
                found[f"{scored.attack}-matched"] = self.measured(scored, prior, claim)
        return found

    def scored(self, attack: Attack, targets: Answers, shadows: Answers) -> Scored:
        """Each target with the shadow models of its own repetition."""
        parts = [
            score(
                attack, targets.take(slice(turn, turn + 1)),
                shadows.take(slice(turn * SHADOWS, (turn + 1) * SHADOWS)), self.records,
            )
            for turn in range(REPETITIONS)
        ]  # fmt: skip
        scores, members = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("scores", "members")
        )
        return Scored(parts[0].attack, scores, members)

    def measured(self, scored: Scored, prior: float, claim: Any) -> dict[str, Any]:
        """One number for each repetition."""
        pairs = list(zip(scored.scores, scored.members, strict=True))
        curves = [roc(*pair) for pair in pairs]
        tops = [top_precision(*pair, TOP, self.rng) for pair in pairs]
        broken = None
        if claim is not None:
            broken = sum(
                contradicts(claim, top.right, top.said, records=len(self.records), prior=prior)
                for top in tops
            )
        return {
            "best": [precision_over_quantiles(*pair).value for pair in pairs],
            "shuffled": [shuffled_best(*pair, self.rng, 200).mean for pair in pairs],
            "held_out": [held_out_precision(*pair, self.rng).precision for pair in pairs],
            "top": [top.value for top in tops],
            "contradicted": broken,
            "auc": [curve.auc for curve in curves],
            "tpr": [[curve.tpr_at(fpr).value for fpr in FPRS] for curve in curves],
            "unscored": int(np.isnan(scored.scores).sum()),
            **_at_rates(scored.attack, pairs),
        }


def _at_rates(attack: str, pairs: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
    """Precision at the attack's own false-positive rates; attacks P and R have them."""
    if not attack.startswith("attack-"):
        return {}
    found = [precision_at_fpr(*pair) for pair in pairs]
    return {
        "at_fpr": {
            str(alpha): [each[place].precision.value for each in found]
            for place, alpha in enumerate(ALPHAS)
        },
        "fpr_had": {
            str(alpha): [each[place].fpr.value for each in found]
            for place, alpha in enumerate(ALPHAS)
        },
    }


if __name__ == "__main__":
    main()
