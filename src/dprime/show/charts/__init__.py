"""The charts, each made by one function; all are of one type, `dprime.show.chart.Chart`."""

from dprime.show.charts.curves import Points, trade_off, trade_offs
from dprime.show.charts.membership import (
    PrecisionLine,
    PrecisionPoint,
    RocCurve,
    membership_roc,
    precision_over_prior,
)
from dprime.show.charts.plans import bayes_security, precision, risk
from dprime.show.charts.trainings import (
    FrontierPoint,
    FrontierSeries,
    ImprovementPoint,
    SecurityLine,
    frontier,
    improvement,
    security,
)
from dprime.show.charts.trials import (
    Rung,
    belief,
    belief_distribution,
    ladder,
    scores,
    sensitivity,
)

CHARTS = (
    trade_off, trade_offs, risk, precision, bayes_security, belief, belief_distribution,
    sensitivity, scores, ladder, membership_roc, precision_over_prior, improvement, security,
    frontier,
)  # fmt: skip
"""Every function that makes a chart."""

__all__ = [
    "CHARTS",
    "FrontierPoint",
    "FrontierSeries",
    "ImprovementPoint",
    "Points",
    "PrecisionLine",
    "PrecisionPoint",
    "RocCurve",
    "Rung",
    "SecurityLine",
    "bayes_security",
    "belief",
    "belief_distribution",
    "frontier",
    "improvement",
    "ladder",
    "membership_roc",
    "precision",
    "precision_over_prior",
    "risk",
    "scores",
    "security",
    "sensitivity",
    "trade_off",
    "trade_offs",
]
