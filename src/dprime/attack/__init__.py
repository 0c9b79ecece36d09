"""Adversaries that put a claim to the test, one a file.

Setting (model, data, recipe) ──► adversary.craft ──► Attack ──► trials ──► scores
"""

from importlib.util import find_spec

from dprime import text

if find_spec("torch") is None:  # before any of the imports below fails with less to go on
    raise ImportError(f"dprime.attack needs PyTorch: {text.install('train')}")

from dprime import validate
from dprime.attack.adaptive_poisoning import AdaptivePoisoning
from dprime.attack.adversary import Adversary, Attack, Probes, Scorer, Setting
from dprime.attack.api_access import ApiAccess
from dprime.attack.attribute import OneAttribute
from dprime.attack.chosen_weights import ChosenWeights
from dprime.attack.di import DI
from dprime.attack.gradient import Gradient
from dprime.attack.intermediate_models import IntermediateModels
from dprime.attack.malicious_dataset import MaliciousDataset, OpposingDataset
from dprime.attack.noise_grid import NoiseGrid, grid_scores
from dprime.attack.static_poisoning import StaticPoisoning
from dprime.attack.trainer import EngineTrainer, OwnTrainer, Trainer, function_named

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
    "ADVERSARIES",
    "DI",
    "AdaptivePoisoning",
    "Adversary",
    "ApiAccess",
    "Attack",
    "ChosenWeights",
    "EngineTrainer",
    "Gradient",
    "IntermediateModels",
    "MaliciousDataset",
    "NoiseGrid",
    "OneAttribute",
    "OpposingDataset",
    "OwnTrainer",
    "Probes",
    "Scorer",
    "Setting",
    "StaticPoisoning",
    "Trainer",
    "adversary_named",
    "function_named",
    "grid_scores",
]
