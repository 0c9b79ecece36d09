"""Figure 3: precision of LiRA against π.

The paper attacks models that were trained with DP on a share π of the data, takes the best
precision of 40 thresholds, and sees it consistently above the baseline that calls everybody a
member, by an amount that depends on π more than on ε. One of the 40 calls everybody a member
itself, so the best of them is never below the baseline: that it is above is no claim here. It is
set against the same of shuffled scores, which tell nothing and profit from the best of 40 all the
same; and beside it stands the precision at thresholds that were chosen on other records than those
that are counted. The full version reads results that were made on an H200 GPU (`raw/`); it makes
those that are missing if it has a GPU. The quick one plays MNIST with ε = 3 and few models.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.reproduce import Claim, Estimate, Measured, Scale, Table, run, stated
from papers.thudi import gains, pictures, raw
from papers.thudi.attacks import Found
from papers.thudi.gains import reached

BEST, HELD, SHUFFLED = (reached("lira", kind) for kind in ("best", "held_out", "shuffled"))


def measure(scale: Scale) -> Measured:
    """LiRA at every ε and π."""
    results = raw.results(scale, (*raw.PRIVATE, None))
    claims = [claim for data, found in results.items() for claim in claims_of(data, found)]
    figures = {}
    for data, found in results.items():
        figures[data] = pictures.precision(data, found, "LiRA", BEST, "lira")
        figures[f"{data}-held-out"] = pictures.precision(data, found, "Held-out LiRA", HELD)
    numbers = {data: numbers_of(found) for data, found in results.items()}
    return Measured(
        claims, raw.settings(scale, results), numbers, figures, raw.kept(scale, results),
        [table(results)],
    )  # fmt: skip


def claims_of(data: str, found: list[Found]) -> list[Claim]:
    """The paper's sentences, by its own number and by ones that luck does not lift."""
    title, cells = raw.TITLES[data], gains.private(found)
    luck = gains.over_settings(cells, SHUFFLED)
    outperforms = "LiRA consistently outperforms the baseline"
    claims = [
        stated(f"{title}: mean gain of the best of 40 over that of shuffled scores", outperforms,
               gains.over_settings(cells, BEST, SHUFFLED), least=0.0,
               why=f"Shuffled scores gain {100 * luck.value:.1f} points over the baseline "
               f"({100 * luck.low:.1f} to {100 * luck.high:.1f})."),
        stated(f"{title}: mean gain at held-out thresholds", outperforms,
               gains.over_settings(cells, HELD), least=0.0,
               why=f"The AUC of LiRA over all settings is {gains.auc_words(cells, 'lira')}."),
        gains.contradicting(title, found, "lira"),
    ]  # fmt: skip
    if len(found) > 2:
        luck = dominance(found, "shuffled")
        claims.append(
            stated(
                f"{title}: spread of the gain over π less that over ε",
                "π is the dominant factor in how much LiRA outperforms the baseline",
                dominance(found, "best"), least=0.0,
                why=f"For shuffled scores it is {luck.value:.4f} ({luck.low:.4f} to "
                f"{luck.high:.4f}), so the best of 40 depends on π without any attack.",
            )
        )  # fmt: skip
    return claims


def table(results: raw.Results) -> Table:
    """Mean gains over the baseline."""
    head = ("over the baseline, in points", "best of 40", "the same, shuffled", "held out")
    rows = []
    for data, found in results.items():
        cells = gains.private(found)
        means = [gains.over_settings(cells, read) for read in (BEST, SHUFFLED, HELD)]
        rows.append((raw.TITLES[data], *(_points(each) for each in means)))
    return Table("Mean gain of LiRA over all settings with DP", head, tuple(rows))


def _points(value: Estimate) -> str:
    return f"{100 * value.value:.1f} ({100 * value.low:.1f} to {100 * value.high:.1f})"


def dominance(found: list[Found], kind: str) -> Estimate:
    """Standard deviation over π (mean of all ε) less that over ε (mean of all π)."""
    table = np.array(
        [
            [gains.gains(cell, reached("lira", kind)) for cell in each["cells"]]
            for each in found
            if each["epsilon"] is not None
        ]
    )
    return gains.jackknifed(
        table, lambda of: float(of.mean(0).std(ddof=1) - of.mean(1).std(ddof=1))
    )


def numbers_of(found: list[Found]) -> dict[str, Any]:
    """Precision by ε and π, and how many settings lie above what."""
    rmia = reached("rmia")
    return {
        "precision": {
            pictures.label(each): [pictures.interval(BEST(cell)).value for cell in each["cells"]]
            for each in found
        },
        "contradicted": sum(
            cell[attack]["contradicted"]
            for cell in gains.private(found)
            for attack in ("lira", "rmia", "attack-p", "attack-r", "yeom")
        ),
        "lira": gains.counts(found, BEST, SHUFFLED),
        "lira_held_out": gains.counts(found, HELD),
        "rmia": gains.counts(found, rmia, reached("rmia", "shuffled")),
    }


if __name__ == "__main__":
    run(measure, __file__, __doc__)
