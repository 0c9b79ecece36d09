"""Where the attacks' results come from: files that were made on a GPU, or a small play.

Full: `raw/DATA-EPSILON.json` where it is there. What is missing is played on a GPU and kept;
without a GPU it is left out, unless nothing is there. Quick: one ε, MNIST, few models, played once
for all scripts that run together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from papers.reproduce import Kept, Scale, kept_in, kept_or
from papers.thudi.attacks import SETUPS, Found, Game, play_rates

RAW = Path(__file__).resolve().parent / "raw"
TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10 (subset)"}
QUICK_EPSILON = 3.0
PRIVATE = (1.0, 3.0, 5.0, 7.0, 9.0, 12.0, 15.0)
"""Values of ε in the paper's figure 3."""

Results = dict[str, list[Found]]
"""By data set, the smallest ε first and no privacy last."""


def results(scale: Scale, epsilons: Sequence[float | None]) -> Results:
    """Of every data set and ε that this size has."""
    if scale.size != "full":
        chosen = None if tuple(epsilons) == (None,) else QUICK_EPSILON
        return {"mnist": [_played("mnist", chosen, scale)]}
    return {data: _of_data(data, epsilons, scale) for data in TITLES}


def _of_data(data: str, epsilons: Sequence[float | None], scale: Scale) -> list[Found]:
    there = [each for each in epsilons if kept_in(RAW, _name(data, each), scale.seed).exists()]
    wanted = there if there and scale.device == "cpu" else epsilons
    return [
        kept_or(RAW, _name(data, each), scale, partial(_played, data, each, scale))
        for each in wanted
    ]


def rates(scale: Scale) -> dict[str, Found]:
    """Of figure 13, by data set."""
    if scale.size != "full":
        return {"mnist": play_rates("mnist", QUICK_EPSILON, scale)}
    return {
        data: kept_or(RAW, f"rates-{data}", scale, partial(play_rates, data, QUICK_EPSILON, scale))
        for data in TITLES
    }


def _name(data: str, epsilon: float | None) -> str:
    return f"{data}-none" if epsilon is None else f"{data}-{epsilon:g}"


@lru_cache(maxsize=16)
def _played(data: str, epsilon: float | None, scale: Scale) -> Found:
    return Game(data, epsilon, scale).all()


def settings(scale: Scale, found: Results) -> dict[str, Any]:
    """What a script's results rest on."""
    setup = SETUPS[scale.size]
    return {
        "data": list(found),
        "epsilon": {data: [each["epsilon"] for each in own] for data, own in found.items()},
        "delta": found["mnist"][0]["delta"], "pool": setup.pool, "records": setup.records,
        "shadows": setup.shadows, "repetitions": setup.repetitions, "batch": setup.batch,
        "epochs": setup.epochs, "priors": list(setup.priors),
    }  # fmt: skip


def kept(scale: Scale, found: Results) -> Kept | None:
    """The attacks that a full version rests on."""
    if scale.size != "full":
        return None
    return Kept.of([each for own in found.values() for each in own])
