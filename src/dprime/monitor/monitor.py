"""The certified risk of a training with Opacus: now, and at its planned end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any, Self

from torch import Tensor, nn

from dprime import validate
from dprime.curve import TradeOff
from dprime.mechanisms import Mechanism
from dprime.metrics import MetricValue, conditions_of, risk_profile
from dprime.monitor import arguments, checks, summary
from dprime.monitor.epochs import AtEpoch
from dprime.monitor.ledger import Ledger
from dprime.monitor.opacus_training import OpacusTraining
from dprime.monitor.probe import OptimizerProbe
from dprime.monitor.problems import Problem
from dprime.monitor.progress import LEFT, Plan, Progress
from dprime.monitor.public import PublicConstants
from dprime.monitor.reader import StepReader
from dprime.monitor.state import STATE_VERSION, refuse_other
from dprime.monitor.tails import NoiseEnds, with_tails
from dprime.monitor.trackers import Tracker, single_precision
from dprime.monitor.watcher import Watcher
from dprime.privacy_loss import NotCertifiableError


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
        show: called with each line; None for no lines.
        trackers: called with the monitor at the end of each epoch, and when it is detached after
            further steps: `to_tensorboard(writer)`, `to_mlflow()`, `to_wandb()`, or your own.
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
        show: Callable[[str], object] | None = to_stderr,
        trackers: Sequence[Tracker] = (),
        other_mechanisms: Sequence[Mechanism] = (),
        public: PublicConstants | None = None,
        ideal_noise: bool = False,
    ) -> None:
        arguments.refuse_second(privacy_engine=privacy_engine, optimizer=optimizer)
        self.training = OpacusTraining(
            privacy_engine, model, optimizer, data_loader, criterion, self.mechanism
        )
        self.watchers = arguments.listed("watchers", watchers)
        self.readings = arguments.readings_of(conditions)
        self.public = arguments.public_constants(public, self.training)
        self.adjacency = arguments.adjacency_of(adjacency, self.training, self.public)
        names = [reading.name for reading in self.readings]
        self.metric = validate.one_of("metric", metric, names)
        self._show = arguments.sink_of(show)
        self._trackers = arguments.listed("trackers", trackers)
        self.other_mechanisms = arguments.listed("other_mechanisms", other_mechanisms)
        self._noise_ends = NoiseEnds.of(privacy_engine, optimizer, ideal_noise)
        self._detached = False
        self._progress = Progress(
            self.training, Plan(epochs, steps), self.adjacency, self._delta, self._at_epoch
        )
        self._tracked = self.ledger.steps
        self._reader = StepReader(self.training, self.adjacency, self.public)
        self._reader.follow(self.ledger)
        self._probe = OptimizerProbe(
            self.training, self._reader, self.watchers, self._progress, self.detach
        )
        try:
            self._probe.watch()
            for sentence in checks.at_start(self.training, self._delta):
                self._progress.warn(sentence)
            if reason := getattr(optimizer, LEFT, ""):
                self._progress.warn(Problem(reason).warning)
        except BaseException:
            self.detach()
            raise

    @property
    def ledger(self) -> Ledger:
        """What each step spent."""
        return self._progress.ledger

    @property
    def plan(self) -> Plan:
        """The planned end."""
        return self._progress.plan

    @property
    def warnings(self) -> list[str]:
        """What was warned of until now, each kind once."""
        return self._progress.warnings

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
        return self._curve_of(self.ledger)

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
        return risk_profile(self._curve_at_end(), self.readings)

    def answer(self) -> MetricValue:
        """The metric that is shown at each epoch, of what was spent until now."""
        return self._answer(self.curve())

    def numbers(self) -> dict[str, float]:
        """What trackers log, rounded safely: the shown metric, ε, and the number of warnings."""
        curve = self.curve()
        names = dict.fromkeys([self.metric, "epsilon"])
        shown = {f"privacy_{name}": single_precision(self._answer(curve, name)) for name in names}
        return {**shown, "privacy_warnings": len(self.warnings)}

    def history(self) -> list[AtEpoch]:
        """The metric at the end of each epoch so far, with the epoch's number and its last step."""
        return [
            AtEpoch(
                **vars(self._answer(self._curve_of(self.ledger.first(step)))), epoch=n, step=step
            )
            for n, step in self._progress.epochs.ends(self.ledger.steps)
        ]

    def _curve_at_end(self) -> TradeOff:
        return self._curve_of(self._progress.ledger_at_end(self._reader.pass_index))

    def _curve_of(self, ledger: Ledger) -> TradeOff:
        return _curve(self._composed(ledger), self.adjacency)

    @property
    def epochs(self) -> int:
        """Epochs that are over: passes over the loader in which steps were made.

        A pass that was left early is one too. Steps that no batch was drawn for are an epoch for as
        many batches as the loader gives in one.
        """
        return self._progress.epochs.over()

    def line(self) -> str:
        """Position and cost of the training, in one sentence."""
        future = None
        if self.plan.known and not self._progress.past_the_end():
            future = self._answer(self._curve_at_end())
        return summary.line(self._progress.place(), self.answer(), future, self.mechanism())

    def report(self) -> str:
        """The numbers now and at the planned end, the warnings, and the findings of watchers.

        It looks at the result of canaries, whose test may be looked at once: ask for it at the end.
        """
        if not self._detached:
            self._progress.compare_accountant()
        return self._report([found for each in self.watchers if (found := each.report())])

    def _report(self, findings: list[str]) -> str:
        where = self._progress.place()
        if self._detached:
            where += "; detached there: later steps are not in these numbers"
        return summary.report(
            where,
            self.mechanism(),
            self.adjacency,
            self.risk(),
            self.forecast() if self.plan.known and not self._progress.past_the_end() else None,
            self._warned(),
            findings,
            ideal_noise=self._noise_ends.ideal,
        )

    def notes(self) -> list[str]:
        """What was run, what the numbers rest on, and the warnings: to be said with the numbers."""
        mechanism, ideal = self.mechanism(), self._noise_ends.ideal
        rests_on = summary.rests_on(mechanism, self.adjacency, ideal)
        return ["; ".join(summary.described(mechanism, self.adjacency)), *rests_on, *self._warned()]

    def _warned(self) -> list[str]:
        left = self._detached or self._probe.as_left()
        return self.warnings + ([] if left else [checks.NOW])

    def __str__(self) -> str:
        """The numbers and warnings, without the findings of watchers."""
        names = ", ".join(each.name for each in self.watchers)
        return self._report([f"Not looked at: {names}; see report()."] if names else [])

    def __repr__(self) -> str:
        return f"<Monitor: {self._progress.place()}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show in a notebook what print shows."""
        printer.text(repr(self) if cycle else str(self))

    def _answer(self, curve: TradeOff, name: str = "") -> MetricValue:
        return next(each.of(curve) for each in self.readings if each.name == (name or self.metric))

    @property
    def _delta(self) -> float:
        """The δ at which ε is read."""
        return conditions_of(self.readings)["delta"]

    def accept_changes(self) -> None:
        """Declare that changes by hand since the last step do not come from the data.

        Weights, buffers, noise, clipping, rate and divisor are then taken as they are now, for
        example after weights were clamped or averaged, or after a schedule of your own. A warning
        names the condition: the changes follow from released results and rules that were fixed
        without looking at the data.
        """
        self._reader.accept()
        self._progress.warn(checks.ACCEPTED)

    # Steps, as they happen

    def batch(self, records: Tensor, targets: Tensor) -> None:
        """Give the watchers a batch, where the criterion is not a module."""
        self._probe.batch(records, targets)

    def _at_epoch(self) -> None:
        if self._show is not None:
            self._show(self.line())
        self._track()

    def _track(self) -> None:
        if self.ledger.steps != self._tracked:
            self._tracked = self.ledger.steps
            for tracker in self._trackers:
                tracker(self)

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
            "public": None if self.public is None else asdict(self.public),
            "plan": asdict(self.plan),
            "other_mechanisms": [other.to_dict() for other in self.other_mechanisms],
            "noise": asdict(self._noise_ends.for_weights(self._reader.most_weights)),
            "ledger": self.ledger.state_dict(),
            **self._progress.epochs.state_dict(self.ledger.steps),
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
        self._progress.replace_ledger(Ledger.from_state(state["ledger"]))
        self._tracked = self.ledger.steps
        self._noise_ends = self._noise_ends.worst(state["noise"])
        self._reader.follow(self.ledger)
        self._progress.epochs.load_state_dict(state)
        self._progress.merge_warnings(state["warnings"])
        for watcher, (_, saved) in zip(self.watchers, state["watchers"], strict=True):
            watcher.load_state_dict(saved)
        before = Plan(**state["plan"])
        if before != self.plan:
            self._progress.warn(
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
        self._track()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()
