"""Audits: trials in two worlds, and what they show with confidence.

scores of two worlds ──► lower_bound ──► LowerBound ──► judge(bound, claim, metric) ──► Verdict

`audit` plays the trials too; with `AuditSettings` and a run file
(`dprime.runs`) they can be left and resumed.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dprime import text

if TYPE_CHECKING:
    from dprime.audit.audits import Audit, Question, audit
    from dprime.audit.batch import Played, audits_in, play_batch
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
    from dprime.audit.identifiability import Identifiability, PointEstimate, identify
    from dprime.audit.lower import LowerBound, lower_bound
    from dprime.audit.metrics import Metric
    from dprime.audit.planner import (
        Plan,
        best_possible,
        epsilon_limit,
        largest_epsilon,
        plan,
    )
    from dprime.audit.settings import AuditSettings, begin, resume
    from dprime.audit.verdict import Verdict, judge

NEED_TORCH = {
    "Audit": "audits",
    "Played": "batch",
    "audits_in": "batch",
    "play_batch": "batch",
    "Question": "audits",
    "audit": "audits",
    "AuditSettings": "settings",
    "begin": "settings",
    "resume": "settings",
}
"""What trains, and the modules where it is: loaded when it is first asked for."""

EXPORTS = {
    "Band": "estimators",
    "Bayesian": "estimators",
    "ClopperPearson": "estimators",
    "Estimator": "estimators",
    "GaussianScores": "estimators",
    "Mahloujifar": "estimators",
    "Steinke": "estimators",
    "rejects": "estimators",
    "Identifiability": "identifiability",
    "PointEstimate": "identifiability",
    "identify": "identifiability",
    "LowerBound": "lower",
    "lower_bound": "lower",
    "Metric": "metrics",
    "Plan": "planner",
    "best_possible": "planner",
    "epsilon_limit": "planner",
    "largest_epsilon": "planner",
    "plan": "planner",
    "Verdict": "verdict",
    "judge": "verdict",
}
"""The modules where the others are: loaded, and SciPy with most, when one is first asked for."""


def __getattr__(name: str) -> Any:
    if name in EXPORTS:
        return getattr(import_module(f"dprime.audit.{EXPORTS[name]}"), name)
    if name in NEED_TORCH:
        if find_spec("torch") is None:
            raise ImportError(f"dprime.audit.{name} needs PyTorch: {text.install('train')}")
        return getattr(import_module(f"dprime.audit.{NEED_TORCH[name]}"), name)
    raise AttributeError(f"module 'dprime.audit' has no attribute {name!r}")


__all__ = [
    "Audit",
    "AuditSettings",
    "Band",
    "Bayesian",
    "ClopperPearson",
    "Estimator",
    "GaussianScores",
    "Identifiability",
    "LowerBound",
    "Mahloujifar",
    "Metric",
    "Plan",
    "Played",
    "PointEstimate",
    "Question",
    "Steinke",
    "Verdict",
    "audit",
    "audits_in",
    "begin",
    "best_possible",
    "epsilon_limit",
    "identify",
    "judge",
    "largest_epsilon",
    "lower_bound",
    "plan",
    "play_batch",
    "rejects",
    "resume",
]
