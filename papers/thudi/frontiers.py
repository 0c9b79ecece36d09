"""Figures 5 and 6: accuracy at an equal bound on precision, by one training of all points.

Full: read from `raw.json` (frontier-DATA), or trained and kept there. Quick: a part of MNIST,
trained once for both figures where they run together. Beside them stand some points with a smaller
pool, which say whether a pool as small as ours makes a difference.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.networks import tramer_boneh
from dprime.curve import TradeOff
from dprime.data import Split
from dprime.data.devices import device_title
from dprime.membership import plan
from dprime.membership.confidence import over_repetitions
from dprime.membership.frontiers import frontier
from dprime.membership.planner import DELTA, MIN_TPR
from dprime.plain import to_json
from dprime.runs import run_file
from dprime.show import charts
from dprime.show.chart import Chart
from dprime.show.charts import FrontierPoint, FrontierSeries
from dprime.train import SGD
from papers.entry import Kept, Measured, Raw, Scale, is_kept, kept_or
from papers.reproduce import Claim, Estimate, Floats, computed, mean, stated
from papers.thudi.attacks import HERE, NETWORKS, TITLES
from papers.thudi.gains import points_told

BOUNDS = {"0.953": 3.0, "0.881": 2.0, "0.731": 1.0}
"""As printed, and the ε that has them at π = ½."""

LOOSEST, _, TIGHTEST = BOUNDS
LOOSER = ("0.953", "0.881")
HALF, THIRD, TENTH = 0.5, 0.3, 0.1

Point = Mapping[str, Any]
"""A point of a frontier, of JSON values: π, noise, and accuracies [training, measurement]."""

Read = Callable[[Point], Floats]
"""One number for each training."""

Frontiers = Mapping[str, list[Point]]
"""The points of each bound, the smallest π first."""


@dataclass(frozen=True)
class Training:
    """How a data set is trained on: the first records of its parts, with SGD.

    Attributes:
        pool: records.
        test: records that accuracies are measured on.
        batch: expected records of a step.
        epochs: over the part that was drawn.
        learning_rate: the same at every point.
        repetitions: trainings at each point.
        priors: every π.
        clip_norm: C.
        momentum: the optimizer's.
    """

    pool: int
    test: int
    batch: int
    epochs: int
    learning_rate: float
    repetitions: int = 5
    priors: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
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


def best(point: Point) -> Floats:
    """The best accuracy of each training: it peeks at the test records."""
    return np.asarray(point["accuracies"].max(axis=1))


def final(point: Point) -> Floats:
    return np.asarray(point["accuracies"][:, -1])


def figure5(scale: Scale) -> Measured:
    """The best accuracy of all epochs, at every bound and π."""
    bounds = [
        computed(f"Bound on precision at π = 0.5 with ε = {epsilon:g}, δ = 1e-5", bound,
                 TradeOff.from_lines([(epsilon, DELTA)]).precision(HALF, MIN_TPR))
        for bound, epsilon in BOUNDS.items()
    ]  # fmt: skip

    def claims(data: str, found: Frontiers, less: Frontiers) -> list[Claim]:
        if data != "mnist":
            sentence = "an optimal accuracy mostly at π = 0.3"
            return best_at(data, found, THIRD, sentence, best, less)
        loose = {bound: found[bound] for bound in LOOSER}
        sentence = "an optimal accuracy often at π = 0.5"
        tight = smaller_wins(data, found, best)
        return [*best_at(data, loose, HALF, sentence, best, less), tight]

    return measured(scale, best, claims, bounds)


def figure6(scale: Scale) -> Measured:
    """The final accuracy at every bound and π."""

    def claims(data: str, found: Frontiers, less: Frontiers) -> list[Claim]:
        if data == "mnist":
            return [smaller_wins(data, found, final)]
        return best_at(data, found, TENTH, "π = 0.1 often performs best", final, less)

    return measured(scale, final, claims, [])


def measured(
    scale: Scale, read: Read, own_claims: Callable[[str, Frontiers, Frontiers], list[Claim]],
    claims: list[Claim],
) -> Measured:  # fmt: skip
    """What both figures have in common."""
    figures, made, settings = {}, [], {}
    for data, chosen in TRAININGS[scale.size].items():
        found, *kept = trained(f"frontier-{data}", data, chosen, tuple(BOUNDS), scale)
        less, *others = smaller(data, scale)
        claims += own_claims(data, found, less)
        claims += less_is_more(data, found, read)
        figures[data] = drawn(data, found, read)
        made += [*kept, *others]
        settings[data] = asdict(chosen)
    return Measured(
        claims, {"min_tpr": MIN_TPR, "delta": DELTA, **settings}, figures,
        Kept.of([each for each in made if each]) if scale.full else None,
    )  # fmt: skip


def smaller(data: str, scale: Scale) -> tuple[Frontiers, Raw]:
    """With the smaller pool; nothing where it is neither kept nor may be trained."""
    chosen = SMALLER[scale.size].get(data)
    name = f"frontier-{data}-smaller"
    made_here = not scale.full or scale.device != "cpu"
    if chosen is None or not (made_here or is_kept(HERE, name, scale.seed)):
        return {}, {}
    return trained(name, data, chosen, LOOSER, scale)


@lru_cache(maxsize=8)
def trained(
    name: str, data: str, chosen: Training, bounds: tuple[str, ...], scale: Scale
) -> tuple[Frontiers, Raw]:
    """The points of each bound, and how they were made; in full from what is kept."""
    split = scale.data(data)
    pool = split.train.take(range(chosen.pool)).distinct()
    part = Split(pool, split.test.take(range(chosen.test)))
    plans = {
        bound: plan(
            float(bound), pool_size=len(pool), batch_size=chosen.batch, epochs=chosen.epochs,
            sampling_probabilities=[p for p in chosen.priors if p < float(bound)],
        )
        for bound in bounds
    }  # fmt: skip
    files = {bound: HERE / f"{name}.{bound}.run" for bound in bounds}

    def make() -> Raw:
        start = time.perf_counter()
        found = {
            bound: frontier(
                points, part, tramer_boneh(*NETWORKS[data]), learning_rate=chosen.learning_rate,
                clip_norm=chosen.clip_norm, optimizer=SGD(momentum=chosen.momentum),
                repetitions=chosen.repetitions, seed=scale.seed,
                file=files[bound] if scale.full else None, compute=scale.compute,
            )
            for bound, points in plans.items()
        }  # fmt: skip
        seconds = time.perf_counter() - start
        made = {"device": device_title(scale.device), "seconds": seconds, "seed": scale.seed}
        return {**made, "points": {bound: to_json(each.points) for bound, each in found.items()}}

    made = kept_or(HERE, name, scale, make) if scale.full else make()
    for file in files.values() if scale.full else ():
        run_file.remove(file)
    found: dict[str, list[Point]] = {bound: [] for bound in plans}
    for bound, points in plans.items():
        for point, one in zip(points.points, made["points"][bound], strict=True):
            # Accuracies of another time: the noise says whether they belong to this point.
            assert math.isclose(point.noise_multiplier, one["noise_multiplier"], rel_tol=1e-9)
            accuracies = np.array(one["accuracies"], np.float64)
            found[bound].append({**vars(point), "pool": len(pool), "accuracies": accuracies})
    return found, made


def among(values: Floats, points: int) -> Estimate:
    """The mean, with an interval that holds for so many points together."""
    return Estimate(*over_repetitions(values, cells=points).numbers)


def _at(found: list[Point], prior: float) -> Point:
    return next(each for each in found if each["probability"] == prior)


def lead(found: list[Point], prior: float, read: Read, below: float = 1.0) -> Estimate:
    """The accuracy at π, less that of the best of the others.

    The best is picked by its mean: its interval is one that holds for all of them together.
    """
    others = [each for each in found if prior != each["probability"] < below]
    rival = max(others, key=lambda each: float(read(each).mean()))
    return mean(read(_at(found, prior))) - among(read(rival), len(others))


def best_at(
    data: str, found: Frontiers, prior: float, sentence: str, read: Read, less: Frontiers
) -> list[Claim]:
    """That a π is the best one at every bound; some bounds have a smaller pool beside."""

    def claim(bound: str, reason: str = "") -> Claim:
        return stated(
            f"{TITLES[data]}, bound {bound}: accuracy at π = {prior:g} less the best of the others",
            sentence, lead(found[bound], prior, read), least=0.0,
            reason=f"{told(found[bound], read)} {reason}".strip(),
        )  # fmt: skip

    claims = []
    for bound in found:
        differs = claim(bound).verdict == "differs"
        reason = NOT_VARIED if differs else ""
        if bound in less:
            reason = smaller_told(differs, found[bound], less[bound], prior, read)
        claims.append(claim(bound, reason))
    return claims


def smaller_told(
    differs: bool, found: list[Point], less: list[Point], prior: float, read: Read
) -> str:
    """Whether the lead of a π is another one with fewer records."""
    usual, fewer = (lead(each, prior, read, below=RIVALS) for each in (found, less))
    change = usual - fewer
    verdict = "More records help it: our small pool is a part of the reason."
    if change.low <= 0:
        unknown = " The reason is not found." if differs else ""
        verdict = f"That more records help it is not shown.{unknown}"
    rivals = [f"{each['probability']:g}" for each in less if each["probability"] != prior]
    return (
        f"Its lead over π = {' and '.join(rivals)} is {points_told(fewer, '+.1f')} with "
        f"{less[0]['pool']:,} records in the pool and {points_told(usual, '+.1f')} with "
        f"{found[0]['pool']:,}: a change of {points_told(change, '+.1f')}. {verdict}"
    )


def less_is_more(data: str, found: Frontiers, read: Read) -> list[Claim]:
    """Less data against the most that keeps the bound; and more so for a tighter bound.

    Where the largest π needs twice the noise of another one, it loses by that alone: no claim.
    """
    noises = {bound: [p["noise_multiplier"] for p in points] for bound, points in found.items()}
    tight, loose = (
        mean(read(_at(found[bound], THIRD))) - mean(read(_at(found[bound], HALF)))
        for bound in (TIGHTEST, LOOSEST)
    )
    return [
        *(stated(f"{TITLES[data]}, bound {bound}: accuracy at the largest π less the best of the "
                 "smaller", "training on less data is beneficial",
                 lead(each, each[-1]["probability"], read), most=0.0, reason=told(each, read))
          for bound, each in found.items() if noises[bound][-1] < 2 * min(noises[bound])),
        stated(f"{TITLES[data]}: accuracy at π = 0.3 less that at 0.5, bound {TIGHTEST} less "
               f"{LOOSEST}", "the preference for small π is more distinct for smaller bounds",
               tight - loose, least=0.0),
    ]  # fmt: skip


def smaller_wins(data: str, found: Frontiers, read: Read) -> Claim:
    """At the tightest bound: π = ½ against the best of the smaller."""
    return stated(
        f"{TITLES[data]}, bound {TIGHTEST}: accuracy at π = 0.5 less the best of the smaller",
        "for the tightest bound smaller π is preferred",
        lead(found[TIGHTEST], HALF, read, below=HALF), most=0.0,
        reason=told(found[TIGHTEST], read),
    )  # fmt: skip


def told(found: list[Point], read: Read) -> str:
    each = ", ".join(
        f"{100 * read(one).mean():.1f} % at π = {one['probability']:g} (noise "
        f"{one['noise_multiplier']:.2f})"
        for one in found
    )
    return f"Accuracies are {each}."


def drawn(data: str, found: Frontiers, read: Read) -> Chart:
    def point(one: Point, points: int) -> FrontierPoint:
        value = among(read(one), points)
        low, high = max(0.0, value.low), min(1.0, value.high)
        return FrontierPoint(one["probability"], value.value, low, high, one["epsilon"])

    series = [
        FrontierSeries(float(bound), tuple(point(one, len(each)) for one in each))
        for bound, each in found.items()
    ]
    return charts.frontier(tuple(series), TITLES[data])
