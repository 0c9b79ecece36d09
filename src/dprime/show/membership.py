"""Charts of what membership inference and frontiers found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dprime.membership.results import mean_tpr, roc
from dprime.show.chart import Chart, labelled
from dprime.show.charts import (
    FrontierPoint,
    FrontierSeries,
    Points,
    PrecisionLine,
    PrecisionPoint,
    RocCurve,
    frontier,
    membership_roc,
    precision_over_prior,
)
from dprime.show.charts.membership import LEAST_FPR

if TYPE_CHECKING:
    from dprime.membership.frontiers import FrontierRecord
    from dprime.membership.inference import AttackResult, Inference, InferenceRecord

POINTS = 31
"""Rates of false alarms at which the targets' curves are averaged."""

BASELINE = "baseline"


def inference_charts(record: InferenceRecord) -> dict[str, Chart]:
    """Each π's curves; with several, also each attack's precision against π; by their names."""
    found, data = record.inferences, record.data
    if len(found) == 1:
        return {"membership-roc": roc_chart(found[0], data)}
    curves = {f"membership-roc-{each.probability:g}": roc_chart(each, data) for each in found}
    shares = precision_charts(found, data)
    return curves | {f"precision-over-prior-{name}": chart for name, chart in shares.items()}


def frontier_chart(record: FrontierRecord) -> Chart:
    """The accuracy at each π."""
    points = []
    for each in record.points:
        joint = each.among(len(record.points)).numbers  # the best is picked among them
        points.append(FrontierPoint(each.probability, *joint, each.epsilon))
    series = FrontierSeries(record.target, tuple(points))
    length = f"{record.epochs:g} epochs" if record.steps is None else f"{record.steps:,} steps"
    of = f"{record.planned} {length}, batches of {record.batch_size:g}, ε at δ = {record.delta:g}"
    return replace(frontier((series,), record.data), of=of)


def roc_chart(found: Inference, data: str) -> Chart:
    """Every attack but the baseline, averaged over the targets, beside the claim."""
    attacks = [each for each in found.attacks if each.attack != BASELINE] or found.attacks
    least = max(LEAST_FPR, *(1.0 / (~each.scored.members).sum(1).min() for each in attacks))
    rates = tuple(float(f"{rate:.3g}") for rate in np.geomspace(least, 1.0, POINTS))
    curves = tuple(_averaged(each, rates, found.confidence) for each in attacks)
    claim = None if found.claim is None else Points.of(found.claim, also=rates)
    label = f"{data}, π = {found.probability:g}"
    drawn = membership_roc(
        curves, claim, label, least_fpr=rates[0], confidence=found.confidence,
        fpr=max(0.01, rates[0]),
    )  # fmt: skip
    return replace(drawn, of=_of([found]))


def _of(found: Sequence[Inference]) -> str:
    """What is claimed of the training at each π."""
    claims = {each.probability: each.claim for each in found if each.claim is not None}
    return labelled({f"π = {share:g}": claim.of for share, claim in claims.items()})


def _averaged(result: AttackResult, rates: tuple[float, ...], confidence: float) -> RocCurve:
    """The mean over the targets with its interval."""
    pairs = zip(result.scored.scores, result.scored.members, strict=True)
    means = mean_tpr([roc(*pair) for pair in pairs], rates, confidence=confidence).values()
    ends = zip(*(each.numbers for each in means), strict=True)
    return RocCurve(result.title, rates, *ends)


def precision_charts(found: Sequence[Inference], data: str) -> dict[str, Chart]:
    """For each attack: how often its surest answers are right against π.

    The limit beside them is drawn where it is certified, not where it is only stated.
    """
    charts = {}
    for place, result in enumerate(found[0].attacks):
        if result.attack == BASELINE:
            continue
        points = [
            PrecisionPoint(
                each.probability,
                *each.attacks[place].top_precision.numbers,
                certified=each.allowed.top_precision if each.allowed and each.certified else None,
            )
            for each in sorted(found, key=lambda each: each.probability)
        ]
        share = f"surest {100 * found[0].top_share:g} %"
        line = PrecisionLine(share, tuple(points))
        drawn = precision_over_prior((line,), result.title, data, confidence=found[0].confidence)
        charts[result.attack] = replace(drawn, of=_of(found))
    return charts
