"""Figures 3, 4 and 11 to 13: what LiRA gains, by ε and π and by the rate of its shadow models."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
    SETUPS,
    TITLES,
    Cell,
    Found,
    Results,
    kept,
    rates,
    results,
    settings,
)
from papers.thudi.frontiers import among
from papers.thudi.gains import (
    Read,
    at,
    auc_told,
    baseline,
    by_repetition,
    counts,
    drawn_precision,
    epsilons,
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

LEVEL = 0.05
"""The share of targets that may contradict a curve that holds."""


def figure3(scale: Scale) -> Measured:
    found = results(scale, (*PRIVATE, None))
    figures, numbers = {}, {}
    for data, own in found.items():
        figures[data] = drawn_precision(data, own, "LiRA", BEST, "lira")
        figures[f"{data}-held-out"] = drawn_precision(data, own, "Held-out LiRA", HELD)
        numbers[data] = {
            "lira": counts(own, BEST, SHUFFLED),
            "lira_held_out": counts(own, HELD),
            "rmia": counts(own, reached("rmia"), reached("rmia", "shuffled")),
        }
    return Measured(
        [claim for data, own in found.items() for claim in outperforms(TITLES[data], own)],
        settings(scale, found), figures, kept(scale, found), [gains_table(found)], numbers,
    )  # fmt: skip


def outperforms(title: str, found: list[Found]) -> list[Claim]:
    """The paper's sentences, by its own number and by ones that luck does not lift."""
    cells, sentence = private(found), "LiRA consistently outperforms the baseline"
    luck = over_settings(cells, SHUFFLED).map(lambda each: 100 * each)
    targets, priors = sum(len(cell["members"]) for cell in cells), len(cells) // epsilons(found)
    # Targets of one repetition at all π share shadow models.
    contradicting = by_luck(targets // priors, priors, LEVEL)
    claims = [
        stated(f"{title}: mean gain of the best of 40 over that of shuffled scores", sentence,
               over_settings(cells, BEST, SHUFFLED), least=0.0,
               why=f"Shuffled scores gain {luck.value:.1f} points over the baseline "
               f"({luck.low:.1f} to {luck.high:.1f})."),
        stated(f"{title}: mean gain at held-out thresholds", sentence,
               over_settings(cells, HELD), least=0.0,
               why=f"The AUC of LiRA over all settings is {auc_told(cells, 'lira')}."),
        stated(f"{title}: targets of {targets} whose surest answers contradict the certified curve",
               f"no attack is above the bound: no more than luck gives, {contradicting}",
               sum(cell["lira"]["contradicted"] for cell in cells), most=contradicting),
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
    return jackknifed(np.array([gains(own, read) for own in with_dp]), spread)


def jackknifed(table: Floats, number: Callable[[Floats], float]) -> Estimate:
    """A number of a table whose last axis has the repetitions, with the jackknife's interval."""
    count = table.shape[-1]
    whole = number(table.mean(-1))
    without = [number(np.delete(table, turn, -1).mean(-1)) for turn in range(count)]
    return mean([count * whole - (count - 1) * each for each in without])


def gains_table(found: Results) -> Table:
    head = ("over the baseline, in points", "best of 40", "the same, shuffled", "held out")
    rows = []
    for data, own in found.items():
        means = [over_settings(private(own), read) for read in (BEST, SHUFFLED, HELD)]
        rows.append((TITLES[data], *(each.map(lambda x: 100 * x).told(".1f") for each in means)))
    return Table("Mean gain of LiRA over all settings with DP", head, tuple(rows))


def figure4(scale: Scale) -> Measured:
    found = results(scale, PRIVATE)
    figures = {data: drawn_improvement(data, own) for data, own in found.items()}
    numbers = {
        data: {"prior": [*attacked.x], "improvement": [*attacked.y], "shuffled": [*shuffled.y]}
        for data, figure in figures.items()
        for attacked, shuffled in [figure.series[:2]]
    }
    return Measured(
        [claim for data, own in found.items() for claim in less_at_the_ends(data, own)],
        settings(scale, found), figures, kept(scale, found), numbers=numbers,
    )  # fmt: skip


def more_in_the_middle(
    found: Sequence[Found], end: float, read: Read, against: Read = baseline
) -> Estimate:
    """How much more is gained, over all ε and repetitions; each has shadow models of its own."""
    middle, other = (
        gains([at(each, prior) for each in found], read, against) for prior in (MIDDLE, end)
    )
    return mean(known((middle - other).ravel()))


def less_at_the_ends(data: str, found: list[Found]) -> list[Claim]:
    """The middle against both ends, as the paper counts and without luck."""
    claims = []
    for end, name in ((LOW, "low"), (HIGH, "high")):
        sentence = f"{name} sampling rates see less of an improvement than medium ones"
        what = f"{TITLES[data]}: gain at π = {MIDDLE:g} less that at π = {end:g}"
        luck = points_told(more_in_the_middle(found, end, SHUFFLED))
        claims += [
            stated(f"{what}, best of 40", sentence, more_in_the_middle(found, end, BEST), least=0.0,
                   why=f"Shuffled scores, which tell nothing, have a difference of {luck}."),
            stated(f"{what}, best of 40 above shuffled scores", sentence,
                   more_in_the_middle(found, end, BEST, SHUFFLED), least=0.0),
            stated(f"{what}, held-out thresholds", sentence, more_in_the_middle(found, end, HELD),
                   least=0.0),
        ]  # fmt: skip
    return claims


def drawn_improvement(data: str, found: Sequence[Found]) -> Chart:
    """The best precision of LiRA less the share of members, over all ε, by π."""
    points = []
    for prior in (cell["prior"] for cell in found[0]["cells"]):
        cells = [at(each, prior) for each in found]
        both = [over_repetitions(known(gains(cells, r).ravel())).numbers for r in (BEST, SHUFFLED)]
        points.append(ImprovementPoint(prior, *both[0], *both[1]))
    return charts.improvement(tuple(points), "LiRA", TITLES[data], thresholds=40)


RATE = 0.01
ATTACKS = ("lira", "lira-fixed", "rmia", "attack-p", "attack-r", "yeom")
MARGINAL = 0.01
"""As much again as a coin has: our reading of "marginal"."""

SHOWN = (3.0, 5.0, 7.0, None)
"""Values of ε in the paper's figure 11; and without privacy, of which it says nothing."""


def figure11(scale: Scale) -> Measured:
    found = results(scale, (*PRIVATE, None))
    shown = [each for own in found.values() for each in own if each["epsilon"] in SHOWN]
    figures = {}
    for one in shown:
        name = "none" if one["epsilon"] is None else f"{one['epsilon']:g}"
        figures[f"{one['data']}-{name}"] = drawn_roc(one)

    def areas(attack: str, own: Sequence[Found]) -> dict[str, list[float]]:
        read = reached(attack, "auc")
        each = {label(one): over_settings(one["cells"], read, nothing) for one in own}
        return {name: list(vars(area).values()) for name, area in each.items()}

    numbers = {data: {name: areas(name, own) for name in ATTACKS} for data, own in found.items()}
    return Measured(
        [marginal(each) for each in shown if each["epsilon"] is not None], settings(scale, found),
        figures, kept(scale, found), numbers={"auc": numbers},
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
    claims = [
        stated(f"{TITLES[data]}: gain at π = {MIDDLE:g} less that at π = {end:g}, {told}",
               "the improvement over the baseline depends on π",
               more_in_the_middle(own, end, read), least=0.0)
        for data, own in found.items()
        for end in (LOW, HIGH)
        for told, read in (("best of 40", BEST), ("held-out thresholds", HELD))
    ]  # fmt: skip
    figures = {
        data: drawn_precision(data, own, "LiRA", BEST, "lira") for data, own in found.items()
    }
    return Measured(claims, settings(scale, found), figures, kept(scale, found))


USUAL = "0.5"
TWO_SIDED = 0.05
"""The share of differences that are significant by luck, on either side."""


def figure13(scale: Scale) -> Measured:
    """LiRA with every rate of the shadow models against every rate of the targets, at ε = 3."""
    found = rates(scale)
    claims, figures = [], {}
    for data, (own,) in found.items():
        claims += of_rates(TITLES[data], own["cells"])
        figures[data] = drawn_rates(data, own["cells"])
    epsilon = next(own["epsilon"] for (own,) in found.values())
    told = {"epsilon": epsilon, **SETUPS[scale.size].told()}
    return Measured(claims, told, figures, kept(scale, found))


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

    def differs(values: Floats) -> bool:
        found = over_repetitions(values) if len(values) > 1 else None
        return found is not None and (found.low > 0 or found.high < 0)

    rows = [known(v) for r in others for v in gains(cells, of_rate(USUAL), of_rate(r))]
    luck = by_luck(len(others), len(cells), TWO_SIDED)
    return [
        stated(f"{title}: precision with shadow models at 0.5 less the best of the other rates",
               "0.5 is on average best", least, least=0.0, reason=f"By rate 0.5 has {means} more."),
        stated(f"{title}: settings of {len(rows)} where a rate differs from 0.5",
               f"no significant difference: no more than luck gives, {luck}",
               sum(map(differs, rows)), most=luck),
    ]  # fmt: skip


def drawn_rates(data: str, cells: Sequence[Cell]) -> Chart:
    def point(rate: str, cell: Cell) -> PrecisionPoint:
        shuffled: Any = np.mean(cell["shuffled"][rate])
        numbers = interval(cell["by_rate"][rate]).numbers
        return PrecisionPoint(cell["prior"], *numbers, shuffled=float(shuffled))

    lines = [
        PrecisionLine(f"shadow models at {rate}", tuple(point(rate, cell) for cell in cells))
        for rate in cells[0]["by_rate"]
    ]
    return charts.precision_over_prior(tuple(lines), "LiRA", TITLES[data])
