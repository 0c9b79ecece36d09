"""The user's own training with Opacus: its certified risk while it runs.

make_private ──► Monitor ──► steps seen ──► ledger ──► certified risk now and at the planned end
"""

from typing import TYPE_CHECKING

from dprime._lazy import lazy
from dprime.monitor.ledger import Accumulated, EmptyBatches, Ledger, NoGuarantee, StepRecord
from dprime.monitor.public import PublicConstants
from dprime.monitor.tails import NoiseTails
from dprime.monitor.trackers import to_mlflow, to_tensorboard, to_wandb

if TYPE_CHECKING:
    from dprime.monitor.checks import PrivacyWarning
    from dprime.monitor.epochs import AtEpoch
    from dprime.monitor.lightning import LightningMonitor
    from dprime.monitor.monitor import Monitor
    from dprime.monitor.opacus_training import OpacusTraining
    from dprime.monitor.trainer import TrainerMonitor
    from dprime.monitor.watcher import Watcher

NEED_OPACUS = {
    "AtEpoch": "epochs",
    "OpacusTraining": "opacus_training",
    "LightningMonitor": "lightning",
    "Monitor": "monitor",
    "PrivacyWarning": "checks",
    "TrainerMonitor": "trainer",
    "Watcher": "watcher",
}
"""What needs Opacus, and the modules where it is: loaded when it is first asked for."""


__getattr__, __dir__ = lazy(__name__, {}, library="opacus", needing=NEED_OPACUS)


__all__ = [
    "Accumulated",
    "AtEpoch",
    "EmptyBatches",
    "Ledger",
    "LightningMonitor",
    "Monitor",
    "NoGuarantee",
    "NoiseTails",
    "OpacusTraining",
    "PrivacyWarning",
    "PublicConstants",
    "StepRecord",
    "TrainerMonitor",
    "Watcher",
    "to_mlflow",
    "to_tensorboard",
    "to_wandb",
]
