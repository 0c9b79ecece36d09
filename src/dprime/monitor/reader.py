"""Reads off a step what it spent, and whether a guarantee covers it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dprime.monitor import checks, layers
from dprime.monitor.contents import Change, Contents
from dprime.monitor.ghost import SUM_TOLERANCE, GhostClipping, Reach
from dprime.monitor.ledger import Ledger, StepRecord
from dprime.monitor.opacus_training import OpacusTraining, Settings, own_criterion, rounding_in
from dprime.monitor.problems import Problem
from dprime.monitor.public import PublicConstants
from dprime.monitor.repeats import Generators, Repeats, first_records, has_known_seed
from dprime.monitor.rows import Rows
from dprime.monitor.sampling import FEWER, Pass

CHANGED: dict[Change, Problem] = {"weights": Problem.MOVED, "buffers": Problem.BUFFERS}
"""The reason for each change that no private step made."""

TRAINABLE = attrgetter("requires_grad")


class StepSeen(NamedTuple):
    """What was seen of a step: its record, the pass it was drawn in, and what it rests on."""

    record: StepRecord
    drawn_in: Pass | None
    rests_on: tuple[str, ...]


class StepReader:
    """Told of calls of the model, of clipping and of noise; then says what the step was.

    Attributes:
        found: reasons why no guarantee covers the step.

    """

    def __init__(
        self, training: OpacusTraining, adjacency: str, public: PublicConstants | None = None
    ) -> None:
        self.training, self.adjacency, self._public = training, adjacency, public
        self._rests_on: dict[str, None] = {}  # conditions of all steps until now
        self.found: set[str] = set()
        self.contents = Contents(training.roots, training.may_move)
        self.rows = Rows(training, self.found)
        self._reach = Reach()
        self.ghost: GhostClipping | None = None
        if training.ghost:
            self.ghost = GhostClipping(training, self.contents, self.found, self._reach)
        self._adding = False
        self._partial = isinstance(own_criterion(training.criterion), partial)
        self._own = training.untouched()
        self.weights = tuple(training.parameters())
        self._settings: Settings | None = None
        self._rate_before: object = None  # changes were accepted, when batches wait
        self._mixing: tuple[int, list[nn.Module]] = -1, []
        self._steps = 0
        self.most_weights = 0
        self._parts_summed = 0
        self._passes_before = 0
        self._latest = 0
        self._repeats = Repeats(training.records)
        self._generators = Generators()
        self._step = lru_cache(maxsize=1)(StepRecord)  # most steps are like the one before
        self._begin()

    def _begin(self) -> None:
        self._reach.clipped_to, self._reach.rounding = 0.0, 1.0
        self._noises: tuple[float, float] | None = None
        self._parts: list[int] = []
        self._passes: set[int] = set()
        self.found.clear()
        self.rows.begin()

    # Calls of the model

    def entered(self) -> None:
        """The model is about to be called on records that may be trained on."""
        if change := self.contents.called():
            self.found.add(CHANGED[change])

    def called(self, inputs: Sequence[Any]) -> None:
        sampling = self.training.sampling
        for given in inputs:
            if getattr(given, "grad_fn", None) is not None:
                self._rests_on[checks.ENCODED] = None
        if sampling.kind == "shuffle":
            passes = sampling.passes
            if passes != self._latest:  # another pass gives every record again
                self._repeats.forget()
            self._latest = passes
            self._passes.add(passes)
        records = first_records(inputs)
        self.rows.called(records)
        if records is not None:
            self._repeats.see(records)
            if sampling.kind != "unknown":
                sampling.trained_on(int(records.shape[0]))

    # Clipping and noise

    def watchers_add(self, adding: bool) -> None:
        """Watchers begin to add to the sum, or have ended."""
        self._adding = adding
        if self.ghost is not None:
            self.ghost.adding = adding

    def clipped(self, clip: Callable[[], None]) -> None:
        """A physical batch is clipped; a step may have several, and the largest norm counts."""
        training = self.training
        if not self._adding and training.sampling.kind == "shuffle":
            self._passes.add(training.sampling.passes)
        if self.ghost is None:
            self._clipped_rows()
        elif not self._adding:
            self._parts += self.ghost.take()
        clip()

    def _clipped_rows(self) -> None:
        """The rows of every weight's gradients are clipped; those of the first are the records."""
        kinds, rows = set(), []
        for p in self.training.parameters():
            if p.dtype is not torch.float32:
                kinds.add(p.dtype)
            held = getattr(p, "grad_sample", None)
            if isinstance(held, Tensor):
                if held.dtype is not torch.float32:
                    kinds.add(held.dtype)
                rows.append([held.shape[0]])
            else:
                parts = [None] if held is None else held
                kinds.update([part.dtype for part in parts if part is not None])
                rows.append([0 if part is None else part.shape[0] for part in parts])
        self._reach.include(self.training.clipped_to, rounding_in(frozenset(kinds)))
        if self._adding:
            return
        if rows.count(rows[0]) < len(rows):
            self.found.add(Problem.UNEVEN)
        self._parts += rows[0]

    def summed(self) -> None:
        """The clipped sum is complete, and the weights are still those of the step before."""
        contents, found = self.contents, self.found
        self.weights = weights = tuple(self.training.parameters())
        if self.ghost is not None:
            self.ghost.weights = weights
        sums: list[Tensor] = [part for p in weights if (part := p.summed_grad) is not None]  # type: ignore[attr-defined]
        if len(sums) != self._parts_summed:
            self._parts_summed = len(sums)
            self.most_weights = max(self.most_weights, sum(part.numel() for part in sums))
        change, norms = contents.changed(sums)
        if not change and contents.counts:
            change = contents.counted()
        if change:
            found.add(CHANGED[change])
        if not all(map(TRAINABLE, contents.trained)) and contents.frozen_late:
            found.add(Problem.LATER)
        length = math.hypot(*norms)
        longest = sum(self._parts) * self._reach.clipped_to * self._reach.rounding
        if not math.isfinite(length):
            found.add(Problem.NOT_FINITE)
        elif length > longest * (1.0 + SUM_TOLERANCE):
            found.add(Problem.TOO_LONG)

    def noised(self) -> None:
        stated = self._compare_settings()[0]
        optimizer, found = self.training.optimizer, self.found
        generator, of_batches = optimizer.generator, self.training.sampling.generator
        if self._generators.again(generator, self.weights[0].device):
            found.add(Problem.SAME_NOISE)
        if (generator is not None and has_known_seed(generator)) or (
            of_batches is not None and has_known_seed(of_batches)
        ):
            found.add(Problem.KNOWN_SEED)
        norm = float(optimizer.max_grad_norm)
        reach = (self._reach.clipped_to or norm) * self._reach.rounding
        self._noises = stated, stated if norm == reach else stated * norm / reach

    # Settings

    def scheduled_by(self, step: Callable[[], Any]) -> None:
        """A scheduler of Opacus changes noise or clipping."""
        if self._settings is None:  # before the first step
            step()
            return
        before = self._compare_settings()
        step()
        self._settings = after = self.training.settings
        if before[0] != after[0]:
            self._rests_on[checks.NOISE_SCHEDULED] = None
        if before[1] != after[1]:
            self._rests_on[checks.SCHEDULED] = None

    def _compare_settings(self) -> Settings:
        """The settings as they are now; it is noted if they were changed by hand."""
        now = self.training.settings
        if self._settings not in (None, now):
            self.found.add(Problem.RESET)
        self._settings = now
        return now

    def accept(self) -> None:
        """Take weights, buffers and settings as they are now."""
        self.contents.forget()
        self._rate_before = self._settings[2][0] if self._settings else None
        self._settings = None
        self.found.difference_update({Problem.RESET, Problem.MOVED, Problem.BUFFERS})

    def follow(self, ledger: Ledger) -> None:
        """Number steps and passes after those of a ledger that was loaded or taken over."""
        self._steps = ledger.steps
        self._generators = Generators()  # of a checkpoint the random numbers may be restored too
        self.accept()
        passes = [step.pass_index for step, _ in ledger.entries]
        self._passes_before = max(passes, default=0)

    # The step

    def read(self) -> StepSeen:
        training, sampling, found = self.training, self.training.sampling, self.found
        if sampling.kind == "unknown":
            batches, drawn = training.accumulated, ""
        else:
            waiting = sampling.waiting[0].records if sampling.waiting else 0
            batches, drawn = sampling.take(self._parts)
            if drawn == FEWER and not self.rows.left_out(self._parts[0], waiting):
                drawn = Problem.MULTIPLIED
            rate = self._settings and self._settings[2][0]
            if sampling.used_rate not in (self._rate_before, rate):
                found.add(Problem.RESET)
        stated, noise = self._noises or (training.noise_multiplier, 0.0)
        self._steps += 1
        self._look_at_sampling(batches, drawn)
        self._look_at_training()
        problem = self._first_problem() if found else ""
        if not problem and drawn == FEWER:
            self._rests_on[checks.FEWER] = None
        self._look_at_passes(covered=not problem)
        step = self._step(
            noise,
            sampling.used_rate,
            sampling.kind,
            batches,
            self.pass_index if sampling.kind == "shuffle" else 0,
            problem,
            None if stated == noise else stated,
            sampling.left_out,
            (training.records or 1) if sampling.left_out else 0,
        )
        self._begin()
        return StepSeen(step, sampling.used, tuple(self._rests_on))

    def outside(self) -> StepRecord:
        """The record that stands for a step of another optimizer."""
        sampling = self.training.sampling
        return StepRecord(
            0.0, sampling.rate, sampling.kind, pass_index=self.pass_index, problem=Problem.OUTSIDE
        )

    @property
    def pass_index(self) -> int:
        """The number of the latest pass, where passes count."""
        sampling = self.training.sampling
        return self._passes_before + sampling.passes if sampling.kind == "shuffle" else 0

    def _first_problem(self) -> str:
        """The first reason why no guarantee covers the step; empty for none."""
        if self.training.noise_multiplier == 0.0:  # that is the reason
            self.found.difference_update({Problem.SAME_NOISE, Problem.RESET})
        return next((problem for problem in Problem if problem in self.found), "")

    def _look_at_sampling(self, batches: int, drawn: str) -> None:
        """Find reasons in how the records of the step were drawn."""
        sampling, found = self.training.sampling, self.found
        if drawn and drawn != FEWER:
            found.add(drawn)
        if self._repeats.step(self._parts):
            found.add(Problem.REPEATED)
        if sampling.kind == "unknown":
            found.add(Problem.UNSAMPLED)
        if sampling.altered:
            found.add(Problem.ALTERED)
        if sampling.kind == "shuffle" and sampling.under_way > 1:
            found.add(Problem.AT_ONCE)
        if batches > 1 and len(self._passes) > 1:
            found.add(Problem.TWO_PASSES)
        if batches > 1 and self.training.poisson and self.adjacency == "replace":
            found.add(Problem.ADDED_UP)

    def _look_at_passes(self, *, covered: bool) -> None:
        """Find conditions in how the batches of the step, and of those before, were drawn."""
        sampling = self.training.sampling
        if sampling.left_out and sampling.kind == "poisson":
            self._rests_on[checks.LEFT_OUT] = None
        if len(sampling.left_open) > 1:
            self._rests_on[checks.LEFT_OPEN] = None
        if sampling.unused - {0, 1} or len(sampling.unused) > 1:
            self._rests_on[checks.CHOSEN] = None
        if sampling.reorderable and covered:
            self._rests_on[checks.ORDERED] = None

    def _look_at_training(self) -> None:
        """Find reasons in what the training is made of now."""
        training, found = self.training, self.found
        own = self._own and "scale_grad" not in vars(training.optimizer)
        passed = self._noises and self._reach.clipped_to and self._parts
        if not (own and passed and training.untouched_noise):
            found.add(Problem.REPLACED)
        if training.fills_empty_batches:
            found.add(Problem.FILLED)
        if not training.attached_weights.issuperset(map(id, self.weights)):
            found.add(Problem.LATER)
        if self._public and self._public.misfit(training, self._steps):
            found.add(Problem.NOT_PUBLIC)
        if self.ghost is None:
            if layers.averages_unscaled(training):
                found.add(Problem.UNSCALED)
        else:
            if training.noise_hidden:
                found.add(Problem.HIDDEN)
            if self.ghost.one_record.blind:
                found.add(Problem.UNSEEN)
        if self._partial and layers.function_divides_by_weights(training):
            found.add(Problem.DIVIDED)
        if self._mixing[0] != self.contents.arranged:  # sought again after a change
            self._mixing = self.contents.arranged, layers.suspects(training)
        for layer in self._mixing[1]:
            found.update(layers.problems_of(layer, training))
