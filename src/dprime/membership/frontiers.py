"""At an equal bound on precision: which share of the pool gives the best model.

    Plan ──► at each π: draws from the pool, one training each, all at once ──► Frontier

Every point of a plan keeps the same bound, so what is left to compare is accuracy (Thudi et al.
2024, figures 5 and 6). The models are thrown away. The bound is for one released model: choosing π
by trainings on the pool is not part of it.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from torch import nn

import dprime
from dprime import validate
from dprime.attack.trainer import EngineTrainer
from dprime.data.dataset import Dataset, Split
from dprime.data.devices import device_named
from dprime.membership.confidence import Interval, over_repetitions
from dprime.membership.planner import Plan, Point
from dprime.membership.pool import check_distinct, draw
from dprime.runs.arrays import Arrays
from dprime.runs.backends.base import Backend, Here
from dprime.runs.run import Run
from dprime.runs.runner import counting, execute
from dprime.seeds import check_seed, derived_seed, fresh_seed
from dprime.text import round_up
from dprime.train import SGD, Compute, Observer, Step, TrainingConfig, TrainingData
from dprime.train.observers import AccuracyEvery, FinalAccuracy
from dprime.train.optimizers import Optimizer
from dprime.train.progress import Advance, bar

CONFIDENCE = 0.95
"""Of every interval of a mean."""

REPETITIONS = 5


@final
@dataclass(frozen=True, eq=False)
class Measured:
    """A point of the plan, and how well its models do on the test part.

    Attributes:
        point: of the plan.
        learning_rate: of its trainings.
        after: the steps after which the accuracy was measured, the last one the end.
        accuracies: [repetition, measurement].
        diverged: repetitions whose weights are no longer finite; they count with the accuracy that
            such a model has.
        choosing: mean final accuracy on the records by which the learning rate is chosen; None
            where there is one rate only.
    """

    point: Point
    learning_rate: float
    after: tuple[int, ...]
    accuracies: NDArray[np.float64]
    diverged: int
    choosing: float | None = None

    @property
    def final(self) -> Interval:
        """At the end of the training."""
        return self.among(1)

    def among(self, points: int) -> Interval:
        """At the end, with an interval that holds together with those of so many points."""
        return _mean(self.accuracies[:, -1], points)

    @property
    def best(self) -> Interval:
        """The best of each training's measurements: it peeks at the test part."""
        return _mean(self.accuracies.max(axis=1))

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            **self.point.as_json(), "learning_rate": self.learning_rate, "after": list(self.after),
            "accuracies": self.accuracies.tolist(), "diverged": self.diverged,
            "choosing": self.choosing,
            "final": self.final.as_json(), "best_peeks_at_test": self.best.as_json(),
        }  # fmt: skip


@final
@dataclass(frozen=True, eq=False)
class Frontier:
    """Accuracy against π at an equal bound on precision.

    Attributes:
        plan: the points that were trained.
        measured: one for each point of the plan.
        data: the data set's name.
        repetitions: trainings at each point, each on a draw of its own.
        learning_rates: that were tried at each point.
    """

    plan: Plan
    measured: tuple[Measured, ...]
    data: str
    repetitions: int
    learning_rates: tuple[float, ...]

    @property
    def best(self) -> Measured:
        """The point with the best mean final accuracy."""
        return max(self.measured, key=lambda each: each.final.value)

    @property
    def tied(self) -> tuple[Measured, ...]:
        """Other points whose interval overlaps that of the best: they may be as good.

        The best was picked among all points, so the intervals are those that hold for all at once.
        """
        best, count = self.best, len(self.measured)
        return tuple(
            each
            for each in self.measured
            if each is not best and each.among(count).overlaps(best.among(count))
        )

    def sentence(self) -> str:
        """What was found, in plain words."""
        best, last = self.best, self.measured[-1]
        told = [
            f"At a precision of at most {self.plan.target:g} on {self.data}, the best mean final "
            f"accuracy is {self._told(best)}, at π = {best.point.probability:g} with "
            f"{_epsilon_words(best.point.epsilon)}."
        ]
        if len(self.measured) > 1:
            told.append(self._rivals())
        if last is not best and last not in self.tied:
            told.append(
                f"More records with more noise, π = {last.point.probability:g} with "
                f"{_epsilon_words(last.point.epsilon)}, give {self._told(last)}."
            )
        lost = sum(each.diverged for each in self.measured)
        if lost:
            told.append(f"{lost} trainings diverged: a lower learning rate helps.")
        return " ".join(told)

    def _told(self, point: Measured) -> str:
        accuracy = point.among(len(self.measured))
        value, low, high = (f"{100 * number:.2f}" for number in accuracy.numbers)
        return f"{value} % ({low} to {high})"

    def _rivals(self) -> str:
        names = [f"{each.point.probability:g}" for each in self.tied]
        if not names:
            return "No other π has an interval (corrected for their number) that overlaps it."
        listed = " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
        return (
            f"It cannot be told from π = {listed}: the intervals, corrected for their number, "
            "overlap."
        )

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            **self.plan.as_json(),
            "data": self.data,
            "repetitions": self.repetitions,
            "learning_rates": list(self.learning_rates),
            "confidence": CONFIDENCE,
            "points": [each.as_json() for each in self.measured],
            "best": self.best.point.probability,
            "tied": [each.point.probability for each in self.tied],
            "plan": self.plan.sentence(),
            "sentence": self.sentence(),
        }


def _mean(accuracies: NDArray[np.float64], cells: int = 1) -> Interval:
    """Over the repetitions; exact where these are normally distributed."""
    return over_repetitions(accuracies, confidence=CONFIDENCE, cells=cells).within()


def _epsilon_words(epsilon: float) -> str:
    return f"ε at most {round_up(epsilon)}" if np.isfinite(epsilon) else "no finite ε"


def frontier(
    plan: Plan,
    data: Split,
    model: nn.Module,
    *,
    learning_rate: float | Sequence[float],
    clip_norm: float,
    optimizer: Optimizer | None = None,
    repetitions: int = REPETITIONS,
    seed: int | None = None,
    file: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    memory: float = 2.0,
    backend: Backend | None = None,
    progress: bool | None = None,
    request: Mapping[str, Any] | None = None,
) -> Frontier:
    """Train at every point of a plan, and measure the accuracy on the test part.

    Much noise wants a smaller learning rate than little noise. Where several are given, every one
    is tried at each point. The one with the best mean final accuracy on every other test record
    stands for the point, and its accuracy is measured on the remaining ones.

    Args:
        plan: the points; its pool is the training part.
        data: a training part of distinct records, which is the pool, and a test part.
        model: any network that the engine trains.
        learning_rate: one for all points, or several to choose from at each point.
        clip_norm: C, the same at every point.
        optimizer: `SGD()` where left out.
        repetitions: trainings at each point, each with a fresh draw from the pool; 2 or more.
        seed: gives draws and trainings; whoever knows it knows the draws. None draws one that is
            not kept; one that you give stands in the file.
        file: of the run; points that are finished in it are not trained again. None keeps nothing.
        device: "cpu" or "cuda".
        memory: in GB.
        backend: where points are trained; in this process unless given.
        progress: whether to show a bar; None shows it for long work on a terminal.
        request: names from which all this can be made again, for `dprime resume`.

    >>> from dprime.data import load
    >>> from dprime.membership.planner import plan
    >>> from dprime.train.models import model_named
    >>> digits = load("digits")
    >>> points = plan(0.8, pool_size=1438, batch_size=100, epochs=3, probabilities=[0.2, 0.79])
    >>> net = model_named("linear", digits.train)
    >>> found = frontier(points, digits, net, learning_rate=2.0, clip_norm=1.0, seed=1)
    >>> found.best.point.probability, found.tied
    (0.2, ())
    """
    rates = _checked_rates(learning_rate)
    count = _checked_repetitions(repetitions)
    _check_data(plan, data)
    device_named(device)
    test, choosing = _test_parts(data.test, len(rates) > 1)
    jobs = []
    for point in plan.points:
        for rate in rates:
            training = TrainingConfig(
                steps=point.steps, learning_rate=rate, clip_norm=clip_norm,
                noise_multiplier=point.noise_multiplier, sample_rate=point.sample_rate,
                expected_batch_size=plan.batch_size,
                optimizer=optimizer or SGD(),
            )  # fmt: skip
            jobs.append((point, EngineTrainer(model, training, Compute(device, memory))))
    with bar("training", count * len(jobs), progress) as advance:
        here = backend is None or isinstance(backend, Here)
        work = _Points(
            jobs=tuple(jobs), pool=data.train, test=test, choosing=choosing, repetitions=count,
            seed=fresh_seed() if seed is None else check_seed(seed),
            advance=advance if here else None,
        )  # fmt: skip
        config = _config(plan, work, seed)
        with Run.open_or_create(file, "frontier", config, len(jobs), request) as run:
            counted = counting(run, advance)
            on_block = None if here else counted  # here, each step of a training moves the bar
            execute(run, work, backend=backend, attempts=1, on_block=on_block)
            run.check_complete("points of the frontier")
            found = _concluded(plan, work, run.arrays(), rates)
            run.keep(found.as_json())
    return found


def _concluded(plan: Plan, work: _Points, arrays: Arrays, rates: tuple[float, ...]) -> Frontier:
    """From the stored accuracies to the rate that stands for each point."""
    count = work.repetitions
    tried = [
        work.measured(job, {name: each[job * count :][:count] for name, each in arrays.items()})
        for job in range(len(work.jobs))
    ]
    by_point = [tried[i : i + len(rates)] for i in range(0, len(tried), len(rates))]
    measured = tuple(max(each, key=lambda one: one.choosing or 0.0) for each in by_point)
    return Frontier(plan, measured, work.pool.name, count, rates)


def _config(plan: Plan, work: _Points, seed: int | None) -> dict[str, Any]:
    """What a frontier's run is, in JSON values."""
    trainers = [trainer.describe() for _, trainer in work.jobs]
    return {
        "dprime": dprime.__version__, "data": work.pool.name, "pool": work.pool.digest(),
        "test": work.test.digest(),
        "choosing": None if work.choosing is None else work.choosing.digest(),
        "target": plan.target, "min_tpr": plan.min_tpr, "delta": plan.delta,
        "repetitions": work.repetitions, "seed": seed,
        "probability": [point.probability for point, _ in work.jobs],
        "noise_multiplier": [float(each.pop("noise_multiplier")) for each in trainers],
        "trainer": trainers,
    }  # fmt: skip


def _checked_rates(given: float | Sequence[float]) -> tuple[float, ...]:
    rates = list(given) if isinstance(given, Sequence) else [given]
    if not rates:
        raise validate.misfit("learning_rate", "empty", "one or more", "give for example 1.0")
    return tuple(
        dict.fromkeys(validate.positive("learning_rate", rate, example=1.0) for rate in rates)
    )


def _checked_repetitions(repetitions: int) -> int:
    count = validate.whole("repetitions", repetitions, example=REPETITIONS)
    if count < 2:
        remedy = "one training has no interval; give for example 5"
        raise validate.refusal("repetitions", repetitions, "at least 2", remedy)
    return count


def _check_data(plan: Plan, data: Split) -> None:
    if len(data.train) != plan.pool_size:
        raise validate.misfit(
            "plan", f"for a pool of {plan.pool_size:,}", f"for the {len(data.train):,} records",
            "plan with this pool_size",
        )  # fmt: skip
    if data.train.classes is None:
        remedy = "give for example digits"
        raise validate.misfit("data", "a regression", "one with classes to predict", remedy)
    check_distinct(data.train.hashes())


def _test_parts(test: Dataset, halve: bool) -> tuple[Dataset, Dataset | None]:
    """What accuracies are measured on, and every other record where a rate is to be chosen."""
    if not halve:
        return test, None
    if len(test) < 2:
        remedy = "give one learning rate, or more test records"
        raise validate.misfit("test part", "one record", "two or more to choose a rate by", remedy)
    return test.take(range(1, len(test), 2)), test.take(range(0, len(test), 2))


@dataclass(frozen=True, eq=False)
class _Points:
    """The work of training at points, one to a block."""

    jobs: tuple[tuple[Point, EngineTrainer], ...]
    pool: Dataset
    test: Dataset
    choosing: Dataset | None
    repetitions: int
    seed: int = field(repr=False)
    advance: Advance | None = None

    def __call__(self, block: int) -> Mapping[str, NDArray[Any]]:
        """All repetitions of a point at once, each on a draw of its own."""
        point, trainer = self.jobs[block]
        bits = int(np.float64(point.probability).view(np.uint64))
        own, *drawn = (derived_seed(self.seed, bits, n) for n in range(1 + self.repetitions))
        members = [draw(len(self.pool), point.probability, seed=each).members for each in drawn]
        parts = TrainingData.parts(self.pool, np.stack(members), point.probability)
        accuracy = AccuracyEvery(self.test, _epoch(point))
        choosing = None if self.choosing is None else FinalAccuracy(self.choosing)
        watch = []
        if self.advance is not None:
            watch = [_Watch(self.advance, lambda: f"π = {point.probability:g}", point.steps)]
        trained = trainer.train(
            parts, seed=own, keep_weights=False,
            observers=[accuracy, *watch, *([choosing] if choosing else [])],
        )  # fmt: skip
        missing = self._measurements() - len(accuracy.after)
        found = {
            "accuracies": np.pad(accuracy.values, ((0, 0), (0, missing)), constant_values=np.nan),
            "after": np.tile([*accuracy.after, *[0] * missing], (self.repetitions, 1)),
            "diverged": np.asarray(trained.diverged),
        }
        return found if choosing is None else {**found, "choosing": choosing.values}

    def _measurements(self) -> int:
        """The most that a training has: one after every epoch, and one at the end."""
        return max(-(-point.steps // _epoch(point)) for point, _ in self.jobs)

    def measured(self, job: int, arrays: Mapping[str, NDArray[Any]]) -> Measured:
        """What the arrays of a job say."""
        point, trainer = self.jobs[job]
        after = tuple(int(step) for step in arrays["after"][0] if step)
        return Measured(
            point=point,
            learning_rate=trainer.training.learning_rate,
            after=after,
            accuracies=arrays["accuracies"][:, : len(after)],
            diverged=int(arrays["diverged"].sum()),
            choosing=float(arrays["choosing"].mean()) if "choosing" in arrays else None,
        )

    def with_memory_fraction(self, fraction: float) -> _Points:
        """In this share of the memory."""
        return self._with(lambda trainer: trainer.with_memory_fraction(fraction))

    def on_device(self, device: str, memory: float) -> _Points:
        """On another device, in no more memory than this."""
        return self._with(lambda trainer: trainer.on_device(device, memory))

    def _with(self, change: Callable[[EngineTrainer], EngineTrainer]) -> _Points:
        jobs = tuple((point, change(trainer)) for point, trainer in self.jobs)
        return dataclasses.replace(self, jobs=jobs)


class _Watch(Observer):
    """Moves a bar that is there for more than one training."""

    def __init__(self, advance: Advance, title: Callable[[], str], steps: int) -> None:
        self._advance, self._title, self._steps = advance, title, steps

    def see(self, step: Step) -> None:
        """One step of some trials."""
        self._advance((step.rows.stop - step.rows.start) / self._steps, self._title)


def _epoch(point: Point) -> int:
    """The steps of an epoch."""
    return max(1, round(1 / point.sample_rate))
