"""Attacks by a threshold on the loss: one for all records, or attack R's for each record.

Sources: Yeom et al. 2018, "Privacy risk in machine learning: analyzing the connection to
overfitting"; Ye et al. 2022, "Enhanced membership inference attacks against machine learning
models", attacks P and R. T is Thudi et al. 2024.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from dprime.membership.attacks.attack import SHADOWS, MembershipAttack
from dprime.membership.signals import Bools, Floats, Signals
from dprime.parameters import one_of, parameter
from dprime.roc import wins


@final
@dataclass(frozen=True)
class Baseline(MembershipAttack):
    """The same score for all: its precision is the share of members, and it needs no model."""

    name = "baseline"
    title = "Baseline (all members)"
    needs = ()

    def _scores(self) -> Floats:
        return np.zeros(())


@final
@dataclass(frozen=True)
class YeomLoss(MembershipAttack):
    """Minus the loss; the paper's own threshold is the mean loss on the training set."""

    name = "yeom"
    title = "Yeom (loss)"
    needs = ("target",)

    def _scores(self, target: Signals) -> Floats:
        return target.log_p


@final
@dataclass(frozen=True)
class AttackP(MembershipAttack):
    """A threshold on the loss that comes from records that no model was trained on.

    The score is the share of the population whose loss is larger than the record's; an equal loss
    counts half. So "score >= 1 - α" is the attack at a false-positive rate of α: of n population
    records and one more like them, it says "member" of the latter with probability α, up to
    1/(n + 1).
    """

    name = "attack-p"
    title = "Attack P"
    needs = ("target", "population")

    def _scores(self, target: Signals, population: Signals) -> Floats:
        share: Floats = 1.0 - wins(target.loss, population.loss) / len(population.loss)
        return share


@final
@dataclass(frozen=True)
class AttackR(MembershipAttack):
    """A threshold on the loss for each record, from shadow models that were not trained on it.

    The score is 1 - r/(n + 1), with r the rank of the target's loss among the n models' losses on
    the record. So "score >= 1 - α" is the attack at a false-positive rate of α: a target without
    the record is one more model like the n, and lies below the k-th smallest loss with probability
    k/(n + 1). (The plain share of larger losses would say "member" twice as often: with ten models
    and α = 0.1 at a rate of 2/11.)

    With few models there are few ranks, so r is interpolated (`interpolated_ranks`). Below the
    smallest loss, where α < 1/(n + 1), no ranks can tell the rate, and the line is a guess.

    `thresholds_from` "in", the models with the record, is T's printed way: it fixes the share of
    members that are found, not that of others wrongly accused.
    """

    name = "attack-r"
    title = "Attack R"
    needs = SHADOWS
    variants = (("thresholds_from", "in", "in", "thresholds from members"),)

    thresholds_from: Literal["out", "in"] = parameter("out", one_of("out", "in"))

    def _models(self) -> tuple[int, int]:
        return (1, 0) if self.thresholds_from == "in" else (0, 1)

    def _scores(self, target: Signals, shadows: Signals, members: Bools) -> Floats:
        side = members if self.thresholds_from == "in" else ~members
        # the loss falls as the logit grows: minus the logit has the losses' order
        ranks = interpolated_ranks(-target.logit, -shadows.logit, side)
        scores: Floats = 1.0 - ranks / (side.sum(0) + 1)
        return scores


def interpolated_ranks(values: Floats, others: Floats, chosen: Bools) -> Floats:
    """The rank of each value among the chosen others of its column, from 0 to n + 1.

    The k-th smallest has rank k, equal ones the middle of their ranks. Between them the rank is
    linear, and beyond the ends it goes on in the line of the last two. With one, it is half a step
    off.
    """
    count = chosen.sum(0)
    ordered = np.sort(np.where(chosen, others, np.inf), axis=0)
    below = np.where(chosen, others < values, False).sum(0)
    not_above = np.where(chosen, others <= values, False).sum(0)
    # the two neighbours that make the line: at an end, the last two
    lower = np.clip(below - 1, 0, np.maximum(count - 2, 0))
    upper = np.minimum(lower + 1, np.maximum(count - 1, 0))
    low, high = (np.take_along_axis(ordered, at[None], axis=0)[0] for at in (lower, upper))
    with np.errstate(invalid="ignore", divide="ignore"):
        step = (values - low) / (high - low)
        ranks = np.where(high > low, lower + 1 + step, below + 0.5)
    # a line through equal neighbours has no slope: all that is beyond them has the end's rank
    ranks = np.where((high == low) & (count > 1), np.where(below == 0, 0.0, count + 1.0), ranks)
    tied = not_above > below
    ranks = np.where(tied, (below + not_above + 1) / 2, ranks)
    return np.clip(ranks, 0.0, count + 1.0)
