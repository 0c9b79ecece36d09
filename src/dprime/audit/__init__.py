"""Audits: trials in two worlds, and what they show with confidence.

scores of two worlds ──► lower_bound ──► LowerBound ──► judge(bound, claim, metric) ──► Verdict

`audit` plays the trials too; with `AuditSettings` and a run file
(`dprime.runs`) they can be left and resumed.
"""

from typing import TYPE_CHECKING

from dprime._lazy import lazy

if TYPE_CHECKING:
    from dprime.audit.audits import Audit, Question, audit
    from dprime.audit.batch import Played, audits_in, play_batch
    from dprime.audit.estimators import (
        Band,
        Bayesian,
        ClopperPearson,
        Estimator,
        GaussianScores,
        LowerBound,
        Mahloujifar,
        Steinke,
        rejects,
    )
    from dprime.audit.identifiability import Identifiability, PointEstimate, identify
    from dprime.audit.lower import lower_bound
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

PLACES = {
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
    "LowerBound": "estimators",
    "lower_bound": "lower",
    "Plan": "planner",
    "best_possible": "planner",
    "epsilon_limit": "planner",
    "largest_epsilon": "planner",
    "plan": "planner",
    "Verdict": "verdict",
    "judge": "verdict",
}
"""The modules where the others are: loaded, and SciPy with most, when one is first asked for."""


__getattr__ = lazy(__name__, PLACES, library="torch", needing=NEED_TORCH)


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
