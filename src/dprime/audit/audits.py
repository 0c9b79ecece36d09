"""An audit from the crafted attack to the verdict.

AttackTarget + adversary ──► Game ──► blocks of scores in a Run ──► bound ──► Verdict on the claim
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime import validate
from dprime.attack import Adversary, Attack, AttackTarget, adversary_named
from dprime.audit import caveats
from dprime.audit.estimators import ESTIMATORS, Estimator
from dprime.audit.estimators.base import ASSUMABLE, LowerBound, checked_claim
from dprime.audit.game import Game, blocks_of
from dprime.audit.identifiability import Identifiability, identify
from dprime.audit.lower import USUAL_METHOD, lower_bound
from dprime.audit.planner import Criterion, check_curve
from dprime.audit.verdict import Verdict, judge
from dprime.curve import TradeOff, TradeOffMetrics
from dprime.mechanisms import DPSGD
from dprime.metrics import Reading, risk_profile
from dprime.runs.backends.base import Backend
from dprime.runs.errors import describe
from dprime.runs.run import Run
from dprime.runs.runner import execute
from dprime.runs.states import Event, State, incident_summary, worker_lines
from dprime.train.progress import bar
from dprime.train.settings import NOT_DP, TrainingConfig

Floats = NDArray[np.float64]

BESIDE = ("clopper-pearson", "band", "gaussian", "bayesian")
"""Methods for trials, shown beside the one that decides; the one-run methods are for canaries."""

SEEDED_AFTER = 200
"""Trials after which a training function that ignores its seed is noticed."""

SHOWN = ("epsilon", "advantage", "tpr", "precision", "d_prime")
"""The metrics of an audit's table."""


@dataclass(frozen=True)
class Question:
    """What an audit is to decide, named before its trials.

    Attributes:
        metric: by which the claim is judged, or "curve" for all of the curve at once.
        method: of the lower bound.
        confidence: of the lower bound.
        delta: of every ε that is shown.
        belief: ρ_β, the belief whose exceedance is counted, for the DI adversary.
        prior: the belief before the first step, for the DI adversary.
        assume: "gaussian" accepts that law of the scores for a method that rests on it.
    """

    metric: Criterion = "curve"
    method: str | Estimator = USUAL_METHOD
    confidence: float = 0.95
    delta: float = 1e-5
    belief: float = 0.9
    prior: float = 0.5
    assume: str | None = None

    def __post_init__(self) -> None:
        validate.below_one("delta", self.delta, example="1e-5")
        validate.inner_probability("belief", self.belief, example=0.9)
        validate.inner_probability("prior", self.prior)
        method = getattr(self.method, "name", self.method)
        if not isinstance(self.method, Estimator) or method in ESTIMATORS:
            validate.one_of("method", method, BESIDE)
        validate.inner_probability("confidence", self.confidence, example=0.95)
        if self.assume is not None:
            validate.one_of("assume", self.assume, ASSUMABLE)
        check_curve(self.metric, method)
        if method == "bayesian" and self.metric != Reading("epsilon", {"delta": self.delta}):
            remedy = 'give method="band", or judge by ε'
            wanted = f"one that bounds more than ε at δ = {self.delta:g}"
            raise validate.refusal("method", method, wanted, remedy)


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found.

    Attributes:
        verdict: whether the claim is refuted.
        bound: that the verdict rests on.
        beside: the bounds of other methods, for comparison; none of them decides.
        claim: the certified curve that was claimed.
        question: what was asked before the trials.
        adversary: its name.
        about: what the adversary crafted.
        state: blocks done, failed and left.
        in_scores: of world `in`.
        out_scores: of world `out`.
        diverged: trials whose model had no score.
        attacked: data, adjacency, recipe, and what the adversary sees of it, of JSON values.
        label: what the noise protects; "not DP" for local sensitivity.
        proved: the ε at the question's δ that the accountant certifies for this training; None
            where it knows none.
        identified: Bernau et al.'s numbers, for their adversary.
        events: what went wrong with blocks on the way, most of which were played again.
    """

    verdict: Verdict
    bound: LowerBound
    beside: Mapping[str, LowerBound]
    claim: TradeOff
    question: Question
    adversary: str
    about: str
    state: State
    in_scores: Floats
    out_scores: Floats
    diverged: int
    attacked: Mapping[str, Any]
    label: str | None = None
    proved: float | None = None
    identified: Identifiability | None = None
    events: tuple[Event, ...] = ()

    def rows(self) -> list[tuple[Reading, float, float]]:
        """Each metric with what was reached and what is allowed; the first one decides.

        The others are read off the band, whose bounds hold together: reading several of them
        claims no more.
        """
        band = self.bound if self.bound.method == "band" else self.beside["band"]
        decided = self.verdict.metric
        rows = [(decided, self.verdict.reached, self.verdict.allowed)]
        for name in SHOWN:
            metric = Reading(name, {"delta": self.question.delta} if name == "epsilon" else {})
            if metric != decided and (name != decided.name or self.question.metric == "curve"):
                rows.append((metric, band.value(metric), metric.value(self.claim)))
        return rows

    def caveats(self) -> list[str]:
        """What the training and the scores show that the verdict does not say."""
        found = (
            caveats.not_certified(self.claim, self.proved, self.question.delta),
            caveats.wrong_way(self.in_scores, self.out_scores),
        )
        return [each for each in found if each is not None]

    def sentence(self) -> str:
        """The verdict, and how many trials it rests on."""
        words = f"{self.verdict.sentence} It rests on {self.state.trials:,} trials"
        if self.state.failed:
            words += (
                f"; {self.state.failed} of {self.state.blocks} blocks failed and count against the "
                f"attacker, the last with {self.state.last_error}"
            )
        words += f".{incident_summary(self.events)}"
        if self.diverged:
            words += (
                f" {self.diverged:,} of the models had diverged; what that speaks for was settled "
                "before the trials."
            )
        words = " ".join([words, *self.caveats()])
        return words if self.label is None else f"{words} The training is {self.label}."

    def as_json(self) -> dict[str, Any]:
        """All of it, of JSON values; what is infinite is null."""
        found = {
            "verdict": self.verdict.outcome,
            "sentence": self.sentence(),
            "adversary": self.adversary,
            "about": self.about,
            "reached": _finite(self.verdict.reached),
            "allowed": _finite(self.verdict.allowed),
            "confidence": self.verdict.confidence,
            "method": self.bound.method,
            "metric": _named(self.question.metric),
            "decided_by": _named(self.verdict.metric),
            "power_known": self.verdict.power_known,
            "detects": self.verdict.detects,
            "trials_needed": self.verdict.trials,
            "caveats": self.caveats(),
            "trials": {
                "in": len(self.in_scores),
                "out": len(self.out_scores),
                "counted": list(self.bound.counted),
                "diverged": self.diverged,
            },
            "blocks": dataclasses.asdict(self.state),
            "events": [dataclasses.asdict(event) for event in self.events],
            "metrics": {
                metric.name: {
                    **metric.conditions,
                    "reached": _finite(reached),
                    "allowed": _finite(allowed),
                    "kind": "lower bound",
                }
                for metric, reached, allowed in self.rows()[self.question.metric == "curve" :]
            },
            "bounds": {
                bound.method: {
                    "epsilon": _finite(bound.epsilon),
                    "delta": bound.delta,
                    "assumption": bound.assumption,
                    "objection": bound.objection,
                    "decides": bound is self.bound and bound.decides,
                }
                for bound in (self.bound, *self.beside.values())
            },
        }
        if self.label is not None:
            found["label"] = self.label
        if self.identified is not None:
            found["identifiability"] = _plain(dataclasses.asdict(self.identified))
        return found

    def _repr_html_(self) -> str:
        """What a notebook shows, made by a module that only a notebook needs."""
        return str(import_module("dprime.show.notebook").audit_html(self))

    def record(self) -> dict[str, Any]:
        """What a run keeps: `as_json`, what was attacked, and both curves, point by point."""
        at = [self.verdict.metric.conditions["fpr"]] if self.verdict.metric.name == "tpr" else []
        lower = {
            bound.method: _drawn(bound.curve, at)
            for bound in (self.bound, *self.beside.values())
            if bound.curve is not None
        }
        profile = {answer.name: answer.as_json() for answer in risk_profile(self.claim)}
        claim = {"curve": _drawn(self.claim, at), "metrics": profile}
        return {**self.as_json(), "attacked": dict(self.attacked), "claim": claim, "lower": lower}


def audit(
    adversary: str | Adversary,
    setting: AttackTarget,
    *,
    claim: TradeOff | None = None,
    trials: int = 1000,
    question: Question | None = None,
    block: int | None = None,
    path: str | Path | None = None,
    backend: Backend | None = None,
    progress: bool | None = None,
) -> Audit:
    """Let an adversary try to refute a claim.

    Args:
        adversary: a name such as "malicious-dataset", or an adversary with options of its own.
        setting: what is attacked: trainer, data, adjacency, seed.
        claim: the certified curve that is claimed; None takes that of the engine's own recipe.
        trials: in each world.
        question: what is to be decided, named before the trials; the whole curve by the band
            unless given.
        block: trials that are played and stored together; None takes 200, or 10 for a training
            function of your own.
        path: of the run's file; where it exists and was made with the same settings, the audit goes
            on with what is left. None keeps nothing.
        backend: where blocks are played, such as `Processes()` or `Ray(address="auto")`; in this
            process unless given. The scores are the same.
        progress: whether to show a bar; None shows it for long work on a terminal.

    >>> from dprime.data import load
    >>> from dprime.attack import EngineTrainer
    >>> from dprime.train import TrainingConfig
    >>> from dprime.train.models import model_named
    >>> digits = load("digits").train.take(range(50))
    >>> recipe = TrainingConfig(steps=10, learning_rate=0.1, clip_norm=1.0, noise_multiplier=3.5)
    >>> engine = EngineTrainer(model_named("linear", digits), recipe)
    >>> found = audit("malicious-dataset", AttackTarget(engine, digits, seed=1), trials=300)
    >>> found.verdict.outcome
    'not refuted'
    """
    attacker = adversary_named(adversary) if isinstance(adversary, str) else adversary
    ask = question or Question()
    claimed = _own_claim(setting) if claim is None else checked_claim(claim)
    count = validate.whole("trials", trials)
    own = setting.trainer.training is None
    size = validate.whole("block", block or usual_block(own))
    config = described(attacker, setting, claimed, ask, count, size)
    with Run.open_or_create(path, "audit", config, blocks_of(count, size)) as run:
        return play(
            run, attacker, setting, claimed, ask, count, size, backend=backend, progress=progress
        )


def described(
    attacker: Adversary,
    setting: AttackTarget,
    claim: TradeOff,
    question: Question,
    trials: int,
    block: int,
) -> dict[str, Any]:
    """What an audit of objects is, in JSON values."""
    return {
        "adversary": attacker.name, "options": _plain(dataclasses.asdict(attacker)),  # type: ignore[call-overload]
        "data": setting.dataset.name, "records": len(setting.dataset),
        "contents": [part and part.digest() for part in (setting.dataset, setting.pool)],
        "record": setting.record,
        "adjacency": setting.adjacency, "trials": trials, "block": block, "seed": setting.seed,
        "trainer": setting.trainer.describe(), "question": _asked(question),
        "claim": [_finite(value) for value in (claim.advantage(), claim.epsilon(1e-5))],
    }  # fmt: skip


def play(
    run: Run,
    attacker: Adversary,
    setting: AttackTarget,
    claim: TradeOff,
    question: Question,
    trials: int,
    block: int,
    *,
    backend: Backend | None = None,
    progress: bool | None = None,
) -> Audit:
    """Play what is left of a run, and conclude; where nothing is left, nothing is crafted."""
    with run.working():
        if run.pending():
            run.check_version()
            attack = _crafted(attacker, setting)
            run.note("about", attack.about)
            game = Game(setting, attack, trials, block, setting.seed)
            _play_pending(run, game, attacker.title, claim, question, backend, progress)
        about = run.noted("about") or _crafted(attacker, setting).about
        found = conclude(run, setting, attacker, about, claim, question, trials)
        run.keep(found.record())
    return found


def _play_pending(
    run: Run,
    game: Game,
    title: str,
    claim: TradeOff,
    question: Question,
    backend: Backend | None,
    progress: bool | None,
) -> None:
    """Play what is left, under a bar that shows what was reached so far."""
    done = run.state().trials
    with bar(title, 2 * game.trials, progress) as advance:
        advance(done)
        answer = _running_answer(run, claim, question, title)

        def words() -> str:
            workers = run.workers()
            return "\n  ".join([answer(), *(worker_lines(workers) if len(workers) > 1 else [])])

        def on_block(_: int, state: State) -> None:
            nonlocal done
            if done < SEEDED_AFTER <= state.trials:
                caveats.check_seeded(game.target, *_scores(run.arrays()))
            advance(state.trials - done, words)
            done = state.trials

        execute(run, game, backend=backend, on_block=on_block)


def conclude(
    run: Run,
    setting: AttackTarget,
    attacker: Adversary,
    about: str,
    claim: TradeOff,
    question: Question,
    trials: int,
) -> Audit:
    """From the stored scores to the verdict; of `trials` in each world, some may have failed."""
    arrays = run.arrays()
    if not arrays:
        shown = f"without a finished block, the last one failed with {run.state().last_error}"
        remedy = "mend that and resume the run"
        raise validate.misfit("run", shown, "played at least in part", remedy)
    inside, outside = _scores(arrays)
    caveats.check_seeded(setting, inside, outside)
    metric = question.metric if isinstance(question.metric, Reading) else None
    # A trial that failed may have failed because of its world: it counts against the attacker.
    lost_in, lost_out = max(0, trials - len(inside)), max(0, trials - len(outside))
    counted_in = np.concatenate([inside, np.full(lost_in, -np.inf)])
    counted_out = np.concatenate([outside, np.full(lost_out, np.inf)])

    def bound(method: str | Estimator) -> LowerBound:
        return lower_bound(
            counted_in, counted_out, delta=question.delta, confidence=question.confidence,
            method=method, metric=metric, assume=question.assume,
        )  # fmt: skip

    deciding = bound(question.method)
    return Audit(
        verdict=judge(deciding, claim, question.metric),
        bound=deciding,
        beside={name: bound(name) for name in BESIDE if name != deciding.method},
        claim=claim,
        question=question,
        adversary=attacker.name,
        about=about,
        state=run.state(),
        in_scores=inside,
        out_scores=outside,
        diverged=int(arrays["diverged"].sum()),
        attacked=_attacked(setting, attacker),
        label=_label(setting),
        proved=_proved(setting, question.delta),
        identified=_identified(arrays, setting, question),
        events=tuple(run.events()),
    )


def _attacked(setting: AttackTarget, attacker: Adversary) -> dict[str, Any]:
    """What was attacked and what the adversary sees of it, of JSON values."""
    training = setting.trainer.training
    recipe = training and {name: _plain(getattr(training, name)) for name in KEPT}
    return {
        "data": setting.dataset.name, "records": len(setting.dataset),
        "adjacency": setting.adjacency, "sees": attacker.sees, "training": recipe,
        "trainer": setting.trainer.describe(),
    }  # fmt: skip


KEPT = (
    "noise_multiplier", "sample_rate", "steps", "learning_rate", "clip_norm", "sensitivity",
    "expected_batch_size",
)  # fmt: skip
"""What a run keeps of the engine's recipe."""


def _drawn(curve: TradeOffMetrics, also: Sequence[float]) -> dict[str, list[float]]:
    """Points along a curve, among them those at these false-positive rates."""
    fpr, tpr = curve.points(also)
    return {"fpr": fpr.tolist(), "tpr": tpr.tolist()}


def _scores(arrays: Mapping[str, NDArray[Any]]) -> tuple[Floats, Floats]:
    inside = arrays["in_world"].astype(bool)
    return arrays["score"][inside], arrays["score"][~inside]


def _crafted(attacker: Adversary, setting: AttackTarget) -> Attack:
    """What the adversary prepares; a training function of the user's own may fail under it."""
    try:
        return attacker.craft(setting)
    except validate.InputError:
        raise
    except Exception as error:  # whatever the user's code raises
        if setting.trainer.training is not None:
            raise
        raise validate.misfit(
            "trainer", f"one that failed with {describe(error)}",
            "able to train the adversary's own models", "mend it and resume the run",
        ) from error  # fmt: skip


def _asked(question: Question) -> dict[str, Any]:
    """What is to be decided: part of a run, so that nobody changes it after the trials."""
    method = question.method if isinstance(question.method, str) else repr(question.method)
    return {
        "metric": _named(question.metric), "method": method, "confidence": question.confidence,
        "delta": question.delta,
        **({} if question.assume is None else {"assume": question.assume}),
    }  # fmt: skip


def usual_block(own_trainer: bool) -> int:
    """Trials in a block: many for the engine, few for a training function of the user's own."""
    return 10 if own_trainer else 200


def _own_claim(setting: AttackTarget) -> TradeOff:
    """What the engine's recipe guarantees; for local sensitivity, what it would for this pair."""
    training = setting.trainer.training
    if training is None:
        raise validate.misfit(
            "claim", "missing", "given for a training function of your own",
            "give the certified curve that is claimed, such as dprime.DPSGD(…).curve()",
        )  # fmt: skip
    if training.noise_multiplier == 0:
        return training.mechanism().curve(setting.adjacency)  # says that there is none
    check_local_claim(training, setting.adjacency)
    mechanism = DPSGD(training.noise_multiplier, training.sample_rate, training.steps)
    return mechanism.curve(setting.adjacency)


def check_local_claim(training: TrainingConfig, adjacency: str | None) -> None:
    """Refuse what no curve is known for.

    Noise scaled to ‖g(x) − g(x′)‖ says nothing of what both gradients have in common, and with
    sampled batches that shows whether the record was drawn.
    """
    local = training.sensitivity == "local" and adjacency == "replace"
    if local and training.sample_rate < 1:
        raise validate.misfit(
            "claim", "missing", "given for local sensitivity with replaced records and sampled "
            "batches, for which no curve is known", "take full batches, or leave the adjacency out",
        )  # fmt: skip


def _proved(setting: AttackTarget, delta: float) -> float | None:
    training = setting.trainer.training
    if training is None:
        return None
    return caveats.certified_epsilon(training, setting.adjacency, delta)


def _label(setting: AttackTarget) -> str | None:
    training = setting.trainer.training
    local = training is not None and training.sensitivity == "local"
    return NOT_DP if local else None


def _running_answer(run: Run, claim: TradeOff, question: Question, title: str) -> Callable[[], str]:
    """What the trials so far say of the metric; only the end decides."""
    metric = question.metric if isinstance(question.metric, Reading) else Reading("advantage")
    allowed = metric.value(claim)

    scores: list[tuple[Floats, Floats]] = []
    read = 0

    def answer() -> str:
        nonlocal read
        if arrays := run.arrays(since=read):
            scores.append(_scores(arrays))
        read = run.state().done
        if not scores:
            return title
        inside, outside = (np.concatenate(each) for each in zip(*scores, strict=True))
        if min(len(inside), len(outside)) < 20:
            return title
        reached = lower_bound(
            inside, outside, delta=question.delta, confidence=question.confidence,
            method=question.method, metric=metric, assume=question.assume,
        ).value(metric)  # fmt: skip
        return f"{title}: {metric.title} ≥ {reached:.3g} so far, {allowed:.3g} allowed"

    return answer


def _identified(
    arrays: Mapping[str, NDArray[Any]], setting: AttackTarget, question: Question
) -> Identifiability | None:
    """Bernau et al.'s numbers, where their adversary played; models that diverged have none."""
    if "log_ratio" not in arrays:
        return None
    parts = [arrays[name] for name in ("log_ratio", "sigma", "sensitivity")]
    kept = np.logical_and.reduce([np.isfinite(part).all(1) for part in parts])
    logs, noise, sensitivities = (part[kept] for part in parts)
    in_world = arrays["in_world"].astype(bool)[kept]
    if in_world.all() or not in_world.any():
        return None
    sampled = setting.engine("di").training.sample_rate < 1
    return identify(
        logs, in_world, delta=question.delta, noise=None if sampled else noise,
        sensitivities=None if sampled else sensitivities, belief=question.belief,
        prior=question.prior, confidence=question.confidence,
    )  # fmt: skip


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _named(metric: Reading | str) -> dict[str, Any]:
    if isinstance(metric, str):
        return {"name": metric}
    return {"name": metric.name, **metric.conditions}


def _plain(values: Any) -> Any:
    """Of JSON values: what is infinite is null, what is unknown is its text."""
    if isinstance(values, Mapping):
        return {str(name): _plain(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [_plain(value) for value in values]
    if isinstance(values, float):
        return _finite(values)
    return values if values is None or isinstance(values, str | int | bool) else str(values)
