"""Watchers: objects that see every step of a monitored training."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from dprime.monitor.opacus_training import OpacusTraining


class Watcher:
    """Sees the moments of every step; a subclass overrides those that it needs.

    `start` once; then for each step `batch` (once for each physical batch), `clipped`,
    `before_noise`, `after_noise`. A step that Opacus skips, because a large batch comes in parts,
    has only `batch`.

    Attributes:
        name: what the report and a checkpoint call it.
        needs_batches: whether the records and labels of each batch must be handed over.

    """

    name: ClassVar[str]
    needs_batches: ClassVar[bool] = False

    def start(self, training: OpacusTraining) -> None:
        """Called when the monitor is attached."""

    def batch(self, records: Tensor, targets: Tensor) -> None:
        """Called with the records and labels of the next step."""

    def clipped(self, training: OpacusTraining) -> None:
        """The clipped sum of the batch is in `p.summed_grad`, and no watcher has added to it."""

    def before_noise(self, training: OpacusTraining) -> None:
        """The clipped sum is in `p.summed_grad`; what is added to it now gets the noise too."""

    def after_noise(self, training: OpacusTraining) -> None:
        """The noisy sum is in `p.grad`, not yet divided by the batch size; weights as before."""

    def report(self) -> str:
        """The findings, in lines for the monitor's report; empty for none."""
        return ""

    def state_dict(self) -> dict[str, Any]:
        """The state to save with a checkpoint: plain values and tensors."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
