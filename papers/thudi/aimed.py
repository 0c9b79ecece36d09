"""Figures 14 to 17: attacks P and R, which aim at a false-positive rate.

The paper's pool is the whole training set, ours has 5,000 records. At one ε the same attacks are
played with smaller and larger pools, with batches that grow with the pool, so that rate, steps and
noise stay the same; and with fewer and more epochs, with the noise that keeps ε. The usual play is
compared with the one that has most, by the gain that the claims are about. (At first the smallest
was compared with the largest, by the AUC; a review changed that when results were known.)

Full: read from `raw.json` (varied-DATA-pool-POOL-epochs-EPOCHS), or played on a GPU and kept there;
without a GPU what is missing is left out. The quick version varies nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from papers.entry import Measured, Scale, is_kept, kept_or
from papers.reproduce import TOLERANCE, Claim, Estimate, by_luck, mean, printed, stated
from papers.thudi.attacks import (
    AIMED,
    HERE,
    QUICK_EPSILON,
    SETUPS,
    TITLES,
    Cell,
    Found,
    Game,
    Setup,
    kept,
    results,
    settings,
)
from papers.thudi.gains import (
    Read,
    auc_told,
    baseline,
    count_above,
    counts,
    drawn_precision,
    epsilons,
    gains,
    is_above,
    known,
    nothing,
    over_settings,
    points_told,
    private,
    public,
    reached,
)

LUCK = 0.025
"""The share of settings that are above by luck: one side of a 95 % interval."""

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

UNITS = {"pool": "records in the pool", "epochs": "epochs"}
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
"""Where the gain gets less, where it gets more, and where neither is shown."""


@dataclass(frozen=True)
class Panel:
    """One attack at one false-positive rate.

    Attributes:
        attack: of which the claims are.
        rate: that it aims at.
        picture: its name in the picture.
        told: what its claims say beside the data set.
        part: its place in numbers and names of pictures.
        drawn: the attack in the picture, if it is another one.
    """

    attack: str
    rate: str
    picture: str
    told: str = ""
    part: tuple[str, ...] = ()
    drawn: str = ""


def aimed(panels: Sequence[Panel], at: Sequence[float | None], scale: Scale) -> Measured:
    """Every panel at these ε and at every π."""
    found = results(scale, at)
    others = varied(scale)
    claims, figures = [], {}
    numbers: dict[str, Any] = {data: {} for data in found}
    for data, own in found.items():
        for panel in panels:
            attack, rate, drawn = panel.attack, panel.rate, panel.drawn or panel.attack
            why = reason(others, data, attack, rate)
            claims += claims_of(f"{TITLES[data]}{panel.told}", own, attack, rate, why)
            name = "-".join([data, *panel.part])
            figures[name] = drawn_precision(data, own, panel.picture, at_rate(drawn, rate))
            counted = numbers_at(own, attack, rate)
            if panel.drawn:
                counted = {"printed": counted, "corrected": numbers_at(own, drawn, rate)}
            numbers[data] |= {panel.part[0]: counted} if panel.part else counted
    plays = [play for each in others.values() for play in each.others]
    rests_on = kept(scale, {**found, "others": plays})
    return Measured(claims, settings(scale, found), numbers, figures, rests_on)


def at_rate(attack: str, rate: str) -> Read:
    """The precision of attacks P and R, aimed at a false-positive rate."""
    return lambda cell: cell[attack]["at_fpr"][rate]


def rate_had(attack: str, rate: str) -> Read:
    """The false-positive rate that they had."""
    return lambda cell: cell[attack]["fpr_had"][rate]


def numbers_at(found: Sequence[Found], attack: str, rate: str) -> dict[str, Any]:
    """How many settings lie above what, and the rates that were had; for tables."""
    had = [
        float(np.mean([np.nan if v is None else v for v in rate_had(attack, rate)(cell)]))
        for cell in [*private(found), *public(found)]
    ]
    return {**counts(found, at_rate(attack, rate)), "fpr_had": [min(had), max(had)]}


def claims_of(
    title: str, found: Sequence[Found], attack: str, rate: str, reason: str
) -> list[Claim]:
    """With DP: no gain over the baseline, and the rate that it aims at."""
    cells, read = private(found), at_rate(attack, rate)
    luck = by_luck(epsilons(found), len(cells) // epsilons(found), LUCK)
    gained = np.array([gains(cell, read) for cell in cells])
    base = np.array([gains(cell, baseline, nothing) for cell in cells])
    relative = mean(known(list(np.nanmean(gained, axis=0) / base.mean(axis=0))))
    return [
        stated(f"{title}: settings of {len(cells)} above the baseline",
               f"no significant improvement: no more than luck gives, {luck}",
               count_above(cells, read), most=luck,
               reason=f"{counted_told(found, attack, rate)} {reason}"),
        stated(f"{title}: mean precision over the baseline, less 1",
               "no improvement: less than a fifth", relative, most=TOLERANCE,
               reason=f"The mean gain is {by_prior(cells, read, baseline, 'points')}. {reason}"),
        printed(f"{title}: mean false-positive rate had", float(rate),
                over_settings(cells, rate_had(attack, rate), nothing),
                reason=rates_told(cells, attack, rate)),
    ]  # fmt: skip


def counted_told(found: Sequence[Found], attack: str, rate: str) -> str:
    """Where the settings above the baseline are, and how many there are by another count."""
    cells, read = private(found), at_rate(attack, rate)
    by_epsilon = ", ".join(
        f"{count_above(each['cells'], read)} at ε = {each['epsilon']:g}"
        for each in found
        if each["epsilon"] is not None
    )

    def prior(cell: Cell) -> list[float]:
        return [cell["prior"]] * len(cell["members"])

    return (
        f"They are {by_epsilon}. With intervals of the precision itself against π, as they are "
        f"drawn, there are {sum(is_above(cell, read, prior) for cell in cells)}. The AUC, which no "
        f"threshold enters, is {auc_told(cells, attack)} over all of them."
    )


def rates_told(cells: Sequence[Cell], attack: str, rate: str) -> str:
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


def by_prior(cells: Sequence[Cell], read: Read, against: Read, unit: str) -> str:
    """The mean gain at each π, in words."""
    told = []
    for prior in sorted({cell["prior"] for cell in cells}):
        own = [cell for cell in cells if cell["prior"] == prior]
        told.append(f"{100 * over_settings(own, read, against).value:.1f} {unit} at π = {prior:g}")
    return ", ".join(told)


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
        sentences = []
        for name in UNITS:
            plays = self.by(name)
            if len(plays) > 1:
                sentences.append(self._told(plays, name, attack, rate))
            elif name == "pool":
                sentences.append("Reason not measured as far as it is the pool.")
            if len(plays) > 1 and name == "epochs":
                sentences.append("How many epochs the paper's attacked models had is not said.")
        return " ".join(sentences)

    def _told(self, plays: Sequence[Found], name: str, attack: str, rate: str) -> str:
        """The gain in each; and from the usual play to the one with most, with the AUC beside."""

        def gain(found: Found) -> Estimate:
            return over_settings(found["cells"], at_rate(attack, rate))

        def auc(found: Found) -> Estimate:
            return over_settings(found["cells"], reached(attack, "auc"), nothing)

        usual, most = self.usual, plays[-1]
        each_one = ", ".join(f"{points_told(gain(each))} with {each[name]:,}" for each in plays)
        change, area = gain(most) - gain(usual), auc(most) - auc(usual)
        verdict = VERDICTS[name][0 if change.high < 0 else 1 if change.low > 0 else 2]
        return (
            f"At ε = {plays[0]['epsilon']:g} the mean gain by {UNITS[name]} is {each_one}. From "
            f"{usual[name]:,} to {most[name]:,} it changes by {points_told(change, '+.1f')}, the "
            f"AUC by {area.told('+.4f')}: {verdict}"
        )


def reason(found: Mapping[str, Varied], data: str, attack: str, rate: str) -> str:
    """Why an attack gains more than in the paper, as far as pool and epochs tell."""
    if data not in found:
        return NOT_VARIED
    told = found[data].told(attack.removesuffix("-matched"), rate)
    if attack.endswith("-matched"):
        return f"With shadow models at π = 0.5, as in figure 15: {told}"
    return told


def varied(scale: Scale) -> dict[str, Varied]:
    """By data set, where there is something beside the usual play."""
    found = {data: _varied(data, scale) for data in CHOSEN[scale.size]}
    return {data: each for data, each in found.items() if each is not None}


@lru_cache(maxsize=8)
def _varied(data: str, scale: Scale) -> Varied | None:
    usual = SETUPS[scale.size]
    played = []
    for pool, epochs in CHOSEN[scale.size][data]:
        name = f"varied-{data}-pool-{pool}-epochs-{epochs}"
        if is_kept(HERE, name, scale.seed) or scale.size == "smoke" or scale.device != "cpu":
            played.append(_play(name, data, scale, setup_with(usual, pool, epochs)))
    return Varied(results(scale, (EPSILON,))[data][0], tuple(played)) if played else None


def _play(name: str, data: str, scale: Scale, setup: Setup) -> Found:
    epsilon = QUICK_EPSILON if scale.size == "smoke" else EPSILON

    def play() -> Found:
        return Game(data, epsilon, scale, setup).all(AIMED)

    return play() if scale.size == "smoke" else kept_or(HERE, name, scale, play)


def setup_with(usual: Setup, pool: int, epochs: int) -> Setup:
    """With another pool and batch, so that the rate is the same, and with other epochs."""
    return replace(usual, pool=pool, batch=usual.batch * pool // usual.pool, epochs=epochs)
