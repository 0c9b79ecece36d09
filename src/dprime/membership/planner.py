"""The noise that each share of the pool needs at an equal bound on precision.

    target precision ρ + pool, batch, length ──► for each π the noise that keeps it ──► PoolPlan

Notation: π is the probability with which each of the N records of the pool is drawn, B the batch
size, ρ the target. An attacker who finds at least the share t (`min_tpr`) of the members is right
in at most the share ρ of its "member" answers. The noise is read off the certified curve; theorem
3.3 of Thudi et al. 2024 ("Less can be more", T), valid but looser, is given for comparison.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast, final

from dprime import validate
from dprime.guarantees import EpsilonDelta
from dprime.mechanisms import DPSGD, PoolSampled
from dprime.parameters import steps_from_epochs
from dprime.solve import choose
from dprime.text import round_up, told

MIN_TPR, DELTA = 0.01, 1e-5

FEWEST = 5  # steps of the usual probabilities that fit below the target, at least
LAST = 0.1  # the last of the usual probabilities lies below the target by this share of a step


@final
@dataclass(frozen=True)
class ByTheorem:
    """The same target by T's theorem 3.3 (corrected): first an ε, then the noise that keeps it.

    It is the largest ε at which (ε, δ)-DP alone keeps the target, and takes more noise than the
    curve asks for.
    """

    epsilon: float
    noise_multiplier: float


@dataclass(frozen=True)
class PoolPoint:
    """A share of the pool with the noise that keeps the target.

    `epsilon` is certified at the plan's δ, what someone who was drawn has left of DP; `sample_rate`
    is B/(πN), πN the `expected_records`; `precision` is certified, and `by_theorem` the same by one
    pair (ε, δ), None where no noise keeps the target that way.
    """

    probability: float
    noise_multiplier: float
    epsilon: float
    sample_rate: float
    steps: int
    expected_records: float
    precision: float
    by_theorem: ByTheorem | None

    def mechanism(self) -> PoolSampled:
        return PoolSampled(self.training(), self.probability)

    def training(self) -> DPSGD:
        return DPSGD(self.noise_multiplier, self.sample_rate, self.steps)


@dataclass(frozen=True)
class PoolPlan:
    """Points that all keep one target ρ, for attackers with a TPR of at least `min_tpr`.

    Every ε is read at `delta`; `epochs` are expected passes over the part that was drawn, or None
    where `steps` were given. The smallest π comes first.
    """

    __repr__ = told("planned")

    target: float
    min_tpr: float
    delta: float
    pool_size: int
    batch_size: float
    epochs: float | None
    steps: int | None
    points: tuple[PoolPoint, ...]
    kind: str = field(default="certified", init=False)
    planned: str = field(init=False)

    def __post_init__(self) -> None:
        first, last = self.points[0], self.points[-1]
        start, end = round_up(first.noise_multiplier), round_up(last.noise_multiplier)
        ends = (
            f"from noise {start} on {first.probability:g} of the pool to noise {end} on "
            f"{last.probability:g} of it."
        )
        kept = (
            f"Each of these keeps the precision of attackers who find at least "
            f"{100 * self.min_tpr:g} % of the members at or below {self.target:g}: "
            f"{f'noise {start} at π = {first.probability:g}.' if first is last else ends}"
        )
        object.__setattr__(self, "planned", kept)


def plan(
    precision: float,
    *,
    pool_size: int,
    batch_size: float,
    epochs: float | None = None,
    steps: int | None = None,
    sampling_probabilities: Iterable[float] | None = None,
    min_tpr: float = MIN_TPR,
    delta: float = DELTA,
) -> PoolPlan:
    """The noise that each share of the pool needs to keep one bound on precision.

    `precision` is the target, which no attacker's precision exceeds at any of the points if it
    finds at least the share `min_tpr` of the members. `epochs` counts expected passes over the part
    that was drawn, so that a larger part has more steps; `steps` gives every part the same. Without
    `sampling_probabilities` they are `usual_probabilities`.

    >>> made = plan(0.731, pool_size=60_000, batch_size=1024, epochs=15,
    ...             sampling_probabilities=[0.1, 0.5])
    >>> [round(point.noise_multiplier, 1) for point in made.points]
    [1.8, 2.2]
    """
    target = validate.inner_probability("precision", precision, example=0.731)
    records = validate.whole("pool_size", pool_size, example=60_000)
    batch = validate.positive("batch_size", batch_size, example=256)
    share = validate.rate("min_tpr", min_tpr)
    at_delta = validate.inner_probability("delta", delta, example="1e-5")
    lengths = {"epochs": epochs, "steps": steps}
    validate.exactly_one("epochs, steps", lengths, "give for example epochs=15")
    if batch > records:
        wanted, remedy = f"at most {records:,}, the whole pool", "give a smaller batch"
        raise validate.invalid_value("batch_size", batch, wanted, remedy)
    if sampling_probabilities is None:
        drawn = usual_probabilities(target, batch / records)
    else:
        drawn = sorted({_drawable(each, target, batch, records) for each in sampling_probabilities})
    if not drawn:
        remedy = "give for example 0.1, 0.3 and 0.5"
        raise validate.invalid_input("sampling_probabilities", "empty", "one or more", remedy)
    given = None if steps is None else validate.whole("steps", steps)
    goal: dict[str, Any] = {"precision": target, "min_tpr": share}
    points = []
    for probability in drawn:
        rate = min(1.0, batch / (probability * records))
        training = DPSGD(sample_rate=rate, steps=given or steps_from_epochs(epochs or 0.0, rate))
        points.append(_point(probability, training, goal, records, at_delta))
    return PoolPlan(target, share, at_delta, records, batch, epochs, given, tuple(points))


def usual_probabilities(precision: float, least: float = 0.0) -> list[float]:
    """Evenly spaced probabilities below a target precision, the last one just below it.

    Those below `least` are left out: there is less than a batch to draw from.

    >>> usual_probabilities(0.731)
    [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.721]
    >>> usual_probabilities(0.3, least=0.07)
    [0.1, 0.15, 0.2, 0.25, 0.295]
    """
    if least >= precision:
        wanted = f"above {least:g}, the least π that leaves a batch"
        remedy = "no π meets the target; give a smaller batch or a larger pool"
        raise validate.invalid_value("precision", precision, wanted, remedy)
    steps = (digit / 10**power for power in itertools.count(2) for digit in (10, 5, 2))
    step = next(each for each in steps if each <= precision / FEWEST * (1 + 1e-9))
    last = round(precision - LAST * step, 12)
    spaced = [round(k * step, 12) for k in range(1, math.ceil(precision / step))]
    found = [each for each in spaced if least <= each < last] + [last] * (last >= least)
    return found or [round((least + precision) / 2, 12)]


def _drawable(probability: float, target: float, batch: float, records: int) -> float:
    value = validate.inner_probability("sampling_probabilities", probability, example=0.1)
    wanted = remedy = ""
    if value >= target:
        wanted = f"below the target precision {target:g}"
        remedy = 'always answering "member" is right that often: no noise meets the target'
    elif value * records < batch * (1 - 1e-12):
        wanted = f"at least {batch / records:.3g}, or the drawn part is smaller than a batch"
        remedy = f"give a batch of at most {value * records:g}"
    if wanted:
        raise validate.invalid_value("sampling_probabilities", probability, wanted, remedy)
    return value


def _point(
    probability: float, training: DPSGD, goal: Mapping[str, Any], records: int, delta: float
) -> PoolPoint:
    try:
        chosen = choose(PoolSampled(training, probability), **goal)
    except validate.InputError as error:
        raise validate.InputError(f"At probability {probability}: {error}") from None
    ran: Any = chosen.training
    curve = chosen.curve()
    epsilon, reached = curve.epsilon(delta), curve.precision(probability, goal["min_tpr"])
    size, other = probability * records, _by_theorem(probability, training, goal, delta)
    return PoolPoint(
        probability, ran.noise_multiplier, epsilon, ran.sample_rate, ran.steps, size, reached, other
    )


def _by_theorem(
    probability: float, training: DPSGD, goal: Mapping[str, Any], delta: float
) -> ByTheorem | None:
    """The noise from a single ε; None where the theorem leaves none, or no noise keeps it."""
    try:
        epsilon = choose(EpsilonDelta(delta=delta), prior=probability, **goal).epsilon
        noise = choose(training, epsilon=epsilon, delta=delta).noise_multiplier
    except validate.InputError:  # the inputs were checked: the target is out of this way's reach
        return None
    return ByTheorem(cast(float, epsilon), cast(float, noise))
