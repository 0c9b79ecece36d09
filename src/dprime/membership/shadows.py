"""Shadow models: trained as the target is, on random parts of the same pool, all together.

    pool + trainer ──► parts of the pool ──► models ──► what they answer about every record

They can be kept in a file. It is used again only where every setting is the same, to the last
digit of the data; a training that was killed goes on where it stopped.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dprime
from dprime import validate
from dprime.attack.trainer import EngineTrainer, OwnTrainer, Trainer
from dprime.data.dataset import Dataset
from dprime.membership.planner import check_outside
from dprime.membership.signals import Signals, signals_of
from dprime.runs.backends.base import Backend
from dprime.runs.run import Run
from dprime.runs.runner import execute
from dprime.train import Subsets, train
from dprime.train.progress import bar

TOGETHER = {"own": 1, "cpu": 16}
"""Models that are trained and stored together, by where."""

TOGETHER_ON_GPU = 1024


@dataclass(frozen=True, eq=False)
class Answers:
    """Models trained on parts of a pool, and what they answer.

    Attributes:
        members: whether each model was trained on each record of the pool [model, record].
        pool: answers about the records of the pool [model, record].
        population: answers about records that no model was trained on [model, record'].
    """

    members: NDArray[np.bool_] = field(repr=False)
    pool: Signals = field(repr=False)
    population: Signals = field(repr=False)

    def __len__(self) -> int:
        return len(self.members)

    def take(self, models: slice) -> Answers:
        """Those of some of the models."""
        pool, population = (
            Signals(signals.right[models], signals.wrong[models])
            for signals in (self.pool, self.population)
        )
        return Answers(self.members[models], pool, population)


def answers(
    trainer: Trainer,
    pool: Dataset,
    population: Dataset,
    *,
    models: int,
    probability: float = 0.5,
    seed: int,
    file: str | os.PathLike[str] | None = None,
    title: str = "shadow models",
    backend: Backend | None = None,
    progress: bool | None = None,
) -> Answers:
    """Train models on random parts of a pool and ask them about every record.

    Args:
        trainer: the engine with its recipe, or a function of your own.
        pool: distinct records; each model has each of them with the probability, independently.
        population: records that no model is trained on, so none of the pool's.
        models: how many.
        probability: π, of a record being in a model's part.
        seed: gives the parts and the models.
        file: where the answers are kept. One that holds the same is used; one that holds other
            settings is refused.
        title: of the progress bar.
        backend: where they are trained; in this process unless given.
        progress: whether to show it; None shows it for long work on a terminal.

    >>> from dprime.data import load
    >>> from dprime.train import Training
    >>> from dprime.train.models import model_named
    >>> digits = load("digits")
    >>> recipe = Training(steps=5, learning_rate=0.5, sample_rate=0.5)
    >>> engine = EngineTrainer(model_named("linear", digits.train), recipe)
    >>> pool, others = digits.train.take(range(100)), digits.test.take(range(50))
    >>> found = answers(engine, pool, others, models=8, seed=1)
    >>> found.pool.loss.shape, found.population.loss.shape
    ((8, 100), (8, 50))
    """
    check_outside(population, pool)
    count = validate.whole("models", models, example=64)
    share = validate.inner_probability("probability", probability, example=0.5)
    device = str(trainer.device) if isinstance(trainer, EngineTrainer) else "own"
    together = TOGETHER.get(device, TOGETHER_ON_GPU)
    settings = {
        "kind": "models on parts of a pool", "dprime": dprime.__version__,
        "trainer": trainer.describe(), "device": device,
        "pool": digest(pool), "population": digest(population), "models": count,
        "probability": share, "seed": seed, "block": together,
    }  # fmt: skip
    members = parts(count, len(pool), share, seed)

    work = _Models(trainer, pool, population, members, share, seed, together)
    with tempfile.TemporaryDirectory() as nowhere:
        place = Path(nowhere) / "answers" if file is None else Path(file)
        with _opened(place, settings, -(-count // together)) as store:
            with bar(title, count, progress) as advance:
                advance(store.state().trials)
                execute(store, work, backend=backend, on_block=lambda *_: advance(together))
            _check_complete(store)
            return _read(store)


@dataclass(frozen=True, eq=False)
class _Models:
    """The work of training models, some of them in each block."""

    trainer: Trainer
    pool: Dataset
    population: Dataset
    members: NDArray[np.bool_]
    probability: float
    seed: int = field(repr=False)
    together: int

    def __call__(self, block: int) -> Mapping[str, NDArray[Any]]:
        """Train the models of a block, and ask them."""
        rows = slice(block * self.together, (block + 1) * self.together)
        part = Subsets(self.pool, self.members[rows], self.probability)
        own = int(np.random.SeedSequence([self.seed, 1 + block]).generate_state(1, np.uint64)[0])
        inside, outside = _trained(self.trainer, part, self.population, own)
        return {
            "members": self.members[rows], "pool_right": inside.right, "pool_wrong": inside.wrong,
            "population_right": outside.right, "population_wrong": outside.wrong,
        }  # fmt: skip

    def halved(self, times: int) -> _Models:
        """In a half, a quarter, … of the memory."""
        return dataclasses.replace(self, trainer=self.trainer.halved(times))

    def placed(self, device: str, memory: float) -> _Models:
        """On another device, in no more memory than this."""
        return dataclasses.replace(self, trainer=self.trainer.placed(device, memory))


def parts(models: int, records: int, probability: float, seed: int) -> NDArray[np.bool_]:
    """Which model has which record [model, record]; for models of one's own, not for secrets."""
    drawn: NDArray[np.bool_] = np.random.default_rng([seed, 0]).random((models, records)) < (
        probability
    )
    return drawn


def digest(dataset: Dataset) -> str:
    """Tells one data set's contents from another's."""
    state = hashlib.sha256(dataset.records.tobytes())
    state.update(dataset.labels.tobytes())
    return f"{dataset.records.shape} {state.hexdigest()}"


def _trained(
    trainer: Trainer, part: Subsets, population: Dataset, seed: int
) -> tuple[Signals, Signals]:
    """One model for each part of the pool: answers about the pool, and about the others."""
    if isinstance(trainer, EngineTrainer):
        trained = train(
            trainer.model, part, trainer.alone, seed=seed, device=trainer.device,
            memory=trainer.memory, progress=False,
        )  # fmt: skip
        return (
            signals_of(trained, part.pool, device=trainer.device),
            signals_of(trained, population, device=trainer.device),
        )
    if not isinstance(trainer, OwnTrainer):
        wanted = "the engine's or one of your own functions"
        raise validate.misfit("trainer", type(trainer).__name__, wanted, "give OwnTrainer(…)")
    seeds = np.random.SeedSequence(seed).generate_state(len(part), np.uint32)
    inside, outside = [], []
    for members, own in zip(part.members, seeds, strict=True):
        model = trainer.model(part.pool.take(members), int(own))
        try:
            inside.append(signals_of(model, part.pool))
            outside.append(signals_of(model, population))
        except Exception as error:  # whatever a model of the user's own may raise
            wanted = f"a function whose model answers records of {part.pool.name} ({error})"
            remedy = f"give it {part.pool.classes} outputs, one for each class"
            raise validate.misfit("trainer", "another", wanted, remedy) from None
    return _stacked(inside), _stacked(outside)


def _stacked(signals: list[Signals]) -> Signals:
    return Signals(
        np.stack([each.right for each in signals]), np.stack([each.wrong for each in signals])
    )


def _opened(place: Path, settings: Mapping[str, Any], blocks: int) -> Run:
    """A new file, or one that holds exactly this."""
    if not place.exists():
        return Run.create(place, settings, blocks)
    store = Run.open(place)
    for name, wanted in settings.items():
        found = store.config.get(name)
        if found != wanted:
            store.close()
            shown, asked = _apart(found, wanted)
            raise validate.misfit(
                "shadow file", f"one with {name} {shown}", f"of the same settings ({name} {asked})",
                "name another file, or give the settings that it was made with",
            )  # fmt: skip
    return store


def _apart(found: object, wanted: object) -> tuple[object, object]:
    """The first difference between two settings, which may be tables."""
    if isinstance(found, Mapping) and isinstance(wanted, Mapping):
        for name in sorted({*found, *wanted}):
            if found.get(name) != wanted.get(name):
                return f"{name} {found.get(name)}", f"{name} {wanted.get(name)}"
    return found, wanted


def _check_complete(store: Run) -> None:
    state = store.state()
    if not state.complete:
        raise validate.InputError(
            f"{state.failed} of {state.blocks} blocks of models could not be trained: "
            f"{state.last_error}."
        )


def _read(store: Run) -> Answers:
    kept = store.arrays()
    return Answers(
        kept["members"],
        Signals(kept["pool_right"], kept["pool_wrong"]),
        Signals(kept["population_right"], kept["population_wrong"]),
    )
