"""Attacks P and R with another pool and with other epochs: whether these make what they gain.

The paper's pool is the whole training set, ours has 5,000 records. At one ε the same attacks are
played with smaller and larger pools, with batches that grow with the pool, so that rate, steps and
noise stay the same; and with fewer and more epochs, with the noise that keeps ε. The usual play is
compared with the one that has most, by the gain that the claims are about. (At first the smallest
was compared with the largest, by the AUC; a review changed that when results were known.)

Full: read from `raw/varied-DATA-pool-POOL-epochs-EPOCHS.json`, or played on a GPU and kept there;
without a GPU what is missing is left out. The quick version has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from papers.reproduce import Estimate, Kept, Scale, kept_in, kept_or
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
        """What the attack gains in each, and whether a larger pool or more epochs change that."""
        pools, epochs = self.by("pool"), self.by("epochs")
        sentences = []
        if len(pools) > 1:
            sentences += [
                _told(pools, "pool", attack, rate),
                _change(self.usual, pools[-1], "pool", attack, rate),
            ]
        else:
            sentences.append("Reason not measured as far as it is the pool.")
        if len(epochs) > 1:
            sentences += [
                _told(epochs, "epochs", attack, rate),
                _change(self.usual, epochs[-1], "epochs", attack, rate),
                "How many epochs the paper's attacked models had is not said.",
            ]
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

    return play() if scale.size == "smoke" else kept_or(raw.RAW, name, scale, play)


def _setup(usual: Setup, pool: int, epochs: int) -> Setup:
    return replace(usual, pool=pool, batch=usual.batch * pool // usual.pool, epochs=epochs)


def _name(data: str, pool: int, epochs: int) -> str:
    return f"varied-{data}-pool-{pool}-epochs-{epochs}"


UNITS = {"pool": "records in the pool", "epochs": "epochs"}


def _told(plays: Sequence[Found], name: str, attack: str, rate: str) -> str:
    each_one = ", ".join(
        f"{_points(_gain(each, attack, rate))} with {each[name]:,}" for each in plays
    )
    return f"At ε = {plays[0]['epsilon']:g} the mean gain by {UNITS[name]} is {each_one}."


def _change(usual: Found, most: Found, name: str, attack: str, rate: str) -> str:
    """From the usual play to the one with most, in what the claims are about; the AUC beside."""
    gain = _gain(most, attack, rate) - _gain(usual, attack, rate)
    area = _auc(most, attack) - _auc(usual, attack)
    told = (
        f"From {usual[name]:,} to {most[name]:,} it changes by {_points(gain, '+')}, the AUC by "
        f"{area.value:+.4f} ({area.low:+.4f} to {area.high:+.4f}):"
    )
    return f"{told} {_verdict(name, gain)}"


LESS, MORE, SAME = range(3)
VERDICTS = {
    "pool": (
        "a larger pool takes from it, and our small one is a part of the reason.",
        "a larger pool adds to it.", "that a larger pool changes it is not shown.",
    ),
    "epochs": (
        "more epochs take from it.", "more epochs add to it.",
        "that more epochs change it is not shown.",
    ),
}  # fmt: skip


def _verdict(name: str, gain: Estimate) -> str:
    return VERDICTS[name][LESS if gain.high < 0 else MORE if gain.low > 0 else SAME]


def kept(scale: Scale, results: raw.Results, found: Mapping[str, Varied]) -> Kept | None:
    """All plays that a full version rests on."""
    others = [play for each in found.values() for play in each.others]
    return raw.kept(scale, {**results, "others": others})


def _gain(found: Found, attack: str, rate: str) -> Estimate:
    """The precision above the baseline, as the claims have it."""
    return over_settings(found["cells"], at_rate(attack, rate))


def _auc(found: Found, attack: str) -> Estimate:
    return over_settings(found["cells"], reached(attack, "auc"), nothing)


def _points(value: Estimate, sign: str = "") -> str:
    middle, low, high = (100 * each for each in (value.value, value.low, value.high))
    return f"{middle:{sign}.1f} points ({low:{sign}.1f} to {high:{sign}.1f})"
