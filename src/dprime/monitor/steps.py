"""Tells a monitor and its watchers of every moment of a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn

from dprime.monitor.attached import Attached
from dprime.monitor.hooks import Hooks
from dprime.monitor.reader import StepReader
from dprime.monitor.watcher import Watcher


class Steps:
    """Wraps the optimizer's own clipping, noise and step, until `release`.

    Opacus clips (once for each part of a batch), adds the noise, tells its accountant, and then
    changes the weights; a step that it skips ends after the clipping.

    Args:
        training: whose steps they are.
        reader: is told when records are clipped and when noise is added.
        watchers: are told too.
        made: called when a step was made, just before the weights change.

    """

    def __init__(
        self,
        training: Attached,
        reader: StepReader,
        watchers: Sequence[Watcher],
        made: Callable[[], None],
    ) -> None:
        self.training = training
        self.reader = reader
        self.watchers = watchers
        self._made = made
        self._records: Tensor | None = None
        self._hooks = Hooks()

    def watch(self) -> None:
        """Put everything on."""
        optimizer, hooks = self.training.optimizer, self._hooks
        hooks.mark(optimizer)
        hooks.mark(self.training.privacy_engine)
        hooks.wrap(optimizer, self.training.clips_with, self._clip)
        hooks.wrap(optimizer, "add_noise", self._add_noise)
        hooks.wrap(optimizer, "pre_step", self._pre_step)
        self.training.sampling.watch()
        hooks.later(self.training.sampling.release)
        if any(watcher.needs_batches for watcher in self.watchers):
            self._see_batches()
        for watcher in self.watchers:
            _told(watcher, watcher.start, self.training)

    def release(self) -> None:
        """Take everything off."""
        self._hooks.remove()

    def batch(self, records: Tensor, targets: Tensor) -> None:
        """Hand a batch to the watchers."""
        for watcher in self.watchers:
            _told(watcher, watcher.batch, records, targets)

    def _see_batches(self) -> None:
        """Take records from the model's calls and labels from the criterion's."""

        def called(module: nn.Module, inputs: tuple[Any, ...]) -> None:
            if module.training and inputs:
                self._records = inputs[0].detach()

        def judged(module: nn.Module, inputs: tuple[Any, ...]) -> None:
            if self._records is not None:
                self.batch(self._records, inputs[1])
                self._records = None

        self._hooks.before_call(self.training.module, called)
        criterion = getattr(self.training.criterion, "criterion", self.training.criterion)
        if isinstance(criterion, nn.Module):
            self._hooks.before_call(criterion, judged)

    def _clip(self, clip: Callable[[], None]) -> None:
        self.reader.clipped()
        clip()

    def _add_noise(self, add_noise: Callable[[], None]) -> None:
        for watcher in self.watchers:
            _told(watcher, watcher.before_noise, self.training)
        self.reader.noised()
        add_noise()
        for watcher in self.watchers:
            _told(watcher, watcher.after_noise, self.training)

    def _pre_step(self, pre_step: Callable[..., bool | None], *arguments: Any) -> bool | None:
        made = pre_step(*arguments)
        if made:
            self._made()
        return made


def _told(watcher: Watcher, moment: Callable[..., None], *arguments: Any) -> None:
    """Call a watcher; what it raises says where it comes from."""
    try:
        moment(*arguments)
    except Exception as error:
        error.add_note(f"This was raised by a watcher of the monitor, {type(watcher).__name__}.")
        raise
