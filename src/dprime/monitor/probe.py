"""Tells a monitor and its watchers of every moment of a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from opacus.schedulers.grad_clip_scheduler import _GradClipScheduler
from opacus.schedulers.noise_scheduler import _NoiseScheduler
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from dprime.monitor import layers
from dprime.monitor.contents import modules_of
from dprime.monitor.fingerprints import Norm, norms_of
from dprime.monitor.hooks import Hooks, let_hooks_run
from dprime.monitor.opacus_training import OpacusTraining, own_criterion
from dprime.monitor.problems import Problem
from dprime.monitor.progress import Progress
from dprime.monitor.reader import StepReader
from dprime.monitor.watcher import Watcher

Noisy = tuple[nn.Parameter, Tensor, int]
"""A weight, its gradient with the noise, and how often that was written to."""


class OptimizerProbe:
    """Wraps the optimizer's own clipping, noise and step, until `release`.

    Opacus clips (once for each part of a batch), adds the noise, tells its accountant, and then
    changes the weights; a step that it skips ends after the clipping. `detach` takes the whole
    monitor off.
    """

    def __init__(
        self,
        training: OpacusTraining,
        reader: StepReader,
        watchers: Sequence[Watcher],
        progress: Progress,
        detach: Callable[[], None],
    ) -> None:
        self.training, self.reader, self.watchers = training, reader, watchers
        self._progress = progress
        self._detach = detach
        self._expected = False
        self._unsettled = False
        self._noisy: list[Noisy] = []
        self._lengths: list[Norm] = []  # of the noisy gradients
        self._applying: list[Noisy] = []
        self._depth = 0  # of calls of the step that was made
        self._nested: list[int] = []
        self._layers: tuple[int, list[nn.Module]] = -1, []
        self._enters = False  # whether nothing comes before the user's model
        self._around_step: tuple[RemovableHandle, RemovableHandle] | None = None
        self._before: dict[int, list[tuple[Tensor, int]]] = {}
        self._records: list[Tensor] = []
        self._hooks = Hooks()

    def watch(self) -> None:
        training, optimizer, hooks = self.training, self.training.optimizer, self._hooks
        hooks.mark(optimizer, self._detach)
        hooks.mark(training.privacy_engine, self._detach)
        hooks.wrap(optimizer, training.clips_with, self.reader.clipped)
        hooks.wrap(optimizer, "add_noise", self._add_noise)
        hooks.wrap(optimizer, "pre_step", self._pre_step)
        let_hooks_run(optimizer.original_optimizer)
        hooks.around_any_step(self._stepping, self._stepped)
        for scheduler in (_NoiseScheduler, _GradClipScheduler):
            hooks.wrap_all(scheduler, "step", self._schedule)
        entrance, module = training.entrance, training.module
        self._enters = entrance is module and not module._forward_pre_hooks
        if not self._enters:
            wrapper = training.model
            inner = isinstance(wrapper, nn.Module) and entrance is not wrapper
            hooks.before_call(entrance, self._entered, first=inner)
        hooks.before_call(module, self._called, named=True)
        hooks.after_call(module, self._answered)
        self.reader.rows.watch(hooks)
        if self.reader.ghost is not None:
            self.reader.ghost.watch(hooks)
        for loss in layers.losses_of(training):
            hooks.before_call(loss, self._judged, named=True)
        for layer in layers.softmaxes(training):
            hooks.before_call(layer, self._normalised)
        training.sampling.watch(self._progress.between_loops)
        hooks.later(training.sampling.release)
        if any(watcher.needs_batches for watcher in self.watchers):
            self._see_batches()
        for watcher in self.watchers:
            _told(watcher, watcher.start, training)

    def release(self) -> None:
        self._forget_applied()
        self._hooks.remove()

    def batch(self, records: Tensor, targets: Tensor) -> None:
        for watcher in self.watchers:
            _told(watcher, watcher.batch, records, targets)

    # Calls of the model

    def _learns(self, module: nn.Module) -> bool:
        """Whether the model may be trained on what is called now.

        Where its root is in eval mode, some layer that is trained may be in training mode.
        """
        if not torch.is_grad_enabled() or torch.compiler.is_compiling():
            return False
        return module.training or any(layer.training for layer in self._trained_layers())

    def _trained_layers(self) -> list[nn.Module]:
        """The modules that have a weight of the optimizer, sought again after a change."""
        arranged = self.reader.contents.arranged
        if self._layers[0] != arranged:
            trained = set(map(id, self.training.in_groups()))
            modules = modules_of(self.training.module)
            kept = [a for a in modules if not trained.isdisjoint(map(id, a._parameters.values()))]
            self._layers = arranged, kept
        return self._layers[1]

    def _entered(self, module: nn.Module, _: tuple[Any, ...]) -> None:
        if self._learns(module):
            self._settle_late()
            self.reader.entered()

    def _called(self, module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        if self._learns(module):
            if self._enters:
                if self._unsettled:
                    self._settle_late()
                self.reader.entered()
            self.reader.called((*inputs, *named.values()))
        elif not torch.compiler.is_compiling():
            self.training.sampling.looked_at()

    def _answered(self, module: nn.Module, _: Any, output: Any) -> None:
        if self._learns(module):
            self.reader.rows.answered(output)

    def _judged(self, loss: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        trains = self._learns(self.training.module) and not transforming()
        problem = layers.problem_of_call(loss, (*inputs, *named.values())) if trains else None
        if problem:
            self.reader.found.add(problem)

    def _normalised(self, layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        trains = self._learns(self.training.module) and not transforming()
        if trains and self.reader.rows.normalises(layer, inputs):
            self.reader.found.add(Problem.MIXED)

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
            if given and self._learns(module):
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

    def _add_noise(self, add_noise: Callable[[], None]) -> None:
        if self._unsettled:
            self._settle_late()
        self.reader.summed()
        if self.watchers:
            self._tell_of_sum()
        self.reader.noised()
        add_noise()
        averaged = int(self.training.optimizer.loss_reduction == "mean")  # is divided in place
        self._noisy = [
            (p, p.grad, p.grad._version + averaged)
            for p in self.reader.weights
            if p.grad is not None
        ]
        for watcher in self.watchers:
            _told(watcher, watcher.after_noise, self.training)

    def _tell_of_sum(self) -> None:
        """Tell the watchers, which may add to the sum, that it is complete."""
        self.reader.watchers_add(True)
        try:
            for watcher in self.watchers:
                _told(watcher, watcher.clipped, self.training)
            for watcher in self.watchers:
                _told(watcher, watcher.before_noise, self.training)
        finally:
            self.reader.watchers_add(False)
        self._records = []

    def _pre_step(self, pre_step: Callable[..., bool | None], *arguments: Any) -> bool | None:
        made = pre_step(*arguments)
        if made:
            self._progress.step_made(self.reader.read())
            self._see_noisy()
            self._expected = self._unsettled = True
        return made

    def _see_noisy(self) -> None:
        """See whether the coming step applies what has the noise, and when it is over.

        The former after all other hooks of the optimizer, the latter before them.
        """
        due = self.reader.contents.due
        self._lengths = norms_of([grad for _, grad, _ in self._noisy]) if due else []
        inner = self.training.optimizer.original_optimizer
        before, after = inner._optimizer_step_pre_hooks, inner._optimizer_step_post_hooks
        if self._around_step is not None:
            applied, over = self._around_step
            if next(reversed(before), None) == applied.id and next(iter(after), None) == over.id:
                return
            self._forget_applied()
        applied = inner.register_step_pre_hook(self._applied)
        over = inner.register_step_post_hook(self._over)
        after.move_to_end(over.id, last=False)
        self._around_step = applied, over

    def _forget_applied(self) -> None:
        """Take off what sees the step of the optimizer under Opacus' own."""
        if self._around_step is not None:
            for hook in self._around_step:
                hook.remove()
            self._around_step = None

    def _elsewhere(self) -> None:
        self._progress.trained_elsewhere(self.reader.outside())

    def _applied(self, *_: Any) -> None:
        """The step that was made begins, if it was not told before."""
        noisy, self._noisy = self._noisy, []
        lengths, self._lengths = self._lengths, []
        if not noisy:
            return
        self._applying, gradients = noisy, []
        for p, grad, version in noisy:
            if p.grad is grad and grad._version == version:
                gradients.append(grad)
        if len(gradients) < len(noisy) or self.reader.contents.moved(gradients, lengths):
            self._elsewhere()

    def _over(self, *_: Any) -> None:
        """The optimizer's step is over; what its other hooks write now is not of the step."""
        self._depth = max(0, self._depth - 1)
        if not self._depth:
            self._settle_late()

    def as_left(self) -> bool:
        """Whether the model is as the last step left it, where that step is known to be over."""
        return self._unsettled or self.reader.contents.as_left()

    def _settle_late(self) -> None:
        """End the optimizer's step where no hook said that it is over."""
        self._depth, self._applying = 0, []
        if self._unsettled:
            self._unsettled = False
            self.reader.contents.settle()

    def _stepping(self, optimizer: Optimizer) -> None:
        """An optimizer changes weights: once for each step that was made it may."""
        if optimizer is self.training.optimizer:
            return  # it lets another one do so
        inner = optimizer is self.training.optimizer.original_optimizer
        if inner and self._expected:
            self._expected, self._depth, self._nested = False, 1, []
            return
        shared = self._shared(optimizer)
        if self._depth and self._have_noise(shared):
            self._nested.append(id(optimizer))
            self._depth += inner
            return
        self._nested = [other for other in self._nested if other != id(optimizer)]
        if any(p.grad is not None for p in shared):
            self._elsewhere()
        if shared:  # a closure may compute the gradients yet
            self._before[id(optimizer)] = [(p, p._version) for p in shared]

    def _shared(self, optimizer: Optimizer) -> list[Tensor]:
        """The tensors of model and criterion that an optimizer may change."""
        own = {id(p) for root in self.training.roots for p in root.parameters()}
        theirs = [p for group in optimizer.param_groups for p in group["params"]]
        return [p for p in theirs if id(p) in own]

    def _have_noise(self, weights: Sequence[Tensor]) -> bool:
        """Whether all gradients are the noisy ones: what a step makes of them costs nothing more.

        Lookahead lets the optimizer under it make the step.
        """
        noisy = {id(p): (grad, version) for p, grad, version in self._applying}
        return all(
            p.grad is None
            or (id(p) in noisy and p.grad is noisy[id(p)][0] and p.grad._version == noisy[id(p)][1])
            for p in weights
        )

    def _stepped(self, optimizer: Optimizer) -> None:
        if id(optimizer) in self._nested:
            self._nested.remove(id(optimizer))
            if not self._have_noise(self._shared(optimizer)):  # a closure computed others
                self._elsewhere()
            return
        written = self._before.pop(id(optimizer), None)
        if written and any(p._version != version for p, version in written):
            self._elsewhere()
            self.reader.contents.forget()  # it is reported once


def transforming() -> bool:
    """Whether `torch.func` is at work, as when a watcher computes gradients."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def _told(watcher: Watcher, moment: Callable[..., None], *arguments: Any) -> None:
    """Call a watcher; an error that it raises says which watcher it was."""
    try:
        moment(*arguments)
    except Exception as error:
        error.add_note(f"This was raised by a watcher of the monitor, {type(watcher).__name__}.")
        raise
