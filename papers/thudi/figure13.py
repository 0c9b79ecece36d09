"""Figure 13: LiRA with shadow models of other sampling rates.

Targets at each π are attacked with shadow models at each rate, at ε = 3. The paper observes no
significant difference between the rates of the shadow models, with 0.5 on average best. A
difference is taken target by target, so that it is about the shadow models alone; 0.5 is set
against the best of the other rates, with intervals that hold for all of them together. In the full
version it is played on a GPU and kept in `raw/`; the quick one plays MNIST with few models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dprime.membership.confidence import over_repetitions
from dprime.show.chart import Chart
from dprime.show.charts import PrecisionLine, PrecisionPoint, precision_over_prior
from papers.reproduce import (
    Claim,
    Estimate,
    Measured,
    Scale,
    by_luck,
    exact,
    explained,
    run,
    stated,
)
from papers.thudi import gains, pictures, raw
from papers.thudi.attacks import SETUPS, Cell, Found
from papers.thudi.frontiers import among

USUAL = "0.5"
TWO_SIDED = 0.05
"""The share of differences that are significant by luck, on either side."""


def measure(scale: Scale) -> Measured:
    """Every rate of the shadow models against every rate of the targets."""
    results = raw.rates(scale)
    by_data = {data: [found] for data, found in results.items()}
    claims = [claim for data, found in results.items() for claim in claims_of(data, found)]
    figures = {data: drawn(data, found) for data, found in results.items()}
    numbers = {data: {"cells": found["cells"]} for data, found in results.items()}
    setup = SETUPS[scale.size]
    settings: dict[str, Any] = {
        "epsilon": raw.QUICK_EPSILON, "pool": setup.pool, "records": setup.records,
        "shadows": setup.shadows, "repetitions": setup.repetitions, "batch": setup.batch,
        "epochs": setup.epochs, "priors": list(setup.priors),
    }  # fmt: skip
    return Measured(claims, settings, numbers, figures, raw.kept(scale, by_data))


def reached(rate: str) -> gains.Read:
    """The best of 40 with shadow models of this rate."""
    return lambda cell: cell["by_rate"][rate]


def ahead(cells: Sequence[Cell], others: Sequence[str]) -> Estimate:
    """The least that 0.5 has more than another rate, on average over the settings."""
    found = [
        among(gains.by_repetition(cells, reached(USUAL), reached(rate)), len(others))
        for rate in others
    ]
    return Estimate(
        *(min(getattr(each, end) for each in found) for end in ("value", "low", "high"))
    )


def claims_of(data: str, found: Found) -> list[Claim]:
    """0.5 against the best of the others; and how many differences are significant.

    A rate's shadow models are the same at every π: at worst the settings of one rate go together.
    """
    title, cells = raw.TITLES[data], found["cells"]
    others = [rate for rate in cells[0]["by_rate"] if rate != USUAL]
    means = ", ".join(
        f"{100 * gains.over_settings(cells, reached(USUAL), reached(rate)).value:+.1f} points at "
        f"{rate}"
        for rate in others
    )
    average = stated(
        f"{title}: precision with shadow models at 0.5 less the best of the other rates",
        "0.5 is on average best", ahead(cells, others), least=0.0,
    )  # fmt: skip
    pairs = [(cell, rate) for cell in cells for rate in others]
    significant = sum(differs(cell, rate) for cell, rate in pairs)
    luck = by_luck(len(others), len(cells), TWO_SIDED)
    return [
        explained(average, f"By rate 0.5 has {means} more."),
        stated(
            f"{title}: settings of {len(pairs)} where a rate differs from 0.5",
            f"no significant difference: no more than luck gives, {luck}",
            exact(significant), most=luck,
        ),
    ]  # fmt: skip


def differs(cell: Cell, rate: str) -> bool:
    """Whether the interval of the differences leaves 0 out."""
    values = gains.known(gains.gains(cell, reached(USUAL), reached(rate)))
    if len(values) < 2:
        return False
    found = over_repetitions(values)
    return found.low > 0 or found.high < 0


def drawn(data: str, found: Found) -> Chart:
    """A panel for each rate of the shadow models."""
    lines = [
        PrecisionLine(
            f"shadow models at {rate}",
            tuple(
                PrecisionPoint(
                    cell["prior"], *pictures.interval(cell["by_rate"][rate]).numbers,
                    shuffled=float(np.mean(cell["shuffled"][rate])),
                )
                for cell in found["cells"]
            ),
        )
        for rate in found["cells"][0]["by_rate"]
    ]  # fmt: skip
    return precision_over_prior(tuple(lines), "LiRA", raw.TITLES[data])


if __name__ == "__main__":
    run(measure, __file__, __doc__)
