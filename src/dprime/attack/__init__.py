"""Adversaries that put a claim to the test.

AttackTarget (trainer, data) ──► adversary.craft ──► Attack ──► trainer.play ──► scores
"""

from importlib.util import find_spec

from dprime import text

if find_spec("torch") is None:  # before any of the imports below fails with less to go on
    raise ImportError(f"dprime.attack needs PyTorch: {text.install('train')}")

from dprime import validate
from dprime.attack.adversary import Adversary, Attack, AttackTarget, Probes, Scorer
from dprime.attack.attribute import OneAttribute
from dprime.attack.chosen_weights import ChosenWeights
from dprime.attack.gradient_attacks import (
    AdaptivePoisoning,
    Gradient,
    MaliciousDataset,
    OpposingDataset,
)
from dprime.attack.natural import DI, ApiAccess
from dprime.attack.noise_grid import NoiseGrid, grid_scores
from dprime.attack.poison import IntermediateModels, StaticPoisoning
from dprime.attack.trainer import EngineTrainer, FunctionTrainer, Trainer, function_named

ADVERSARIES: dict[str, type[Adversary]] = {
    kind.name: kind
    for kind in (
        DI, ApiAccess, StaticPoisoning, IntermediateModels, AdaptivePoisoning, Gradient,
        MaliciousDataset, OpposingDataset, ChosenWeights, OneAttribute, NoiseGrid,
    )
}  # fmt: skip
"""By name; the six of Nasr et al. in the order of their strength."""


def adversary_named(name: str) -> Adversary:
    """The adversary of a name, with its usual options.

    >>> adversary_named("malicious-dataset").title
    'malicious data set'
    """
    return ADVERSARIES[validate.one_of("adversary", name, tuple(ADVERSARIES))]()


__all__ = [
    "ADVERSARIES", "DI", "AdaptivePoisoning", "Adversary", "ApiAccess", "Attack", "AttackTarget",
    "ChosenWeights", "EngineTrainer", "FunctionTrainer", "Gradient", "IntermediateModels",
    "MaliciousDataset", "NoiseGrid", "OneAttribute", "OpposingDataset", "Probes", "Scorer",
    "StaticPoisoning", "Trainer", "adversary_named", "function_named", "grid_scores",
]  # fmt: skip
