"""Reads off a step what it spent, and whether a guarantee covers it."""

from __future__ import annotations

from dataclasses import replace

from torch import nn

from dprime.monitor import checks
from dprime.monitor.attached import Attached
from dprime.monitor.ledger import Ledger, Step


class StepReader:
    """Told when records are clipped and when noise is added; then says what the step was.

    Args:
        training: the one that is read.
        adjacency: that the guarantee is for.

    """

    def __init__(self, training: Attached, adjacency: str) -> None:
        self.training = training
        self.adjacency = adjacency
        self.scheduled = False
        self._own = training.untouched()
        self._norm: float | None = None
        self._clipped_to = 0.0
        self._noises: tuple[float, float] | None = None
        self._used = 0
        self._passes_before = 0
        self._outside: dict[str, tuple[nn.Parameter, int]] | None = None

    def clipped(self) -> None:
        """A physical batch was clipped; a step may have several, and the largest norm counts."""
        self._clipped_to = max(self._clipped_to, self.training.clipped_to)

    def noised(self) -> None:
        """The noise is being added."""
        stated, norm = self.training.noise_multiplier, self.training.clip_norm
        same = norm == self._clipped_to or not self._clipped_to
        self._noises = stated, stated if same else stated * norm / self._clipped_to
        if self._norm is not None and norm != self._norm and not self.training.adaptive:
            self.scheduled = True
        self._norm = norm

    def read(self, ledger: Ledger) -> Step:
        """The step that was just made, to be added to the ledger."""
        sampling, batches = self.training.sampling, self.training.accumulated
        self._used += batches
        shuffled = sampling.kind == "shuffle"
        stated, noise = self._noises or (self.training.noise_multiplier, 0.0)
        step = Step(
            noise_multiplier=noise,
            sample_rate=sampling.rate,
            sampling=sampling.kind,
            batches=batches,
            passing=self._passes_before + sampling.passes if shuffled else 0,
            uncovered=self._uncovered(batches),
            stated=None if stated == noise else stated,
        )
        if shuffled and batches > 1 and not step.uncovered and self._spans(step, ledger):
            step = replace(step, uncovered=checks.TWO_PASSES)
        self._clipped_to, self._noises = 0.0, None
        return step

    def _uncovered(self, batches: int) -> str:
        """The first reason why no guarantee covers the step; empty for none."""
        training, sampling = self.training, self.training.sampling
        found = {
            checks.REPLACED: not (self._own and self._noises and self._clipped_to),
            checks.HIDDEN: training.ghost and training.noise_hidden,
            checks.UNSAMPLED: sampling.kind == "unknown",
            checks.ELSEWHERE: self._used > sampling.given,
            checks.AT_ONCE: sampling.kind == "shuffle" and sampling.under_way > 1,
            checks.ADDED_UP: batches > 1 and training.poisson and self.adjacency == "replace",
            checks.FILLED: training.fills_empty_batches,
            checks.MIXED: checks.mixes(training.module),
            checks.OUTSIDE: self._trained_outside(),
        }
        return next((reason for reason, holds in found.items() if holds), "")

    def _spans(self, step: Step, ledger: Ledger) -> bool:
        """Whether a step may hold batches that were left over from the pass before."""
        last = ledger.last
        if last is None or last.passing == step.passing:
            return False
        return ledger.batches_in_pass(last.passing) < self.training.sampling.length

    def _trained_outside(self) -> bool:
        """Whether weights that are not in the optimizer were written to since the first step."""
        if self._outside is None:
            found = checks.outside(self.training)
            self._outside = {name: (p, p._version) for name, p in found.items()}
        return any(p._version != version for p, version in self._outside.values())

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
