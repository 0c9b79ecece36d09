"""How far a training is: its steps, its epochs, its planned end, and what was warned of."""

from __future__ import annotations

import inspect
import math
import re
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from dprime import validate
from dprime.monitor import checks, summary
from dprime.monitor.checks import PrivacyWarning
from dprime.monitor.epochs import Epochs
from dprime.monitor.ledger import Ledger, StepRecord
from dprime.monitor.opacus_training import OpacusTraining
from dprime.monitor.problems import Problem
from dprime.monitor.reader import StepSeen

PASSED_BY = ("dprime.monitor", "opacus.", "torch.optim", "torch.utils.")
"""Modules between a warning and the user's line."""

LEFT = "dprime_not_covered"
"""The attribute of an optimizer with the reason why steps that a monitor saw are not covered."""


@dataclass(frozen=True)
class Plan:
    """The planned end, in epochs or in steps; neither where it is not known.

    >>> Plan(epochs=2.5).end(batches=1, in_epoch=10), Plan(steps=7).end(batches=1, in_epoch=10)
    (25, 7)
    >>> str(Plan(epochs=3))
    '3 epochs'
    """

    epochs: float | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        if self.known:
            validate.exactly_one("epochs, steps", asdict(self), "leave one out")
        if self.epochs is not None:
            validate.positive("epochs", self.epochs, example=10)
        if self.steps is not None:
            object.__setattr__(self, "steps", validate.whole("steps", self.steps))

    @property
    def known(self) -> bool:
        return self.epochs is not None or self.steps is not None

    def end(self, batches: int, in_epoch: int) -> int | None:
        """The last step, for this many batches in a step and in an epoch."""
        if self.epochs is None:
            return self.steps
        return max(1, math.ceil(self.epochs * in_epoch / batches * (1 - 1e-12)))

    def __str__(self) -> str:
        if self.epochs is not None:
            return f"{self.epochs:g} epochs"
        return "no known time" if self.steps is None else f"{self.steps:,} steps"


class Progress:
    """Adds every step that the probe has seen to the ledger, and warns of what it rests on.

    `adjacency` and `delta` are those of its ε; `at_epoch` is called at the end of each epoch.
    """

    def __init__(
        self,
        training: OpacusTraining,
        plan: Plan,
        adjacency: str,
        delta: float,
        at_epoch: Callable[[], None],
    ) -> None:
        self.training, self.plan = training, plan
        self._adjacency, self._delta = adjacency, delta
        self._at_epoch = at_epoch
        self.ledger = ledger_from_accountant(training)
        self.epochs = Epochs(training.sampling, self.ledger.batches)
        self.warnings: list[str] = []
        self._unwatched = self.ledger.steps
        self._watched = False
        self._rests_on: tuple[str, ...] = ()
        self._latest: StepRecord | None = None  # the step that the planned end was computed for
        self._end: int | None = None

    # What the probe tells

    def step_made(self, seen: StepSeen) -> None:
        step, drawn_in = seen.record, seen.drawn_in
        if self.epochs.follows(drawn_in):
            self._end_epoch()
        self.ledger.add(step)
        self._watched = True
        if step is not self._latest:
            self._latest, self._end = step, self.planned_steps()
            if step.reason:
                self.warn(Problem(step.reason).warning)
        if self._unwatched:
            self.warn(
                f"The privacy engine had recorded {self._unwatched:,} steps before the monitor was "
                "attached: they are counted as it recorded them, but nobody looked."
            )
            self._unwatched = 0
        if seen.rests_on != self._rests_on:
            for sentence in seen.rests_on:
                self.warn(sentence)
            self._rests_on = seen.rests_on
        if self._end is not None and self.ledger.steps > self._end and self.past_the_end():
            self.warn(checks.PAST_THE_END)
        if self.epochs.step(drawn_in, step.batches):
            self.compare_accountant()
            self._end_epoch()

    def trained_elsewhere(self, step: StepRecord) -> None:
        """Count, once, that something else than a step that was made changes the weights."""
        if all(before.problem != Problem.OUTSIDE for before, _ in self.ledger.entries):
            self.ledger.add(step)
            self.warn(Problem.OUTSIDE.warning)

    def between_loops(self, beginning: bool) -> None:
        if self.epochs.between(beginning=beginning):
            self.compare_accountant()
            self._end_epoch()

    def _end_epoch(self) -> None:
        self.epochs.end(self.ledger.steps)
        self._at_epoch()

    # Warnings

    def warn(self, sentence: str) -> None:
        """Warn once of each kind, and keep the latest numbers."""
        if sentence in self.warnings:
            return
        kinds = [_without_numbers(said) for said in self.warnings]
        kind = _without_numbers(sentence)
        if kind in kinds:
            self.warnings[kinds.index(kind)] = sentence
            return
        self.warnings.append(sentence)
        warnings.warn(sentence, PrivacyWarning, stacklevel=_depth())

    def compare_accountant(self) -> None:
        """Warn where Opacus' accountant differs from what was seen."""
        accountant = self.training.privacy_engine.accountant
        sentence = checks.disagreement(accountant.history, self.ledger) or checks.too_low(
            accountant, self.ledger.mechanism(), self._adjacency, self._delta
        )
        if sentence:
            self.warn(sentence)

    # The planned end

    def place(self) -> str:
        steps, epochs = self.planned_steps(), self.plan.epochs
        if steps is not None and epochs is None:
            epochs = steps * self.next_step().batches / self.training.sampling.length
        return summary.place(self.epochs.over(), self._steps_made(), epochs, steps)

    def planned_steps(self) -> int | None:
        """The planned end in steps, at as many batches a step as now."""
        last = self.ledger.last
        return self.plan.end(last.batches if last else 1, self.training.sampling.length)

    def past_the_end(self) -> bool:
        """Whether more steps were made than were planned."""
        end = self.planned_steps()
        return end is not None and self.ledger.steps > end and self._steps_made() > end

    def _steps_made(self) -> int:
        """Steps of Opacus' optimizer; the ledger may have one that stands for another's."""
        others = (n for step, n in self.ledger.entries if checks.elsewhere(step))
        return self.ledger.steps - sum(others)

    def next_step(self) -> StepRecord:
        """The next step, as far as it can be told."""
        last, sampling = self.ledger.last, self.training.sampling
        noise = self.training.noise_multiplier
        if last and last.nominal_noise:  # the noise has been another one than the optimizer says
            noise *= last.noise_multiplier / last.nominal_noise
        return StepRecord(
            noise_multiplier=noise,
            sample_rate=sampling.rate,
            sampling=sampling.kind,
            batches=last.batches if last else 1,
            pass_index=last.pass_index if last else 0,
            problem=Problem.UNSAMPLED if sampling.kind == "unknown" else "",
        )

    def ledger_at_end(self, pass_index: int) -> Ledger:
        """The ledger at the planned end, where the latest pass over the data has this number."""
        left = (self.planned_steps() or 0) - self.ledger.steps
        if left <= 0:
            return self.ledger
        now, sampling = self.next_step(), self.training.sampling
        over = sampling.left or now.pass_index != pass_index
        usual = self.ledger.usual_pass(but=None if over else now.pass_index)
        in_pass = min(usual or sampling.length, sampling.length)
        return self.ledger.extended(now, left, in_pass, left=over)

    # Checkpoints

    def replace_ledger(self, ledger: Ledger) -> None:
        """Go on from the ledger of a checkpoint; warn where it lacks steps that were seen."""
        if self._watched and ledger.first(self.ledger.steps).entries != self.ledger.entries:
            self.warn(checks.FORGOTTEN)
        self.ledger, self._watched, self._unwatched = ledger, False, 0
        self._latest, self._rests_on = None, ()

    def merge_warnings(self, earlier: list[str]) -> None:
        """Put those of a checkpoint before those since; of each kind the latest is kept."""
        said = {_without_numbers(sentence): sentence for sentence in (*earlier, *self.warnings)}
        self.warnings = list(said.values())


def ledger_from_accountant(training: OpacusTraining) -> Ledger:
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
        unknown = reason or (Problem.UNSAMPLED if sampling.kind == "unknown" else "")
        step = StepRecord(float(noise), own, sampling.kind, batches, problem=unknown)
        if sampling.kind == "shuffle":
            step = replace(step, pass_index=ledger.last.pass_index + 1 if ledger.last else 1)
        ledger = ledger.extended(step, int(steps), sampling.length)
    if reason and not ledger.steps:
        ledger.add(StepRecord(0.0, sampling.rate, sampling.kind, problem=Problem.OUTSIDE))
    return ledger


def _depth() -> int:
    """How far above `warn` the user's own line is."""
    frame, depth = inspect.currentframe(), 0
    while frame and frame.f_globals.get("__name__", "").startswith(PASSED_BY):
        frame, depth = frame.f_back, depth + 1
    return depth


def _without_numbers(sentence: str) -> str:
    return re.sub(r"\d[\d,.e-]*", "#", sentence)
