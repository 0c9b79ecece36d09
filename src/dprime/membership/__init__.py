"""Membership inference: training on a part of a pool, and attacks that ask who was in it.

pool ──► draw ──► train ──► model ──► attack ──► a score per record ──► results beside the curve
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dprime import text
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


def __getattr__(name: str) -> Any:
    if name in NEED_TORCH:
        if find_spec("torch") is None:
            raise ImportError(f"dprime.membership.{name} needs PyTorch: {text.install('train')}")
        return getattr(import_module(f"dprime.membership.{NEED_TORCH[name]}"), name)
    raise AttributeError(f"module 'dprime.membership' has no attribute {name!r}")


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
