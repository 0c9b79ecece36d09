"""Reads off a step what it spent, and whether a guarantee covers it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from dprime.monitor import checks
from dprime.monitor.attached import Attached
from dprime.monitor.ledger import Ledger, Step
from dprime.monitor.projection import Projection
from dprime.monitor.repeats import Repeats
from dprime.monitor.sampling import Found


class StepReader:
    """Told of calls of the model, of clipping and of noise; then says what the step was.

    Args:
        training: the one that is read.
        adjacency: that the guarantee is for.

    """

    def __init__(self, training: Attached, adjacency: str) -> None:
        self.training = training
        self.adjacency = adjacency
        self.scheduled = False
        self.fewer = False
        self._own = training.untouched()
        self._rounding = training.rounding
        self._weights = tuple(training.parameters())
        self._norm: float | None = None
        self._passes_before = 0
        self._latest = 0
        self._outside: dict[str, tuple[nn.Parameter, int]] | None = None
        self._repeats = Repeats(training.records)
        self._in_loss: list[int] = []
        self._projection = Projection()
        self._gradients: list[tuple[Tensor, int]] = []
        self._begin()

    def _begin(self) -> None:
        """Nothing is known of the next step yet."""
        self._clipped_to = 0.0
        self._noises: tuple[float, float] | None = None
        self._parts: list[int] = []
        self._passes: set[int] = set()
        self._changed = False

    def called(self, inputs: Iterable[Any]) -> None:
        """The model was called with records that may be trained on."""
        if self.training.sampling.kind == "shuffle":
            passes = self.training.sampling.passes
            if passes != self._latest:  # another pass gives every record again
                self._repeats.forget()
            self._latest = passes
            self._passes.add(passes)
        self._repeats.see(inputs)

    def clipped_in_loss(self, records: int) -> None:
        """A backward call of ghost mode has clipped so many records."""
        self._in_loss.append(records)

    def backward_done(self) -> None:
        """A backward call of ghost mode is over: the gradients should stay as they are now."""
        self._gradients = self._with_versions()
        self._projection.keep([grad for grad, _ in self._gradients])

    def _with_versions(self) -> list[tuple[Tensor, int]]:
        """The gradients, and how often each was written to."""
        gradients = [p.grad for p in self._weights]
        return [(grad, grad._version) for grad in gradients if grad is not None]

    def cleared(self) -> None:
        """The gradients were set to zero; in ghost mode every backward call does so."""
        self._in_loss, self._gradients = [], []

    def clipped(self, *, own: bool = True) -> None:
        """A physical batch is clipped; a step may have several, and the largest norm counts.

        `own` is False for records that a watcher adds.
        """
        self._clipped_to = max(self._clipped_to, self.training.clipped_to)
        if not own:
            return
        if self.training.sampling.kind == "shuffle":
            self._passes.add(self.training.sampling.passes)
        if self.training.ghost:
            self._changed = self._changed or self._touched()
            self._parts += self._in_loss
            self.cleared()
        else:
            self._parts += self.training.clipped_rows()

    def _touched(self) -> bool:
        """Whether gradients are not those that the backward call left, nor a projection of them."""
        now, before = self._with_versions(), self._gradients
        same = [grad is old for (grad, _), (old, _) in zip(now, before, strict=False)]
        if len(now) != len(before) or not all(same):
            return True
        written = any(a[1] != b[1] for a, b in zip(now, before, strict=True))
        return not self._projection.fits([grad for grad, _ in now], written=written)

    def noised(self) -> None:
        """The noise is being added."""
        stated, norm = self.training.noise_multiplier, self.training.clip_norm
        reach = (self._clipped_to or norm) * self._rounding
        self._noises = stated, stated if norm == reach else stated * norm / reach
        if self._norm is not None and norm != self._norm and not self.training.adaptive:
            self.scheduled = True
        self._norm = norm

    def read(self) -> Step:
        """The step that was just made, to be added to the ledger."""
        sampling = self.training.sampling
        batches, found = self.training.accumulated, ""
        if sampling.kind != "unknown":
            batches, found = sampling.take(self._parts)
        stated, noise = self._noises or (self.training.noise_multiplier, 0.0)
        step = Step(
            noise_multiplier=noise,
            sample_rate=sampling.rate,
            sampling=sampling.kind,
            batches=batches,
            passing=self.passing,
            uncovered=self._uncovered(batches, found),
            stated=None if stated == noise else stated,
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
        replaced = not (self._own and self._noises and self._clipped_to and self._parts)
        repeated = self._repeats.step(self._parts)
        found = {
            checks.REPLACED: replaced,
            checks.HIDDEN: training.ghost and training.noise_hidden,
            checks.CHANGED: self._changed,
            checks.UNSAMPLED: sampling.kind == "unknown",
            checks.REPEATED: repeated,
            checks.ELSEWHERE: drawn == "elsewhere",
            checks.MULTIPLIED: drawn == "more",
            checks.AT_ONCE: sampling.kind == "shuffle" and sampling.under_way > 1,
            checks.TWO_PASSES: batches > 1 and len(self._passes) > 1,
            checks.ADDED_UP: batches > 1 and training.poisson and self.adjacency == "replace",
            checks.FILLED: training.fills_empty_batches,
            checks.MIXED: checks.mixes(training.module),
            checks.OUTSIDE: self._trained_outside(),
        }  # fmt: skip
        return next((reason for reason, holds in found.items() if holds), "")

    def _trained_outside(self) -> bool:
        """Whether weights that are not in the optimizer were written to since the first step.

        Those that are frozen do not count, until they are not.
        """
        if self._outside is None:
            found = checks.outside(self.training, frozen=True)
            self._outside = {name: (p, p._version) for name, p in found.items()}
        return any(
            p.requires_grad and p._version != version for p, version in self._outside.values()
        )

    def follow(self, ledger: Ledger) -> None:
        """Number the passes after those of a ledger that was loaded or taken over."""
        passes = [step.passing for step, _ in ledger.entries]
        self._passes_before = max(passes, default=0)


def taken_over(training: Attached) -> Ledger:
    """What the accountant had recorded before the monitor was attached, believed as it is.

    Its passes over the data are taken to have been complete.
    """
    ledger, sampling = Ledger(), training.sampling
    for noise, rate, steps in training.privacy_engine.accountant.history:
        batches = max(1, round(float(rate) / sampling.rate))
        fits = checks.recorded_for(sampling.rate, batches, float(rate))
        own, batches = (sampling.rate, batches) if fits else (float(rate), 1)
        unknown = checks.UNSAMPLED if sampling.kind == "unknown" else ""
        step = Step(float(noise), own, sampling.kind, batches, uncovered=unknown)
        if sampling.kind == "shuffle":
            step = replace(step, passing=ledger.last.passing + 1 if ledger.last else 1)
        ledger = ledger.extended(step, int(steps), sampling.length)
    return ledger
