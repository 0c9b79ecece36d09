"""The monitor as a callback of the Trainer of transformers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch

from dprime import atomic, validate
from dprime.monitor.checks import PrivacyWarning
from dprime.monitor.monitor import Monitor
from dprime.monitor.state import restore, whole_state

try:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
except ImportError as error:
    raise ImportError("TrainerMonitor needs transformers: pip install transformers") from error

FILE = "dprime-monitor.pt"
"""The monitor's state and the accountant's, in the folder of a checkpoint."""

MARK = "dprime-monitor"
"""The key of the training's number in the Trainer's own state."""

TRAINING = "training"
"""The key, in both states, of a random number that no other training has."""

STATE_FILE = "trainer_state.json"
"""The Trainer's own state, in the folder of a checkpoint."""

DEPTHS = ("", "*", "*/*")
"""Folders of checkpoints under the output folder; a search has one for each trial."""


class TrainerMonitor(TrainerCallback):
    """Logs the metric and ε at each epoch, and keeps what was spent in the checkpoints.

    That is the monitor's state and the history of Opacus' accountant: a training that goes on from
    a checkpoint has both, and `get_epsilon` is that of all its steps. A random number in both
    states, the monitor's and the Trainer's, says which belong together.

    The Trainer clears the gradients of the model, but Opacus wants those of its optimizer cleared:
    call `optimizer.zero_grad()` in a callback of your own, in `on_step_end`.

    Args:
        monitor: attached to what `make_private` returned.
        checkpoint: the folder that the training is resumed from, where it is not in the output
            folder.

    """

    def __init__(self, monitor: Monitor, checkpoint: str | os.PathLike[str] | None = None) -> None:
        self.monitor = monitor
        self.checkpoint = None if checkpoint is None else Path(checkpoint)

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Go on from the checkpoint that the training was resumed from."""
        if state.global_step not in (0, self.monitor.ledger.steps):  # not fresh, or loaded by hand
            restore(self.monitor, self._saved(args, state))
        if not state.global_step or _number(state) is None:
            _marks(state)[MARK] = {"args": {}, "attributes": {TRAINING: uuid4().hex}}

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        where = {"epoch": state.epoch, "step": state.global_step}
        state.log_history.append({**where, **self.monitor.numbers()})

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        number = _number(state)
        for folder in _folders(args, state):
            file = folder / STATE_FILE
            if file.is_file() and _number(TrainerState.load_from_json(str(file))) == number:
                kept = whole_state(self.monitor) | {TRAINING: number}
                atomic.write("checkpoint", folder / FILE, partial(torch.save, kept))
                return
        warnings.warn(
            f"The folder of the checkpoint at step {state.global_step:,} was not found under "
            f"{args.output_dir}, so what was spent is not in it: save monitor.state_dict() and the "
            "accountant's history yourself.",
            PrivacyWarning,
            stacklevel=2,
        )

    def _saved(self, args: TrainingArguments, state: TrainerState) -> dict[str, Any]:
        """The state that was saved with the Trainer's own, and no other."""
        number = _number(state)
        folders = _folders(args, state) if self.checkpoint is None else iter([self.checkpoint])
        for folder in folders:
            if number is not None and (folder / FILE).is_file():
                saved: dict[str, Any] = torch.load(folder / FILE, weights_only=True)
                if saved.get(TRAINING) == number:
                    return saved
        raise validate.invalid_input(
            "the checkpoint", "one without it, or with that of another training",
            "one with the monitor's state of this training",
            "give its folder as TrainerMonitor(monitor, checkpoint=...), or call "
            f"monitor.load_state_dict before train, with what is in its {FILE}",
        )  # fmt: skip


def _number(state: TrainerState) -> str | None:
    """The number of the training that has this state."""
    found: str | None = _marks(state).get(MARK, {}).get("attributes", {}).get(TRAINING)
    return found


def _marks(state: TrainerState) -> dict[str, Any]:
    """The entries of callbacks in the Trainer's state: a list only until it is made."""
    marks: Any = state.stateful_callbacks
    found: dict[str, Any] = marks
    return found


def _folders(args: TrainingArguments, state: TrainerState) -> Iterator[Path]:
    """The folders where the checkpoint of this step may be."""
    resumed = getattr(args, "resume_from_checkpoint", None)
    if isinstance(resumed, str | os.PathLike):
        yield Path(resumed)
    for depth in DEPTHS:
        yield from Path(args.output_dir or ".").glob(
            str(Path(depth) / f"checkpoint-{state.global_step}")
        )
