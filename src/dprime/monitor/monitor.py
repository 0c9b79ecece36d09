"""The certified risk of a training with Opacus: now, and at its planned end."""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, Self

from torch import Tensor, nn

from dprime import validate
from dprime.curve import TradeOff
from dprime.mechanisms import Mechanism
from dprime.metrics import MetricValue, conditions_of, risk_profile
from dprime.monitor import arguments, checks, summary
from dprime.monitor.checks import PrivacyWarning
from dprime.monitor.epochs import AtEpoch, Epochs
from dprime.monitor.ledger import Ledger, StepRecord
from dprime.monitor.opacus_training import OpacusTraining
from dprime.monitor.plan import Plan
from dprime.monitor.probe import OptimizerProbe
from dprime.monitor.problems import Problem
from dprime.monitor.public import PublicConstants
from dprime.monitor.reader import LEFT, StepReader, ledger_from_accountant
from dprime.monitor.state import STATE_VERSION, refuse_other
from dprime.monitor.tails import NoiseEnds, with_tails
from dprime.monitor.watcher import Watcher
from dprime.privacy_loss import NotCertifiableError

PASSED_BY = ("dprime.monitor", "opacus.", "torch.optim", "torch.utils.")
"""The modules that lie between a warning and the user's line."""


def to_stderr(text: str) -> None:
    """Print the line of an epoch, as is done by default."""
    print(f"dprime: {text}", file=sys.stderr)


@lru_cache(maxsize=256)
def _curve(mechanism: Mechanism | None, adjacency: str) -> TradeOff:
    """The certified curve; before the first step the two worlds are the same.

    What is too far out to be certified must not end a training: it is shown as no limit at all.
    """
    if mechanism is None:
        return TradeOff.gaussian(0.0)
    try:
        return mechanism.curve(adjacency)
    except NotCertifiableError:
        return TradeOff.from_lines([(0.0, 1.0)])


class Monitor:
    """Attach to what `make_private` returned; every step is then seen and accounted for.

    What a step spent is read when it happens: the noise that was added, over the norm that records
    were really clipped to, and how the batch was drawn. Curves are computed when they are asked
    for. A step that no guarantee covers makes the whole training "not private", with the reason
    and a `PrivacyWarning`.

    Args:
        privacy_engine, model, optimizer, data_loader: Opacus' own, as `make_private` returned them.
        criterion: the loss; a module's calls are seen, so that watchers get the labels.
        watchers: see every step too.
        epochs, steps: the planned end, for the forecast; one of them.
        conditions: of the metrics, by name, such as `{"delta": 1e-6}`; `prior` is that of precision
            and success, `belief_prior` that of a belief.
        adjacency: "zero-out" for Poisson batches (one record counts for nothing, the number of
            records is public) and "replace" for others, unless given; "add-remove" asks for
            `public`, and is then taken.
        metric: the number to show at each epoch: "advantage", "bayes_security", "tpr", "precision",
            "success", "belief", "belief_exceeds", "epsilon", "delta" or "d_prime", and
            "secret_success" where the conditions have a `max_prior`.
        every: "epoch", or None for no lines.
        show: called with each line; None for no lines.
        other_mechanisms: mechanisms that read the same data too, such as the cost of a clipping
            norm (`ClipNorm.cost`).
        public: rate, divisor and number of steps, where they are public constants; they are
            checked at every step.
        ideal_noise: take PyTorch's noise as ideal, which it is not: leave its ends out of every
            number. The report says so.

    """

    def __init__(
        self,
        privacy_engine: Any,
        *,
        model: nn.Module,
        optimizer: Any,
        data_loader: Any,
        criterion: Any = None,
        watchers: Sequence[Watcher] = (),
        epochs: float | None = None,
        steps: int | None = None,
        conditions: Mapping[str, float] | None = None,
        adjacency: str | None = None,
        metric: str = "advantage",
        every: Literal["epoch"] | None = "epoch",
        show: Callable[[str], object] | None = to_stderr,
        other_mechanisms: Sequence[Mechanism] = (),
        public: PublicConstants | None = None,
        ideal_noise: bool = False,
    ) -> None:
        arguments.refuse_second(privacy_engine=privacy_engine, optimizer=optimizer)
        self.training = OpacusTraining(
            privacy_engine, model, optimizer, data_loader, criterion, self.mechanism
        )
        self.watchers = arguments.all_of(
            Watcher, "watchers", watchers, "a list of watchers",
            "give for example watchers=[GradientCanaries()]",
        )  # fmt: skip
        self.readings = arguments.readings_of(conditions)
        self.public = arguments.public_constants(public, self.training)
        self.adjacency = arguments.adjacency_of(adjacency, self.training, self.public)
        names = [reading.name for reading in self.readings]
        self.metric = validate.one_of("metric", metric, names)
        self.plan = Plan(epochs, steps)
        self._show = arguments.sink_of(show) if arguments.lines_wanted(every) else None
        self.other_mechanisms = arguments.all_of(
            Mechanism, "other_mechanisms", other_mechanisms, "a list of mechanisms",
            "give for example other_mechanisms=[clip_norm.cost]",
        )  # fmt: skip
        self._noise_ends = NoiseEnds.of(privacy_engine, optimizer, ideal_noise)
        self.warnings: list[str] = []
        self.ledger = ledger_from_accountant(self.training)
        self._unseen = self.ledger.steps
        self._seen = False
        self._latest: StepRecord | None = None  # the step that the planned end was computed for
        self._end: int | None = None
        self._detached = False
        self._epochs = Epochs(self.training.sampling, self.ledger.batches)
        self._reader = StepReader(self.training, self.adjacency, self.public)
        self._reader.follow(self.ledger)
        self._probe = OptimizerProbe(
            self.training, self._reader, self.watchers, self._book, self._trained_elsewhere,
            self._between_loops, self.detach,
        )  # fmt: skip
        try:
            self._probe.watch()
            for sentence in checks.at_start(self.training, self._delta):
                self._warn(sentence)
            if reason := getattr(optimizer, LEFT, ""):
                self._warn(Problem(reason).warning)
        except BaseException:
            self.detach()
            raise

    # What was spent, and what will be

    def mechanism(self) -> Mechanism | None:
        """The mechanism until now, with the tails of its noise; None before the first step."""
        return self._composed(self.ledger)

    def _composed(self, ledger: Ledger) -> Mechanism | None:
        """The steps of a ledger with the other mechanisms and the tails of the noise."""
        mechanism = ledger.mechanism(*self.other_mechanisms, public_size=self.public is None)
        ends = self._noise_ends.for_weights(self._reader.most_weights)
        return with_tails(mechanism, ledger, ends)

    def curve(self) -> TradeOff:
        """The certified curve of what was spent until now."""
        return _curve(self.mechanism(), self.adjacency)

    def risk(self) -> list[MetricValue]:
        """Every metric of what was spent until now."""
        return risk_profile(self.curve(), self.readings)

    def forecast(self) -> list[MetricValue]:
        """Every metric at the planned end, if noise and rate stay as they are.

        Where passes over the data are counted, those to come are taken to have as many steps as
        those that are over had on average.
        """
        if not self.plan.known:
            remedy = "give epochs or steps when attaching"
            raise validate.invalid_input(
                "the planned end", "missing", "known for a forecast", remedy
            )
        return risk_profile(_curve(self._future(), self.adjacency), self.readings)

    def answer(self) -> MetricValue:
        """The metric that is shown at each epoch, of what was spent until now."""
        return self._answer(self.curve())

    def history(self) -> list[AtEpoch]:
        """The metric at the end of each epoch so far, with the epoch's number and its last step."""
        return [
            AtEpoch(**vars(self._answer(self._curve_after(step))), epoch=epoch, step=step)
            for epoch, step in self._epochs.ends(self.ledger.steps)
        ]

    def _curve_after(self, steps: int) -> TradeOff:
        return _curve(self._composed(self.ledger.first(steps)), self.adjacency)

    @property
    def epochs(self) -> int:
        """Epochs that are over: passes over the loader in which steps were made.

        A pass that was left early is one too. Steps that no batch was drawn for are an epoch for as
        many batches as the loader gives in one.
        """
        return self._epochs.over()

    def line(self) -> str:
        """Position and cost of the training, in one sentence."""
        future = None
        if self.plan.known and not self._past_the_end():
            future = self._answer(_curve(self._future(), self.adjacency))
        return summary.line(self._place(), self.answer(), future, self.mechanism())

    def report(self) -> str:
        """The numbers now and at the planned end, the warnings, and the findings of watchers.

        It looks at the result of canaries, whose test may be looked at once: ask for it at the end.
        """
        if not self._detached:
            self._compare_accountant()
        return self._report([found for each in self.watchers if (found := each.report())])

    def _report(self, findings: list[str]) -> str:
        where = self._place()
        if self._detached:
            where += "; detached there: later steps are not in these numbers"
        return summary.report(
            where,
            self.mechanism(),
            self.adjacency,
            self.risk(),
            self.forecast() if self.plan.known and not self._past_the_end() else None,
            [*self.warnings, *([] if self._detached or self._probe.as_left() else [checks.NOW])],
            findings,
            ideal_noise=self._noise_ends.ideal,
        )

    def __str__(self) -> str:
        """The numbers and warnings, without the findings of watchers."""
        names = ", ".join(each.name for each in self.watchers)
        return self._report([f"Not looked at: {names}; see report()."] if names else [])

    def __repr__(self) -> str:
        return f"<Monitor: {self._place()}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show in a notebook what print shows."""
        printer.text(repr(self) if cycle else str(self))

    def _answer(self, curve: TradeOff) -> MetricValue:
        answers = risk_profile(curve, self.readings)
        return next(answer for answer in answers if answer.name == self.metric)

    @property
    def _delta(self) -> float:
        """The δ at which ε is read."""
        return conditions_of(self.readings)["delta"]

    def _place(self) -> str:
        steps, epochs = self._planned_steps(), self.plan.epochs
        if steps is not None and epochs is None:
            epochs = steps * self._now().batches / self.training.sampling.length
        return summary.place(self.epochs, self._steps_made(), epochs, steps)

    def _steps_made(self) -> int:
        """Steps of Opacus' optimizer; the ledger may have one that stands for another's."""
        others = (n for step, n in self.ledger.entries if checks.elsewhere(step))
        return self.ledger.steps - sum(others)

    def _past_the_end(self) -> bool:
        end = self._planned_steps()
        return end is not None and self.ledger.steps > end and self._steps_made() > end

    def _planned_steps(self) -> int | None:
        """The planned end in steps, at as many batches a step as now."""
        last = self.ledger.last
        return self.plan.end(last.batches if last else 1, self.training.sampling.length)

    def _now(self) -> StepRecord:
        """A step as the next one will be, as far as can be told."""
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

    def _future(self) -> Mechanism | None:
        left = (self._planned_steps() or 0) - self.ledger.steps
        if left <= 0:
            return self.mechanism()
        now, sampling = self._now(), self.training.sampling
        over = sampling.left or now.pass_index != self._reader.pass_index
        usual = self.ledger.usual_pass(but=None if over else now.pass_index)
        in_pass = min(usual or sampling.length, sampling.length)
        return self._composed(self.ledger.extended(now, left, in_pass, left=over))

    def accept_changes(self) -> None:
        """Declare that changes by hand since the last step do not come from the data.

        Weights, buffers, noise, clipping, rate and divisor are then taken as they are now, for
        example after weights were clamped or averaged, or after a schedule of your own. A warning
        names the condition: the changes follow from released results and rules that were fixed
        without looking at the data.
        """
        self._reader.accept()
        self._warn(checks.ACCEPTED)

    # Steps, as they happen

    def batch(self, records: Tensor, targets: Tensor) -> None:
        """Give the watchers a batch, where the criterion is not a module."""
        self._probe.batch(records, targets)

    def _book(self) -> None:
        """Count the step that is about to change the weights."""
        step = self._reader.read()
        step_of = self.training.sampling.used
        if self._epochs.follows(step_of):
            self._end_epoch()
        self.ledger.add(step)
        self._seen = True
        if step is not self._latest:
            self._latest, self._end = step, self._planned_steps()
        if self._unseen:
            self._warn(
                f"The privacy engine had recorded {self._unseen:,} steps before the monitor was "
                "attached: they are counted as it recorded them, but nobody looked."
            )
            self._unseen = 0
        for sentence in self._conditions(step):
            self._warn(sentence)
        if self._epochs.step(step_of, step.batches):
            self._compare_accountant()
            self._end_epoch()

    def _conditions(self, step: StepRecord) -> Iterator[str]:
        """The reason why the step is not covered, and the conditions that it rests on."""
        reader, sampling = self._reader, self.training.sampling
        if step.reason:
            yield Problem(step.reason).warning
        if reader.scheduled:
            yield checks.SCHEDULED
        if reader.noise_scheduled:
            yield checks.NOISE_SCHEDULED
        if reader.fewer:
            yield checks.FEWER
        if reader.encoded:
            yield checks.ENCODED
        if step.left_out and step.sampling == "poisson":
            yield checks.LEFT_OUT
        if len(sampling.left_open) > 1:
            yield checks.LEFT_OPEN
        if sampling.unused - {0, 1} or len(sampling.unused) > 1:
            yield checks.CHOSEN
        if sampling.reorderable and not step.problem:
            yield checks.ORDERED
        if self._end is not None and self.ledger.steps > self._end and self._past_the_end():
            yield checks.PAST_THE_END

    def _between_loops(self, beginning: bool) -> None:
        """See whether an epoch is over when a loop over the loader begins or has ended."""
        if self._epochs.between(beginning=beginning):
            self._compare_accountant()
            self._end_epoch()

    def _end_epoch(self) -> None:
        """Record the end of an epoch with the latest step."""
        self._epochs.end(self.ledger.steps)
        if self._show is not None:
            self._show(self.line())

    def _trained_elsewhere(self) -> None:
        """Count, once, that weights are changed by something else than a step that was made."""
        if all(step.problem != Problem.OUTSIDE for step, _ in self.ledger.entries):
            self.ledger.add(self._reader.outside())
            self._warn(Problem.OUTSIDE.warning)

    def _compare_accountant(self) -> None:
        accountant = self.training.privacy_engine.accountant
        sentence = checks.disagreement(accountant.history, self.ledger) or checks.too_low(
            accountant, self.ledger.mechanism(), self.adjacency, self._delta
        )
        if sentence:
            self._warn(sentence)

    def _warn(self, sentence: str) -> None:
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

    # Checkpoints

    def state_dict(self) -> dict[str, Any]:
        """The state to save with a checkpoint: plain values, and the watchers' tensors.

        `torch.load(..., weights_only=True)` reads it back.
        """
        return {
            "version": STATE_VERSION,
            "sampling": self.training.sampling.kind,
            "sample_rate": self.training.sample_rate,
            "adjacency": self.adjacency,
            "public": None if self.public is None else self.public.state_dict(),
            "plan": self.plan.state_dict(),
            "other_mechanisms": [other.to_dict() for other in self.other_mechanisms],
            "noise": self._noise_ends.for_weights(self._reader.most_weights).state_dict(),
            "ledger": self.ledger.state_dict(),
            **self._epochs.state_dict(self.ledger.steps),
            "warnings": list(self.warnings),
            "watchers": [[watcher.name, watcher.state_dict()] for watcher in self.watchers],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state, which replaces all that was seen since.

        A training with another sampling or adjacency, or with other watchers or `other_mechanisms`,
        is refused. Another planned end is a warning, and so is a state that does not have
        the steps that were seen before it is loaded.
        """
        refuse_other(state, self.state_dict())
        ledger = Ledger.from_state(state["ledger"])
        if self._seen and ledger.first(self.ledger.steps).entries != self.ledger.entries:
            self._warn(checks.FORGOTTEN)
        self.ledger, self._seen = ledger, False
        self._noise_ends = self._noise_ends.worst(state["noise"])
        self._unseen = 0
        self._reader.follow(self.ledger)
        self._epochs.load_state_dict(state)
        said = {_without_numbers(w): w for w in (*state["warnings"], *self.warnings)}
        self.warnings = list(said.values())
        for watcher, (_, saved) in zip(self.watchers, state["watchers"], strict=True):
            watcher.load_state_dict(saved)
        before = Plan.from_state(state["plan"])
        if before != self.plan:
            self._warn(
                f"The checkpoint was planned to end after {before}, this training after "
                f"{self.plan}: the forecast is for the latter."
            )

    # The end

    def detach(self) -> None:
        """Take everything off the training's objects; what was seen stays readable."""
        self._probe.release()
        self._detached = True
        reasons = (step.reason for step, _ in self.ledger.entries if step.reason)
        vars(self.training.optimizer).pop(LEFT, None)
        if reason := next(reasons, ""):
            setattr(self.training.optimizer, LEFT, reason)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()


def _depth() -> int:
    """The number of frames between `_warn` and the user's line."""
    frame, depth = inspect.currentframe(), 0
    while frame and frame.f_globals.get("__name__", "").startswith(PASSED_BY):
        frame, depth = frame.f_back, depth + 1
    return depth


def _without_numbers(sentence: str) -> str:
    """A sentence with its numbers taken out."""
    return re.sub(r"\d[\d,.e-]*", "#", sentence)
