"""The user's own training with Opacus: its risk while it runs, attributes, an audit in one run.

make_private ──► Monitor ──► steps seen ──► ledger ──► certified risk now and at the planned end
"""

from typing import TYPE_CHECKING

from dprime._lazy import lazy
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


__getattr__ = lazy(__name__, {}, library="opacus", needing=NEED_OPACUS)


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
