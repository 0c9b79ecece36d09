"""The user's own training with Opacus: its risk while it runs, attributes, an audit in one run.

make_private ──► Monitor ──► steps seen ──► ledger ──► certified risk now and at the planned end
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dprime import text
from dprime.monitor.ledger import Accumulated, EmptyBatches, Ledger, Step, Unprotected
from dprime.monitor.one_run import OneRun
from dprime.monitor.public import PublicConstants
from dprime.monitor.tails import NoiseTails

if TYPE_CHECKING:
    from dprime.monitor.attached import Attached
    from dprime.monitor.attributes import Attribute
    from dprime.monitor.checks import PrivacyWarning
    from dprime.monitor.epochs import AtEpoch
    from dprime.monitor.gradients import GradientCanaries
    from dprime.monitor.inference import AttributeInference
    from dprime.monitor.inputs import InputCanaries
    from dprime.monitor.lightning import LightningMonitor
    from dprime.monitor.monitor import Monitor
    from dprime.monitor.risks import AttributeRisk
    from dprime.monitor.trainer import TrainerMonitor
    from dprime.monitor.watcher import Watcher

NEED_OPACUS = {
    "AtEpoch": "epochs",
    "Attached": "attached",
    "Attribute": "attributes",
    "AttributeInference": "inference",
    "AttributeRisk": "risks",
    "GradientCanaries": "gradients",
    "InputCanaries": "inputs",
    "LightningMonitor": "lightning",
    "Monitor": "monitor",
    "PrivacyWarning": "checks",
    "TrainerMonitor": "trainer",
    "Watcher": "watcher",
}
"""What needs Opacus, and the modules where it is: loaded when it is first asked for."""


def __getattr__(name: str) -> Any:
    if name in NEED_OPACUS:
        if find_spec("opacus") is None:
            raise ImportError(f"dprime.monitor.{name} needs Opacus: {text.install('opacus')}")
        return getattr(import_module(f"dprime.monitor.{NEED_OPACUS[name]}"), name)
    raise AttributeError(f"module 'dprime.monitor' has no attribute {name!r}")


__all__ = [
    "Accumulated",
    "AtEpoch",
    "Attached",
    "Attribute",
    "AttributeInference",
    "AttributeRisk",
    "EmptyBatches",
    "GradientCanaries",
    "InputCanaries",
    "Ledger",
    "LightningMonitor",
    "Monitor",
    "NoiseTails",
    "OneRun",
    "PrivacyWarning",
    "PublicConstants",
    "Step",
    "TrainerMonitor",
    "Unprotected",
    "Watcher",
]
