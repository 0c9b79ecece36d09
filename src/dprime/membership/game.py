"""The game of membership inference: targets, shadow models, and a score for every record.

pool ──► targets on parts of it     ─┐
     ──► shadow models on parts     ─┴► evidence ──► attack ──► score per target and record
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dprime import validate
from dprime.membership.attacks import Attack, Evidence
from dprime.membership.shadows import Answers

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Scored:
    """What an attack made of some target models.

    Attributes:
        attack: its name.
        scores: higher means member; NaN means that it does not say so [target, record].
        members: the truth [target, record].
    """

    attack: str
    scores: Floats = field(repr=False)
    members: Bools = field(repr=False)


def score(
    attack: Attack, targets: Answers, shadows: Answers | None, records: Iterable[int]
) -> Scored:
    """Let an attack look at each target in turn.

    Args:
        attack: who looks.
        targets: the models under attack, trained on parts of a pool.
        shadows: models of the attacker's own, trained on parts of the same pool; None where the
            attack needs none.
        records: places in the pool of the records in question.
    """
    places = np.fromiter(records, dtype=np.int64)
    if not len(places):
        raise validate.misfit("records", "empty", "one place in the pool or more", "give range(9)")
    found = [
        attack.scores(evidence(targets, model, shadows, places)) for model in range(len(targets))
    ]
    return Scored(attack.name, np.stack(found), targets.members[:, places])


def evidence(
    targets: Answers, model: int, shadows: Answers | None, places: NDArray[np.int64]
) -> Evidence:
    """All that may be seen of one target."""
    return Evidence(
        target=targets.pool.of_model(model).take(places),
        population=targets.population.of_model(model),
        shadows=None if shadows is None else shadows.pool.take(places),
        members=None if shadows is None else shadows.members[:, places],
        shadow_population=None if shadows is None else shadows.population,
    )
