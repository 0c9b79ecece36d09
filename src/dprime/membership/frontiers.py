"""The share of the pool that gives the best model at an equal bound on precision.

    PoolPlan ──► at each π: draws from the pool, one training each, all at once ──► FrontierRecord

What is left to compare is accuracy (Thudi et al. 2024, figures 5 and 6). The bound is for one
released model: choosing π by trainings on the pool is not part of it.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from torch import nn

from dprime import validate
from dprime.attack.trainer import Change, EngineTrainer
from dprime.data.dataset import Dataset, Split
from dprime.membership.confidence import Interval, over_repetitions
from dprime.membership.planner import PoolPlan, PoolPoint
from dprime.membership.pool import check_distinct, draw
from dprime.plain import to_json
from dprime.runs.backends.base import Backend
from dprime.runs.contents import Arrays
from dprime.runs.run import Run
from dprime.runs.runner import check_complete, counting, execute
from dprime.seeds import check_seed, derived_seed, fresh_seed
from dprime.text import round_up, told
from dprime.train import SGD, Compute, TrainingConfig, TrainingData
from dprime.train.compute import HERE
from dprime.train.observers import AccuracyEvery, FinalAccuracy
from dprime.train.optimizers import Optimizer
from dprime.train.progress import bar

CONFIDENCE = 0.95


@final
@dataclass(frozen=True, eq=False)
class MeasuredPoint(PoolPoint):
    """A point of the plan, with the accuracy of its models on the test part.

    Accuracies [repetition, measurement] are measured after these steps, the last of which is the
    end. Repetitions whose weights diverged count with the accuracy that such a model has.
    `choosing` is the mean final accuracy on the records by which the learning rate is chosen; None
    where there is one rate only. Nobody can stop at `best_peeks_at_test`, the best of each
    training's measurements.
    """

    __repr__ = told("probability", "noise_multiplier", "epsilon", "final", "diverged")

    learning_rate: float
    after: tuple[int, ...]
    accuracies: NDArray[np.float64]
    diverged: int
    choosing: float | None = None
    final: Interval = field(init=False)
    best_peeks_at_test: Interval = field(init=False)

    def __post_init__(self) -> None:
        best = over_repetitions(self.accuracies.max(axis=1), confidence=CONFIDENCE)
        object.__setattr__(self, "best_peeks_at_test", best.within())
        object.__setattr__(self, "final", self.among(1))

    def among(self, points: int) -> Interval:
        """Accuracy at the end, with an interval that holds for this many points together."""
        final = self.accuracies[:, -1]
        return over_repetitions(final, confidence=CONFIDENCE, cells=points).within()


@final
@dataclass(frozen=True, eq=False)
class FrontierRecord(PoolPlan):
    """Accuracy against π at an equal bound on precision: what a run keeps, and tables show.

    `best` has the best mean final accuracy; the intervals of `tied` ones overlap its own, and hold
    for all points at once, since the best was picked among them.
    """

    __repr__ = told("data", "best", "tied", "points")

    points: tuple[MeasuredPoint, ...]
    data: str
    repetitions: int
    learning_rates: tuple[float, ...]
    confidence: float = field(default=CONFIDENCE, init=False)
    best: float = field(init=False)
    tied: tuple[float, ...] = field(init=False)
    sentence: str = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        best = max(self.points, key=lambda each: each.final.value)
        joint = {each: each.among(len(self.points)) for each in self.points}
        overlap = (each for each, own in joint.items() if own.low <= joint[best].high)
        tied = [each.probability for each in overlap if joint[best].low <= joint[each].high]
        tied.remove(best.probability)
        object.__setattr__(self, "best", best.probability)
        object.__setattr__(self, "tied", tuple(tied))
        object.__setattr__(self, "sentence", " ".join(self._sentences(best, joint)))

    def _sentences(
        self, best: MeasuredPoint, joint: Mapping[MeasuredPoint, Interval]
    ) -> Iterator[str]:
        shown = {
            each: "{:.2f} % ({:.2f} to {:.2f})".format(*(100 * end for end in own.numbers))
            for each, own in joint.items()
        }
        yield (
            f"At a precision of at most {self.target:g} on {self.data}, the best mean final "
            f"accuracy is {shown[best]}, at {_setting(best)}."
        )
        if self.tied:
            *others, last = [f"{probability:g}" for probability in self.tied]
            listed = " and ".join(filter(None, [", ".join(others), last]))
            yield (
                f"It cannot be told from π = {listed}: the intervals, corrected for their number, "
                "overlap."
            )
        elif len(self.points) > 1:
            yield "No other π has an interval (corrected for their number) that overlaps it."
        end = self.points[-1]
        if end is not best and end.probability not in self.tied:
            yield f"More records with more noise, {_setting(end)}, give {shown[end]}."
        if lost := sum(each.diverged for each in self.points):
            yield f"{lost} trainings diverged: a lower learning rate helps."


def _setting(point: PoolPoint) -> str:
    bounded = np.isfinite(point.epsilon)
    epsilon = f"ε at most {round_up(point.epsilon)}" if bounded else "no finite ε"
    return f"π = {point.probability:g} with {epsilon}"


def frontier(
    plan: PoolPlan,
    data: Split,
    model: nn.Module,
    *,
    learning_rate: float | Sequence[float],
    clip_norm: float,
    optimizer: Optimizer | None = None,
    repetitions: int = 5,
    seed: int | None = None,
    file: str | os.PathLike[str] | None = None,
    compute: Compute = HERE,
    backend: Backend | None = None,
    progress: bool | None = None,
    request: Mapping[str, Any] | None = None,
) -> FrontierRecord:
    """Train at every point of a plan, and measure the accuracy on the test part.

    The plan's pool is the training part of `data`, of distinct records; each repetition trains on a
    fresh draw from it. Of several learning rates, each is tried at each point. The one with the
    best mean final accuracy on every other test record stands for the point, and its accuracy is
    measured on the remaining ones.

    The seed gives draws and trainings, so it tells the draws. None draws one that is not
    kept; one that you give stands in the `file` of the run, in which finished points are not
    trained again. `request` has names from which all this can be made again, for `dprime resume`.

    >>> from dprime.data import load
    >>> from dprime.membership.planner import plan
    >>> from dprime.train.models import model_named
    >>> digits = load("digits")
    >>> points = plan(0.8, pool_size=1438, batch_size=100, epochs=3,
    ...               sampling_probabilities=[0.2, 0.79])
    >>> net = model_named("linear", digits.train)
    >>> found = frontier(points, digits, net, learning_rate=2.0, clip_norm=1.0, seed=1)
    >>> found.best, found.tied
    (0.2, ())
    """
    given = learning_rate if isinstance(learning_rate, Sequence) else [learning_rate]
    rates = tuple(dict.fromkeys(validate.positive("learning_rate", rate) for rate in given))
    count = validate.whole("repetitions", repetitions, example=5, least=2)
    _check_data(plan, data, rates)
    _ = compute.place  # refuses a device that is not there
    test, choosing = data.test, None
    if len(rates) > 1:
        test, choosing = (test.take(range(first, len(test), 2)) for first in (1, 0))
    usual = {"clip_norm": clip_norm, "optimizer": optimizer or SGD()}
    jobs = []
    for point, rate in itertools.product(plan.points, rates):
        own = {name: getattr(point, name) for name in ("steps", "noise_multiplier", "sample_rate")}
        own |= usual | {"learning_rate": rate, "expected_batch_size": plan.batch_size}
        jobs.append((point, EngineTrainer(model, TrainingConfig(**own), compute)))
    own_seed = fresh_seed() if seed is None else check_seed(seed)
    work = _Trainings(tuple(jobs), data.train, test, choosing, count, own_seed)
    config = _config(plan, work, seed)
    with Run.open_or_create(file, "frontier", config, len(jobs), request) as run:
        before = run.state().total_trials
        with bar("training", count * len(jobs), progress, before=before) as advance:
            execute(run, work, backend=backend, attempts=1, on_block=counting(run, advance))
        check_complete(run, "points of the frontier")
        planned = {each.name: getattr(plan, each.name) for each in fields(PoolPlan) if each.init}
        planned["points"] = work.measured(run.arrays())
        planned |= {"data": data.train.name, "repetitions": count, "learning_rates": rates}
        record = FrontierRecord(**planned)
        run.keep(to_json(record))
    return record


def _config(plan: PoolPlan, work: _Trainings, seed: int | None) -> dict[str, Any]:
    trainers = [trainer.describe() for _, trainer in work.jobs]
    parts = {"pool": work.pool, "test": work.test, "choosing": work.choosing}
    return {
        "data": work.pool.name,
        **{name: None if part is None else part.digest() for name, part in parts.items()},
        **{name: getattr(plan, name) for name in ("target", "min_tpr", "delta")},
        "repetitions": work.repetitions,
        "seed": seed,
        "probability": [point.probability for point, _ in work.jobs],
        "noise_multiplier": [float(each.pop("noise_multiplier")) for each in trainers],
        "trainer": trainers,
    }


def _check_data(plan: PoolPlan, data: Split, rates: Sequence[float]) -> None:
    records = len(data.train)
    if not rates:
        remedy = "give for example 1.0"
        raise validate.invalid_input("learning_rate", "empty", "one or more", remedy)
    if records != plan.pool_size:
        shown, wanted = f"one for {plan.pool_size:,}", f"for the {records:,} records"
        raise validate.invalid_input("plan", shown, wanted, "plan for this pool")
    if data.train.classes is None:
        remedy = "the accuracy is the share of records whose class is predicted"
        raise validate.invalid_input("data", "a regression", "one with classes", remedy)
    if len(data.test) < min(2, len(rates)):
        wanted, remedy = "two records or more to choose a rate by", "give one learning rate"
        raise validate.invalid_input("test part", "one record", wanted, remedy)
    check_distinct(data.train.hashes())


@dataclass(frozen=True, eq=False)
class _Trainings:
    """The work of training at points with learning rates, one of each to a block."""

    jobs: tuple[tuple[PoolPoint, EngineTrainer], ...]
    pool: Dataset
    test: Dataset
    choosing: Dataset | None
    repetitions: int
    seed: int = field(repr=False)

    def __call__(self, block: int) -> Mapping[str, NDArray[Any]]:
        point, trainer = self.jobs[block]
        bits = int(np.float64(point.probability).view(np.uint64))
        own, *drawn = (derived_seed(self.seed, bits, n) for n in range(1 + self.repetitions))
        members = [draw(len(self.pool), point.probability, seed=each).members for each in drawn]
        parts = TrainingData.parts(self.pool, np.stack(members), point.probability)
        accuracy = AccuracyEvery(self.test, _epoch(point))
        final = [] if self.choosing is None else [FinalAccuracy(self.choosing)]
        trained = trainer.train(parts, seed=own, keep_weights=False, observers=[accuracy, *final])
        # blocks are alike: filled up to the most measurements that a training of any point has
        missing = max(len(_measured_after(point)) for point, _ in self.jobs) - len(accuracy.after)
        filled = np.pad(accuracy.values, ((0, 0), (0, missing)), constant_values=np.nan)
        found = {"accuracies": filled, "diverged": np.asarray(trained.diverged)}
        return found | ({"choosing": final[0].values} if final else {})

    def measured(self, arrays: Arrays) -> tuple[MeasuredPoint, ...]:
        made = []
        for job, (point, trainer) in enumerate(self.jobs):
            rows = slice(job * self.repetitions, (job + 1) * self.repetitions)
            own = {name: found[rows] for name, found in arrays.items()}
            after = _measured_after(point)
            measured = vars(point) | {"learning_rate": trainer.training.learning_rate}
            measured |= {"after": after, "accuracies": own["accuracies"][:, : len(after)]}
            measured |= {"diverged": int(own["diverged"].sum())}
            if "choosing" in own:
                measured["choosing"] = float(own["choosing"].mean())
            made.append(MeasuredPoint(**measured))
        tried = itertools.groupby(made, key=lambda each: each.probability)
        return tuple(max(group, key=lambda each: each.choosing or 0.0) for _, group in tried)

    def with_compute(self, change: Change) -> _Trainings:
        jobs = tuple((point, trainer.with_compute(change)) for point, trainer in self.jobs)
        return dataclasses.replace(self, jobs=jobs)


def _epoch(point: PoolPoint) -> int:
    return max(1, round(1 / point.sample_rate))


def _measured_after(point: PoolPoint) -> tuple[int, ...]:
    return (*range(_epoch(point), point.steps, _epoch(point)), point.steps)
