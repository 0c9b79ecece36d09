"""Membership inference from end to end: train targets and shadow models, attack, conclude.

    pool ──► targets and shadow models ──► scores of every attack ──► Outcome beside the claim

A target is trained on a part of the pool, each record kept with probability π. Every attack scores
every record of every target. Numbers are means over the targets with Student-t intervals, beside
what the certified curve of the same training allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dprime import validate
from dprime.attack.trainer import Trainer
from dprime.curve import TradeOff
from dprime.data.dataset import Dataset
from dprime.membership.attacks import Attack, attack_named
from dprime.membership.confidence import Interval, contradicts, over_repetitions
from dprime.membership.game import Scored, score
from dprime.membership.pool import array_rows, check_distinct
from dprime.membership.results import (
    AverageRoc,
    average_roc,
    held_out_precision,
    precision_over_quantiles,
    roc,
    shuffled_best,
    top_precision,
)
from dprime.membership.shadows import Answers, answers, parts
from dprime.profile import round_up

FPRS = (0.001, 0.01, 0.1)
USUAL = ("lira", "rmia", "attack-p", "attack-r", "yeom", "baseline")
TOP_SHARE = 0.1
SHUFFLES = 200
FEWEST_TARGETS = 2


@dataclass(frozen=True)
class Asked:
    """What is asked of the results.

    Attributes:
        fpr: false-positive rates at which members are counted.
        min_tpr: the certified precision is for attackers who find at least this share of members.
        confidence: of every interval.
        top_share: the share of records that are called members for the test of the claim, fixed
            before looking.
    """

    fpr: tuple[float, ...] = FPRS
    min_tpr: float = 0.01
    confidence: float = 0.95
    top_share: float = TOP_SHARE

    def __post_init__(self) -> None:
        for rate in self.fpr:
            validate.inner_probability("fpr", rate, example=0.01)
        validate.rate("min_tpr", self.min_tpr)
        validate.inner_probability("confidence", self.confidence, example=0.95)
        validate.rate("top_share", self.top_share)


@dataclass(frozen=True)
class Outcome:
    """What one attack reached; intervals are over the targets.

    Attributes:
        attack: its name.
        title: its name in tables.
        roc: AUC and TPR at the false-positive rates asked for.
        held_out: precision at thresholds chosen on other records; None where it said "member" of
            nobody.
        best: the best precision of the top i · 2.5 % (Thudi et al. 2024), chosen after looking.
        shuffled: the same for scores dealt out at random, which is what `best` has for nothing.
        top: precision of calling a fixed share of the records members.
        contradicted: in how many targets the answers contradict the claim, at a level corrected for
            the number of attacks and targets; None without a claim.
    """

    attack: str
    title: str
    roc: AverageRoc
    held_out: Interval | None
    best: Interval
    shuffled: Interval
    top: Interval
    contradicted: int | None

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "attack": self.attack, "title": self.title, **self.roc.as_json(),
            "held_out_precision": None if self.held_out is None else self.held_out.as_json(),
            "best_precision": self.best.as_json(), "shuffled_best": self.shuffled.as_json(),
            "top_precision": self.top.as_json(), "targets_that_contradict": self.contradicted,
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Inference:
    """Everything that was found.

    Attributes:
        outcomes: one for each attack.
        scored: the scores that they come from.
        claim: the certified curve of the targets' training; None where it is not private.
        probability: π.
        asked: at which rates and with what confidence.
        records: how many were in question.
        targets: how many models were attacked.
        shadows: how many models the attacker trained.
    """

    outcomes: tuple[Outcome, ...]
    scored: tuple[Scored, ...] = field(repr=False)
    claim: TradeOff | None
    probability: float
    asked: Asked
    records: int
    targets: int
    shadows: int

    @property
    def allowed_precision(self) -> float | None:
        """The certified precision at π; None without a claim."""
        if self.claim is None:
            return None
        return self.claim.precision(prior=self.probability, min_tpr=self.asked.min_tpr)

    def allowed_tpr(self) -> list[float | None]:
        """The certified TPR at each false-positive rate."""
        return [None if self.claim is None else self.claim.tpr(fpr=rate) for rate in self.asked.fpr]

    @property
    def verdict(self) -> str:
        """Whether the claim stands, in a word."""
        if self.claim is None:
            return "no claim"
        return "contradicted" if any(each.contradicted for each in self.outcomes) else "stands"

    def sentence(self) -> str:
        """What was found, in plain words."""
        best = max(self.outcomes, key=lambda each: each.top.mean)
        share = f"{100 * self.asked.top_share:g} %"
        found = (
            f"Of the {share} of records that {best.title} is surest of, "
            f"{100 * best.top.mean:.1f} % are members; {100 * self.probability:g} % of all records "
            "are."
        )
        allowed = self.allowed_precision
        if allowed is None:
            return f"{found} The training is not private: nothing limits what an attack may reach."
        limit = f"The certified curve allows {round_up(100 * allowed)} %"
        if self.verdict == "contradicted":
            return f"{found} {limit}, which these answers contradict: the claim is wrong."
        return f"{found} {limit}: the claim stands."

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "probability": self.probability, "records": self.records, "targets": self.targets,
            "shadows": self.shadows, "confidence": self.asked.confidence,
            "min_tpr": self.asked.min_tpr, "top_share": self.asked.top_share,
            "certified": None if self.claim is None else {
                "precision": self.allowed_precision,
                "tpr": [
                    {"fpr": fpr, "value": value}
                    for fpr, value in zip(self.asked.fpr, self.allowed_tpr(), strict=True)
                ],
            },
            "attacks": [each.as_json() for each in self.outcomes],
            "verdict": self.verdict, "sentence": self.sentence(),
        }  # fmt: skip


def infer(
    pool: Dataset,
    population: Dataset,
    trainer: Callable[[float], Trainer],
    *,
    attacks: Sequence[str | Attack] = USUAL,
    claim: TradeOff | None = None,
    probability: float = 0.5,
    shadow_probability: float = 0.5,
    shadows: int = 64,
    targets: int = 5,
    records: int | None = None,
    seed: int = 0,
    asked: Asked | None = None,
    shadow_file: str | Path | None = None,
    progress: bool | None = None,
) -> Inference:
    """Attack models that are trained on parts of a pool, and say what was reached.

    Args:
        pool: distinct records, of which each target has a part.
        population: records that no model is trained on.
        trainer: gives the trainer for a probability, so that batches can keep their size.
        attacks: by name, or made with options of your own.
        claim: the certified curve of the targets' training.
        probability: π, with which each record is in a target's part.
        shadow_probability: the same for shadow models.
        shadows: how many the attacker trains.
        targets: how many models are attacked, two or more.
        records: the first so many of the pool are in question; None for all.
        seed: gives everything.
        asked: at which rates and with what confidence.
        shadow_file: keeps the shadow models' answers for the next time.
        progress: whether to show bars; None shows them for long work on a terminal.

    >>> from dprime.attack import EngineTrainer
    >>> from dprime.data import load
    >>> from dprime.membership.recipe import Recipe
    >>> from dprime.train.models import model_named
    >>> digits, recipe = load("digits"), Recipe(batch=20, epochs=30, learning_rate=0.5)
    >>> pool = digits.train.take(range(100))
    >>> def engine(probability):
    ...     training = recipe.training(len(pool), probability)
    ...     return EngineTrainer(model_named("dense-32", pool), training)
    >>> found = infer(pool, digits.test, engine, attacks=["lira"], shadows=16, targets=2, seed=1)
    >>> found.outcomes[0].roc.auc.mean > 0.6
    True
    """
    chosen = [attack_named(each) if isinstance(each, str) else each for each in attacks]
    asked = Asked() if asked is None else asked
    if not chosen:
        raise validate.misfit("attacks", "empty", "one attack or more", "give for example lira")
    if validate.whole("targets", targets, example=5) < FEWEST_TARGETS:
        remedy = "an interval needs two or more"
        raise validate.refusal("targets", targets, f"at least {FEWEST_TARGETS}", remedy)
    count = _asked_records(records, pool)
    check_distinct(array_rows([pool.records, pool.labels]))
    needy = [attack for attack in chosen if "shadows" in attack.needs]
    if needy:  # before anything is trained
        had = parts(
            validate.whole("shadows", shadows, example=64), len(pool),
            validate.inner_probability("shadow_probability", shadow_probability), _own(seed, 2),
        )  # fmt: skip
        for attack in needy:
            attack.told(had[:, :count])
    under_attack = answers(
        trainer(probability), pool, population, models=targets, probability=probability,
        seed=_own(seed, 1), title="targets", progress=progress,
    )  # fmt: skip
    _check_finite("targets", under_attack)
    own = None
    if needy:
        own = answers(
            trainer(shadow_probability), pool, population, models=shadows,
            probability=shadow_probability, seed=_own(seed, 2), file=shadow_file, progress=progress,
        )  # fmt: skip
        _check_finite("shadow models", own)
    scored = tuple(score(attack, under_attack, own, range(count)) for attack in chosen)
    tests = len(chosen) * targets
    outcomes = tuple(
        conclude(each, attack.title, claim, probability, asked, _own(seed, 3), tests)
        for each, attack in zip(scored, chosen, strict=True)
    )
    return Inference(
        outcomes=outcomes, scored=scored, claim=claim, probability=probability, asked=asked,
        records=count, targets=targets, shadows=0 if own is None else len(own),
    )  # fmt: skip


def conclude(
    scored: Scored,
    title: str,
    claim: TradeOff | None,
    probability: float,
    asked: Asked,
    seed: int,
    tests: int = 1,
) -> Outcome:
    """From the scores of one attack to its numbers."""
    rng = np.random.default_rng([seed, 4])
    pairs = list(zip(scored.scores, scored.members, strict=True))
    tops = [top_precision(scores, members, asked.top_share, rng) for scores, members in pairs]
    held = [held_out_precision(scores, members, rng).precision for scores, members in pairs]
    known = [value for value in held if value is not None]

    def mean(values: Sequence[float | None]) -> Interval:
        numbers = [0.0 if value is None else value for value in values]
        return over_repetitions(numbers, confidence=asked.confidence)

    level = 1.0 - (1.0 - asked.confidence) / tests
    broken = None
    if claim is not None:
        broken = sum(
            contradicts(
                claim, top.right, top.said, records=scored.members.shape[1], prior=probability,
                confidence=level,
            )
            for top in tops
        )  # fmt: skip
    return Outcome(
        attack=scored.attack,
        title=title,
        roc=average_roc(
            [roc(*pair) for pair in pairs],
            fpr=asked.fpr, confidence=asked.confidence,
        ),
        held_out=mean(known) if len(known) >= FEWEST_TARGETS else None,
        best=mean([precision_over_quantiles(*pair).value for pair in pairs]),
        shuffled=mean([shuffled_best(*pair, rng, SHUFFLES).mean for pair in pairs]),
        top=mean([top.value for top in tops]),
        contradicted=broken,
    )  # fmt: skip


def _check_finite(name: str, made: Answers) -> None:
    """Refuse models that diverged: they answer nothing."""
    lost = int((~made.pool.known).any(axis=1).sum())
    if lost:
        shown = f"such that {lost} of {len(made)} diverged"
        raise validate.misfit(name, shown, "finite", "give a smaller learning rate")


def _asked_records(records: int | None, pool: Dataset) -> int:
    if records is None:
        return len(pool)
    count = validate.whole("records", records, example=1000)
    if count > len(pool):
        remedy = f"the pool has {len(pool):,}"
        raise validate.refusal("records", records, f"at most {len(pool):,}", remedy)
    return count


def _own(seed: int, purpose: int) -> int:
    """Seeds for targets, shadow models and results that have nothing in common."""
    return int(np.random.SeedSequence([seed, purpose]).generate_state(1, np.uint64)[0])
