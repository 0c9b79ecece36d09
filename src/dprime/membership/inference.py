"""Membership inference from end to end: train targets and shadow models, attack, conclude.

    pool ──► targets and shadow models ──► scores of every attack ──► Outcome beside the claim

A target is trained on a part of the pool, each record kept with probability π. Every attack scores
every record of every target. Numbers are means over the targets with Student-t intervals, beside
what the certified curve of the same training allows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dprime import validate
from dprime.attack.trainer import Trainer
from dprime.curve import TradeOff
from dprime.data.dataset import Dataset
from dprime.membership.attacks import Attack, attack_named
from dprime.membership.confidence import (
    Interval,
    contradicts,
    over_repetitions,
    precision_of_share,
)
from dprime.membership.game import Bools, Floats, Scored, score
from dprime.membership.planner import check_outside
from dprime.membership.pool import check_distinct
from dprime.membership.results import (
    AverageRoc,
    average_roc,
    held_out_precision,
    number_flagged,
    precision_over_quantiles,
    roc,
    shuffled_best,
    top_precision,
)
from dprime.membership.shadows import Answers, Cohort, Models, answers, train_models
from dprime.runs.backends.base import Backend
from dprime.runs.run import Run
from dprime.text import round_up

FPRS = (0.001, 0.01, 0.1)
USUAL = ("lira", "rmia", "attack-p", "attack-r", "yeom", "baseline")
TOP_SHARE = 0.1
SHUFFLES = 200
FEWEST_TARGETS = 2
VERDICTS = ("refuted", "inconclusive", "not refuted", "no claim")
"""What an inference may say of its claim; of several, the first of these that was said."""

FEWEST_FALSE_ALARMS = 10
"""A true-positive rate is shown only where so many false alarms are allowed."""


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
        if self.top_share < self.min_tpr:
            remedy = "give a smaller one"
            limit = f"at most {self.top_share:g}, the share called members"
            raise validate.refusal("min_tpr", self.min_tpr, limit, remedy)


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
            the number of attacks, targets and shares; None without a claim.
    """

    attack: str
    title: str
    roc: AverageRoc
    held_out: Interval | None
    best: Interval
    shuffled: Interval
    top: Interval
    contradicted: int | None

    def as_json(self, places: Sequence[int]) -> dict[str, object]:
        """Plain values, true-positive rates at these places of the rates asked for."""
        rates = [{"fpr": self.roc.fpr[place], **self.roc.tpr[place].as_json()} for place in places]
        return {
            "attack": self.attack, "title": self.title, "auc": self.roc.auc.as_json(),
            "tpr": rates, "repetitions": self.roc.auc.n,
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
        claim: the curve that is claimed of the targets' training; None where it is not private.
        certified: whether the claim was computed from the training itself, not only stated.
        telling: whether answers that are all right would contradict the claim; else no attack can.
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
    certified: bool = True
    telling: bool = True

    @property
    def allowed_precision(self) -> float | None:
        """The precision at π that the claim allows to attackers with TPR >= `asked.min_tpr`.

        None without a claim.
        """
        if self.claim is None:
            return None
        return self.claim.precision(prior=self.probability, min_tpr=self.asked.min_tpr)

    @property
    def allowed_top(self) -> float | None:
        """The precision that the claim allows of the share that is called members.

        None without a claim. An attack that names fewer records may be right more often.
        """
        if self.claim is None:
            return None
        flagged = number_flagged(self.asked.top_share, self.records)
        return precision_of_share(self.claim, flagged / self.records, self.probability)

    @property
    def counted(self) -> tuple[int, ...]:
        """The places of those false-positive rates that leave enough false alarms to count.

        The threshold is set on the same outsiders, so scores that tell nothing have a TPR of about
        FPR + 1/outsiders: at few false alarms that is more than a claim allows.
        """
        others = min(int((~each.members).sum(1).min()) for each in self.scored)
        return tuple(
            place
            for place, rate in enumerate(self.asked.fpr)
            if rate * others >= FEWEST_FALSE_ALARMS
        )

    @property
    def verdict(self) -> str:
        """What the answers say of the claim: refuted, not refuted, inconclusive, or no claim.

        They are inconclusive where too few records are in question for any answers to refute it,
        or where a precision lies above the claim and could still be luck.
        """
        allowed = self.allowed_top
        if allowed is None:
            return "no claim"
        if any(each.contradicted for each in self.outcomes):
            return "refuted"
        above = any(each.top.value > allowed for each in self.outcomes)
        return "inconclusive" if above or not self.telling else "not refuted"

    def sentence(self) -> str:
        """What was found, in plain words."""
        best = max(self.outcomes, key=lambda each: each.top.value)
        share = f"{100 * self.asked.top_share:g} %"
        found = (
            f"Of the {share} of records that {best.title} is surest of, "
            f"{100 * best.top.value:.1f} % are members; {100 * self.probability:g} % of all "
            "records are."
        )
        allowed = self.allowed_top
        if allowed is None:
            return f"{found} The training is not private: nothing limits what an attack may reach."
        who = "certified curve" if self.certified else "claim"
        limit = f"For that share the {who} allows {round_up(100 * allowed)} %"
        sure = f"at {100 * self.asked.confidence:g} % confidence"
        if self.verdict == "refuted":
            return f"{found} {limit}, which these answers exceed {sure}: the claim is refuted."
        if self.verdict == "inconclusive":
            few = "more records in question or fewer attacks could tell"
            return f"{found} {limit}. Inconclusive, because the answers are too few: {few}."
        return f"{found} {limit}: the claim is not refuted, which does not prove it."

    def _rates(self) -> list[float]:
        return [self.asked.fpr[place] for place in self.counted]

    def as_json(self) -> dict[str, Any]:
        """Plain values; rates with too few false alarms to count are left out."""
        return {
            "probability": self.probability, "records": self.records, "targets": self.targets,
            "shadows": self.shadows, "confidence": self.asked.confidence,
            "min_tpr": self.asked.min_tpr, "top_share": self.asked.top_share,
            "allowed": None if self.claim is None else {
                "kind": "certified" if self.certified else "claimed",
                "precision": self.allowed_precision,
                "top_precision": self.allowed_top,
                "tpr": [
                    {"fpr": rate, "value": self.claim.tpr(fpr=rate)} for rate in self._rates()
                ],
            },
            "attacks": [each.as_json(self.counted) for each in self.outcomes],
            "verdict": self.verdict, "sentence": self.sentence(),
        }  # fmt: skip


def infer(
    pool: Dataset,
    population: Dataset,
    trainer: Callable[[float], Trainer],
    *,
    attacks: Sequence[str | Attack] = USUAL,
    claim: TradeOff | None = None,
    certified: bool = True,
    probability: float = 0.5,
    shadow_probability: float = 0.5,
    shadows: int = 64,
    targets: int = 5,
    records: int | None = None,
    seed: int = 0,
    asked: Asked | None = None,
    file: str | Path | None = None,
    shadow_file: str | Path | None = None,
    backend: Backend | None = None,
    progress: bool | None = None,
) -> Inference:
    """Attack models that are trained on parts of a pool, and say what was reached.

    Args:
        pool: distinct records, of which each target has a part.
        population: records that no model is trained on, so none of the pool's.
        trainer: gives the trainer for a probability, so that batches can keep their size.
        attacks: by name, or made with options of your own.
        claim: the curve of the targets' training.
        certified: whether it was computed from that training, not only stated of it.
        probability: π, with which each record is in a target's part.
        shadow_probability: the same for shadow models.
        shadows: how many the attacker trains.
        targets: how many models are attacked, two or more.
        records: the first so many of the pool are in question; None for all.
        seed: gives everything.
        asked: at which rates and with what confidence.
        file: of the run, which keeps what every model answers; None keeps nothing.
        shadow_file: of a run that keeps the shadow models' answers apart, for other inferences.
        backend: where models are trained; in this process unless given.
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
    >>> found.outcomes[0].roc.auc.value > 0.6
    True
    """
    (found,) = infer_each(
        pool, population, trainer, {probability: claim}, attacks=attacks, certified=certified,
        shadow_probability=shadow_probability, shadows=shadows, targets=targets, records=records,
        seed=seed, asked=asked, file=file, shadow_file=shadow_file, backend=backend,
        progress=progress,
    )  # fmt: skip
    return found


def infer_each(
    pool: Dataset,
    population: Dataset,
    trainer: Callable[[float], Trainer],
    claims: Mapping[float, TradeOff | None],
    *,
    attacks: Sequence[str | Attack] = USUAL,
    certified: bool = True,
    shadow_probability: float = 0.5,
    shadows: int = 64,
    targets: int = 5,
    records: int | None = None,
    seed: int = 0,
    asked: Asked | None = None,
    file: str | Path | None = None,
    shadow_file: str | Path | None = None,
    backend: Backend | None = None,
    progress: bool | None = None,
    request: Mapping[str, Any] | None = None,
) -> list[Inference]:
    """The same for several π, whose targets are attacked with the same shadow models.

    `claims` are the curves of the targets' training by π. `request` holds the names from which all
    this can be made again, for `dprime resume`; everything else is as for `infer`.
    """
    chosen = [attack_named(each) if isinstance(each, str) else each for each in attacks]
    asked = Asked() if asked is None else asked
    count = _checked(pool, population, chosen, targets, records)
    cohorts = [
        Cohort.of(
            trainer(share), targets, validate.inner_probability("probability", share),
            _own(seed, 1, round(1e9 * share)),
        )
        for share in claims
    ]  # fmt: skip
    attacker = None
    if any("shadows" in attack.needs for attack in chosen):
        share = validate.inner_probability("shadow_probability", shadow_probability)
        models = validate.whole("shadows", shadows, example=64)
        attacker = Cohort.of(trainer(share), models, share, _own(seed, 2))
        had = attacker.parts(len(pool))[:, :count]
        for attack in chosen:  # before anything is trained
            if "shadows" in attack.needs:
                attack.scorable(had)
        if shadow_file is None:
            cohorts.append(attacker)
    work = Models(tuple(cohorts), pool, population)
    config = {
        **work.describe(), "models": [cohort.describe() for cohort in cohorts],
        "attacks": [re.sub(" at 0x[0-9a-f]+", "", repr(attack)) for attack in chosen],
        "records": count, "seed": seed, "asked": asdict(asked), "certified": certified,
        "claim": [_described(claim) for claim in claims.values()],
    }  # fmt: skip
    with Run.open_or_create(file, "inference", config, work.blocks, request) as run:
        made = train_models(run, work, "models", backend, progress)
        if attacker is not None and shadow_file is not None:
            made.append(_kept_apart(attacker, work, shadow_file, backend, progress))
        attacked, own = made[: len(claims)], None if attacker is None else made[-1]
        _check_finite("targets", attacked)
        _check_finite("shadow models", made[len(claims) :])
        found = [
            _attacked(each, own, chosen, claim, certified, share, asked, count, _own(seed, 3))
            for each, (share, claim) in zip(attacked, claims.items(), strict=True)
        ]
        run.keep(inference_record(found, pool.name))
    return found


def _kept_apart(
    attacker: Cohort,
    work: Models,
    file: str | Path,
    backend: Backend | None,
    progress: bool | None,
) -> Answers:
    """Shadow models in a run of their own, which other inferences may use."""
    return answers(
        attacker.trainer, work.pool, work.population, models=attacker.models,
        probability=attacker.probability, seed=attacker.seed, file=file, backend=backend,
        progress=progress,
    )  # fmt: skip


def _described(claim: TradeOff | None) -> list[float | None] | None:
    """A claim in two numbers, by which another one is noticed."""
    if claim is None:
        return None
    epsilon = claim.epsilon(1e-5)
    return [claim.advantage(), epsilon if math.isfinite(epsilon) else None]


def inference_record(found: Sequence[Inference], data: str) -> dict[str, Any]:
    """What a run keeps of inferences at several π, in JSON values."""
    verdicts = [each.verdict for each in found]
    return {
        "data": data,
        "verdict": next(word for word in VERDICTS if word in verdicts),
        "sentence": " ".join(each.sentence() for each in found),
        "runs": [each.as_json() for each in found],
    }


def _checked(
    pool: Dataset,
    population: Dataset,
    attacks: Sequence[Attack],
    targets: int,
    records: int | None,
) -> int:
    """How many records are in question, once it is sure that they can be."""
    if not attacks or len({attack.name for attack in attacks}) < len(attacks):
        shown = "one of them twice" if attacks else "empty"
        raise validate.misfit("attacks", shown, "one attack or more, each once", "give lira,rmia")
    if pool.classes is None:
        remedy = "the attacks need the probability of a class"
        raise validate.misfit("pool", "a regression", "records with classes", remedy)
    if validate.whole("targets", targets, example=5) < FEWEST_TARGETS:
        remedy = "an interval needs two or more"
        raise validate.refusal("targets", targets, f"at least {FEWEST_TARGETS}", remedy)
    count = _asked_records(records, pool)
    check_distinct(pool.hashes())
    check_outside(population, pool)
    return count


def _attacked(
    under_attack: Answers,
    own: Answers | None,
    attacks: Sequence[Attack],
    claim: TradeOff | None,
    certified: bool,
    probability: float,
    asked: Asked,
    records: int,
    seed: int,
) -> Inference:
    """From what the models answer to what every attack reached at one π."""
    scored = tuple(score(attack, under_attack, own, range(records)) for attack in attacks)
    tests = len(attacks) * len(under_attack) * len(_shares(asked, probability))
    outcomes = tuple(
        conclude(each, attack.title, claim, probability, asked, seed, tests)
        for each, attack in zip(scored, attacks, strict=True)
    )
    return Inference(
        outcomes=outcomes, scored=scored, claim=claim, probability=probability, asked=asked,
        records=records, targets=len(under_attack), shadows=0 if own is None else len(own),
        certified=certified,
        telling=claim is not None and _telling(claim, asked, probability, records, tests),
    )  # fmt: skip


def _shares(asked: Asked, probability: float) -> tuple[float, ...]:
    """Shares of the records that are called members to test a claim, fixed before looking."""
    return tuple({asked.top_share, max(probability, asked.min_tpr)})


def _telling(claim: TradeOff, asked: Asked, probability: float, records: int, tests: int) -> bool:
    """Whether right answers throughout would contradict the claim."""
    level = 1.0 - (1.0 - asked.confidence) / tests
    return any(
        contradicts(claim, flagged, flagged, records=records, prior=probability, confidence=level)
        for flagged in (math.ceil(share * records) for share in _shares(asked, probability))
    )


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
        return over_repetitions(numbers, confidence=asked.confidence).within()

    level = 1.0 - (1.0 - asked.confidence) / tests

    def contradicted(scores: Floats, members: Bools) -> bool:
        assert claim is not None
        shares = _shares(asked, probability)
        tops = [top_precision(scores, members, share, rng) for share in shares]
        return any(
            contradicts(
                claim, top.correct, top.flagged, records=len(members), prior=probability,
                confidence=level,
            )
            for top in tops
        )  # fmt: skip

    broken = None if claim is None else sum(contradicted(*pair) for pair in pairs)
    return Outcome(
        attack=scored.attack,
        title=title,
        roc=average_roc(
            [roc(*pair) for pair in pairs],
            fpr=asked.fpr, confidence=asked.confidence,
        ),
        held_out=mean(known) if len(known) >= FEWEST_TARGETS else None,
        best=mean([precision_over_quantiles(*pair).value for pair in pairs]),
        shuffled=mean([shuffled_best(*pair, rng, SHUFFLES).value for pair in pairs]),
        top=mean([top.value for top in tops]),
        contradicted=broken,
    )  # fmt: skip


def _check_finite(name: str, made: Sequence[Answers]) -> None:
    """Refuse models that diverged: they answer nothing."""
    for each in made:
        lost = int((~each.pool.known).any(axis=1).sum())
        if lost:
            shown = f"such that {lost} of {len(each)} diverged"
            raise validate.misfit(name, shown, "finite", "give a smaller learning rate")


def _asked_records(records: int | None, pool: Dataset) -> int:
    if records is None:
        return len(pool)
    count = validate.whole("records", records, example=1000)
    if count > len(pool):
        remedy = f"the pool has {len(pool):,}"
        raise validate.refusal("records", records, f"at most {len(pool):,}", remedy)
    return count


def _own(seed: int, *purpose: int) -> int:
    """Seeds for targets, shadow models and results that have nothing in common."""
    return int(np.random.SeedSequence([seed, *purpose]).generate_state(1, np.uint64)[0])
