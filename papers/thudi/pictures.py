"""Pictures of attacks, in the paper's form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dprime.membership.confidence import Interval, over_repetitions
from dprime.show import charts
from dprime.show.chart import Chart
from dprime.show.charts import ImprovementPoint, Points, PrecisionLine, PrecisionPoint, RocCurve
from papers.thudi.attacks import Cell, Found
from papers.thudi.gains import Read, at, gains, known, reached
from papers.thudi.raw import TITLES


def label(found: Found) -> str:
    """Of one training."""
    return "no DP" if found["epsilon"] is None else f"ε = {found['epsilon']:g}"


def any_known(values: Sequence[float | None]) -> bool:
    """Whether somebody was called a member in some repetition."""
    return any(value is not None for value in values)


def interval(values: Sequence[float | None]) -> Interval:
    """Over repetitions; one in which nobody was called a member is left out."""
    there = [value for value in values if value is not None]
    if len(there) < 2:
        return Interval(there[0] if there else 0.0, 0.0, 1.0, len(there), "student-t")
    return over_repetitions(there).within()


def precision(
    data: str, found: Sequence[Found], title: str, read: Read, shuffled: str | None = None
) -> Chart:
    """Precision against π, one panel for each ε."""
    lines = []
    for each in found:
        points = [_point(cell, read, shuffled) for cell in each["cells"] if any_known(read(cell))]
        if points:
            lines.append(PrecisionLine(label(each), tuple(points)))
    return charts.precision_over_prior(tuple(lines), title, TITLES[data])


def _point(cell: Cell, read: Read, shuffled: str | None) -> PrecisionPoint:
    luck = None if shuffled is None else float(np.mean(cell[shuffled]["shuffled"]))
    return PrecisionPoint(cell["prior"], *interval(read(cell)).numbers, cell["certified"], luck)


def improvement(data: str, found: Sequence[Found]) -> Chart:
    """The best precision of LiRA less the share of members, over all ε, by π."""
    points = []
    for prior in (cell["prior"] for cell in found[0]["cells"]):
        cells = [at(each, prior) for each in found]
        both = [
            over_repetitions([x for c in cells for x in known(gains(c, reached("lira", kind)))])
            for kind in ("best", "shuffled")
        ]
        points.append(ImprovementPoint(prior, *both[0].numbers, *both[1].numbers))
    return charts.improvement(tuple(points), "LiRA", TITLES[data], thresholds=40)


def roc(found: Found) -> Chart:
    """One line for each π. The claim drawn is the loosest, so that it holds for every line."""
    rates = tuple(found["fpr"])
    curves = []
    for cell in found["cells"]:
        means = [interval(values) for values in zip(*cell["lira"]["tpr"], strict=True)]
        parts = zip(*(each.numbers for each in means), strict=True)
        curves.append(RocCurve(f"π = {cell['prior']:g}", rates, *map(tuple, parts)))
    allowed = [cell["certified_tpr"] for cell in found["cells"]]
    claim = None if None in allowed else Points(rates, tuple(np.max(allowed, axis=0).tolist()))
    title = f"LiRA, {TITLES[found['data']]}, {label(found)}"
    others = found["records"] * (1 - max(cell["prior"] for cell in found["cells"]))
    return charts.membership_roc(tuple(curves), claim, title, least_fpr=1 / others)
