"""Figures 3, 4 and 11 to 13: what LiRA gains, by ε and π and by the rate of its shadow models."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dprime.membership.confidence import over_repetitions
from dprime.show import charts
from dprime.show.chart import Chart
from dprime.show.charts import ImprovementPoint, Points, PrecisionLine, PrecisionPoint, RocCurve
from papers.entry import Measured, Scale, Table
from papers.reproduce import Claim, Estimate, Floats, by_luck, mean, stated
from papers.thudi.attacks import (
    FPRS,
    PRIVATE,
    QUICK_EPSILON,
    TITLES,
    Cell,
    Found,
    Results,
    kept,
    rates,
    results,
    settings,
    setup_of,
)
from papers.thudi.frontiers import among
from papers.thudi.gains import (
    Read,
    at,
    auc_told,
    baseline,
    by_repetition,
    contradicting,
    counts,
    difference,
    drawn_precision,
    gains,
    interval,
    known,
    label,
    nothing,
    over_settings,
    points_told,
    private,
    reached,
)

BEST, HELD, SHUFFLED = (reached("lira", kind) for kind in ("best", "held_out", "shuffled"))
MIDDLE, LOW, HIGH = 0.5, 0.1, 0.9
"""Sampling rates that are compared."""


def figure3(scale: Scale) -> Measured:
    """Precision of LiRA against π, at every ε."""
    found = results(scale, (*PRIVATE, None))
    figures = {}
    for data, own in found.items():
        figures[data] = drawn_precision(data, own, "LiRA", BEST, "lira")
        figures[f"{data}-held-out"] = drawn_precision(data, own, "Held-out LiRA", HELD)
    return Measured(
        [claim for data, own in found.items() for claim in outperforms(data, own)],
        settings(scale, found), {data: numbers_of(own) for data, own in found.items()}, figures,
        kept(scale, found), [gains_table(found)],
    )  # fmt: skip


def outperforms(data: str, found: list[Found]) -> list[Claim]:
    """The paper's sentences, by its own number and by ones that luck does not lift."""
    title, cells = TITLES[data], private(found)
    luck = over_settings(cells, SHUFFLED)
    sentence = "LiRA consistently outperforms the baseline"
    claims = [
        stated(f"{title}: mean gain of the best of 40 over that of shuffled scores", sentence,
               over_settings(cells, BEST, SHUFFLED), least=0.0,
               why=f"Shuffled scores gain {100 * luck.value:.1f} points over the baseline "
               f"({100 * luck.low:.1f} to {100 * luck.high:.1f})."),
        stated(f"{title}: mean gain at held-out thresholds", sentence,
               over_settings(cells, HELD), least=0.0,
               why=f"The AUC of LiRA over all settings is {auc_told(cells, 'lira')}."),
        contradicting(title, found, "lira"),
    ]  # fmt: skip
    if len(found) > 2:
        claims.append(
            stated(f"{title}: spread of the gain over π less that over ε",
                   "π is the dominant factor in how much LiRA outperforms the baseline",
                   dominance(found, BEST), least=0.0,
                   why=f"For shuffled scores it is {dominance(found, SHUFFLED).told('.4f')}, so "
                   "the best of 40 depends on π without any attack.")
        )  # fmt: skip
    return claims


def dominance(found: list[Found], read: Read) -> Estimate:
    """Standard deviation over π (mean of all ε) less that over ε (mean of all π)."""

    def spread(of: Floats) -> float:
        return float(of.mean(0).std(ddof=1) - of.mean(1).std(ddof=1))

    with_dp = [each["cells"] for each in found if each["epsilon"] is not None]
    return jackknifed(np.array([[gains(cell, read) for cell in own] for own in with_dp]), spread)


def jackknifed(table: Floats, number: Callable[[Floats], float]) -> Estimate:
    """A number of a table whose last axis has the repetitions, with the jackknife's interval."""
    count = table.shape[-1]
    whole = number(table.mean(-1))
    without = [number(np.delete(table, turn, -1).mean(-1)) for turn in range(count)]
    return mean([count * whole - (count - 1) * each for each in without])


def gains_table(found: Results) -> Table:
    """Mean gains over the baseline."""
    head = ("over the baseline, in points", "best of 40", "the same, shuffled", "held out")
    rows = []
    for data, own in found.items():
        means = [over_settings(private(own), read) for read in (BEST, SHUFFLED, HELD)]
        rows.append((TITLES[data], *(each.map(lambda x: 100 * x).told(".1f") for each in means)))
    return Table("Mean gain of LiRA over all settings with DP", head, tuple(rows))


def numbers_of(found: list[Found]) -> dict[str, Any]:
    """Precision by ε and π, and how many settings lie above what."""
    return {
        "precision": {
            label(each): [interval(BEST(cell)).value for cell in each["cells"]] for each in found
        },
        "contradicted": sum(
            cell[attack]["contradicted"]
            for cell in private(found)
            for attack in ("lira", "rmia", "attack-p", "attack-r", "yeom")
        ),
        "lira": counts(found, BEST, SHUFFLED),
        "lira_held_out": counts(found, HELD),
        "rmia": counts(found, reached("rmia"), reached("rmia", "shuffled")),
    }


def figure4(scale: Scale) -> Measured:
    """The gain of LiRA over the baseline, by π."""
    found = results(scale, PRIVATE)
    figures = {data: drawn_improvement(data, own) for data, own in found.items()}
    numbers = {
        data: {"prior": [*attacked.x], "improvement": [*attacked.y], "shuffled": [*shuffled.y]}
        for data, figure in figures.items()
        for attacked, shuffled in [figure.series[:2]]
    }
    return Measured(
        [claim for data, own in found.items() for claim in less_at_the_ends(data, own)],
        settings(scale, found), numbers, figures, kept(scale, found),
    )  # fmt: skip


def less_at_the_ends(data: str, found: list[Found]) -> list[Claim]:
    """The middle against both ends, as the paper counts and without luck."""

    def more(end: float, read: Read, against: Read = baseline) -> Estimate:
        """In the middle, over all ε and repetitions; each has shadow models of its own."""
        pairs = [(at(each, MIDDLE), at(each, end)) for each in found]
        return mean(known([x for pair in pairs for x in difference(*pair, read, against)]))

    claims = []
    for end, name in ((LOW, "low"), (HIGH, "high")):
        sentence = f"{name} sampling rates see less of an improvement than medium ones"
        what = f"{TITLES[data]}: gain at π = {MIDDLE:g} less that at π = {end:g}"
        claims += [
            stated(f"{what}, best of 40", sentence, more(end, BEST), least=0.0,
                   why="Shuffled scores, which tell nothing, have a difference of "
                   f"{points_told(more(end, SHUFFLED))}."),
            stated(f"{what}, best of 40 above shuffled scores", sentence,
                   more(end, BEST, SHUFFLED), least=0.0),
            stated(f"{what}, held-out thresholds", sentence, more(end, HELD), least=0.0),
        ]  # fmt: skip
    return claims


def drawn_improvement(data: str, found: Sequence[Found]) -> Chart:
    """The best precision of LiRA less the share of members, over all ε, by π."""
    points = []
    for prior in (cell["prior"] for cell in found[0]["cells"]):
        cells = [at(each, prior) for each in found]
        both = [
            over_repetitions([x for cell in cells for x in known(gains(cell, read))]).numbers
            for read in (BEST, SHUFFLED)
        ]
        points.append(ImprovementPoint(prior, *both[0], *both[1]))
    return charts.improvement(tuple(points), "LiRA", TITLES[data], thresholds=40)


RATE = 0.01
ATTACKS = ("lira", "lira-fixed", "rmia", "attack-p", "attack-r", "yeom")
MARGINAL = 0.01
"""As much again as a coin has: our reading of "marginal"."""

SHOWN = (3.0, 5.0, 7.0, None)
"""Values of ε in the paper's figure 11; and without privacy, of which it says nothing."""


def figure11(scale: Scale) -> Measured:
    """True against false positives of LiRA, at every π."""
    found = results(scale, (*PRIVATE, None))
    shown = [each for own in found.values() for each in own if each["epsilon"] in SHOWN]
    names = ["none" if one["epsilon"] is None else f"{one['epsilon']:g}" for one in shown]
    numbers = {
        data: {
            attack: {
                label(each): list(vars(
                    over_settings(each["cells"], reached(attack, "auc"), nothing)
                ).values())
                for each in own
            }
            for attack in ATTACKS
        }
        for data, own in found.items()
    }  # fmt: skip
    return Measured(
        [marginal(each) for each in shown if each["epsilon"] is not None], settings(scale, found),
        {"auc": numbers},
        {f"{e['data']}-{name}": drawn_roc(e) for e, name in zip(shown, names, strict=True)},
        kept(scale, found),
    )  # fmt: skip


def marginal(found: Found) -> Claim:
    """The true-positive rate at a low false-positive rate, of one data set and ε."""
    cells = found["cells"]

    def tpr(cell: Cell) -> list[float]:
        return [rates[FPRS.index(RATE)] for rates in cell["lira"]["tpr"]]

    def blind(cell: Cell) -> list[float]:
        """For scores in a random order: members above the first false alarm too many."""
        others = [round(found["records"] * (1 - share)) for share in cell["members"]]
        return [(math.floor(RATE * count + 1e-9) + 1) / (count + 1) for count in others]

    return stated(
        f"{TITLES[found['data']]}, {label(found)}: TPR at FPR 0.01, less that of scores that tell "
        "nothing",
        f"marginal strength at low false-positive rates: at most {MARGINAL:g} more",
        over_settings(cells, tpr, blind), most=MARGINAL,
        why=f"The AUC of LiRA at this ε is {auc_told(cells, 'lira')}.",
    )  # fmt: skip


def drawn_roc(found: Found) -> Chart:
    """One line for each π. The claim drawn is the loosest, so that it holds for every line."""
    fprs = tuple(found["fpr"])
    curves = []
    for cell in found["cells"]:
        means = [interval(values) for values in zip(*cell["lira"]["tpr"], strict=True)]
        parts = zip(*(each.numbers for each in means), strict=True)
        curves.append(RocCurve(f"π = {cell['prior']:g}", fprs, *map(tuple, parts)))
    allowed = [cell["certified_tpr"] for cell in found["cells"]]
    claim = None if None in allowed else Points(fprs, tuple(np.max(allowed, axis=0).tolist()))
    title = f"LiRA, {TITLES[found['data']]}, {label(found)}"
    others = found["records"] * (1 - max(cell["prior"] for cell in found["cells"]))
    return charts.membership_roc(tuple(curves), claim, title, least_fpr=1 / others)


def figure12(scale: Scale) -> Measured:
    """Precision of LiRA against models without DP; the paper's largest gains are at π = ½."""
    found = results(scale, (None,))
    kinds = {"best": "best of 40", "held_out": "held-out thresholds"}
    claims = [
        stated(f"{TITLES[data]}: gain at π = {MIDDLE:g} less that at π = {end:g}, {told}",
               "the improvement over the baseline depends on π",
               mean(known(difference(at(own, MIDDLE), at(own, end), reached("lira", kind)))),
               least=0.0)
        for data, (own,) in found.items()
        for end in (LOW, HIGH)
        for kind, told in kinds.items()
    ]  # fmt: skip
    numbers = {
        data: {
            kind: [interval(reached("lira", kind)(cell)).value for cell in own["cells"]]
            for kind in (*kinds, "shuffled")
        }
        for data, (own,) in found.items()
    }
    figures = {
        data: drawn_precision(data, own, "LiRA", BEST, "lira") for data, own in found.items()
    }
    return Measured(claims, settings(scale, found), numbers, figures, kept(scale, found))


USUAL = "0.5"
TWO_SIDED = 0.05
"""The share of differences that are significant by luck, on either side."""


def figure13(scale: Scale) -> Measured:
    """LiRA with every rate of the shadow models against every rate of the targets, at ε = 3."""
    found = rates(scale)
    return Measured(
        [claim for data, own in found.items() for claim in of_rates(TITLES[data], own["cells"])],
        {"epsilon": QUICK_EPSILON, **setup_of(scale)},
        {data: {"cells": own["cells"]} for data, own in found.items()},
        {data: drawn_rates(data, own) for data, own in found.items()},
        kept(scale, {data: [own] for data, own in found.items()}),
    )  # fmt: skip


def of_rate(rate: str) -> Read:
    """The best of 40 with shadow models of this rate."""
    return lambda cell: cell["by_rate"][rate]


def of_rates(title: str, cells: Sequence[Cell]) -> list[Claim]:
    """0.5 against the best of the others; and how many differences are significant.

    The least that 0.5 has more is told with intervals that hold for all other rates together. A
    rate's shadow models are the same at every π: at worst the settings of one rate go together.
    """
    others = [rate for rate in cells[0]["by_rate"] if rate != USUAL]
    ahead = {rate: by_repetition(cells, of_rate(USUAL), of_rate(rate)) for rate in others}
    each = [among(values, len(others)) for values in ahead.values()]
    least = Estimate(*(min(getattr(e, end) for e in each) for end in ("value", "low", "high")))
    means = ", ".join(f"{100 * mean(more).value:+.1f} points at {r}" for r, more in ahead.items())

    def differs(cell: Cell, rate: str) -> bool:
        values = known(gains(cell, of_rate(USUAL), of_rate(rate)))
        found = over_repetitions(values) if len(values) > 1 else None
        return found is not None and (found.low > 0 or found.high < 0)

    pairs = [(cell, rate) for cell in cells for rate in others]
    luck = by_luck(len(others), len(cells), TWO_SIDED)
    return [
        stated(f"{title}: precision with shadow models at 0.5 less the best of the other rates",
               "0.5 is on average best", least, least=0.0, reason=f"By rate 0.5 has {means} more."),
        stated(f"{title}: settings of {len(pairs)} where a rate differs from 0.5",
               f"no significant difference: no more than luck gives, {luck}",
               sum(differs(*pair) for pair in pairs), most=luck),
    ]  # fmt: skip


def drawn_rates(data: str, found: Found) -> Chart:
    """A panel for each rate of the shadow models."""

    def point(rate: str, cell: Cell) -> PrecisionPoint:
        shuffled = float(np.mean(cell["shuffled"][rate]))
        numbers = interval(cell["by_rate"][rate]).numbers
        return PrecisionPoint(cell["prior"], *numbers, shuffled=shuffled)

    cells = found["cells"]
    lines = [
        PrecisionLine(f"shadow models at {rate}", tuple(map(partial(point, rate), cells)))
        for rate in cells[0]["by_rate"]
    ]
    return charts.precision_over_prior(tuple(lines), "LiRA", TITLES[data])
