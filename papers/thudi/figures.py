"""Figures 3, 4, 11, 12 and 14 to 17 of Thudi et al. 2024 from the results of `attacks.py`.

    python papers/thudi/figures.py

Reads `results/*.json`, writes the pictures to `figures/` and what they show to `summary.json`.
Intervals in pictures are 95 % over five repetitions. A setting counts as above the baseline, or
above shuffled scores, where the interval of the differences, repetition by repetition, is above 0:
luck gives 2.5 % of them. It counts as above the certified precision where the lower end, corrected
over all settings of its figure, is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dprime.membership.confidence import Interval, over_repetitions
from dprime.show.figures import (
    ImprovementFigure,
    ImprovementPoint,
    MembershipRocFigure,
    PrecisionLine,
    PrecisionOverPriorFigure,
    PrecisionPoint,
    RocCurve,
)
from dprime.show.figures.figure import Figure
from dprime.show.figures.trade_off import Points

HERE = Path(__file__).resolve().parent
RESULTS, PICTURES = HERE / "results", HERE / "figures"
TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10 (subset)"}
FPRS = ("0.05", "0.1", "0.2", "0.3", "0.5")
USUAL_FPR = "0.1"

Cell = dict[str, Any]
Found = dict[str, Any]
Read = Callable[[Cell], Sequence[float | None]]


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    summary: dict[str, Any] = {}
    for data in TITLES:
        found = sorted(
            (json.loads(path.read_text()) for path in RESULTS.glob(f"{data}-*.json")),
            key=lambda each: each["epsilon"] or np.inf,
        )
        if found:
            summary[data] = Drawn(data, found).all()
    (HERE / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")


def label(found: Found) -> str:
    return "no DP" if found["epsilon"] is None else f"ε = {found['epsilon']:g}"


def mean(values: Sequence[float | None], cells: int = 1) -> Interval:
    """Over repetitions; one in which nobody was called a member is left out."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return Interval(known[0] if known else 0.0, 0.0, 1.0)
    found = over_repetitions(known, cells=cells)
    return Interval(found.mean, max(0.0, found.low), min(1.0, found.high))


def above(values: Sequence[float | None], others: Sequence[float]) -> bool:
    """Whether the mean difference, repetition by repetition, is above 0 with its 95 % interval."""
    gains = [a - b for a, b in zip(values, others, strict=True) if a is not None]
    return len(gains) > 1 and over_repetitions(gains).low > 0


def _none_yet() -> dict[str, int]:
    return dict.fromkeys(("cells", "above_baseline", "above_shuffled", "above_certified"), 0)


class Drawn:
    """The figures of one data set."""

    def __init__(self, data: str, found: list[Found]) -> None:
        self.data, self.found = data, found

    def all(self) -> dict[str, Any]:
        """Draw everything; return what it shows."""
        shown = {
            "3": self.precision("3", "LiRA", lambda cell: cell["lira"]["best"], "lira"),
            "3-held-out": self.precision(
                "3-held-out", "Held-out LiRA", lambda cell: cell["lira"]["held_out"]
            ),
            "rmia": self.precision("rmia", "RMIA", lambda cell: cell["rmia"]["best"], "rmia"),
            "4": self.improvement(),
            "11": self.rocs(),
            "14": self.at_rate("14", "Attack P", "attack-p", USUAL_FPR),
            "15": self.at_rate("15", "Attack R", "attack-r", USUAL_FPR),
            "15-printed": self.at_rate(
                "15-printed", "Attack R as printed", "attack-r-in", USUAL_FPR
            ),
            "17": self.at_rate("17", "Attack R at matched rates", "attack-r-matched", USUAL_FPR),
            "auc": {
                attack: {
                    label(found): [float(np.mean(cell[attack]["auc"])) for cell in found["cells"]]
                    for found in self.found
                }
                for attack in ("lira", "lira-fixed", "rmia", "attack-p", "attack-r", "yeom")
            },
            "auc_over_all_priors": {
                attack: self.aucs_over_all(attack)
                for attack in ("lira", "lira-fixed", "rmia", "attack-p", "attack-r", "yeom")
            },
            "contradicted": sum(
                cell[attack]["contradicted"] or 0
                for found in self.found
                for cell in found["cells"]
                for attack in ("lira", "rmia", "attack-p", "attack-r", "yeom")
            ),
        }
        for rate in FPRS:
            if rate != USUAL_FPR:
                name = f"16-{rate}"
                shown[name] = self.at_rate(name, f"Attack R aimed at FPR {rate}", "attack-r", rate)
        return shown

    def at_rate(self, name: str, title: str, attack: str, rate: str) -> dict[str, Any]:
        """Attacks P and R at their own rate of false alarms."""
        found = self.precision(name, title, lambda cell: cell[attack]["at_fpr"][rate], has=attack)
        return {**found, "fpr_had": self.rates_had(attack, rate)}

    def precision(
        self, name: str, title: str, read: Read, shuffled: str | None = None, has: str = "lira"
    ) -> dict[str, Any]:
        """Precision against π, one panel for each ε; and how many cells lie above what."""
        kept = [found for found in self.found if has in found["cells"][0]]
        cells = sum(len(found["cells"]) for found in kept)
        lines: list[PrecisionLine] = []
        counts = {"private": _none_yet(), "no DP": _none_yet()}
        values: dict[str, Any] = {}
        for found in kept:
            points = []
            for cell in found["cells"]:
                interval, corrected = mean(read(cell)), mean(read(cell), cells)
                luck = None if shuffled is None else float(np.mean(cell[shuffled]["shuffled"]))
                points.append(
                    PrecisionPoint(cell["prior"], *interval, cell["certified"], luck)
                )  # fmt: skip
                count = counts["no DP" if cell["certified"] is None else "private"]
                count["cells"] += 1
                count["above_baseline"] += above(read(cell), cell["members"])
                if cell["certified"] is not None:
                    count["above_certified"] += corrected.low > cell["certified"]
                if shuffled is not None:
                    count["above_shuffled"] += above(read(cell), cell[shuffled]["shuffled"])
            lines.append(PrecisionLine(label(found), tuple(points)))
            values[label(found)] = [point.precision for point in points]
        figure = PrecisionOverPriorFigure(tuple(lines), title, TITLES[self.data])
        self.save(figure, name)
        return {**counts, "title": figure.title, "precision": values}

    def rates_had(self, attack: str, rate: str) -> list[float]:
        """The least and the largest false-positive rate had where this one was aimed at."""
        had = [
            float(np.mean(cell[attack]["fpr_had"][rate]))
            for found in self.found
            for cell in found["cells"]
            if attack in cell
        ]
        return [min(had), max(had)]

    def aucs_over_all(self, attack: str) -> dict[str, list[float]]:
        """The mean AUC over all π for each ε, with its interval over repetitions."""
        return {
            label(found): list(
                over_repetitions(np.mean([cell[attack]["auc"] for cell in found["cells"]], axis=0))
            )
            for found in self.found
        }

    def improvement(self) -> dict[str, Any]:
        """Figure 4: best precision less the share of members, over all private ε, by π."""
        private = [found for found in self.found if found["epsilon"] is not None]
        points = []
        for place, cell in enumerate(private[0]["cells"]):
            gains, luck = [], []
            for found in private:
                own = found["cells"][place]
                gains += list(np.subtract(own["lira"]["best"], own["members"]))
                luck += list(np.subtract(own["lira"]["shuffled"], own["members"]))
            points.append(
                ImprovementPoint(cell["prior"], *over_repetitions(gains), *over_repetitions(luck))
            )
        figure = ImprovementFigure(tuple(points), "LiRA", TITLES[self.data], thresholds=40)
        self.save(figure, "4")
        return {
            "title": figure.title,
            "prior": [point.prior for point in points],
            "improvement": [point.improvement for point in points],
            "shuffled": [point.shuffled for point in points],
        }

    def rocs(self) -> dict[str, Any]:
        """Figure 11: one picture for each ε, one line for each π."""
        return {label(found): self.roc(found) for found in self.found}

    def roc(self, found: Found) -> str:
        """The claim drawn is the loosest of the five, so that it holds for every line."""
        rates = tuple(found["fpr"])
        curves = []
        for cell in found["cells"]:
            by_rate = list(zip(*cell["lira"]["tpr"], strict=True))
            means = [mean(values) for values in by_rate]
            parts = zip(*((each.mean, each.low, each.high) for each in means), strict=True)
            curves.append(RocCurve(f"π = {cell['prior']:g}", rates, *map(tuple, parts)))
        allowed = [cell["certified_tpr"] for cell in found["cells"]]
        claim = None if None in allowed else Points(rates, tuple(np.max(allowed, axis=0).tolist()))
        title = f"LiRA, {TITLES[self.data]}, {label(found)}"
        others = found["records"] * (1 - max(cell["prior"] for cell in found["cells"]))
        figure = MembershipRocFigure(tuple(curves), claim, title, least_fpr=1 / others)
        name = "none" if found["epsilon"] is None else f"{found['epsilon']:g}"
        self.save(figure, f"11-{name}")
        return figure.title

    def save(self, figure: Figure, name: str) -> None:
        """Under the paper's number."""
        figure.save(PICTURES / f"figure-{name}-{self.data}.svg")


if __name__ == "__main__":
    main()
