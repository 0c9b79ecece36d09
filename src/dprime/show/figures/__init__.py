"""Figures: numbers that people look at, each with its drawing and its text alternative."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dprime.show.figures.accuracy import AccuracyFigure, AccuracyPoint
from dprime.show.figures.bayes_security import BayesSecurityFigure
from dprime.show.figures.belief import BeliefFigure, belief_bound
from dprime.show.figures.belief_distribution import BeliefDistributionFigure
from dprime.show.figures.figure import Figure, Row
from dprime.show.figures.frontier import FrontierFigure, FrontierPoint, FrontierSeries
from dprime.show.figures.improvement import ImprovementFigure, ImprovementPoint
from dprime.show.figures.ladder import LadderFigure, Rung, rung_of
from dprime.show.figures.membership_roc import MembershipRocFigure, RocCurve
from dprime.show.figures.precision import PrecisionFigure
from dprime.show.figures.precision_over_prior import (
    PrecisionLine,
    PrecisionOverPriorFigure,
    PrecisionPoint,
)
from dprime.show.figures.risk import RiskFigure
from dprime.show.figures.scores import ScoresFigure
from dprime.show.figures.security import SecurityFigure, SecurityLine
from dprime.show.figures.sensitivity import SensitivityFigure
from dprime.show.figures.trade_off import Points, TradeOffFigure

FIGURES: Mapping[str, type[Figure]] = MappingProxyType(
    {
        "trade-off": TradeOffFigure,
        "trade-off-log": TradeOffFigure,
        "risk-noise-multiplier": RiskFigure,
        "risk-sample-rate": RiskFigure,
        "risk-steps": RiskFigure,
        "precision": PrecisionFigure,
        "bayes-security": BayesSecurityFigure,
        "belief": BeliefFigure,
        "belief-distribution": BeliefDistributionFigure,
        "sensitivity": SensitivityFigure,
        "scores": ScoresFigure,
        "ladder": LadderFigure,
        "accuracy": AccuracyFigure,
        "membership-roc": MembershipRocFigure,
        "precision-over-prior": PrecisionOverPriorFigure,
        "improvement": ImprovementFigure,
        "frontier": FrontierFigure,
        "security": SecurityFigure,
    }
)
"""Every figure by its name."""

__all__ = [
    "FIGURES",
    "AccuracyFigure",
    "AccuracyPoint",
    "BayesSecurityFigure",
    "BeliefDistributionFigure",
    "BeliefFigure",
    "Figure",
    "FrontierFigure",
    "FrontierPoint",
    "FrontierSeries",
    "ImprovementFigure",
    "ImprovementPoint",
    "LadderFigure",
    "MembershipRocFigure",
    "Points",
    "PrecisionFigure",
    "PrecisionLine",
    "PrecisionOverPriorFigure",
    "PrecisionPoint",
    "RiskFigure",
    "RocCurve",
    "Row",
    "Rung",
    "ScoresFigure",
    "SecurityFigure",
    "SecurityLine",
    "SensitivityFigure",
    "TradeOffFigure",
    "belief_bound",
    "rung_of",
]
