"""Audits: trials in two worlds, and what they show with confidence.

scores of two worlds ──► lower_bound ──► LowerBound ──► judge(bound, claim, metric) ──► Verdict
"""

from typing import TYPE_CHECKING

from dprime._lazy import lazy
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
from dprime.audit.identifiability import Identifiability, PointEstimate, identify
from dprime.audit.lower import lower_bound
from dprime.audit.planner import AuditPlan, best_possible, epsilon_limit, largest_epsilon, plan
from dprime.audit.record import AuditRecord, record_of
from dprime.audit.verdict import Verdict, judge
from dprime.audit.words import audits_in, words_in

if TYPE_CHECKING:
    from dprime.audit.audits import Played, audit, begin, play_batch, resume

PLACES = dict.fromkeys(("Played", "audit", "begin", "play_batch", "resume"), "audits")
"""What trains, and the modules where it is: loaded when it is first asked for."""

__getattr__, __dir__ = lazy(__name__, {}, library="torch", needing=PLACES)

__all__ = ["AuditConfig", "AuditPlan", "AuditRecord", "Band", "Bayesian", "ClopperPearson"]
__all__ += ["Estimator", "GaussianScores", "Identifiability", "LowerBound", "Mahloujifar", "Played"]
__all__ += ["PointEstimate", "Steinke", "Verdict", "audit", "audits_in", "begin", "best_possible"]
__all__ += ["epsilon_limit", "identify", "judge", "largest_epsilon", "lower_bound", "plan"]
__all__ += ["play_batch", "record_of", "rejects", "resume", "words_in"]
