"""An audit from the crafted attack to the record of what happened.

AuditConfig ──► AttackTarget, Adversary ──► blocks of scores in a Run ──► conclude ──► AuditRecord
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from dprime import validate
from dprime.attack import (
    ADVERSARIES,
    Adversary,
    Attack,
    AttackTarget,
    EngineTrainer,
    FunctionTrainer,
    adversary_named,
    function_named,
)
from dprime.attack.trainer import Game, Trainer
from dprime.audit.claim import check_local_claim
from dprime.audit.conclude import bound_of, check_seeded, conclude
from dprime.audit.config import BLOCKS, AuditConfig
from dprime.audit.record import AuditRecord, Trials, record_of
from dprime.data import Dataset, Split, load
from dprime.data.arrays import at_most
from dprime.data.devices import device_named
from dprime.mechanisms import DPSGD, Mechanism
from dprime.metrics import Reading
from dprime.option import check_names
from dprime.plain import to_json
from dprime.runs import run_file
from dprime.runs.backends.base import Backend
from dprime.runs.run import Run
from dprime.runs.runner import check_code, check_version, execute
from dprime.runs.states import State, describe, worker_lines
from dprime.train import SGD, Adam, Compute, TrainingConfig
from dprime.train.checks import network_of
from dprime.train.data import check_record
from dprime.train.models import network_named
from dprime.train.progress import bar

Floats = NDArray[np.float64]

OPTIONS = (
    *("trials", "block", "criterion", "method", "confidence"),
    *("delta", "belief_level", "belief_prior", "assume"),
)
"""What an audit of objects may be asked, as `AuditConfig` has it."""

SEEDED_AFTER = 200  # trials after which a training function that ignores its seed is noticed
SHOWN_AFTER = 20  # trials in each world from which the bar shows a bound


# From words ---------------------------------------------------------------------------------------


def begin(
    config: AuditConfig,
    path: str | Path,
    *,
    backend: Backend | None = None,
    progress: bool | None = None,
    split: Split | None = None,
    go_on: bool = False,
) -> AuditRecord:
    """Begin a run in a new file and play it to its end; all inputs are validated first.

    With `go_on`, an existing run of the same configuration is resumed. A run that was begun in
    Python with the same objects is always resumed, and keeps these names from then on. `split` is
    the data, if already loaded.
    """
    attacker, target = adversary_of(config), target_of(config, split)
    attacker.check(target)
    config.curve  # noqa: B018  refused before there is a file
    described = config.to_dict()
    opened: Callable[..., Run] = Run.open_or_create if go_on else Run.create
    if Path(path).exists() and run_file.is_run(Path(path)):
        with Run.open(path, verify=False) as there:
            of_objects = there.kind == "audit" and isinstance(there.config.get("trainer"), Mapping)
        if of_objects:
            described = _of_objects(config, attacker, target).to_dict()
            opened = partial(Run.open_or_create, request=config.to_dict())
    with opened(path, "audit", described, config.blocks) as run:
        return play(run, AuditConfig.of(run), attacker, target, backend=backend, progress=progress)


def resume(
    path: str | Path,
    *,
    backend: Backend | None = None,
    progress: bool | None = None,
    allow_code: bool = False,
) -> AuditRecord:
    """Resume a run and conclude it; finished blocks are not played again.

    The file names the model or trainer of its author, which is imported and called only with
    `allow_code`.
    """
    with Run.open_to_go_on(path) as run:
        if not run.config.get("contents"):  # with objects it is refused, whatever they look like
            check_code(run, allowed=allow_code)
        config = AuditConfig.of(run)
        if config.in_python:
            remedy = (
                "call dprime.audit.audit again with the same path, or dprime audit with the "
                f"options that describe it and --run {run.path.name}"
            )
            shown = "one that was begun in Python, with objects that have no name"
            raise validate.invalid_input("run", shown, "begun by dprime audit", remedy)
        attacker, target = adversary_of(config), target_of(config)
        return play(run, config, attacker, target, backend=backend, progress=progress)


def adversary_of(config: AuditConfig) -> Adversary:
    """The adversary with its options."""
    return ADVERSARIES[config.adversary](**config.options)


def target_of(config: AuditConfig, split: Split | None = None) -> AttackTarget:
    """What is attacked; the data are loaded unless they are given."""
    split = split or load(config.data, config.data_dir)
    dataset = split.train
    device_named(config.device)
    if config.max_records is not None:
        dataset = dataset.take(range(at_most("max_records", config.max_records, len(dataset))))
    if config.record is not None:
        check_record(config.record, len(dataset))
    return AttackTarget(
        _trainer(config, dataset), dataset, config.adjacency, split.test, config.record, config.seed
    )


def _trainer(config: AuditConfig, dataset: Dataset) -> Trainer:
    values = dict(config.training)
    values.setdefault("loss", "squared-error" if dataset.classes is None else "cross-entropy")
    if isinstance(config.trainer, str):
        return FunctionTrainer(function_named(config.trainer), values["loss"])
    momentum = values.pop("momentum")
    optimizer = SGD(momentum=momentum) if values.pop("optimizer") == "sgd" else Adam()
    training = TrainingConfig(**values, optimizer=optimizer)
    network = network_named(config.model, dataset)
    x, y = torch.tensor(dataset.records), torch.tensor(dataset.labels)
    network_of(network, x, y, training.loss)  # says so if they do not fit
    return EngineTrainer(network, training, Compute(config.device, config.memory))


class Played(NamedTuple):
    """One of several audits: its name in the file, its run, and what it took this time."""

    name: str
    path: Path
    record: AuditRecord
    seconds: float


def play_batch(
    configs: Mapping[str, AuditConfig],
    folder: str | Path,
    *,
    backend: Backend | None = None,
    progress: bool | None = None,
) -> Iterator[Played]:
    """Play audits one after the other, each in a file of its name in the folder."""
    for each in configs.values():  # all are validated before the first is played
        adversary_of(each), each.curve
    place, loaded = Path(folder), None
    place.mkdir(parents=True, exist_ok=True)
    for name, each in configs.items():
        start, path = time.perf_counter(), place / f"{name}.run"
        if loaded != (each.data, each.data_dir):  # loading may take longer than an audit
            loaded, split = (each.data, each.data_dir), load(each.data, each.data_dir)
        record = begin(each, path, backend=backend, progress=progress, split=split, go_on=True)
        yield Played(name, path, record, time.perf_counter() - start)


# From objects -------------------------------------------------------------------------------------


def audit(
    adversary: str | Adversary,
    target: AttackTarget,
    *,
    claim: Mechanism | None = None,
    path: str | Path | None = None,
    backend: Backend | None = None,
    progress: bool | None = None,
    **options: Any,
) -> AuditRecord:
    """Let an adversary, by name or with its options, try to refute a claim.

    The claim is the certified curve of a mechanism, by default that of the engine's recipe. If the
    path has a run of the same configuration, the audit resumes it; without a path nothing is kept.
    Backends such as `Processes()` give the same scores. A progress bar is shown for long work on a
    terminal, or as `progress` says. Options are trials, block, criterion, method, confidence,
    delta, belief_level, belief_prior and assume, as in `AuditConfig`.

    >>> from dprime.data import load
    >>> from dprime.attack import EngineTrainer
    >>> from dprime.train import TrainingConfig
    >>> from dprime.train.models import model_named
    >>> digits = load("digits").train.take(range(50))
    >>> recipe = TrainingConfig(steps=10, learning_rate=0.1, clip_norm=1.0, noise_multiplier=3.5)
    >>> engine = EngineTrainer(model_named("linear", digits), recipe)
    >>> record = audit("malicious-dataset", AttackTarget(engine, digits, seed=1), trials=300)
    >>> record.verdict.outcome
    'not refuted'
    """
    attacker = adversary_named(adversary) if isinstance(adversary, str) else adversary
    assert target.adjacency is not None
    check_names("options", options, OPTIONS)
    options.setdefault("block", BLOCKS["own" if target.trainer.training is None else "engine"])
    named = AuditConfig(
        adversary=attacker.name,
        adjacency=target.adjacency,
        record=target.record,
        seed=target.seed,
        claim=_checked_claim(claim, target),
        **options,
    )
    config = _of_objects(named, attacker, target)
    config.curve  # noqa: B018  refused before there is a file
    with Run.open_or_create(path, "audit", config.to_dict(), config.blocks) as run:
        return play(run, config, attacker, target, backend=backend, progress=progress)


def _of_objects(config: AuditConfig, attacker: Adversary, target: AttackTarget) -> AuditConfig:
    """The configuration with descriptions of its objects in place of their names."""
    options = json.dumps(dataclasses.asdict(attacker), default=str)  # type: ignore[call-overload]
    parts = (target.dataset, target.pool)
    return dataclasses.replace(
        config,
        options=json.loads(options),
        data=target.dataset.name,
        max_records=len(target.dataset),
        data_dir=None,
        model="",
        trainer=target.trainer.describe(),
        training={},
        chosen_for={},
        device="auto",
        memory=2.0,
        contents=tuple(None if part is None else part.digest() for part in parts),
    )


def _checked_claim(claim: object, target: AttackTarget) -> Mechanism:
    """The claim; by default what the recipe guarantees, with local sensitivity for this pair."""
    training = target.trainer.training
    if claim is None and training is not None:
        check_local_claim(training.sensitivity, training.sample_rate, target.adjacency)
        return DPSGD(training.noise_multiplier, training.sample_rate, training.steps)
    if not isinstance(claim, Mechanism):
        shown = "missing" if claim is None else f"of type {type(claim).__name__}"
        remedy = "give what was run, such as dprime.DPSGD(…) or dprime.EpsilonDelta(4.0, 1e-5)"
        raise validate.invalid_input("claim", shown, "a mechanism", remedy)
    Mechanism.from_dict(to_json(claim.to_dict()))  # so that the run can keep it
    return claim


# Trials -------------------------------------------------------------------------------------------


def play(
    run: Run,
    config: AuditConfig,
    attacker: Adversary,
    target: AttackTarget,
    *,
    backend: Backend | None = None,
    progress: bool | None = None,
) -> AuditRecord:
    """Play what is left of a run, and conclude; where nothing is left, nothing is crafted."""
    if run.pending():
        with run.working():
            check_version(run)
            attack = _crafted(attacker, target)
            run.note("about", attack.about)
            game = Game(target.trainer, attack, config.trials, config.block, target.seed)
            before = run.state().total_trials
            with bar(attacker.title, 2 * config.trials, progress, before=before) as advance:
                watcher = _watcher(run, config, target, advance)
                execute(run, game, backend=backend, on_block=watcher)
    about = run.noted("about") or _crafted(attacker, target).about
    conclude(run, config, attacker, target, about)
    return record_of(run)


def _crafted(attacker: Adversary, target: AttackTarget) -> Attack:
    try:
        return attacker.craft(target)
    except validate.InputError:
        raise
    except Exception as error:  # whatever the user's code raises
        if target.trainer.training is not None:
            raise
        shown = f"one that failed with {describe(error)}"
        wanted, remedy = "able to train the adversary's own models", "mend it and resume the run"
        raise validate.invalid_input("trainer", shown, wanted, remedy) from error


def _watcher(
    run: Run, config: AuditConfig, target: AttackTarget, advance: Callable[..., None]
) -> Callable[[int, State], None]:
    """Advance the bar at each block, with the bound so far; only the final bound decides."""
    metric = Reading("advantage") if config.criterion == "curve" else config.criterion
    allowed = metric.value(config.curve)
    scores: list[tuple[Floats, Floats]] = []
    read, done = 0, run.state().total_trials

    def words() -> str:
        nonlocal read
        if arrays := run.arrays(since=read):
            scores.append(Trials.of(arrays).scores)
        read = run.state().done
        lines, workers = list[str](), run.workers()
        worlds = [np.concatenate(world) for world in zip(*scores, strict=True)]
        if worlds and min(map(len, worlds)) >= SHOWN_AFTER:
            reached = bound_of(config, worlds, metric).value(metric)
            lines.append(f"{metric.title} ≥ {reached:.3g} so far, {allowed:.3g} allowed")
        return "\n".join([*lines, *(worker_lines(workers) if len(workers) > 1 else [])])

    def on_block(_: int, state: State) -> None:
        nonlocal done
        if done < SEEDED_AFTER <= state.total_trials:
            check_seeded(target, *Trials.of(run.arrays()).scores)
        advance(state.total_trials - done, words)
        done = state.total_trials

    return on_block
