"""Audits: trials in two worlds, and what they show with confidence.

scores of two worlds ──► lower_bound ──► LowerBound ──► judge(bound, claim, metric) ──► Verdict

`audit` plays the trials too; with an `AuditConfig` and a run file (`dprime.runs`) they can be left
and resumed. What happened is an `AuditRecord`.
"""

from typing import TYPE_CHECKING

from dprime._lazy import lazy

if TYPE_CHECKING:
    from dprime.audit.audits import audit, begin, resume
    from dprime.audit.batch import Played, play_batch
    from dprime.audit.config import AuditConfig
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
    from dprime.audit.files import audits_in, words_in
    from dprime.audit.identifiability import Identifiability, PointEstimate, identify
    from dprime.audit.lower import lower_bound
    from dprime.audit.planner import (
        Plan,
        best_possible,
        epsilon_limit,
        largest_epsilon,
        plan,
    )
    from dprime.audit.record import AuditRecord, record_of
    from dprime.audit.verdict import Verdict, judge

NEED_TORCH = {
    "Played": "batch",
    "play_batch": "batch",
    "audit": "audits",
    "begin": "audits",
    "resume": "audits",
}
"""What trains, and the modules where it is: loaded when it is first asked for."""

PLACES = {
    "AuditConfig": "config",
    "audits_in": "files",
    "words_in": "files",
    "AuditRecord": "record",
    "record_of": "record",
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
    "AuditConfig",
    "AuditRecord",
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
    "record_of",
    "rejects",
    "resume",
    "words_in",
]
