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
from functools import lru_cache, partial
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
    found, others = results(scale, at), varied(scale)
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
    plays = [play for _, *each in others.values() for play in each]
    rests_on = kept(scale, {**found, "others": plays})
    return Measured(claims, settings(scale, found), figures, rests_on, numbers=numbers)


def at_rate(attack: str, rate: str) -> Read:
    """The precision of attacks P and R, aimed at a false-positive rate."""
    return lambda cell: cell[attack]["at_fpr"][rate]


def rate_had(attack: str, rate: str) -> Read:
    return lambda cell: cell[attack]["fpr_had"][rate]


def numbers_at(found: Sequence[Found], attack: str, rate: str) -> dict[str, Any]:
    """How many settings lie above what, and the rates that were had; for tables."""
    had = gains([*private(found), *public(found)], rate_had(attack, rate), nothing).mean(axis=1)
    return {**counts(found, at_rate(attack, rate)), "fpr_had": [had.min(), had.max()]}


def claims_of(
    title: str, found: Sequence[Found], attack: str, rate: str, reason: str
) -> list[Claim]:
    """With DP: no gain over the baseline, and the rate that it aims at."""
    cells, read = private(found), at_rate(attack, rate)
    luck = by_luck(epsilons(found), len(cells) // epsilons(found), LUCK)
    base = gains(cells, baseline, nothing).mean(axis=0)
    relative = mean(known(np.nanmean(gains(cells, read), axis=0) / base))
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
        f"drawn, there are {count_above(cells, read, prior)}. The AUC, which no "
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
    told = []
    for prior in sorted({cell["prior"] for cell in cells}):
        own = [cell for cell in cells if cell["prior"] == prior]
        told.append(f"{100 * over_settings(own, read, against).value:.1f} {unit} at π = {prior:g}")
    return ", ".join(told)


def reason(found: Mapping[str, Sequence[Found]], data: str, attack: str, rate: str) -> str:
    """Why an attack gains more than in the paper, as far as pool and epochs tell."""
    if data not in found:
        return NOT_VARIED
    told = varied_told(found[data], attack.removesuffix("-matched"), rate)
    if attack.endswith("-matched"):
        return f"With shadow models at π = 0.5, as in figure 15: {told}"
    return told


def varied_told(plays: Sequence[Found], attack: str, rate: str) -> str:
    """What the attack gains in each play, of which the first is the usual one.

    The gain from the usual play to the one with most says whether a larger pool or more epochs
    change it; the AUC stands beside.
    """

    def gain(found: Found) -> Estimate:
        return over_settings(found["cells"], at_rate(attack, rate))

    def auc(found: Found) -> Estimate:
        return over_settings(found["cells"], reached(attack, "auc"), nothing)

    usual, told = plays[0], []
    for name, same in (("pool", "epochs"), ("epochs", "pool")):
        own = sorted((p for p in plays if p[same] == usual[same]), key=lambda p: int(p[name]))
        if len(own) == 1:
            told += ["Reason not measured as far as it is the pool."] if name == "pool" else []
            continue
        most = own[-1]
        each_one = ", ".join(f"{points_told(gain(p))} with {p[name]:,}" for p in own)
        change, area = gain(most) - gain(usual), auc(most) - auc(usual)
        verdict = VERDICTS[name][0 if change.high < 0 else 1 if change.low > 0 else 2]
        told.append(
            f"At ε = {usual['epsilon']:g} the mean gain by {UNITS[name]} is {each_one}. From "
            f"{usual[name]:,} to {most[name]:,} it changes by {points_told(change, '+.1f')}, the "
            f"AUC by {area.told('+.4f')}: {verdict}"
        )
        if name == "epochs":
            told.append("How many epochs the paper's attacked models had is not said.")
    return " ".join(told)


@lru_cache(maxsize=8)
def varied(scale: Scale) -> dict[str, list[Found]]:
    """By data set: the usual play and others, where there are some."""
    found, usual = {}, SETUPS[scale.size]
    for data, chosen in CHOSEN[scale.size].items():
        others = []
        for pool, epochs in chosen:
            name = f"varied-{data}-pool-{pool}-epochs-{epochs}"
            if scale.size == "smoke":
                others.append(_play(data, QUICK_EPSILON, scale, setup_with(usual, pool, epochs)))
            elif is_kept(HERE, name, scale.seed) or scale.device != "cpu":
                setup = setup_with(usual, pool, epochs)
                play = partial(_play, data, EPSILON, scale, setup)
                others.append(kept_or(HERE, name, scale, play))
        if others:
            found[data] = [results(scale, (EPSILON,))[data][0], *others]
    return found


def _play(data: str, epsilon: float, scale: Scale, setup: Setup) -> Found:
    return Game(data, epsilon, scale, setup).all(AIMED)


def setup_with(usual: Setup, pool: int, epochs: int) -> Setup:
    """With another pool and batch, so that the rate is the same, and with other epochs."""
    return replace(usual, pool=pool, batch=usual.batch * pool // usual.pool, epochs=epochs)
