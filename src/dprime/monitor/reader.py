"""Reads off a step what it spent, and whether a guarantee covers it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from dprime.monitor import checks, criteria
from dprime.monitor.attached import Attached, Settings
from dprime.monitor.contents import Change, Contents, differ, modules_of, norms_of
from dprime.monitor.ledger import Ledger, Step
from dprime.monitor.one_record import Norms, OneRecord
from dprime.monitor.projection import Projection
from dprime.monitor.public import PublicConstants
from dprime.monitor.repeats import Generators, Repeats, first_records
from dprime.monitor.rows import Rows
from dprime.monitor.sampling import Found

SUM_TOLERANCE = 1e-3
"""Share of its bound by which rounding may lengthen a sum."""

LEFT = "dprime_not_covered"
"""The attribute of an optimizer with the reason why steps that a monitor saw are not covered."""


class StepReader:
    """Told of calls of the model, of clipping and of noise; then says what the step was.

    Args:
        training: the one that is read.
        adjacency: that the guarantee is for.
        public: constants that the training must have.

    """

    def __init__(
        self, training: Attached, adjacency: str, public: PublicConstants | None = None
    ) -> None:
        self.training = training
        self.adjacency = adjacency
        self.scheduled = False
        self.noise_scheduled = False
        self.fewer = False
        self.encoded = False
        self.contents = Contents(training.roots, training.may_move)
        self._public = public
        self._own = training.untouched()
        self._weights = tuple(training.parameters())
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
        self._rows = Rows(training)
        self._projection = Projection()
        self._gradients: list[tuple[Tensor, int]] = []
        self._lengths: list[Tensor] = []
        self._begin()

    def _begin(self) -> None:
        """Nothing is known of the next step yet."""
        self._clipped_to = 0.0
        self._noises: tuple[float, float] | None = None
        self._parts: list[int] = []
        self._passes: set[int] = set()
        self._changed = False
        self._uneven = False
        self._same_noise = False
        self._known_seed = False
        self._labels_left_out = False
        self._spread = False
        self._mixed = False
        self._unclipped = ""
        self._reset = False
        self._rows.begin()
        self._length = 0.0
        self._longer = False
        self._elsewhere: Change = ""
        self._frozen_late = False
        self._rounding = 1.0

    def called(self, inputs: Sequence[Any]) -> None:
        """The model was called with records that may be trained on."""
        self.encoded = self.encoded or any(getattr(given, "grad_fn", None) for given in inputs)
        if self.training.sampling.kind == "shuffle":
            passes = self.training.sampling.passes
            if passes != self._latest:  # another pass gives every record again
                self._repeats.forget()
            self._latest = passes
            self._passes.add(passes)
        records = self._repeats.see(inputs)
        self._rows.called(first_records(inputs))
        if records is not None and self.training.sampling.kind != "unknown":
            self.training.sampling.trained_on(records)

    def answered(self, output: Any) -> None:
        """The model gave this for records that may be trained on."""
        self._rows.answered(output)

    def judged(self, loss: nn.Module, given: Sequence[Any]) -> None:
        """A loss of PyTorch is about to be called with these."""
        self._spread = self._spread or criteria.spreads(loss, given)
        self._labels_left_out = self._labels_left_out or criteria.leaves_labels_out(
            loss, given, self.training
        )

    def normalised(self, layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        """A softmax is about to be called."""
        self._mixed = self._mixed or self._rows.normalised(layer, inputs)

    def layer_called(self, layer: Any, inputs: tuple[Any, ...]) -> None:
        """A layer, whose gradients have one row for each record, is about to be called."""
        if self._rows.misread(layer, inputs):
            self._unclipped = self._unclipped or checks.MISREAD
        self._uneven = self._uneven or self._rows.added_unevenly(layer, inputs)

    def packed(self, layer: Any, inputs: tuple[Any, ...]) -> None:
        """A recurrent layer of Opacus is about to be called."""
        if self._rows.reordered(layer, inputs):
            self._unclipped = self._unclipped or checks.REORDERED

    def entered(self) -> None:
        """The model is about to be called on records that may be trained on."""
        if not self.contents.begun:
            self.contents.begin()
        elif self.contents.written() or self.contents.due:
            self._elsewhere = self._elsewhere or self.contents.changed()[0]
        self.contents.called()

    def settled(self) -> None:
        """The step is over: the weights are what it made of them."""
        self.contents.settle()

    def clipped_in_loss(
        self, factors: Tensor, losses: Tensor | None, *, by_hand: bool = False
    ) -> None:
        """A backward call of ghost mode has found the factors that clip these records.

        `by_hand` says that no call of Opacus' own backward asked for them.
        """
        self._in_loss.append(len(factors))
        self._rounding = max(self._rounding, self.training.rounding)
        self._clipped_to = max(self._clipped_to, self.training.clipped_to)
        self._unclipped = self._unclipped or self._missed(factors, losses, by_hand)
        if losses is not None:
            weights = list(self.training.parameters())
            self._longer = self._longer or self._one_record.exceeds(losses, factors, weights)

    def _missed(self, factors: Tensor, losses: Tensor | None, by_hand: bool) -> str:
        """Why the factors of ghost mode do not clip each record of this batch; empty if they do."""
        bound = self.training.clipped_to * self._rounding * (1.0 + SUM_TOLERANCE)
        weights = self.training.parameters()
        shape = factors.shape if losses is None else losses.shape
        found = {
            checks.STALE: self._norms.stale(),
            checks.LOSSES: shape != factors.shape and max(shape.numel(), len(factors)) > 1,
            checks.REPLACED: by_hand or self._norms.exceeded(factors, bound),
            checks.CHANGED: any(getattr(p, "_post_accumulate_grad_hooks", None) for p in weights),
        }
        return next((reason for reason, holds in found.items() if holds), "")

    def backward_done(self) -> None:
        """A backward call of ghost mode is over: the gradients should stay as they are now."""
        self._gradients = self._with_versions()
        gradients = [grad for grad, _ in self._gradients]
        self._lengths = norms_of(gradients) if self.contents.due else []
        self._projection.keep(gradients)

    def _with_versions(self) -> list[tuple[Tensor, int]]:
        """The gradients, and how often each was written to."""
        gradients = [p.grad for p in self._weights]
        return [(grad, grad._version) for grad in gradients if grad is not None]

    def cleared(self) -> None:
        """The gradients were set to zero; in ghost mode every backward call does so."""
        self._in_loss, self._gradients, self._lengths = [], [], []

    def clipped(self, *, own: bool = True) -> None:
        """A physical batch is clipped; a step may have several, and the largest norm counts.

        `own` is False for records that a watcher adds.
        """
        self._clipped_to = max(self._clipped_to, self.training.clipped_to)
        if not self.training.ghost:  # there it was looked at as the factors were made
            self._rounding = max(self._rounding, self.training.rounding)
        if not own:
            return
        if self.training.sampling.kind == "shuffle":
            self._passes.add(self.training.sampling.passes)
        if self.training.ghost:
            self._changed = self._changed or self._touched()
            self._parts += self._in_loss
            self.cleared()
        else:
            records, *others = self.training.rows()
            self._uneven = self._uneven or any(rows != records for rows in others)
            self._parts += records

    def _touched(self) -> bool:
        """Whether gradients are not those that the backward call left, nor a projection of them."""
        now, before = self._with_versions(), self._gradients
        same = [grad is old for (grad, _), (old, _) in zip(now, before, strict=False)]
        if len(now) != len(before) or not all(same):
            return True
        gradients = [grad for grad, _ in now]
        written = any(a[1] != b[1] for a, b in zip(now, before, strict=True))
        if not written and self._lengths:
            written = differ(self._lengths, norms_of(gradients))
        return not self._projection.fits(gradients, written=written)

    def summed(self) -> None:
        """The clipped sum is complete, and the weights are still those of the step before."""
        sums = [p.summed_grad for p in self.training.parameters()]  # type: ignore[attr-defined]
        sums = [part for part in sums if part is not None]
        if len(sums) != self._parts_summed:
            self._parts_summed = len(sums)
            self.most_weights = max(self.most_weights, sum(part.numel() for part in sums))
        change, norms = self.contents.changed(sums)
        self._elsewhere = self._elsewhere or change or self.contents.counted()
        self._frozen_late = self._frozen_late or self.training.frozen_late
        self._length = math.hypot(*norms)
        longest = sum(self._parts) * self._clipped_to * self._rounding
        self._longer = self._longer or self._length > longest * (1.0 + SUM_TOLERANCE)

    def scheduled_by(self, step: Callable[[], Any]) -> None:
        """A scheduler of Opacus changes noise or clipping."""
        if self._settings is None:  # before the first step
            step()
            return
        self._compare_settings()
        before = self._settings
        step()
        self._settings = after = self.training.settings
        if before != after:
            self.noise_scheduled = self.noise_scheduled or before[0] != after[0]
            self.scheduled = self.scheduled or before[1] != after[1]

    def _compare_settings(self) -> None:
        """Whether anything was changed by hand."""
        now = self.training.settings
        self._reset = self._reset or self._settings not in (None, now)
        self._settings = now

    def accept(self) -> None:
        """Take weights, buffers and settings as they are now."""
        self.contents.forget()
        self._rate_before = self._settings[2][0] if self._settings else None
        self._settings, self._reset, self._elsewhere = None, False, ""

    def noised(self) -> None:
        """The noise is being added."""
        self._compare_settings()
        generator, device = self.training.optimizer.generator, self.training.device()
        self._same_noise = self._generators.again(generator, device)
        drawing = (generator, self.training.sampling.generator)
        self._known_seed = any(map(self._generators.is_known, drawing))
        stated, norm = self.training.noise_multiplier, self.training.clip_norm
        reach = (self._clipped_to or norm) * self._rounding
        self._noises = stated, stated if norm == reach else stated * norm / reach

    def read(self) -> Step:
        """The step that was just made, to be added to the ledger."""
        sampling = self.training.sampling
        batches, found = self.training.accumulated, ""
        if sampling.kind != "unknown":
            drawn = sampling.pending[0] if sampling.waiting else 0
            batches, found = sampling.take(self._parts)
            if found == "fewer" and not self._rows.left_out(self._parts[0], drawn):
                found = "more"
            known = self._rate_before, self._settings and self._settings[2][0]
            self._reset = self._reset or sampling.used_rate not in known
        stated, noise = self._noises or (self.training.noise_multiplier, 0.0)
        self._steps += 1
        step = Step(
            noise_multiplier=noise,
            sample_rate=sampling.used_rate,
            sampling=sampling.kind,
            batches=batches,
            passing=self.passing,
            uncovered=self._uncovered(batches, found),
            stated=None if stated == noise else stated,
            left_out=sampling.left_out,
            records=(self.training.records or 1) if sampling.left_out else 0,
        )
        self.fewer = self.fewer or (found == "fewer" and not step.uncovered)
        self._begin()
        return step

    def outside(self) -> Step:
        """Another optimizer has stepped: what stands in the ledger for it."""
        sampling = self.training.sampling
        return Step(
            0.0, sampling.rate, sampling.kind, passing=self.passing, uncovered=checks.OUTSIDE
        )

    @property
    def passing(self) -> int:
        """The number of the latest pass, where passes count."""
        sampling = self.training.sampling
        return self._passes_before + sampling.passes if sampling.kind == "shuffle" else 0

    def _uncovered(self, batches: int, drawn: Found | str) -> str:
        """The first reason why no guarantee covers the step; empty for none."""
        training, sampling = self.training, self.training.sampling
        replaced = not (
            self._own
            and training.untouched_noise
            and self._noises
            and self._clipped_to
            and self._parts
        )
        repeated, stated_noise = self._repeats.step(self._parts), training.noise_multiplier
        attached = training.attached_weights.issuperset(map(id, training.parameters()))
        may_mix = self._may_mix()
        found = {
            checks.REPLACED: replaced or "scale_grad" in vars(training.optimizer),
            checks.NOT_FINITE: not math.isfinite(self._length),
            checks.HIDDEN: training.ghost and training.noise_hidden,
            checks.CHANGED: self._changed,
            checks.UNSAMPLED: sampling.kind == "unknown",
            checks.ALTERED: sampling.altered,
            checks.UNEVEN: self._uneven,
            checks.REPEATED: repeated,
            checks.SAME_NOISE: self._same_noise and stated_noise > 0.0,
            checks.KNOWN_SEED: self._known_seed,
            checks.ELSEWHERE: drawn == "elsewhere",
            checks.MULTIPLIED: drawn == "more",
            checks.AT_ONCE: sampling.kind == "shuffle" and sampling.under_way > 1,
            checks.TWO_PASSES: batches > 1 and len(self._passes) > 1,
            checks.ADDED_UP: batches > 1 and training.poisson and self.adjacency == "replace",
            checks.FILLED: training.fills_empty_batches,
            checks.MIXED: self._mixed or any(checks.mixes(part, training) for part in may_mix),
            checks.UNFIT: any(checks.unfit_for_ghost(part, training) for part in may_mix),
            checks.SPREAD: self._spread,
            checks.DIVIDED: self._labels_left_out
            or criteria.function_divides_by_weights(training)
            or any(criteria.divides_by_weights(part, training) for part in may_mix),
            checks.UNSCALED: criteria.averages_unscaled(training),
            checks.LATER: self._frozen_late or not attached,
            checks.TOO_LONG: self._longer,
            checks.UNSEEN: self._one_record.blind,
            checks.MOVED: self._elsewhere == "weights",
            checks.BUFFERS: self._elsewhere == "buffers",
            checks.RESET: self._reset and stated_noise > 0.0,
            checks.SKIPPED: drawn == "skipped",
            checks.NOT_PUBLIC: bool(self._public and self._public.misfit(training, self._steps)),
        }  # fmt: skip
        return next((reason for reason, holds in found.items() if holds), self._unclipped)

    def _may_mix(self) -> list[nn.Module]:
        """The layers and losses that mix records in some mode, sought again after a change."""
        if self._mixing is None or self._mixing[0] != self.contents.arranged:
            layers = (layer for root in self.training.roots for layer in modules_of(root))
            kept = [layer for layer in layers if checks.may_mix(layer)]
            self._mixing = self.contents.arranged, kept
        return self._mixing[1]

    def follow(self, ledger: Ledger) -> None:
        """Number steps and passes after those of a ledger that was loaded or taken over."""
        self._steps = ledger.steps
        self._generators = Generators()  # of a checkpoint the random numbers may be restored too
        self.accept()
        passes = [step.passing for step, _ in ledger.entries]
        self._passes_before = max(passes, default=0)


def taken_over(training: Attached) -> Ledger:
    """What the accountant had recorded before the monitor was attached, believed as it is.

    Its passes over the data are taken to have been complete. What a monitor that was taken off
    left on the optimizer is not forgotten.
    """
    reason = getattr(training.optimizer, LEFT, "")
    ledger, sampling = Ledger(), training.sampling
    for noise, rate, steps in training.privacy_engine.accountant.history:
        batches = max(1, round(float(rate) / sampling.rate))
        fits = checks.recorded_for(sampling.rate, batches, float(rate))
        own, batches = (sampling.rate, batches) if fits else (float(rate), 1)
        unknown = reason or (checks.UNSAMPLED if sampling.kind == "unknown" else "")
        step = Step(float(noise), own, sampling.kind, batches, uncovered=unknown)
        if sampling.kind == "shuffle":
            step = replace(step, passing=ledger.last.passing + 1 if ledger.last else 1)
        ledger = ledger.extended(step, int(steps), sampling.length)
    if reason and not ledger.steps:
        ledger.add(Step(0.0, sampling.rate, sampling.kind, uncovered=checks.OUTSIDE))
    return ledger
