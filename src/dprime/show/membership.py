"""Charts of what membership inference found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dprime.membership.results import average_roc, roc
from dprime.show.figures.membership_roc import LEAST_FPR, MembershipRocFigure, RocCurve
from dprime.show.figures.precision_over_prior import (
    PrecisionLine,
    PrecisionOverPriorFigure,
    PrecisionPoint,
)
from dprime.show.figures.trade_off import Points

if TYPE_CHECKING:
    from dprime.membership.game import Scored
    from dprime.membership.inference import Inference

POINTS = 31
"""Rates of false alarms at which the targets' curves are averaged."""

BASELINE = "baseline"


def roc_figure(found: Inference, data: str) -> MembershipRocFigure:
    """Every attack but the baseline, averaged over the targets, beside the claim."""
    attacks = [
        (outcome.title, scored)
        for outcome, scored in zip(found.outcomes, found.scored, strict=True)
        if scored.attack != BASELINE or len(found.outcomes) == 1
    ]
    least = max(LEAST_FPR, *(1.0 / (~scored.members).sum(1).min() for _, scored in attacks))
    rates = tuple(float(f"{rate:.3g}") for rate in np.geomspace(least, 1.0, POINTS))
    curves = tuple(
        _averaged(title, scored, rates, found.asked.confidence) for title, scored in attacks
    )
    claim = None if found.claim is None else Points.of(found.claim, also=rates)
    label = f"{data}, π = {found.probability:g}"
    return MembershipRocFigure(
        curves, claim, label, least_fpr=rates[0], confidence=found.asked.confidence,
        fpr=max(0.01, rates[0]),
    )  # fmt: skip


def _averaged(title: str, scored: Scored, rates: tuple[float, ...], confidence: float) -> RocCurve:
    """The mean over the targets with its interval, which ends at 0 and 1."""
    pairs = zip(scored.scores, scored.members, strict=True)
    mean = average_roc([roc(*pair) for pair in pairs], fpr=rates, confidence=confidence)
    return RocCurve(
        title, rates, tuple(each.value for each in mean.tpr),
        tuple(max(0.0, each.low) for each in mean.tpr),
        tuple(min(1.0, each.high) for each in mean.tpr),
    )  # fmt: skip


def precision_figures(found: Sequence[Inference], data: str) -> dict[str, PrecisionOverPriorFigure]:
    """For each attack: how often its surest answers are right against π.

    The limit beside them is drawn where it is certified, not where it is only stated.
    """
    figures = {}
    for place, outcome in enumerate(found[0].outcomes):
        if outcome.attack == BASELINE:
            continue
        points = [
            PrecisionPoint(
                each.probability,
                *each.outcomes[place].top.numbers,
                certified=each.allowed_top if each.certified else None,
            )
            for each in sorted(found, key=lambda each: each.probability)
        ]
        share = f"surest {100 * found[0].asked.top_share:g} %"
        line = PrecisionLine(share, tuple(points))
        figures[outcome.attack] = PrecisionOverPriorFigure(
            (line,), outcome.title, data, confidence=found[0].asked.confidence
        )
    return figures
