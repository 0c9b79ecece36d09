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
        AuditPlan,
        best_possible,
        epsilon_limit,
        largest_epsilon,
        plan,
    )
    from dprime.audit.record import AuditRecord, record_of
    from dprime.audit.verdict import Verdict, judge

NEED_TORCH = {
    "Played": "batch", "play_batch": "batch", "audit": "audits", "begin": "audits",
    "resume": "audits",
}  # fmt: skip
"""What trains, and the modules where it is: loaded when it is first asked for."""

MODULES = {
    "config": ("AuditConfig",),
    "estimators": (
        "Band", "Bayesian", "ClopperPearson", "Estimator", "GaussianScores", "LowerBound",
        "Mahloujifar", "Steinke", "rejects",
    ),
    "files": ("audits_in", "words_in"),
    "identifiability": ("Identifiability", "PointEstimate", "identify"),
    "lower": ("lower_bound",),
    "planner": ("AuditPlan", "best_possible", "epsilon_limit", "largest_epsilon", "plan"),
    "record": ("AuditRecord", "record_of"),
    "verdict": ("Verdict", "judge"),
}  # fmt: skip
"""The modules of the others: loaded, and SciPy with most, when one is first asked for."""

PLACES = {name: module for module, names in MODULES.items() for name in names}

__getattr__ = lazy(__name__, PLACES, library="torch", needing=NEED_TORCH)


__all__ = [
    "AuditConfig",
    "AuditPlan",
    "AuditRecord",
    "Band",
    "Bayesian",
    "ClopperPearson",
    "Estimator",
    "GaussianScores",
    "Identifiability",
    "LowerBound",
    "Mahloujifar",
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
