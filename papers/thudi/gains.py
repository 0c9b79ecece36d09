"""What attacks gain, as numbers with intervals: over settings, repetition by repetition.

A setting is one ε and one π; in it each repetition has a target and shadow models of its own. A
repetition in which an attack calls nobody a member has no precision, and is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime.membership.confidence import over_repetitions
from papers.reproduce import (
    TOLERANCE,
    Claim,
    Estimate,
    by_luck,
    exact,
    explained,
    mean,
    printed,
    stated,
)
from papers.thudi.attacks import Cell, Found

LEVEL = 0.05
"""The share of targets that may contradict a curve that holds."""

LUCK = 0.025
"""The share of settings that are above by luck: one side of a 95 % interval."""

Table = NDArray[np.float64]
Read = Callable[[Cell], Sequence[float | None]]


def baseline(cell: Cell) -> Sequence[float | None]:
    """The precision of calling everybody a member: the share of members."""
    members: list[float] = cell["members"]
    return members


def reached(attack: str, kind: str = "best") -> Read:
    """An attack's "best" precision of 40 thresholds, "held_out", or "shuffled"; or its "auc"."""
    return lambda cell: cell[attack][kind]


def at_rate(attack: str, rate: str) -> Read:
    """The precision of attacks P and R, aimed at a false-positive rate."""
    return lambda cell: cell[attack]["at_fpr"][rate]


def rate_had(attack: str, rate: str) -> Read:
    """The false-positive rate that they had."""
    return lambda cell: cell[attack]["fpr_had"][rate]


def private(found: Sequence[Found]) -> list[Cell]:
    """The settings with DP."""
    return [cell for each in found if each["epsilon"] is not None for cell in each["cells"]]


def public(found: Sequence[Found]) -> list[Cell]:
    """The settings without."""
    return [cell for each in found if each["epsilon"] is None for cell in each["cells"]]


def gains(cell: Cell, read: Read, against: Read = baseline) -> list[float]:
    """Differences by repetition; NaN where nobody was called a member."""
    pairs = zip(read(cell), against(cell), strict=True)
    return [np.nan if one is None or other is None else one - other for one, other in pairs]


def known(values: Sequence[float]) -> list[float]:
    """Without those that are not there."""
    return [value for value in values if not np.isnan(value)]


def over_settings(cells: Sequence[Cell], read: Read, against: Read = baseline) -> Estimate:
    """The mean gain over all settings; the interval is over repetitions of the whole."""
    return mean(by_repetition(cells, read, against))


def by_repetition(
    cells: Sequence[Cell], read: Read, against: Read = baseline
) -> NDArray[np.float64]:
    """The mean gain over all settings [repetition]."""
    table = np.array([gains(cell, read, against) for cell in cells])
    return np.array([np.mean(some) for some in map(known, table.T.tolist()) if some])


def over_trainings(cells: Sequence[Cell], read: Read, against: Read = baseline) -> Estimate:
    """The mean gain over all settings and repetitions, each on its own."""
    return mean(known([gain for cell in cells for gain in gains(cell, read, against)]))


def contradicting(title: str, found: Sequence[Found], attack: str) -> Claim:
    """Targets whose surest answers contradict their certified curve.

    Targets of one repetition at all π share shadow models.
    """
    cells = private(found)
    targets = sum(len(cell["members"]) for cell in cells)
    priors = len(cells) // _epsilons(found)
    luck = by_luck(targets // priors, priors, LEVEL)
    return stated(
        f"{title}: targets of {targets} whose surest answers contradict the certified curve",
        f"no attack is above the bound: no more than luck gives, {luck}",
        exact(sum(cell[attack]["contradicted"] for cell in cells)), most=luck,
    )  # fmt: skip


def _epsilons(found: Sequence[Found]) -> int:
    """How many values of ε there are with DP."""
    return sum(each["epsilon"] is not None for each in found)


def _corrected(values: Sequence[float], cells: int) -> Estimate:
    if len(values) < 2:
        return mean(values)
    return Estimate(*over_repetitions(values, cells=cells).numbers)


def is_above(cell: Cell, read: Read, against: Read = baseline) -> bool:
    """Whether the mean gain is above 0 with its 95 % interval."""
    found = known(gains(cell, read, against))
    return len(found) > 1 and over_repetitions(found).low > 0


def count_above(cells: Sequence[Cell], read: Read, against: Read = baseline) -> int:
    """Settings that are above."""
    return sum(is_above(cell, read, against) for cell in cells)


def luck_of(found: Sequence[Found]) -> int:
    """How many settings with DP luck brings above the baseline."""
    epsilons = _epsilons(found)
    return by_luck(epsilons, len(private(found)) // epsilons, LUCK)


def significant(title: str, found: Sequence[Found], read: Read) -> Claim:
    """How many settings with DP are above the baseline; those of one ε share shadow models."""
    cells, luck = private(found), luck_of(found)
    return stated(
        f"{title}: settings of {len(cells)} above the baseline",
        f"no significant improvement: no more than luck gives, {luck}",
        exact(count_above(cells, read)), most=luck,
    )  # fmt: skip


def difference(one: Cell, other: Cell, read: Read, against: Read = baseline) -> list[float]:
    """How much more is gained in one setting than in another, repetition by repetition."""
    pairs = zip(gains(one, read, against), gains(other, read, against), strict=True)
    return [a - b for a, b in pairs]


def jackknifed(table: Table, number: Callable[[Table], float]) -> Estimate:
    """A number of a table whose last axis has the repetitions, with the jackknife's interval."""
    count = table.shape[-1]
    whole = number(table.mean(-1))
    without = [number(np.delete(table, turn, -1).mean(-1)) for turn in range(count)]
    return mean([count * whole - (count - 1) * each for each in without])


def at(found: Found, prior: float) -> Cell:
    """The setting of a π."""
    return next(cell for cell in found["cells"] if cell["prior"] == prior)


def counts(found: Sequence[Found], read: Read, shuffled: Read | None = None) -> dict[str, Any]:
    """How many settings lie above what, with DP and without; for tables."""
    told = {}
    for name, cells in (("private", private(found)), ("no DP", public(found))):
        known_claims = [cell for cell in cells if cell["certified"] is not None]
        told[name] = {
            "cells": len(cells),
            "above_baseline": count_above(cells, read),
            "above_shuffled": 0 if shuffled is None else count_above(cells, read, shuffled),
            "above_certified": sum(
                _corrected(known([_none(value) for value in read(cell)]), len(cells)).low
                > cell["certified"]
                for cell in known_claims
            ),
        }
    return told


def _none(value: float | None) -> float:
    return np.nan if value is None else value


def rates_had(cells: Sequence[Cell], attack: str, rate: str) -> list[float]:
    """The least and the largest false-positive rate that was had where this one was aimed at."""
    had = [float(np.mean([_none(v) for v in rate_had(attack, rate)(cell)])) for cell in cells]
    return [min(had), max(had)]


def numbers_at(found: Sequence[Found], attack: str, rate: str) -> dict[str, Any]:
    """How many settings lie above what, and the rates that were had; for tables."""
    cells = [*private(found), *public(found)]
    return {**counts(found, at_rate(attack, rate)), "fpr_had": rates_had(cells, attack, rate)}


def rate_claims(
    title: str, found: Sequence[Found], attack: str, rate: str, reason: str
) -> list[Claim]:
    """Of attack P or R with DP: no gain over the baseline, and the rate that it aims at."""
    cells, read = private(found), at_rate(attack, rate)
    return [
        explained(significant(title, found, read), f"{_counted(found, attack, rate)} {reason}"),
        explained(
            stated(
                f"{title}: mean precision over the baseline, less 1",
                "no improvement: less than a fifth", relative(cells, read), most=TOLERANCE,
            ),
            f"The mean gain is {by_prior(cells, read, baseline, 'points')}. {reason}",
        ),
        explained(
            printed(
                f"{title}: mean false-positive rate had", float(rate),
                over_settings(cells, rate_had(attack, rate), nothing),
            ),
            _rates_told(cells, attack, rate),
        ),
    ]  # fmt: skip


def _counted(found: Sequence[Found], attack: str, rate: str) -> str:
    """Where the settings above the baseline are, and how many there are by another count."""
    cells, read = private(found), at_rate(attack, rate)
    by_epsilon = ", ".join(
        f"{count_above(each['cells'], read)} at ε = {each['epsilon']:g}"
        for each in found
        if each["epsilon"] is not None
    )
    drawn = sum(is_above(cell, read, _prior) for cell in cells)
    return (
        f"They are {by_epsilon}. With intervals of the precision itself against π, as they are "
        f"drawn, there are {drawn}. The AUC, which no threshold enters, is "
        f"{auc_words(cells, attack)} over all of them."
    )


def _prior(cell: Cell) -> list[float]:
    return [cell["prior"]] * len(cell["members"])


def _rates_told(cells: Sequence[Cell], attack: str, rate: str) -> str:
    """The rates at each π, and with shadow models at the target's own one where these were made."""
    told = f"It is {by_prior(cells, rate_had(attack, rate), nothing, '%')}."
    own = f"{attack}-matched"
    matched = [cell for cell in cells if own in cell]
    if not matched:
        return told
    here, there = (
        100 * over_settings(matched, rate_had(name, rate), nothing).value for name in (attack, own)
    )
    return (
        f"{told} The thresholds come from shadow models at π = 0.5. Where others were trained at "
        f"the target's own π too (figure 17), the mean is {here:.1f} % with the former and "
        f"{there:.1f} % with the latter."
    )


def relative(cells: Sequence[Cell], read: Read) -> Estimate:
    """The mean gain as a share of the mean baseline, over repetitions of the whole."""
    gained = np.array([gains(cell, read) for cell in cells])
    base = np.array([gains(cell, baseline, nothing) for cell in cells])
    return mean(known(list(np.nanmean(gained, axis=0) / base.mean(axis=0))))


def by_prior(cells: Sequence[Cell], read: Read, against: Read, unit: str) -> str:
    """The mean gain at each π, in words."""
    told = []
    for prior in sorted({cell["prior"] for cell in cells}):
        own = [cell for cell in cells if cell["prior"] == prior]
        told.append(f"{100 * over_settings(own, read, against).value:.1f} {unit} at π = {prior:g}")
    return ", ".join(told)


def nothing(cell: Cell) -> list[float]:
    """To set a number against 0."""
    return [0.0] * len(cell["members"])


def auc_words(cells: Sequence[Cell], attack: str) -> str:
    """The mean area under the curve, with its interval."""
    found = over_settings(cells, reached(attack, "auc"), nothing)
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"
