"""Reads off a step what it spent, and whether a guarantee covers it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from operator import is_
from typing import Any, NamedTuple

from torch import Tensor, nn

from dprime.monitor import checks, criteria
from dprime.monitor.contents import WRITTEN, Contents, modules_of
from dprime.monitor.fingerprints import Norm, differ, norms_of
from dprime.monitor.ledger import Ledger, StepRecord
from dprime.monitor.one_record import Norms, OneRecord
from dprime.monitor.opacus_training import OpacusTraining, Settings, own_criterion
from dprime.monitor.problems import Problem
from dprime.monitor.projection import SumProjection
from dprime.monitor.public import PublicConstants
from dprime.monitor.repeats import Generators, Repeats, first_records
from dprime.monitor.rows import Rows
from dprime.monitor.sampling import Found, Pass

SUM_TOLERANCE = 1e-3
"""The share of its bound by which rounding may lengthen a sum."""

DRAWN = {
    "elsewhere": Problem.ELSEWHERE,
    "more": Problem.MULTIPLIED,
    "skipped": Problem.SKIPPED,
}
"""The reason for each oddity in the batches of a step."""

CHANGED = {"weights": Problem.MOVED, "buffers": Problem.BUFFERS}
"""The reason for each change that no private step made."""


class StepSeen(NamedTuple):
    """What was seen of a step: its record, the pass it was drawn in, and what it rests on."""

    record: StepRecord
    drawn_in: Pass | None
    rests_on: tuple[str, ...]


class StepReader:
    """Told of calls of the model, of clipping and of noise; then says what the step was.

    Args:
        training: the one that is read.
        adjacency: that the guarantee is for.
        public: constants that the training must have.

    """

    def __init__(
        self, training: OpacusTraining, adjacency: str, public: PublicConstants | None = None
    ) -> None:
        self.training = training
        self.adjacency = adjacency
        self._rests_on: dict[str, None] = {}  # conditions of all steps until now
        self.contents = Contents(training.roots, training.may_move)
        self._public = public
        self._partial = isinstance(own_criterion(training.criterion), partial)
        self._own = training.untouched()
        self.weights = tuple(training.parameters())
        self._settings: Settings | None = None
        self._mixing: tuple[int, list[nn.Module]] | None = None
        self._rate_before: object = None  # changes were accepted, when batches wait
        self._steps = 0
        self.most_weights = 0
        self._parts_summed = 0
        self._passes_before = 0
        self._latest = 0
        self._one_record = OneRecord(training.model)
        self._norms = Norms(training.model)
        self._repeats = Repeats(training.records)
        self._generators = Generators()
        self._in_loss: list[int] = []
        self._found: set[str] = set()  # reasons why no guarantee covers the step
        self.rows = Rows(training, self._found)
        self._projection = SumProjection()
        self._step = lru_cache(maxsize=1)(StepRecord)  # most steps are like the one before
        self._gradients: list[Tensor] = []  # as ghost mode's backward left them
        self._versions: list[int] = []  # how often each was written to
        self._lengths: list[Norm] = []
        self._begin()

    def _begin(self) -> None:
        """Forget the step before; nothing is known of the next one yet."""
        self._clipped_to = 0.0
        self._noises: tuple[float, float] | None = None
        self._parts: list[int] = []
        self._passes: set[int] = set()
        self._rounding = 1.0
        self._found.clear()
        self.rows.begin()

    def called(self, inputs: Sequence[Any]) -> None:
        """The model was called with records that may be trained on."""
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

    def judged(self, loss: nn.Module, given: Sequence[Any]) -> None:
        """A loss of PyTorch is about to be called with these."""
        if criteria.spreads(loss, given):
            self._found.add(Problem.SPREAD)
        if criteria.leaves_labels_out(loss, given):
            self._found.add(Problem.DIVIDED)

    def entered(self) -> None:
        """The model is about to be called on records that may be trained on."""
        if change := self.contents.called():
            self._found.add(CHANGED[change])

    def settled(self) -> None:
        """The step is over: the weights are what it made of them."""
        self.contents.settle()

    def clipped_in_loss(
        self, factors: Tensor, losses: Tensor | None, *, by_hand: bool = False
    ) -> None:
        """A backward call of ghost mode has found the factors that clip these records.

        `by_hand` says that no call of Opacus' own backward asked for them.
        """
        training, found = self.training, self._found
        self._in_loss.append(len(factors))
        weights: Sequence[nn.Parameter] = training.model.trainable_parameters  # type: ignore[assignment]
        clipped_to = training.clipped_to
        self._rounding = max(self._rounding, training.rounding(weights))
        self._clipped_to = max(self._clipped_to, clipped_to)
        bound = clipped_to * self._rounding * (1.0 + SUM_TOLERANCE)
        if by_hand or self._norms.exceeded(factors, bound):
            found.add(Problem.REPLACED)
        if self._norms.stale():
            found.add(Problem.STALE)
        for p in weights:
            if p._post_accumulate_grad_hooks:
                found.add(Problem.CHANGED)
        if losses is None:
            return
        if losses.shape != factors.shape and max(losses.numel(), len(factors)) > 1:
            found.add(Problem.LOSSES)
        if self._one_record.exceeds(losses, factors, training.parameters):
            found.add(Problem.TOO_LONG)

    def backward_done(self) -> None:
        """A backward call of ghost mode is over: the gradients should stay as they are now."""
        self._gradients = gradients = [grad for p in self.weights if (grad := p.grad) is not None]
        self._versions = list(map(WRITTEN, gradients))
        self._lengths = norms_of(gradients) if self.contents.due else []
        self._projection.keep(gradients)

    def cleared(self) -> None:
        """The gradients were set to zero; in ghost mode every backward call does so."""
        self._in_loss, self._gradients, self._versions, self._lengths = [], [], [], []

    def clipped(self, *, own: bool = True) -> None:
        """A physical batch is clipped; a step may have several, and the largest norm counts.

        `own` is False for records that a watcher adds.
        """
        training = self.training
        if not training.ghost:  # there it was looked at as the factors were made
            weights = training.parameters()
            self._clipped_to = max(self._clipped_to, training.clipped_to)
            self._rounding = max(self._rounding, training.rounding(weights))
        if not own:
            return
        if training.sampling.kind == "shuffle":
            self._passes.add(training.sampling.passes)
        if training.ghost:
            if self._touched():
                self._found.add(Problem.CHANGED)
            self._parts += self._in_loss
            self.cleared()
        else:
            rows = training.rows(weights)
            if rows.count(rows[0]) < len(rows):
                self._found.add(Problem.UNEVEN)
            self._parts += rows[0]

    def _touched(self) -> bool:
        """Whether gradients are not those that the backward call left, nor a projection of them."""
        now, before = [grad for p in self.weights if (grad := p.grad) is not None], self._gradients
        if len(now) != len(before) or not all(map(is_, now, before)):
            return True
        written = self._versions != list(map(WRITTEN, now))
        if not written and self._lengths:
            written = differ(self._lengths, norms_of(now))
        return not self._projection.fits(now, written=written)

    def summed(self) -> None:
        """The clipped sum is complete, and the weights are still those of the step before."""
        self.weights = tuple(self.training.parameters())
        sums: list[Tensor] = [
            p.summed_grad  # type: ignore[attr-defined]
            for p in self.weights
            if p.summed_grad is not None  # type: ignore[attr-defined]
        ]
        if len(sums) != self._parts_summed:
            self._parts_summed = len(sums)
            self.most_weights = max(self.most_weights, sum(part.numel() for part in sums))
        change, norms = self.contents.changed(sums)
        if change := (change or self.contents.counted()):
            self._found.add(CHANGED[change])
        if self.contents.frozen_late:
            self._found.add(Problem.LATER)
        length = math.hypot(*norms)
        longest = sum(self._parts) * self._clipped_to * self._rounding
        if not math.isfinite(length):
            self._found.add(Problem.NOT_FINITE)
        elif length > longest * (1.0 + SUM_TOLERANCE):
            self._found.add(Problem.TOO_LONG)

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
            self._found.add(Problem.RESET)
        self._settings = now
        return now

    def accept(self) -> None:
        """Take weights, buffers and settings as they are now."""
        self.contents.forget()
        self._rate_before = self._settings[2][0] if self._settings else None
        self._settings = None
        self._found.difference_update({Problem.RESET, Problem.MOVED, Problem.BUFFERS})

    def noised(self) -> None:
        """The noise is being added."""
        settings = self._compare_settings()
        training = self.training
        generator = training.optimizer.generator
        if self._generators.again(generator, self.weights[0].device):
            self._found.add(Problem.SAME_NOISE)
        if self._generators.is_known(generator) or self._generators.is_known(
            training.sampling.generator
        ):
            self._found.add(Problem.KNOWN_SEED)
        stated, norm = settings[0], training.clip_norm
        reach = (self._clipped_to or norm) * self._rounding
        self._noises = stated, stated if norm == reach else stated * norm / reach

    def read(self) -> StepSeen:
        """What was seen of the step that was just made."""
        sampling = self.training.sampling
        if sampling.kind == "unknown":
            batches, found = self.training.accumulated, ""
        else:
            drawn = sampling.waiting[0].records if sampling.waiting else 0
            batches, found = sampling.take(self._parts)
            if found == "fewer" and not self.rows.left_out(self._parts[0], drawn):
                found = "more"
            if sampling.used_rate not in (
                self._rate_before, self._settings and self._settings[2][0]
            ):  # fmt: skip
                self._found.add(Problem.RESET)
        stated, noise = self._noises or (self.training.noise_multiplier, 0.0)
        self._steps += 1
        self._look_at_sampling(batches, found)
        self._look_at_training()
        step = self._step(
            noise,
            sampling.used_rate,
            sampling.kind,
            batches,
            self.pass_index if sampling.kind == "shuffle" else 0,
            self._uncovered() if self._found else "",
            None if stated == noise else stated,
            sampling.left_out,
            (self.training.records or 1) if sampling.left_out else 0,
        )
        if found == "fewer" and not step.problem:
            self._rests_on[checks.FEWER] = None
        self._look_at_passes(step)
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

    def _uncovered(self) -> str:
        """The first reason why no guarantee covers the step; empty for none."""
        if self.training.noise_multiplier == 0.0:  # that is the reason
            self._found.difference_update({Problem.SAME_NOISE, Problem.RESET})
        return next((problem for problem in Problem if problem in self._found), "")

    def _look_at_sampling(self, batches: int, drawn: Found | str) -> None:
        """Find reasons in how the records of the step were drawn."""
        sampling, found = self.training.sampling, self._found
        if drawn in DRAWN:
            found.add(DRAWN[drawn])
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

    def _look_at_passes(self, step: StepRecord) -> None:
        """Find conditions in how the batches of the step, and of those before, were drawn."""
        sampling = self.training.sampling
        if step.left_out and step.sampling == "poisson":
            self._rests_on[checks.LEFT_OUT] = None
        if len(sampling.left_open) > 1:
            self._rests_on[checks.LEFT_OPEN] = None
        if sampling.unused - {0, 1} or len(sampling.unused) > 1:
            self._rests_on[checks.CHOSEN] = None
        if sampling.reorderable and not step.problem:
            self._rests_on[checks.ORDERED] = None

    def _look_at_training(self) -> None:
        """Find reasons in what the training is made of now."""
        training, found = self.training, self._found
        own = (
            self._own and training.untouched_noise and "scale_grad" not in vars(training.optimizer)
        )
        if not (own and self._noises and self._clipped_to and self._parts):
            found.add(Problem.REPLACED)
        if training.ghost and training.noise_hidden:
            found.add(Problem.HIDDEN)
        if training.fills_empty_batches:
            found.add(Problem.FILLED)
        if not training.attached_weights.issuperset(map(id, self.weights)):
            found.add(Problem.LATER)
        if self._one_record.blind:
            found.add(Problem.UNSEEN)
        if self._partial and criteria.function_divides_by_weights(training):
            found.add(Problem.DIVIDED)
        if not training.ghost and criteria.averages_unscaled(training):
            found.add(Problem.UNSCALED)
        if self._public and self._public.misfit(training, self._steps):
            found.add(Problem.NOT_PUBLIC)
        for layer in self._may_mix():
            found.update(checks.reasons_in(layer, training))

    def _may_mix(self) -> list[nn.Module]:
        """The layers and losses that mix records in some mode, sought again after a change."""
        if self._mixing is None or self._mixing[0] != self.contents.arranged:
            layers = (layer for root in self.training.roots for layer in modules_of(root))
            ghost = self.training.ghost
            kept = [layer for layer in layers if checks.may_mix(layer, ghost=ghost)]
            self._mixing = self.contents.arranged, kept
        return self._mixing[1]

    def follow(self, ledger: Ledger) -> None:
        """Number steps and passes after those of a ledger that was loaded or taken over."""
        self._steps = ledger.steps
        self._generators = Generators()  # of a checkpoint the random numbers may be restored too
        self.accept()
        passes = [step.pass_index for step, _ in ledger.entries]
        self._passes_before = max(passes, default=0)
