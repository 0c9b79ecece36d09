"""Adversaries that put a claim to the test.

AttackTarget (trainer, data) ──► adversary.craft ──► Attack ──► trainer.play ──► scores
"""

from importlib.util import find_spec

from dprime import text

if find_spec("torch") is None:  # before any of the imports below fails with less to go on
    raise ImportError(f"dprime.attack needs PyTorch: {text.install('train')}")

from dprime import validate
from dprime.attack.adversary import Adversary, AttackTarget
from dprime.attack.attribute import OneAttribute
from dprime.attack.gradient_attacks import (
    AdaptivePoisoning,
    Gradient,
    MaliciousDataset,
    OpposingDataset,
)
from dprime.attack.noise_grid import NoiseGrid, grid_scores
from dprime.attack.record_attacks import (
    DI,
    ApiAccess,
    ChosenWeights,
    IntermediateModels,
    StaticPoisoning,
)
from dprime.attack.trainer import (
    Attack,
    EngineTrainer,
    FunctionTrainer,
    Probes,
    Scorer,
    Trainer,
    function_named,
)

_NASR = (ApiAccess, StaticPoisoning, IntermediateModels, AdaptivePoisoning, Gradient)
_OTHERS = (MaliciousDataset, OpposingDataset, ChosenWeights, OneAttribute, NoiseGrid)
ADVERSARIES: dict[str, type[Adversary]] = {kind.name: kind for kind in (DI, *_NASR, *_OTHERS)}
"""By name; the six of Nasr et al. in the order of their strength."""


def adversary_named(name: str) -> Adversary:
    """The adversary of a name, with its usual options."""
    return ADVERSARIES[validate.one_of("adversary", name, tuple(ADVERSARIES))]()


__all__ = ["ADVERSARIES", "Adversary", "Attack", "AttackTarget", "Probes", "Scorer"]
__all__ += ["EngineTrainer", "FunctionTrainer", "Trainer"]
__all__ += ["DI", "ApiAccess", "ChosenWeights", "NoiseGrid", "OneAttribute"]
__all__ += ["AdaptivePoisoning", "Gradient", "IntermediateModels", "MaliciousDataset"]
__all__ += ["OpposingDataset", "StaticPoisoning"]
__all__ += ["adversary_named", "function_named", "grid_scores"]
