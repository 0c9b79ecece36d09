"""Tells a monitor and its watchers of every moment of a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from opacus.schedulers.grad_clip_scheduler import _GradClipScheduler
from opacus.schedulers.noise_scheduler import _NoiseScheduler
from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping
from torch import Tensor, nn
from torch.optim import Optimizer

from dprime.monitor import checks
from dprime.monitor.attached import Attached, own_criterion
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
        elsewhere: called when something else than that step is about to change the weights.
        between: called when a loop over the loader begins (True), and when one has ended (False).
        detach: takes the monitor off.

    """

    def __init__(
        self,
        training: Attached,
        reader: StepReader,
        watchers: Sequence[Watcher],
        made: Callable[[], None],
        elsewhere: Callable[[], None],
        between: Callable[[bool], None],
        detach: Callable[[], None],
    ) -> None:
        self.training = training
        self.reader = reader
        self.watchers = watchers
        self._made = made
        self._elsewhere = elsewhere
        self._between = between
        self._detach = detach
        self._expected = False
        self._unsettled = False
        self._noising = False
        self._noisy: list[tuple[nn.Parameter, Tensor, int]] = []
        self._forget_applied: Callable[[], None] = lambda: None
        self._losses: Tensor | None = None
        self._before: dict[int, list[tuple[Tensor, int]]] = {}
        self._records: list[Tensor] = []
        self._hooks = Hooks()

    def watch(self) -> None:
        """Put everything on."""
        optimizer, hooks = self.training.optimizer, self._hooks
        hooks.mark(optimizer, self._detach)
        hooks.mark(self.training.privacy_engine, self._detach)
        hooks.wrap(optimizer, self.training.clips_with, self._clip)
        hooks.wrap(optimizer, "add_noise", self._add_noise)
        hooks.wrap(optimizer, "pre_step", self._pre_step)
        hooks.before_any_step(self._stepping)
        hooks.after_any_step(self._stepped)
        for scheduler in (_NoiseScheduler, _GradClipScheduler):
            hooks.wrap_all(scheduler, "step", self._schedule)
        # Inside Opacus' wrapper some modes put other tensors in the place of the weights.
        hooks.before_call(self.training.outermost, self._entered)
        hooks.before_call(self.training.module, self._called, named=True)
        hooks.after_call(self.training.module, self._answered)
        for layer in self.training.hooked():
            hooks.before_call(layer, self._layer_called)
        for layer in self.training.recurrent():
            hooks.before_call(layer, self._packed)
        if self.training.ghost:
            self._see_loss()
        if checks.averages_over_labels(self.training):
            hooks.before_call(own_criterion(self.training.criterion), self._judged, named=True)
        self.training.sampling.watch(self._between)
        hooks.later(self.training.sampling.release)
        if any(watcher.needs_batches for watcher in self.watchers):
            self._see_batches()
        for watcher in self.watchers:
            _told(watcher, watcher.start, self.training)

    def release(self) -> None:
        """Take everything off."""
        self._forget_applied()
        self._hooks.remove()

    def batch(self, records: Tensor, targets: Tensor) -> None:
        """Hand a batch to the watchers."""
        for watcher in self.watchers:
            _told(watcher, watcher.batch, records, targets)

    def _entered(self, module: nn.Module, _: tuple[Any, ...]) -> None:
        if module.training and torch.is_grad_enabled() and not torch.compiler.is_compiling():
            self._settle_late()
            self.reader.entered()

    def _called(self, module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        if torch.compiler.is_compiling():
            return
        if module.training and torch.is_grad_enabled():
            self.reader.called((*inputs, *named.values()))
        else:
            self.training.sampling.looked_at()

    def _answered(self, module: nn.Module, _: Any, output: Any) -> None:
        if module.training and torch.is_grad_enabled() and not torch.compiler.is_compiling():
            self.reader.answered(output)

    def _judged(self, criterion: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        if criterion.training and torch.is_grad_enabled() and not transforming():
            self.reader.judged((*inputs, *named.values())[1:2])

    def _layer_called(self, layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        if layer.training and torch.is_grad_enabled() and not torch.compiler.is_compiling():
            self.reader.layer_called(layer, inputs)

    def _packed(self, layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        if layer.training and torch.is_grad_enabled() and not torch.compiler.is_compiling():
            self.reader.packed(layer, inputs)

    def _see_loss(self) -> None:
        """In ghost mode backward clips: it asks the model for factors, and gives it back after."""

        def factors(own: Callable[[], Tensor]) -> Tensor:
            found = own()
            losses, self._losses = self._losses, None
            by_hand = losses is None and not self._noising
            self.reader.clipped_in_loss(found, losses, by_hand=by_hand)
            return found

        def done(own: Callable[[], None]) -> None:
            own()
            self.reader.backward_done()

        def clear(own: Callable[..., None], *arguments: Any, **named: Any) -> None:
            own(*arguments, **named)
            self.reader.cleared()

        self._hooks.wrap_all(DPTensorFastGradientClipping, "backward", self._backward)
        self._hooks.wrap(self.training.model, "get_clipping_coef", factors)
        self._hooks.wrap(self.training.model, "enable_hooks", done)
        self._hooks.wrap(self.training.optimizer, "zero_grad", clear)

    def _backward(self, backward: Callable[[], None], loss: Any) -> None:
        """A backward call of ghost mode, of this training or of another."""
        if loss.module is self.training.model and not self._noising:
            self._losses = loss.loss_per_sample
        backward()

    def _schedule(self, step: Callable[..., Any], scheduler: Any) -> None:
        """A scheduler of Opacus steps, of this training or of another."""
        if scheduler.optimizer is self.training.optimizer:
            self.reader.scheduled_by(step)
        else:
            step()

    def _see_batches(self) -> None:
        """Take records from the model's calls and labels from the criterion's."""

        def called(module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
            given = (*inputs, *named.values())
            if module.training and torch.is_grad_enabled() and given:
                self._records.append(given[0].detach())

        def judged(module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
            _, targets = (*inputs, *named.values())[:2]
            for place, records in enumerate(self._records):
                if len(records) == len(targets):  # several calls of the model may come before
                    self.batch(self._records.pop(place), targets)
                    return

        self._hooks.before_call(self.training.module, called, named=True)
        criterion = own_criterion(self.training.criterion)
        if isinstance(criterion, nn.Module):
            self._hooks.before_call(criterion, judged, named=True)

    def _clip(self, clip: Callable[[], None]) -> None:
        self.reader.clipped(own=not self._noising)
        clip()

    def _add_noise(self, add_noise: Callable[[], None]) -> None:
        self._settle_late()
        self.reader.summed()
        self._noising = True
        try:
            for watcher in self.watchers:
                _told(watcher, watcher.clipped, self.training)
            for watcher in self.watchers:
                _told(watcher, watcher.before_noise, self.training)
        finally:
            self._noising = False
        self._records = []
        self.reader.noised()
        add_noise()
        averaged = int(self.training.optimizer.loss_reduction == "mean")  # is divided in place
        self._noisy = [
            (p, p.grad, p.grad._version + averaged)
            for p in self.training.parameters()
            if p.grad is not None
        ]
        for watcher in self.watchers:
            _told(watcher, watcher.after_noise, self.training)

    def _pre_step(self, pre_step: Callable[..., bool | None], *arguments: Any) -> bool | None:
        made = pre_step(*arguments)
        if made:
            self._made()
            self._see_noisy()
            self._expected = self._unsettled = True
        return made

    def _see_noisy(self) -> None:
        """After all other hooks see whether the coming step applies what has the noise."""
        self._forget_applied()
        inner = self.training.optimizer.original_optimizer
        self._forget_applied = inner.register_step_pre_hook(self._applied).remove

    def _applied(self, *_: Any) -> None:
        noisy, self._noisy = self._noisy, []
        if any(p.grad is not grad or grad._version != version for p, grad, version in noisy):
            self._elsewhere()

    def as_left(self) -> bool:
        """Whether the model is as the last step left it, where that step is known to be over."""
        return self._unsettled or self.reader.contents.as_left()

    def _settle_late(self) -> None:
        """Where no hook said that the optimizer's step is over, it is over by now."""
        if self._unsettled:
            self._unsettled = False
            self.reader.settled()

    def _stepping(self, optimizer: Optimizer) -> None:
        """An optimizer changes weights: once for each step that was made it may."""
        if optimizer is self.training.optimizer:
            return  # it lets another one do so
        if optimizer is self.training.optimizer.original_optimizer:
            expected, self._expected = self._expected, False
            if expected:
                return
        own = {id(p) for root in self.training.roots for p in root.parameters()}
        theirs = [p for group in optimizer.param_groups for p in group["params"]]
        shared = [p for p in theirs if id(p) in own]
        if any(p.grad is not None for p in shared):
            self._elsewhere()
        if shared:  # a closure may compute the gradients yet
            self._before[id(optimizer)] = [(p, p._version) for p in shared]

    def _stepped(self, optimizer: Optimizer) -> None:
        """An optimizer has stepped."""
        if optimizer is self.training.optimizer.original_optimizer and self._unsettled:
            self._unsettled = False
            self.reader.settled()
        written = self._before.pop(id(optimizer), ())
        if any(p._version != version for p, version in written):
            self._elsewhere()
            self.reader.contents.forget()  # it is reported once


def transforming() -> bool:
    """Whether `torch.func` is at work: a watcher asks for gradients of its own."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def _told(watcher: Watcher, moment: Callable[..., None], *arguments: Any) -> None:
    """Call a watcher; what it raises says where it comes from."""
    try:
        moment(*arguments)
    except Exception as error:
        error.add_note(f"This was raised by a watcher of the monitor, {type(watcher).__name__}.")
        raise
