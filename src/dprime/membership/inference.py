"""Membership inference from end to end: train targets and shadow models, attack, conclude.

    InferenceConfig + pool ──► targets and shadow models ──► scores of every attack ──► Inference

A target is trained on a part of the pool, each record kept with probability π. Every attack scores
every record of every target. Numbers are means over the targets with Student-t intervals, beside
what the certified curve of the same training allows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dprime import validate
from dprime.attack.trainer import Trainer
from dprime.curve import TradeOff
from dprime.data.dataset import Dataset
from dprime.membership.attacks import MembershipAttack, attack_named
from dprime.membership.confidence import Interval, contradicts
from dprime.membership.pool import check_distinct, check_outside
from dprime.membership.record import AttackResult, Inference, InferenceRecord
from dprime.membership.results import (
    held_out_precision,
    mean_share,
    mean_tpr,
    precision_over_quantiles,
    roc,
    shuffled_best,
    top_precision,
)
from dprime.membership.shadows import (
    Cohort,
    ModelOutputs,
    Models,
    Scored,
    answers,
    score,
    train_models,
)
from dprime.membership.signals import Bools, Floats
from dprime.plain import to_json
from dprime.runs.backends.base import Backend
from dprime.runs.run import Run

USUAL = ("lira", "rmia", "attack-p", "attack-r", "yeom", "baseline")
SHUFFLES = 200
FEWEST_TARGETS = 2
FEWEST_FALSE_ALARMS = 10
"""A true-positive rate is shown only where this many false alarms are allowed."""


@dataclass(frozen=True)
class InferenceConfig:
    """Which models are attacked and how, and what is asked of the results.

    Attributes:
        attacks: by name, or made with options of your own.
        probabilities: every π, with which each record is in a target's part.
        shadow_probability: the same for shadow models.
        shadows: how many the attacker trains.
        targets: how many models are attacked at each π, two or more.
        records: how many of the pool are attacked, from the first; None for all.
        seed: gives everything.
        fpr: false-positive rates at which members are counted.
        min_tpr: the certified precision is for attackers who find at least this share of members.
        confidence: of every interval.
        top_share: the share of records that are called members for the test of the claim, fixed
            before looking.
    """

    attacks: Sequence[str | MembershipAttack] = USUAL
    probabilities: Sequence[float] = (0.5,)
    shadow_probability: float = 0.5
    shadows: int = 64
    targets: int = 5
    records: int | None = None
    seed: int = field(default=0, repr=False)
    fpr: Sequence[float] = (0.001, 0.01, 0.1)
    min_tpr: float = 0.01
    confidence: float = 0.95
    top_share: float = 0.1

    def __post_init__(self) -> None:
        names = [attack.name for attack in self.chosen]
        if not names or len(set(names)) < len(names):
            wanted, shown = "one attack or more, each once", "one twice" if names else "empty"
            raise validate.invalid_input("attacks", shown, wanted, "give lira,rmia")
        if not self.probabilities:
            raise validate.invalid_input(
                "probabilities", "empty", "one π or more", "give for example 0.5"
            )
        for share in self.probabilities:
            validate.inner_probability("probability", share)
        validate.inner_probability("shadow_probability", self.shadow_probability)
        validate.whole("shadows", self.shadows, example=64)
        validate.whole("targets", self.targets, example=5, least=FEWEST_TARGETS)
        for rate in self.fpr:
            validate.inner_probability("fpr", rate, example=0.01)
        validate.rate("min_tpr", self.min_tpr)
        validate.inner_probability("confidence", self.confidence, example=0.95)
        validate.rate("top_share", self.top_share)
        if self.top_share < self.min_tpr:
            limit = f"at most {self.top_share:g}, the share called members"
            raise validate.invalid_value("min_tpr", self.min_tpr, limit, "give a smaller one")

    @property
    def chosen(self) -> tuple[MembershipAttack, ...]:
        """The attacks themselves."""
        return tuple(attack_named(each) if isinstance(each, str) else each for each in self.attacks)

    def describe(self, pool: Dataset) -> dict[str, Any]:
        """What is asked of a pool, in JSON values."""
        attacks = [re.sub(" at 0x[0-9a-f]+", "", repr(attack)) for attack in self.chosen]
        return {**vars(self), "attacks": attacks, "records": self.attacked(pool)}

    def attacked(self, pool: Dataset) -> int:
        """How many records of a pool are attacked."""
        if self.records is None:
            return len(pool)
        count = validate.whole("records", self.records, example=1000)
        if count > len(pool):
            remedy = f"the pool has {len(pool):,}"
            raise validate.invalid_value("records", count, f"at most {len(pool):,}", remedy)
        return count

    def shares(self, probability: float) -> tuple[float, ...]:
        """Shares of the records that are called members to test a claim, fixed before looking."""
        return tuple({self.top_share, max(probability, self.min_tpr)})

    def counted(self, members: Bools) -> list[float]:
        """The false-positive rates that leave enough false alarms to count.

        The threshold is set on the same outsiders, so scores that tell nothing have a TPR of about
        FPR + 1/outsiders: at few false alarms that is more than a claim allows.
        """
        others = int((~members).sum(axis=1).min())
        return [rate for rate in self.fpr if rate * others >= FEWEST_FALSE_ALARMS]


def infer(
    pool: Dataset,
    population: Dataset,
    trainer: Callable[[float], Trainer],
    config: InferenceConfig | None = None,
    *,
    claim: Callable[[float], TradeOff | None] | None = None,
    file: str | Path | None = None,
    shadow_file: str | Path | None = None,
    backend: Backend | None = None,
    progress: bool | None = None,
    request: dict[str, Any] | None = None,
) -> InferenceRecord:
    """Attack models that are trained on parts of a pool, and say what was reached.

    Targets of every π are attacked with the same shadow models.

    Args:
        pool: distinct records, of which each target has a part.
        population: records that no model is trained on, so none of the pool's.
        trainer: gives the trainer for a probability, so that batches can keep their size.
        config: what is attacked and asked; None for the usual.
        claim: gives the curve that is claimed of the targets' training, for a probability. None
            takes the certified curve of the engine's training, if it is private.
        file: of the run, which keeps what every model answers; None keeps nothing.
        shadow_file: of a run that keeps the shadow models' answers apart, for other inferences.
        backend: where models are trained; None for this process.
        progress: whether to show bars; None shows them for long work on a terminal.
        request: names from which all this can be made again, for `dprime resume`.

    >>> from dprime.data import load
    >>> from dprime.membership import Recipe, Trainers
    >>> digits = load("digits")
    >>> pool, recipe = digits.train.take(range(100)), Recipe(batch=20, epochs=30)
    >>> trainers = Trainers.named(recipe, pool, model="dense-32")
    >>> config = InferenceConfig(["lira"], shadows=16, targets=2, seed=1)
    >>> (found,) = infer(pool, digits.test, trainers, config).inferences
    >>> found.attacks[0].auc.value > 0.6
    True
    """
    config = config or InferenceConfig()
    described = config.describe(pool)
    if pool.classes is None:
        remedy = "the attacks need the probability of a class"
        raise validate.invalid_input("pool", "a regression", "records with classes", remedy)
    check_distinct(pool.hashes())
    check_outside(population, pool)
    attacker = _attacker(trainer, config, pool)
    cohorts = [
        Cohort.of(trainer(share), config.targets, share, seed=_seed(config, 1, round(1e9 * share)))
        for share in config.probabilities
    ]
    if attacker is not None and shadow_file is None:
        cohorts.append(attacker)
    work = Models(tuple(cohorts), pool, population)
    certified = claim is None and cohorts[0].trainer.training is not None
    claims = [
        _certified(cohort.trainer) if claim is None else claim(share)
        for share, cohort in zip(config.probabilities, cohorts, strict=False)
    ]
    described |= {
        **work.describe(), "models": [cohort.describe() for cohort in cohorts],
        "claim": [curve and _claim_digest(curve) for curve in claims],
    }  # fmt: skip
    with Run.open_or_create(file, "inference", described, len(work.blocks), request) as run:
        outputs = train_models(run, work, "models", backend, progress)
        if attacker is not None and shadow_file is not None:
            outputs.append(
                answers(
                    attacker, pool, population, file=shadow_file, backend=backend, progress=progress
                )
            )
        targets = outputs[: len(claims)]
        _check_finite("targets", targets)
        _check_finite("shadow models", outputs[len(claims) :])
        shadows = None if attacker is None else outputs[-1]
        found = [
            _inferred(each, shadows, curve, share, config, described["records"], certified)
            for each, curve, share in zip(targets, claims, config.probabilities, strict=True)
        ]
        record = InferenceRecord(pool.name, tuple(found))
        run.keep(to_json(record))
    return record


def _attacker(
    trainer: Callable[[float], Trainer], config: InferenceConfig, pool: Dataset
) -> Cohort | None:
    """The shadow models, if an attack needs them; refused if records would lack models."""
    attacks = [attack for attack in config.chosen if "shadows" in attack.needs]
    if not attacks:
        return None
    share = config.shadow_probability
    cohort = Cohort.of(trainer(share), config.shadows, share, seed=_seed(config, 2))
    members = cohort.members(len(pool))[:, : config.attacked(pool)]
    for attack in attacks:
        attack.scorable(members)
    return cohort


def _certified(trainer: Trainer) -> TradeOff | None:
    """The curve of the engine's training on a part whose size is secret; None if not private."""
    training = trainer.training
    return training.mechanism().curve("add-remove") if training and training.private else None


def _claim_digest(claim: TradeOff) -> list[float | None]:
    """Two numbers, by which another claim is noticed."""
    epsilon = claim.epsilon(1e-5)
    return [claim.advantage(), epsilon if math.isfinite(epsilon) else None]


def _inferred(
    targets: ModelOutputs,
    shadows: ModelOutputs | None,
    claim: TradeOff | None,
    probability: float,
    config: InferenceConfig,
    records: int,
    certified: bool,
) -> Inference:
    """From what the models answer to what every attack reached at one π."""
    shares = config.shares(probability)
    tests = len(config.chosen) * len(targets) * len(shares)
    results = tuple(
        conclude(
            score(attack, targets, shadows, range(records)), attack.title, claim, probability,
            config, tests,
        )
        for attack in config.chosen
    )  # fmt: skip
    level = 1.0 - (1.0 - config.confidence) / tests
    telling = claim is not None and any(
        contradicts(claim, flagged, flagged, records=records, prior=probability, confidence=level)
        for flagged in (math.ceil(share * records) for share in shares)
    )
    return Inference(
        probability, records, len(targets), 0 if shadows is None else len(shadows),
        config.confidence, config.min_tpr, config.top_share, results, certified, telling, claim,
    )  # fmt: skip


def conclude(
    scored: Scored,
    title: str,
    claim: TradeOff | None,
    probability: float,
    config: InferenceConfig,
    tests: int = 1,
) -> AttackResult:
    """From the scores of one attack to its numbers; this many `tests` hold together."""
    rng = np.random.default_rng([_seed(config, 3), 4])
    pairs = list(zip(scored.scores, scored.members, strict=True))
    curves = [roc(*pair) for pair in pairs]
    tops = [top_precision(*pair, config.top_share, rng) for pair in pairs]
    held = [held_out_precision(*pair, rng) for pair in pairs]
    level = 1.0 - (1.0 - config.confidence) / tests

    def contradicted(scores: Floats, members: Bools) -> bool:
        assert claim is not None
        flagged = [
            top_precision(scores, members, share, rng) for share in config.shares(probability)
        ]
        return any(
            contradicts(
                claim, top.correct, top.flagged, records=len(members), prior=probability,
                confidence=level,
            )
            for top in flagged
        )  # fmt: skip

    def mean(values: Sequence[float | None]) -> Interval:
        return mean_share([value or 0.0 for value in values], confidence=config.confidence)

    known = [value for value in held if value is not None]
    return AttackResult(
        attack=scored.attack,
        title=title,
        auc=mean([curve.auc for curve in curves]),
        tpr=mean_tpr(curves, config.counted(scored.members), confidence=config.confidence),
        held_out_precision=mean(known) if len(known) >= FEWEST_TARGETS else None,
        best_precision=mean([precision_over_quantiles(*pair).value for pair in pairs]),
        targets_that_contradict=None if claim is None else sum(contradicted(*p) for p in pairs),
        shuffled_best=mean([shuffled_best(*pair, rng, SHUFFLES).value for pair in pairs]),
        top_precision=mean([top.value for top in tops]),
        scored=scored,
    )


def _check_finite(name: str, outputs: Sequence[ModelOutputs]) -> None:
    """Refuse models that diverged: they answer nothing."""
    for each in outputs:
        lost = int((~each.pool.known).any(axis=1).sum())
        if lost:
            shown = f"such that {lost} of {len(each)} diverged"
            raise validate.invalid_input(name, shown, "finite", "give a smaller learning rate")


def _seed(config: InferenceConfig, *purpose: int) -> int:
    """Seeds for targets, shadow models and results that have nothing in common."""
    return int(np.random.SeedSequence([config.seed, *purpose]).generate_state(1, np.uint64)[0])
