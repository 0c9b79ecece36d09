"""Membership inference: training on a part of a pool, and attacks that ask who was in it.

pool ──► draw ──► train ──► model ──► attack ──► a score per record ──► results beside the curve
"""

from typing import TYPE_CHECKING

from dprime._lazy import lazy
from dprime.membership.attacks import ATTACKS, Attack, Evidence, attack_named
from dprime.membership.planner import Plan, outside, plan
from dprime.membership.pool import Draw, draw
from dprime.membership.pool_files import PoolFacts, mechanism_of, sample
from dprime.membership.signals import Signals, signals_of

if TYPE_CHECKING:
    from dprime.membership.frontiers import Frontier, frontier
    from dprime.membership.game import Scored, score
    from dprime.membership.inference import Asked, Inference, infer
    from dprime.membership.recipe import Recipe
    from dprime.membership.shadows import Answers, answers
    from dprime.membership.trainers import Trainers

NEED_TORCH = {
    "Frontier": "frontiers",
    "frontier": "frontiers",
    "Scored": "game",
    "score": "game",
    "Asked": "inference",
    "Inference": "inference",
    "infer": "inference",
    "Recipe": "recipe",
    "Answers": "shadows",
    "answers": "shadows",
    "Trainers": "trainers",
}
"""What trains, and the modules where it is: loaded when it is first asked for."""


__getattr__ = lazy(__name__, {}, library="torch", needing=NEED_TORCH)


__all__ = [
    "ATTACKS",
    "Answers",
    "Asked",
    "Attack",
    "Draw",
    "Evidence",
    "Frontier",
    "Inference",
    "Plan",
    "PoolFacts",
    "Recipe",
    "Scored",
    "Signals",
    "Trainers",
    "answers",
    "attack_named",
    "draw",
    "frontier",
    "infer",
    "mechanism_of",
    "outside",
    "plan",
    "sample",
    "score",
    "signals_of",
]
