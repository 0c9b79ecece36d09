"""Membership inference from end to end: train targets and shadow models, attack, conclude.

    InferenceConfig + pool ──► targets and shadow models ──► scores of every attack ──► Inference

Every attack scores every record of every target. Numbers are means over the targets with Student-t
intervals, beside what the certified curve of the same training allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dprime import validate
from dprime.attack.trainer import Trainer
from dprime.curve import TradeOff
from dprime.data.dataset import Dataset
from dprime.membership import results
from dprime.membership.confidence import Interval, contradicts, over_repetitions, precision_of_share
from dprime.membership.config import InferenceConfig
from dprime.membership.pool import check_distinct, check_outside
from dprime.membership.shadows import (
    Cohort,
    ModelOutputs,
    Models,
    Scored,
    answers,
    own_seed,
    score,
    train_models,
)
from dprime.plain import NOT_KEPT, to_json
from dprime.runs.backends.base import Backend
from dprime.runs.run import Run
from dprime.text import round_up, told

SHUFFLES = 200

VERDICTS = ("refuted", "inconclusive", "not refuted", "no claim")
"""Verdicts, the gravest first: several claims have the first that any of them has."""


@dataclass(frozen=True)
class AttackResult:
    """The results of one attack; intervals are over the targets.

    Attributes:
        tpr: at the false-positive rates that can be counted.
        held_out_precision: at thresholds chosen on other records.
        best_precision: of the top i · 2.5 % (Thudi et al. 2024), chosen after looking;
            `shuffled_best` is the same for scores dealt out at random, which is what it has for
            nothing.
        top_precision: of calling a fixed share of the records members.
        targets_that_contradict: targets whose answers contradict the claim, at a level corrected
            for the number of attacks, targets and shares; None without a claim.
    """

    __repr__ = told("attack", "auc", "top_precision", "targets_that_contradict")

    attack: str
    title: str
    auc: Interval
    tpr: dict[float, Interval]
    held_out_precision: Interval | None
    best_precision: Interval
    shuffled_best: Interval
    top_precision: Interval
    targets_that_contradict: int | None
    scored: Scored = field(repr=False, metadata=NOT_KEPT)


@dataclass(frozen=True)
class Allowed:
    """The limits of a claim: for attackers with a TPR of `min_tpr`, the top share, each FPR.

    An attack that calls fewer members than the top share may be right more often.
    """

    precision: float
    top_precision: float
    tpr: dict[float, float]


@dataclass(frozen=True, eq=False)
class Inference:
    """The results at one sampling probability π.

    The claim is `certified` if it was computed from the engine's training; it is `telling` if
    answers that are all right would contradict it. The verdict is refuted, not refuted, no claim,
    or inconclusive: no answers can refute it, or a precision above the claim could still be luck.
    """

    __repr__ = told("probability", "verdict", "targets", "shadows")

    probability: float
    records: int
    targets: int
    shadows: int
    confidence: float
    min_tpr: float
    top_share: float
    attacks: tuple[AttackResult, ...]
    certified: bool
    telling: bool
    claim: TradeOff | None = field(repr=False, metadata=NOT_KEPT)
    allowed: Allowed | None = field(init=False)
    verdict: str = field(init=False)
    sentence: str = field(init=False)

    def __post_init__(self) -> None:
        for name in ("allowed", "verdict", "sentence"):  # each reads the one before it
            object.__setattr__(self, name, getattr(self, f"_{name}")())

    def _allowed(self) -> Allowed | None:
        if self.claim is None:
            return None
        flagged = results.number_flagged(self.top_share, self.records)
        return Allowed(
            self.claim.precision(prior=self.probability, min_tpr=self.min_tpr),
            precision_of_share(self.claim, flagged / self.records, self.probability),
            {rate: self.claim.tpr(fpr=rate) for rate in self.attacks[0].tpr},
        )

    def _verdict(self) -> str:
        if self.allowed is None:
            return "no claim"
        if any(each.targets_that_contradict for each in self.attacks):
            return "refuted"
        limit = self.allowed.top_precision
        above = any(each.top_precision.value > limit for each in self.attacks)
        return "inconclusive" if above or not self.telling else "not refuted"

    def _sentence(self) -> str:
        best = max(self.attacks, key=lambda each: each.top_precision.value)
        reached = (
            f"Of the {100 * self.top_share:g} % of records that {best.title} is surest of, "
            f"{100 * best.top_precision.value:.1f} % are members; {100 * self.probability:g} % of "
            "all records are."
        )
        if self.allowed is None:
            why = "is not private" if self.certified else "has no claim"
            return f"{reached} The training {why}: nothing limits what an attack may reach."
        who = "certified curve" if self.certified else "claim"
        limit = f"For that share the {who} allows {round_up(100 * self.allowed.top_precision)} %"
        ends = {
            "refuted": f", which these answers exceed at {100 * self.confidence:g} % confidence: "
            "the claim is refuted.",
            "inconclusive": ". Inconclusive, because the answers are too few: more records or "
            "fewer attacks could tell.",
            "not refuted": ": the claim is not refuted, which does not prove it.",
        }
        return f"{reached} {limit}{ends[self.verdict]}"


@dataclass(frozen=True, eq=False)
class InferenceRecord:
    """The result that a run keeps: an inference for each π, and the verdict on all of them."""

    __repr__ = told("data", "verdict", "inferences")

    data: str
    inferences: tuple[Inference, ...]
    verdict: str = field(init=False)
    sentence: str = field(init=False)

    def __post_init__(self) -> None:
        verdicts = [each.verdict for each in self.inferences]
        object.__setattr__(self, "verdict", next(word for word in VERDICTS if word in verdicts))
        object.__setattr__(self, "sentence", " ".join(each.sentence for each in self.inferences))


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
    """Train models on parts of a pool, attack them, and conclude.

    Targets of every π are attacked with the same shadow models. `trainer` gives the trainer for a
    probability, so that batches can keep their size, and `claim` the curve that is claimed of the
    targets' training; without it, that is the certified curve of the engine's training, if it is
    private. No model is trained on the population. The run in `file` keeps what every model
    answers; `shadow_file` keeps the shadow models' answers apart, for other inferences. `request`
    has names from which all this can be made again, for `dprime resume`.

    >>> from dprime.data import load
    >>> from dprime.membership import Recipe, Trainers
    >>> digits = load("digits")
    >>> pool, recipe = digits.train.take(range(100)), Recipe(batch_size=20, epochs=30)
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
        Cohort.of(trainer(pi), config.targets, pi, seed=own_seed(config.seed, 1, round(1e9 * pi)))
        for pi in config.sampling_probabilities
    ]
    certified = claim is None and cohorts[0].trainer.training is not None
    claims = [
        _certified(cohort.trainer) if claim is None else claim(cohort.probability)
        for cohort in cohorts
    ]
    if attacker is not None and shadow_file is None:
        cohorts.append(attacker)
    work = Models(tuple(cohorts), pool, population)
    described |= work.describe()
    described["models"] = [cohort.describe() for cohort in cohorts]
    # two numbers, by which another claim is noticed
    digests = [curve and (curve.advantage(), curve.epsilon(1e-5)) for curve in claims]
    described["claim"] = to_json(digests)
    with Run.open_or_create(file, "inference", described, len(work.blocks), request) as run:
        outputs = train_models(run, work, "models", backend, progress)
        if attacker is not None and shadow_file is not None:
            apart = partial(answers, file=shadow_file, backend=backend, progress=progress)
            outputs.append(apart(attacker, pool, population))
        shadows = None if attacker is None else outputs[-1]
        found = [
            _inferred(each, shadows, curve, pi, config, described["records"], certified)
            for each, curve, pi in zip(outputs, claims, config.sampling_probabilities, strict=False)
        ]
        record = InferenceRecord(pool.name, tuple(found))
        run.keep(to_json(record))
    return record


def _attacker(
    trainer: Callable[[float], Trainer], config: InferenceConfig, pool: Dataset
) -> Cohort | None:
    attacks = [attack for attack in config.chosen if "shadows" in attack.needs]
    if not attacks:
        return None
    share, seed = config.shadow_probability, own_seed(config.seed, 2)
    cohort = Cohort.of(trainer(share), config.shadows, share, seed=seed)
    members = cohort.members(len(pool))[:, : config.attacked(pool)]
    for attack in attacks:
        attack.scorable(members)
    return cohort


def _certified(trainer: Trainer) -> TradeOff | None:
    """The curve of the engine's training on a part whose size is secret; None if not private."""
    training = trainer.training
    return training.mechanism().curve("add-remove") if training and training.private else None


def _inferred(
    targets: ModelOutputs,
    shadows: ModelOutputs | None,
    claim: TradeOff | None,
    probability: float,
    config: InferenceConfig,
    records: int,
    certified: bool,
) -> Inference:
    if lost := int((~targets.pool.known).any(axis=1).sum()):
        shown, remedy = f"such that {lost} of {len(targets)} diverged", "lower the learning rate"
        raise validate.invalid_input("targets", shown, "finite", remedy)
    shares = config.shares(probability)
    tests = len(config.chosen) * len(targets) * len(shares)
    reached = []
    for attack in config.chosen:
        scored = score(attack, targets, shadows, range(records))
        reached.append(conclude(scored, attack.title, claim, probability, config, tests))
    sizes = [results.number_flagged(share, records) for share in shares]
    every = [results.Precision(size, size) for size in sizes]
    telling = _contradicted(claim, every, records, probability, config, tests)
    counts = records, len(targets), 0 if shadows is None else len(shadows)
    asked = config.confidence, config.min_tpr, config.top_share
    return Inference(probability, *counts, *asked, tuple(reached), certified, telling, claim)


def _contradicted(
    claim: TradeOff | None,
    answers: Iterable[results.Precision],
    records: int,
    probability: float,
    config: InferenceConfig,
    tests: int,
) -> bool:
    if claim is None:
        return False
    level = {"confidence": config.confidence, "choices": tests}
    given: dict[str, Any] = {"records": records, "prior": probability, **level}
    return any(contradicts(claim, each.correct, each.flagged, **given) for each in answers)


def conclude(
    scored: Scored,
    title: str,
    claim: TradeOff | None,
    probability: float,
    config: InferenceConfig,
    tests: int = 1,
) -> AttackResult:
    """The numbers of one attack from its scores; this many `tests` hold together."""
    rng = np.random.default_rng([own_seed(config.seed, 3), 4])
    pairs = list(zip(scored.scores, scored.members, strict=True))
    curves = [results.roc(*pair) for pair in pairs]
    tops = [results.top_precision(*pair, config.top_share, rng) for pair in pairs]
    held = [results.held_out_precision(*pair, rng) for pair in pairs]
    known = [value for value in held if value is not None]
    contradicting = None
    if claim is not None:
        records, shares = scored.members.shape[1], config.shares(probability)
        flagged = [[results.top_precision(*pair, share, rng) for share in shares] for pair in pairs]
        tested = (_contradicted(claim, f, records, probability, config, tests) for f in flagged)
        contradicting = sum(tested)

    def mean(values: Iterable[float | None]) -> Interval:
        shares = [value or 0.0 for value in values]
        return over_repetitions(shares, confidence=config.confidence).within()

    return AttackResult(
        scored.attack,
        title,
        auc=mean(curve.auc for curve in curves),
        tpr=results.mean_tpr(curves, config.counted(scored.members), confidence=config.confidence),
        held_out_precision=mean(known) if len(known) > 1 else None,
        best_precision=mean(results.precision_over_quantiles(*pair).value for pair in pairs),
        shuffled_best=mean(results.shuffled_best(*pair, rng, SHUFFLES) for pair in pairs),
        top_precision=mean(top.value for top in tops),
        targets_that_contradict=contradicting,
        scored=scored,
    )
