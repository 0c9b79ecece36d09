"""Audits: trials in two worlds, and what they show with confidence.

scores of two worlds ──► lower_bound ──► LowerBound ──► judge(bound, claim, metric) ──► Verdict
"""

from dprime.audit.estimators import (
    Band,
    Bayesian,
    ClopperPearson,
    Estimator,
    GaussianScores,
    Mahloujifar,
    Steinke,
    rejects,
)
from dprime.audit.lower import LowerBound, lower_bound
from dprime.audit.metrics import Metric
from dprime.audit.verdict import Verdict, judge

__all__ = [
    "Band",
    "Bayesian",
    "ClopperPearson",
    "Estimator",
    "GaussianScores",
    "LowerBound",
    "Mahloujifar",
    "Metric",
    "Steinke",
    "Verdict",
    "judge",
    "lower_bound",
    "rejects",
]
