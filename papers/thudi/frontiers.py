"""Accuracy at an equal bound on precision, for figures 5 and 6: one training of all points.

Full: read from `raw/frontier-DATA.json`, or trained and kept there, point by point. Quick:
a part of MNIST, trained once for both scripts where they run together. Beside them stand some
points with a smaller pool, which say whether a pool as small as ours makes a difference.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime.curve import TradeOff
from dprime.data import Split
from dprime.data.devices import device_title
from dprime.membership import plan
from dprime.membership.confidence import over_repetitions
from dprime.membership.frontiers import FrontierRecord, MeasuredPoint, frontier
from dprime.membership.planner import DELTA, MIN_TPR, PoolPlan
from dprime.plain import to_json
from dprime.runs import run_file
from dprime.show import charts
from dprime.show.chart import Chart
from dprime.show.charts import FrontierPoint, FrontierSeries
from dprime.train import SGD, Compute
from papers.reproduce import (
    Claim,
    Estimate,
    Kept,
    Scale,
    computed,
    explained,
    kept_in,
    mean,
    stated,
)
from papers.thudi.attacks import NETWORKS, network
from papers.thudi.raw import RAW, TITLES

BOUNDS = {"0.953": 3.0, "0.881": 2.0, "0.731": 1.0}
"""As printed, and the ε that has them at π = ½."""

TIGHTEST, LOOSEST = "0.731", "0.953"
LOOSER = ("0.953", "0.881")
PRIORS = (0.1, 0.3, 0.5, 0.7, 0.9)
HALF, THIRD, TENTH = 0.5, 0.3, 0.1

Values = NDArray[np.float64]
Read = Callable[[MeasuredPoint], Values]
"""One number for each training."""

Frontiers = dict[str, FrontierRecord]
"""By bound."""


@dataclass(frozen=True)
class Training:
    """How a data set is trained on.

    Attributes:
        pool: records, from the first.
        test: records that accuracies are measured on, from the first.
        batch: expected records of a step.
        epochs: over the part that was drawn.
        learning_rate: of SGD, the same at every point.
        repetitions: trainings at each point.
        priors: every π.
        clip_norm: C.
        momentum: of SGD.
    """

    pool: int
    test: int
    batch: int
    epochs: int
    learning_rate: float
    repetitions: int = 5
    priors: tuple[float, ...] = PRIORS
    clip_norm: float = 0.1
    momentum: float = 0.9


TRAININGS = {
    "smoke": {"mnist": Training(200, 100, 20, 1, 1.0, 2)},
    "quick": {"mnist": Training(2000, 2000, 100, 10, 1.0, 3)},
    "full": {
        "mnist": Training(60_000, 10_000, 1024, 40, 1.0),
        "cifar10": Training(10_000, 2000, 500, 100, 1.0),
    },
}


SMALLER = {
    "smoke": {"mnist": Training(100, 100, 10, 1, 1.0, 2, (0.1, 0.3, 0.5))},
    "quick": {},
    "full": {"cifar10": Training(5000, 2000, 250, 100, 1.0, priors=(0.1, 0.3, 0.5))},
}
"""With half the pool and half the batch, so that rates, steps and noise are the same."""

NOT_VARIED = "The pool was not varied: the reason is not measured."

RIVALS = 0.6
"""Above the priors that the smaller pool has."""


def frontiers(scale: Scale) -> tuple[dict[str, Frontiers], Kept | None]:
    """By data set, then by bound; and how full ones were made."""
    found = {
        data: _found(f"frontier-{data}", data, chosen, tuple(BOUNDS), scale)
        for data, chosen in TRAININGS[scale.size].items()
    }
    made = [each for _, each in (*found.values(), *(_smaller(data, scale) for data in found))]
    kept = Kept.of([each for each in made if each]) if scale.size == "full" else None
    return {data: own for data, (own, _) in found.items()}, kept


def smaller(data: str, scale: Scale) -> Frontiers:
    """With the smaller pool, by bound; nothing where it is neither kept nor may be trained."""
    return _smaller(data, scale)[0]


def _smaller(data: str, scale: Scale) -> tuple[Frontiers, Made]:
    chosen = SMALLER[scale.size].get(data)
    name = f"frontier-{data}-smaller"
    there = kept_in(RAW, name, scale.seed).exists()
    if chosen is None or (scale.size == "full" and scale.device == "cpu" and not there):
        return {}, {}
    return _found(name, data, chosen, LOOSER, scale)


Made = Mapping[str, Any]
"""Of all trainings of a data set: the device and the time."""


@lru_cache(maxsize=8)
def _found(
    name: str, data: str, chosen: Training, bounds: tuple[str, ...], scale: Scale
) -> tuple[Frontiers, Made]:
    split = scale.data(data)
    part = Split(
        split.train.take(range(chosen.pool)).distinct(), split.test.take(range(chosen.test))
    )
    plans = {
        bound: plan(
            float(bound), pool_size=len(part.train), batch_size=chosen.batch,
            epochs=chosen.epochs,
            sampling_probabilities=[p for p in chosen.priors if p < float(bound)],
        )
        for bound in bounds
    }  # fmt: skip
    place = kept_in(RAW, name, scale.seed)
    if scale.size == "full" and place.exists():
        return _read(place, plans, data, chosen)
    files = {bound: place.with_suffix(f".{bound}.run") for bound in bounds}
    start = time.perf_counter()
    found = {
        bound: frontier(
            points, part, network(*NETWORKS[data]), learning_rate=chosen.learning_rate,
            clip_norm=chosen.clip_norm, optimizer=SGD(momentum=chosen.momentum),
            repetitions=chosen.repetitions, seed=scale.seed,
            file=files[bound] if scale.size == "full" else None,
            compute=Compute(scale.device, scale.memory),
        )
        for bound, points in plans.items()
    }  # fmt: skip
    made = {
        "device": device_title(scale.device), "seconds": time.perf_counter() - start,
        "seed": scale.seed,
    }  # fmt: skip
    if scale.size == "full":
        _write(place, found, made)
        for file in files.values():
            run_file.remove(file)
    return found, made


def _write(place: Path, found: Frontiers, made: Made) -> None:
    points = {bound: to_json(each.points) for bound, each in found.items()}
    place.write_text(json.dumps({**made, "points": points}) + "\n")


def _read(
    place: Path, plans: Mapping[str, PoolPlan], data: str, chosen: Training
) -> tuple[Frontiers, Made]:
    """Accuracies of another time; that they belong to these points is checked by the noise."""
    kept = json.loads(place.read_text())
    found = {}
    for bound, points in plans.items():
        measured = []
        for point, one in zip(points.points, kept["points"][bound], strict=True):
            assert math.isclose(point.noise_multiplier, one["noise_multiplier"], rel_tol=1e-9)
            trained = MeasuredPoint(
                **vars(point), learning_rate=one["learning_rate"], after=tuple(one["after"]),
                accuracies=np.array(one["accuracies"], dtype=np.float64), diverged=one["diverged"],
            )  # fmt: skip
            measured.append(trained)
        found[bound] = FrontierRecord(
            points.target, points.min_tpr, points.delta, points.pool_size, points.batch_size,
            points.epochs, points.steps, tuple(measured), data, chosen.repetitions,
            (chosen.learning_rate,),
        )  # fmt: skip
    return found, kept


def best(point: MeasuredPoint) -> Values:
    """The best accuracy of each training: it peeks at the test records."""
    return np.asarray(point.accuracies.max(axis=1))


def final(point: MeasuredPoint) -> Values:
    """At the end."""
    return np.asarray(point.accuracies[:, -1])


def among(values: Values, points: int) -> Estimate:
    """The mean, with an interval that holds for so many points together."""
    return Estimate(*over_repetitions(values, cells=points).numbers)


def bound_claims() -> list[Claim]:
    """The bounds that are kept, which the paper prints."""
    return [
        computed(
            f"Bound on precision at π = 0.5 with ε = {epsilon:g}, δ = 1e-5", bound,
            TradeOff.from_lines([(epsilon, DELTA)]).precision(HALF, MIN_TPR),
        )
        for bound, epsilon in BOUNDS.items()
    ]  # fmt: skip


def _at(found: FrontierRecord, prior: float) -> MeasuredPoint:
    return next(each for each in found.points if each.probability == prior)


def lead(found: FrontierRecord, prior: float, read: Read, below: float = 1.0) -> Estimate:
    """The accuracy at π, less that of the best of the others.

    The best is picked by its mean: its interval is one that holds for all of them together.
    """
    others = [
        each for each in found.points
        if each.probability != prior and each.probability < below
    ]  # fmt: skip
    rival = max(others, key=lambda each: float(read(each).mean()))
    return mean(read(_at(found, prior))) - among(read(rival), len(others))


def best_at(
    data: str, found: Frontiers, prior: float, sentence: str, read: Read, less: Frontiers
) -> list[Claim]:
    """That a π is the best one at every bound; some bounds have a smaller pool beside."""
    claims = []
    for bound, each in found.items():
        claim = stated(
            f"{TITLES[data]}, bound {bound}: accuracy at π = {prior:g} less the best of the others",
            sentence, lead(each, prior, read), least=0.0,
        )  # fmt: skip
        reason = NOT_VARIED if claim.verdict == "differs" else ""
        if bound in less:
            reason = _smaller_told(claim, each, less[bound], prior, read)
        claims.append(explained(claim, f"{_told(each, read)} {reason}".strip()))
    return claims


def _smaller_told(
    claim: Claim, found: FrontierRecord, less: FrontierRecord, prior: float, read: Read
) -> str:
    """Whether the lead of a π is another one with fewer records."""
    usual, fewer = (lead(each, prior, read, below=RIVALS) for each in (found, less))
    change = usual - fewer
    if change.low > 0:
        told = "More records help it: our small pool is a part of the reason."
    else:
        unknown = " The reason is not found." if claim.verdict == "differs" else ""
        told = f"That more records help it is not shown.{unknown}"
    rivals = " and ".join(
        f"{each.probability:g}" for each in less.points if each.probability != prior
    )
    return (
        f"Its lead over π = {rivals} is {_points(fewer)} with {less.pool_size:,} records in "
        f"the pool and {_points(usual)} with {found.pool_size:,}: a change of "
        f"{_points(change)}. {told}"
    )


def _points(value: Estimate) -> str:
    return f"{100 * value.value:+.1f} points ({100 * value.low:+.1f} to {100 * value.high:+.1f})"


def less_is_more(data: str, found: Frontiers, read: Read) -> list[Claim]:
    """Less data against the most that keeps the bound; and more so for a tighter bound.

    Where the largest π needs twice the noise of another one, it loses by that alone: no claim.
    """
    title = TITLES[data]
    claims = [
        explained(
            stated(
                f"{title}, bound {bound}: accuracy at the largest π less the best of the smaller",
                "training on less data is beneficial",
                lead(each, each.points[-1].probability, read), most=0.0,
            ),
            _told(each, read),
        )
        for bound, each in found.items()
        if not _drowned(each)
    ]  # fmt: skip
    tight, loose = (
        mean(read(_at(found[bound], THIRD))) - mean(read(_at(found[bound], HALF)))
        for bound in (TIGHTEST, LOOSEST)
    )
    return [
        *claims,
        stated(
            f"{title}: accuracy at π = 0.3 less that at 0.5, bound {TIGHTEST} less {LOOSEST}",
            "the preference for small π is more distinct for smaller bounds",
            tight - loose, least=0.0,
        ),
    ]  # fmt: skip


def _drowned(found: FrontierRecord) -> bool:
    """Whether the largest π is so near the bound that it has twice the least noise or more."""
    noise = [each.noise_multiplier for each in found.points]
    return noise[-1] >= 2 * min(noise)


def smaller_wins(data: str, found: Frontiers, read: Read) -> Claim:
    """At the tightest bound: π = ½ against the best of the smaller."""
    ahead = lead(found[TIGHTEST], HALF, read, below=HALF)
    claim = stated(
        f"{TITLES[data]}, bound {TIGHTEST}: accuracy at π = 0.5 less the best of the smaller",
        "for the tightest bound smaller π is preferred", ahead, most=0.0,
    )  # fmt: skip
    return explained(claim, _told(found[TIGHTEST], read))


def _told(found: FrontierRecord, read: Read) -> str:
    each = ", ".join(
        f"{100 * read(one).mean():.1f} % at π = {one.probability:g} (noise "
        f"{one.noise_multiplier:.2f})"
        for one in found.points
    )
    return f"Accuracies are {each}."


def figure(data: str, found: Frontiers, read: Read) -> Chart:
    """Accuracy against π, a line for each bound; intervals hold for all points of a line."""
    series = []
    for bound, each in found.items():
        points = []
        for one in each.points:
            value = among(read(one), len(each.points))
            low, high = max(0.0, value.low), min(1.0, value.high)
            points.append(
                FrontierPoint(
                    one.probability, value.value, low, high, one.epsilon,
                )
            )  # fmt: skip
        series.append(FrontierSeries(float(bound), tuple(points)))
    return charts.frontier(tuple(series), TITLES[data])


def settings(scale: Scale) -> dict[str, Any]:
    """What both figures rest on."""
    return {
        "min_tpr": MIN_TPR, "delta": DELTA,
        **{data: asdict(each) for data, each in TRAININGS[scale.size].items()},
    }  # fmt: skip


def numbers(found: dict[str, Frontiers], read: Read) -> dict[str, Any]:
    """Every point."""
    return {
        data: {
            bound: [
                {
                    "prior": one.probability, "noise_multiplier": one.noise_multiplier,
                    "noise_by_theorem": (
                        one.by_theorem and one.by_theorem.noise_multiplier
                    ),
                    "epsilon": one.epsilon if np.isfinite(one.epsilon) else None,
                    "steps": one.steps, "accuracy": asdict(mean(read(one))),
                    "diverged": one.diverged,
                }
                for one in each.points
            ]
            for bound, each in own.items()
        }
        for data, own in found.items()
    }  # fmt: skip
