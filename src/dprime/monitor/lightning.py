"""The monitor as a callback of Lightning."""

from __future__ import annotations

from typing import Any

from dprime import validate
from dprime.monitor.monitor import Monitor
from dprime.monitor.state import restore, whole_state

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
except ImportError as error:
    raise ImportError("LightningMonitor needs Lightning: pip install lightning") from error


class LightningMonitor(Callback):
    """Logs the metric and ε at each epoch, and keeps what was spent in the checkpoints.

    That is the monitor's state and the history of Opacus' accountant: a training that goes on from
    a checkpoint has both, and `get_epsilon` is that of all its steps.

    Args:
        monitor: attached to what `make_private` returned. Where it is left out, the attribute
            `monitor` of the `LightningModule` is taken, which `configure_optimizers` may set, anew
            for each training.

    """

    def __init__(self, monitor: Monitor | None = None) -> None:
        self._given = monitor
        self.monitor = monitor
        self._saved: dict[str, Any] = {}

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forget the monitor that was found for another training."""
        self.monitor = self._given

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Find the monitor, and go on from a checkpoint that was loaded before."""
        found = self._given or getattr(pl_module, "monitor", None)
        if not isinstance(found, Monitor):
            raise validate.invalid_input(
                "monitor",
                "missing",
                "given",
                "pass one, or set self.monitor in configure_optimizers",
            )
        self.monitor = found
        if self._saved:
            restore(found, self._saved)
            self._saved = {}

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        assert self.monitor is not None
        pl_module.log_dict(self.monitor.numbers())

    def state_dict(self) -> dict[str, Any]:
        return {} if self.monitor is None else whole_state(self.monitor)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Keep the state until the training starts."""
        self._saved = state_dict
