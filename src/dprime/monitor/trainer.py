"""The monitor as a callback of the Trainer of transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from dprime import validate
from dprime.monitor.checkpoint import restore, whole_state
from dprime.monitor.monitor import Monitor

try:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
except ImportError as error:
    raise ImportError("TrainerMonitor needs transformers: pip install transformers") from error

FILE = "dprime-monitor.pt"
"""The monitor's state and the accountant's, in the folder of a checkpoint."""


class TrainerMonitor(TrainerCallback):
    """Logs the metric at each epoch, and keeps what was spent in the checkpoints.

    That is the monitor's state and the history of Opacus' accountant: a training that goes on from
    a checkpoint has both, and `get_epsilon` is that of all its steps.

    The Trainer clears the gradients of the model, but Opacus wants those of its optimizer cleared:
    call `optimizer.zero_grad()` in a callback of your own, in `on_step_end`.

    Args:
        monitor: attached to what `make_private` returned.

    """

    def __init__(self, monitor: Monitor) -> None:
        self.monitor = monitor

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Go on from the checkpoint that the training was resumed from."""
        if state.global_step in (0, self.monitor.ledger.steps):  # fresh, or loaded by hand
            return
        file = _folder(args, state) / FILE
        if not file.is_file():
            raise validate.misfit(
                "the checkpoint", "one without it", "one with the monitor's state",
                f"call monitor.load_state_dict before train, with what is in its {FILE}",
            )  # fmt: skip
        restore(self.monitor, torch.load(file, weights_only=True))

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Put what was spent until now into the log."""
        answer = self.monitor.answer()
        where = {"epoch": state.epoch, "step": state.global_step}
        state.log_history.append({**where, f"privacy_{answer.name}": answer.value})

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Save with the checkpoint."""
        torch.save(whole_state(self.monitor), _folder(args, state) / FILE)


def _folder(args: TrainingArguments, state: TrainerState) -> Path:
    """The folder of the checkpoint of this step, as the Trainer names it."""
    return Path(args.output_dir or ".") / f"checkpoint-{state.global_step}"
