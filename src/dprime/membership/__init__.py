"""Membership inference: training on a part of a pool, and attacks that ask who was in it.

pool ──► draw ──► train ──► model ──► attack ──► a score per record ──► results beside the curve
"""

from typing import TYPE_CHECKING

from dprime._lazy import lazy
from dprime.membership.attacks import ATTACKS, Evidence, MembershipAttack, attack_named
from dprime.membership.config import InferenceConfig, Recipe
from dprime.membership.planner import PoolPlan, plan
from dprime.membership.pool import Draw, draw, outside
from dprime.membership.pool_files import PoolFacts, mechanism_of, sample
from dprime.membership.signals import Signals, signals_of

if TYPE_CHECKING:
    from dprime.membership.frontiers import FrontierRecord, frontier
    from dprime.membership.inference import InferenceRecord, infer
    from dprime.membership.shadows import Cohort, ModelOutputs, Scored, Trainers, answers, score

NEED_TORCH = {
    "frontiers": ("FrontierRecord", "frontier"),
    "inference": ("InferenceRecord", "infer"),
    "shadows": ("Cohort", "ModelOutputs", "Scored", "Trainers", "answers", "score"),
}
"""The names that need PyTorch, by module: loaded when they are first asked for."""

_PLACES = {name: module for module, names in NEED_TORCH.items() for name in names}

__getattr__, __dir__ = lazy(__name__, {}, library="torch", needing=_PLACES)

__all__ = ["ATTACKS", "Cohort", "Draw", "Evidence", "FrontierRecord", "InferenceConfig"]
__all__ += ["InferenceRecord", "MembershipAttack", "ModelOutputs", "PoolFacts", "PoolPlan"]
__all__ += ["Recipe", "Scored", "Signals", "Trainers", "answers", "attack_named", "draw"]
__all__ += ["frontier", "infer", "mechanism_of", "outside", "plan", "sample", "score", "signals_of"]
