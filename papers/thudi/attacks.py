"""Attacks on models that were trained on a part of a pool, for one data set and ε.

    data, ε, setup ──► shadow models at π = ½, targets at every π ──► attacks ──► a `Found`

Each target is attacked with shadow models of its own, so that intervals over repetitions cover the
shadow models too. The first records of the pool are in question, as in the paper.

Full: read from `raw.json` where it is there. What is missing is played on a GPU and kept; without a
GPU it is left out, unless nothing is there. Quick: one ε, MNIST, few models, played once for all
entries that run together.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.networks import tramer_boneh
from dprime.attack import EngineTrainer
from dprime.curve import TradeOff
from dprime.data.devices import device_title
from dprime.membership import results as reached
from dprime.membership.attacks import RMIA, AttackP, AttackR, LiRA, MembershipAttack, YeomLoss
from dprime.membership.confidence import contradicts
from dprime.membership.config import Recipe
from dprime.membership.shadows import Cohort, ModelOutputs, Scored, answers, score
from papers.entry import SEED, Kept, Scale, is_kept, kept_or

SHADOW_PRIOR, DELTA, MIN_TPR, TOP = 0.5, 1e-5, 0.01, 0.1
FPRS = tuple(float(f"{x:.3g}") for x in np.geomspace(1e-3, 1.0, 31))
ALPHAS = (0.05, 0.1, 0.2, 0.3, 0.5)
"""False-positive rates at which the paper shows attacks P and R."""

ROUNDING = 1e-12
"""Scores that are shares are compared with 1 - α up to this."""

HERE = Path(__file__).resolve().parent
TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10 (subset)"}
QUICK_EPSILON = 3.0
LEARNING_RATES = {1.0: 0.5, 3.0: 1.0, 5.0: 1.0, 7.0: 1.0, 9.0: 1.0, 12.0: 2.0, 15.0: 2.0}
PRIVATE = tuple(LEARNING_RATES)
"""Values of ε in the paper's figure 3."""

MATCHED = (3.0, 7.0)
"""Values of ε at which figure 17 trains shadow models at the target's own rate."""

Found = dict[str, Any]
"""Of one data set and ε: settings, and a `Cell` for each π."""

Cell = dict[str, Any]
"""Of one π: what each attack reached, a number for each repetition."""

Results = dict[str, list[Found]]
"""By data set, the smallest ε first and no privacy last."""


@dataclass(frozen=True)
class Setup:
    """How much is trained and attacked.

    Attributes:
        pool: records of which parts are trained on.
        records: of the pool, in question.
        shadows: models for each repetition.
        repetitions: targets at each π.
        batch: expected records in a step.
        epochs: of every model.
        priors: every π.
    """

    pool: int
    records: int
    shadows: int
    repetitions: int
    batch: int
    epochs: int
    priors: tuple[float, ...]

    def told(self) -> dict[str, Any]:
        return {**asdict(self), "priors": list(self.priors)}


SETUPS = {
    "smoke": Setup(200, 100, 6, 2, 20, 1, (0.1, 0.5, 0.9)),
    "quick": Setup(1000, 1000, 10, 3, 50, 10, (0.1, 0.5, 0.9)),
    "full": Setup(5000, 1000, 20, 5, 250, 20, (0.1, 0.3, 0.5, 0.7, 0.9)),
}


NETWORKS = {"mnist": (1, 512), "cifar10": (3, 800)}
"""Channels of an image, and what the convolutions of Tramèr and Boneh's network leave of it."""

REFERENCES: tuple[MembershipAttack, ...] = (
    AttackR(missing="nan"), AttackR(thresholds_from="in", missing="nan"),
)  # fmt: skip
AIMED: tuple[MembershipAttack, ...] = (AttackP(), *REFERENCES)
"""Attacks that aim at a false-positive rate."""

ATTACKS: tuple[MembershipAttack, ...] = (
    LiRA(missing="nan"), LiRA(variance="fixed", missing="nan"), RMIA(missing="nan"), *AIMED,
    YeomLoss(),
)  # fmt: skip


class Game:
    """All of one data set and ε; None trains without privacy."""

    def __init__(
        self, data: str, epsilon: float | None, scale: Scale, setup: Setup | None = None
    ) -> None:
        self.data, self.epsilon, self.scale = data, epsilon, scale
        self.setup = setup or SETUPS[scale.size]
        split = scale.data(data)
        self.pool = split.train.take(range(self.setup.pool))
        self.population = split.test.take(range(self.setup.records))  # others, for attack P
        self.records = range(self.setup.records)
        self.rng = np.random.default_rng([5, self.own_seed(0)])

    def own_seed(self, purpose: int) -> int:
        """Draws that no other data set, ε, pool, number of epochs or seed has."""
        place = 0 if self.epsilon is None else round(10 * self.epsilon)
        usual = self.setup == SETUPS[self.scale.size]
        varied = 0 if usual else 10**10 * (100 * self.setup.pool + self.setup.epochs)
        later = self.scale.seed - SEED
        other = 10_000_000 * (2 * later if later >= 0 else -2 * later - 1)
        own = 1_000_000 * (1 + list(NETWORKS).index(self.data)) + 1000 * place + purpose
        return varied + other + own

    @property
    def recipe(self) -> Recipe:
        """The training of targets and shadow models alike."""
        batch, epochs = self.setup.batch, self.setup.epochs
        if self.epsilon is None:
            return Recipe(batch, epochs, learning_rate=0.1, momentum=0.9)
        rate = LEARNING_RATES[self.epsilon]
        return Recipe(batch, epochs, learning_rate=rate, epsilon=self.epsilon, delta=DELTA)

    def targets(self, prior: float) -> ModelOutputs:
        return self._models(prior, self.setup.repetitions, 100 + round(100 * prior))

    def shadows(self, prior: float = SHADOW_PRIOR) -> ModelOutputs:
        """Those of all repetitions, one after the other; figures 13 and 17 share some."""
        purpose = 1 if prior == SHADOW_PRIOR else 200 + round(100 * prior)
        return self._models(prior, self.setup.shadows * self.setup.repetitions, purpose)

    def _models(self, prior: float, models: int, purpose: int) -> ModelOutputs:
        setting = self.data, self.epsilon, self.scale, self.setup
        return _trained(*setting, prior, models, self.own_seed(purpose))

    def all(self, attacks: Sequence[MembershipAttack] = ATTACKS) -> Found:
        """These attacks at every π."""
        start, shadows = time.perf_counter(), self.shadows()
        cells = [self.cell(prior, shadows, attacks) for prior in self.setup.priors]
        return {**self.settings(start), "cells": cells}

    def settings(self, start: float) -> Found:
        setup = self.setup.told()
        return {
            "data": self.data, "epsilon": self.epsilon, "delta": DELTA,
            **{name: each for name, each in setup.items() if name != "priors"},
            "min_tpr": MIN_TPR, "top": TOP, "fpr": list(FPRS),
            "seconds": time.perf_counter() - start, "device": device_title(self.scale.device),
            "seed": self.scale.seed,
        }  # fmt: skip

    def cell(
        self, prior: float, shadows: ModelOutputs, attacks: Sequence[MembershipAttack]
    ) -> Cell:
        """Of one π: these attacks on its targets."""
        targets = self.targets(prior)
        training = self.recipe.training(len(self.pool), prior)
        claim = None if self.epsilon is None else training.mechanism().curve()
        found: Cell = {
            "prior": prior, "noise_multiplier": training.noise_multiplier,
            "certified": None if claim is None else claim.precision(prior, MIN_TPR),
            "certified_tpr": None if claim is None else [claim.tpr(fpr) for fpr in FPRS],
            "confident": np.mean(targets.population.probability > 0.5, axis=1).tolist(),
            "members": self.members(targets),
        }  # fmt: skip
        for attack in attacks:
            scored = self.scored(attack, targets, shadows)
            found[scored.attack] = self.measured(scored, prior, claim)
        if self.epsilon in MATCHED:
            own = shadows if prior == SHADOW_PRIOR else self.shadows(prior)
            for attack in REFERENCES:
                scored = self.scored(attack, targets, own)
                found[f"{scored.attack}-matched"] = self.measured(scored, prior, claim)
        return found

    def members(self, targets: ModelOutputs) -> list[float]:
        """Their share of the records in question, by target."""
        shares: list[float] = targets.members[:, list(self.records)].mean(1).tolist()
        return shares

    def scored(
        self, attack: MembershipAttack, targets: ModelOutputs, shadows: ModelOutputs
    ) -> Scored:
        """Each target with the shadow models of its own repetition."""
        count = self.setup.shadows
        parts = [
            score(
                attack, targets.take(slice(turn, turn + 1)),
                shadows.take(slice(turn * count, (turn + 1) * count)), self.records,
            )
            for turn in range(self.setup.repetitions)
        ]  # fmt: skip
        scores, members = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("scores", "members")
        )
        return Scored(parts[0].attack, scores, members)

    def measured(self, scored: Scored, prior: float, claim: TradeOff | None) -> dict[str, Any]:
        pairs = list(zip(scored.scores, scored.members, strict=True))
        curves = [reached.roc(*pair) for pair in pairs]
        tops = [reached.top_precision(*pair, TOP, self.rng) for pair in pairs]
        broken = None
        if claim is not None:
            records = len(self.records)
            broken = sum(
                contradicts(claim, top.correct, top.flagged, records=records, prior=prior)
                for top in tops
            )
        return {
            **self.best(pairs),
            "held_out": [reached.held_out_precision(*pair, self.rng) for pair in pairs],
            "top": [top.value for top in tops],
            "contradicted": broken,
            "auc": [curve.auc for curve in curves],
            "tpr": [[curve.tpr_at(fpr) for fpr in FPRS] for curve in curves],
            "unscored": int(np.isnan(scored.scores).sum()),
            **(_at_rates(pairs) if scored.attack.startswith("attack-") else {}),
        }

    def best(self, pairs: Sequence[tuple[Any, Any]]) -> dict[str, list[float | None]]:
        """The paper's number, the best precision of 40 quantiles, and that of shuffled scores."""
        return {
            "best": [reached.precision_over_quantiles(*pair).value for pair in pairs],
            "shuffled": [reached.shuffled_best(*pair, self.rng, 200) for pair in pairs],
        }

    def rates(self) -> Found:
        """Figure 13: LiRA with shadow models of every rate against targets of every rate.

        A cell is one target's π; in it, "by_rate" has the paper's number for each shadow rate.
        """
        start = time.perf_counter()
        targets = {prior: self.targets(prior) for prior in self.setup.priors}
        cells: list[Cell] = [
            {"prior": prior, "by_rate": {}, "shuffled": {}, "members": self.members(own)}
            for prior, own in targets.items()
        ]
        for rate in self.setup.priors:
            shadows = self.shadows(rate)
            for cell in cells:
                scored = self.scored(LiRA(missing="nan"), targets[cell["prior"]], shadows)
                found = self.best(list(zip(scored.scores, scored.members, strict=True)))
                cell["by_rate"][f"{rate:g}"] = found["best"]
                cell["shuffled"][f"{rate:g}"] = found["shuffled"]
        return {**self.settings(start), "cells": cells}


@lru_cache(maxsize=32)
def _trained(
    data: str, epsilon: float | None, scale: Scale, setup: Setup, prior: float, models: int,
    seed: int,
) -> ModelOutputs:  # fmt: skip
    """Models on parts of the pool."""
    game = Game(data, epsilon, scale, setup)
    training = game.recipe.training(len(game.pool), prior)
    trainer = EngineTrainer(tramer_boneh(*NETWORKS[data]), training, scale.compute)
    return answers(Cohort.of(trainer, models, prior, seed=seed), game.pool, game.population)


def _at_rates(pairs: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
    """Precision at the attack's own false-positive rates."""
    found = {str(alpha): [rates_at(*pair, alpha) for pair in pairs] for alpha in ALPHAS}
    return {
        name: {alpha: [each[place] for each in rates] for alpha, rates in found.items()}
        for place, name in enumerate(("at_fpr", "fpr_had"))
    }


def rates_at(scores: Any, members: Any, alpha: float) -> tuple[float | None, float | None]:
    """The precision and the false-positive rate of "member" where the score is at least 1 - α.

    The threshold needs no truth, so nothing is chosen on the records that are counted. A rate of
    no record is None.

    >>> rates_at(np.array([0.99, 0.92, 0.2]), np.array([True, False, False]), 0.1)
    (0.5, 0.5)
    """
    flagged = scores >= 1.0 - alpha - ROUNDING
    correct, wrong = int((flagged & members).sum()), int((flagged & ~members).sum())
    others = int((~members).sum())
    return (
        correct / (correct + wrong) if correct + wrong else None,
        wrong / others if others else None,
    )


def results(scale: Scale, epsilons: Sequence[float | None]) -> Results:
    """Of every data set and ε that this size has."""
    if not scale.full:
        chosen = None if tuple(epsilons) == (None,) else QUICK_EPSILON
        return {"mnist": [_played("mnist", chosen, scale)]}
    found: Results = {}
    for data in TITLES:
        names = {f"{data}-none" if each is None else f"{data}-{each:g}": each for each in epsilons}
        there = [name for name in names if is_kept(HERE, name, scale.seed)]
        wanted = there if there and scale.device == "cpu" else names
        plays = {name: partial(_played, data, names[name], scale) for name in wanted}
        found[data] = [kept_or(HERE, name, scale, play) for name, play in plays.items()]
    return found


@lru_cache(maxsize=16)
def _played(data: str, epsilon: float | None, scale: Scale) -> Found:
    return Game(data, epsilon, scale).all()


def rates(scale: Scale) -> Results:
    if not scale.full:
        return {"mnist": [_rates("mnist", scale)]}
    plays = {data: partial(_rates, data, scale) for data in TITLES}
    return {data: [kept_or(HERE, f"rates-{data}", scale, play)] for data, play in plays.items()}


def _rates(data: str, scale: Scale) -> Found:
    return Game(data, QUICK_EPSILON, scale).rates()


def settings(scale: Scale, found: Results) -> dict[str, Any]:
    return {
        "data": list(found),
        "epsilon": {data: [each["epsilon"] for each in own] for data, own in found.items()},
        "delta": DELTA, **SETUPS[scale.size].told(),
    }  # fmt: skip


def kept(scale: Scale, found: Results) -> Kept | None:
    return Kept.of([each for own in found.values() for each in own]) if scale.full else None
