"""The charts of measured results that the documents show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal

from dprime.mechanisms import DPSGD
from dprime.membership.confidence import over_repetitions
from dprime.show import charts as made
from dprime.show.chart import Chart
from dprime.show.charts import FrontierPoint, FrontierSeries, SecurityLine
from dprime.show.charts.trainings import Across

Row = Mapping[str, Any]
ACROSS: tuple[Across, ...] = ("epochs", "accuracy")
LINES = {"full": "age, full analysis", "approximate": "age, approximate analysis"}
TITLES = {"mnist": "MNIST", "adult": "Adult"}
FIRST_EPOCH = 3
"""From which accuracy is drawn: before it, the model has not learned anything."""


def charts(attributes: Row, shares: Row) -> dict[str, str]:
    """The drawings by their path in the documents."""
    drawn = {
        f"assets/attributes-adult-{each}.svg": adult(attributes, each).svg() for each in ACROSS
    }
    for data in shares["runs"]:
        drawn[f"assets/frontier-{data}.svg"] = frontier(shares, data).svg()
    return drawn


def adult(found: Row, across: Across) -> Chart:
    """Figure 9 or 1 of Cherubin et al. (2024), of the first training."""
    run, epochs = found["runs"][0], found["epochs"]
    order, at = list(range(epochs)), [float(epoch) for epoch in range(1, epochs + 1)]
    if across == "accuracy":
        at = run["accuracy"]
        order = []
        for epoch in range(FIRST_EPOCH - 1, epochs):  # whose accuracy no earlier one reached
            if not order or at[epoch] > at[order[-1]]:
                order.append(epoch)

    def line(
        name: str, kind: Literal["certified", "estimate"], security: Sequence[float]
    ) -> SecurityLine:
        return SecurityLine(name, kind, tuple((at[each], security[each]) for each in order))

    setting = found["noise_multiplier"], found["records"], found["batch"]
    lines = [line("membership", "certified", certified(*setting, epochs))]
    estimates = run["security"]["central-limit"]
    lines += [line(name, "estimate", estimates[kind]) for kind, name in LINES.items()]
    return made.security(tuple(lines), "Adult", across)


@cache
def certified(noise: float, records: int, batch: int, epochs: int) -> list[float]:
    """The Bayes security after each epoch that no attacker on membership can break."""
    steps = -(-records // batch)  # as Opacus counts
    mechanisms = (DPSGD(noise, 1 / steps, steps * epoch) for epoch in range(1, epochs + 1))
    return [mechanism.curve("replace").bayes_security() for mechanism in mechanisms]


def epsilon(found: Row) -> float:
    """After the whole training."""
    steps = -(-found["records"] // found["batch"])
    mechanism = DPSGD(found["noise_multiplier"], 1 / steps, steps * found["epochs"])
    return mechanism.curve().epsilon(1e-5)


def frontier(found: Row, data: str) -> Chart:
    """In the form of figure 6 of Thudi et al. (2024)."""
    runs = found["runs"][data]
    series = (
        FrontierSeries(
            run["target"], tuple(_point(each, len(run["points"])) for each in run["points"])
        )
        for run in runs
    )
    return made.frontier(tuple(series), TITLES[data])


def _point(point: Row, points: int) -> FrontierPoint:
    """With an interval that holds together with those of all points: the best is picked."""
    finals = [each[-1] for each in point["accuracies"]]
    return FrontierPoint(
        point["probability"], *over_repetitions(finals, cells=points).within().numbers,
        float("inf") if point["epsilon"] is None else point["epsilon"],
    )  # fmt: skip
