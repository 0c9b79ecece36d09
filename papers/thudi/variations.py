"""Attacks P and R with another pool and with other epochs: whether these make what they gain.

The paper's pool is the whole training set, ours has 5,000 records. At one ε the same attacks are
played with smaller and larger pools, with batches that grow with the pool, so that rate, steps and
noise stay the same; and with fewer and more epochs, with the noise that keeps ε.

Full: read from `raw/varied-DATA-pool-POOL-epochs-EPOCHS.json`, or played on a GPU and kept there;
without a GPU what is missing is left out. The quick version has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from papers.reproduce import Estimate, Kept, Scale, kept_in
from papers.thudi import raw
from papers.thudi.attacks import AIMED, SETUPS, Found, Game, Setup
from papers.thudi.gains import at_rate, nothing, over_settings, reached

EPSILON = 15.0
"""The largest one of figures 14 to 16, where the attacks gain most."""

CHOSEN: dict[str, dict[str, tuple[tuple[int, int], ...]]] = {
    "smoke": {"mnist": ((100, 1),)},
    "quick": {},
    "full": {
        "mnist": ((20_000, 20), (5000, 5), (5000, 40)),
        "cifar10": ((2500, 20), (10_000, 20), (5000, 5), (5000, 40)),
    },
}
"""Pools and epochs beside the usual ones; CIFAR-10 has no more than 10,000 records here."""

NOT_VARIED = "Pool and epochs were not varied: as far as they go, the reason is not measured."


@dataclass(frozen=True, eq=False)
class Varied:
    """Plays of one data set and ε.

    Attributes:
        usual: with the pool and the epochs of all figures.
        others: each with another pool or with other epochs.
    """

    usual: Found
    others: tuple[Found, ...]

    def by(self, name: str) -> list[Found]:
        """Those that differ in the "pool" or in the "epochs" alone, the smallest first."""
        same = {"pool": "epochs", "epochs": "pool"}[name]
        plays = (self.usual, *self.others)
        return sorted(
            (each for each in plays if each[same] == self.usual[same]),
            key=lambda each: int(each[name]),
        )

    def told(self, attack: str, rate: str) -> str:
        """What the attack reaches in each, and whether a larger pool takes from it."""
        pools, epochs = self.by("pool"), self.by("epochs")
        sentences = []
        if len(pools) > 1:
            sentences += [_told(pools, "pool", attack, rate), _verdict(pools, attack)]
        else:
            sentences.append("Reason not measured as far as it is the pool.")
        if len(epochs) > 1:
            sentences.append(_told(epochs, "epochs", attack, rate))
        return " ".join(sentences)


def varied(scale: Scale) -> dict[str, Varied]:
    """By data set, where there is something beside the usual play."""
    found = {data: _of_data(data, scale) for data in CHOSEN[scale.size]}
    return {data: each for data, each in found.items() if each is not None}


def reason(found: Mapping[str, Varied], data: str, attack: str, rate: str) -> str:
    """Why an attack gains more than in the paper, as far as pool and epochs tell."""
    return found[data].told(attack, rate) if data in found else NOT_VARIED


@lru_cache(maxsize=8)
def _of_data(data: str, scale: Scale) -> Varied | None:
    usual = SETUPS[scale.size]
    played = []
    for pool, epochs in CHOSEN[scale.size][data]:
        name, setup = _name(data, pool, epochs), _setup(usual, pool, epochs)
        if _can_be_had(name, scale):
            played.append(_play(name, data, scale, setup))
    if not played:
        return None
    return Varied(raw.results(scale, (EPSILON,))[data][0], tuple(played))


def _can_be_had(name: str, scale: Scale) -> bool:
    there = kept_in(raw.RAW, name, scale.seed).exists()
    return there or scale.size == "smoke" or scale.device != "cpu"


def _play(name: str, data: str, scale: Scale, setup: Setup) -> Found:
    epsilon = raw.QUICK_EPSILON if scale.size == "smoke" else EPSILON

    def play() -> Found:
        return Game(data, epsilon, scale, setup).all(AIMED)

    return play() if scale.size == "smoke" else raw.read_or(name, scale, play)


def _setup(usual: Setup, pool: int, epochs: int) -> Setup:
    return replace(usual, pool=pool, batch=usual.batch * pool // usual.pool, epochs=epochs)


def _name(data: str, pool: int, epochs: int) -> str:
    return f"varied-{data}-pool-{pool}-epochs-{epochs}"


def _told(plays: Sequence[Found], name: str, attack: str, rate: str) -> str:
    each_one = ", ".join(
        f"{_interval(_auc(each, attack))} with {each[name]:,}"
        f" ({100 * over_settings(each['cells'], at_rate(attack, rate)).value:.1f} points)"
        for each in plays
    )
    unit = {"pool": "records in the pool", "epochs": "epochs"}[name]
    change = _interval(_auc(plays[-1], attack) - _auc(plays[0], attack), "+")
    return (
        f"At ε = {plays[0]['epsilon']:g} the AUC (the mean gain) by {unit} is {each_one}: from the "
        f"first to the last a change of {change}."
    )


def _verdict(pools: Sequence[Found], attack: str) -> str:
    change = _auc(pools[-1], attack) - _auc(pools[0], attack)
    if change.high < 0:
        return "A larger pool takes from it: our small one is a part of the reason."
    return "That a larger pool takes from it is not shown."


def kept(scale: Scale, results: raw.Results, found: Mapping[str, Varied]) -> Kept | None:
    """All plays that a full version rests on."""
    others = [play for each in found.values() for play in each.others]
    return raw.kept(scale, {**results, "others": others})


def _auc(found: Found, attack: str) -> Estimate:
    return over_settings(found["cells"], reached(attack, "auc"), nothing)


def _interval(value: Estimate, sign: str = "") -> str:
    return f"{value.value:{sign}.3f} [{value.low:{sign}.3f} to {value.high:{sign}.3f}]"
