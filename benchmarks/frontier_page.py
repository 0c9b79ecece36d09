"""Write the measured tables into `docs/frontier.md`.

    python benchmarks/frontier_page.py

From `frontier.json` beside this file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dprime.membership.confidence import over_repetitions
from dprime.show import charts
from dprime.show.charts import FrontierPoint, FrontierSeries
from dprime.text import round_up
from tables import fill

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "frontier.md"
ASSETS = PAGE.parent / "assets"
NAMES = {"mnist": "MNIST", "adult": "Adult"}

Row = dict[str, Any]


def main() -> None:
    result = json.loads((HERE / "frontier.json").read_text())
    PAGE.write_text(fill(PAGE.read_text(), {"frontier": frontier(result)}))


def frontier(result: Row) -> str:
    """All runs, and what they rest on."""
    parts = [*_pictures(result["runs"]), *(_run(run) for run in result["runs"])]
    first = result["runs"][0]
    parts.append(
        f"(Means of {first['repetitions']} trainings with 95 % Student-t intervals, on one half of "
        "the test part; the learning rate is the one that did best on the other half. In the "
        "charts the intervals hold for all π together. “Best epoch” "
        f"peeks at the records it is measured on. ε at δ = {first['delta']:g}. All of it took "
        f"{_minutes(result['seconds'])} on one {_device(result['device'])}.)"
    )
    return "\n\n".join(parts)


def _pictures(runs: list[Row]) -> list[str]:
    """One chart for each data set, in the form of the paper's figure 6."""
    shown = []
    for data in dict.fromkeys(run["data"] for run in runs):
        series = tuple(
            FrontierSeries(
                run["target"], tuple(_point(p, len(run["points"])) for p in run["points"])
            )
            for run in runs
            if run["data"] == data
        )
        name = f"frontier-{data}.svg"
        charts.frontier(series, NAMES[data]).save(ASSETS / name)
        shown.append(f"![{NAMES[data]}: accuracy against π at an equal bound](assets/{name})")
    return shown


def _point(point: Row, points: int) -> FrontierPoint:
    """With an interval that holds together with those of all points: the best is picked."""
    epsilon, finals = point["epsilon"], [each[-1] for each in point["accuracies"]]
    return FrontierPoint(
        point["probability"], *over_repetitions(finals, cells=points).within().numbers,
        float("inf") if epsilon is None else epsilon,
    )  # fmt: skip


def _run(run: Row) -> str:
    name = NAMES[run["data"]]
    left = f", {run['left_out']} repetitions left out" if run["left_out"] else ""
    momentum = f", momentum {run['momentum']:g}" if run["momentum"] else ""
    head = (
        f"**{name}, precision at most {run['target']:g}** ({run['model']}; a pool of "
        f"{run['pool_size']:,}{left}; batches of {run['batch_size']:g}, {run['epochs']:g} epochs, "
        f"C = {run['clip_norm']:g}{momentum}):"
    )
    lines = [
        "| π | records | noise | ε, at most | rate | final accuracy | best epoch, peeks |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(_row(point, point["probability"] == run["best"]) for point in run["points"]),
    ]
    return "\n\n".join([head, "\n".join(lines), run["sentence"]])


def _row(point: Row, best: bool) -> str:
    final = _accuracy(point["final"])
    cells = [
        f"{point['probability']:g}", f"{point['expected_records']:,.0f}",
        round_up(point["noise_multiplier"], 3),
        "no limit" if point["epsilon"] is None else round_up(point["epsilon"], 3),
        f"{point['learning_rate']:g}", f"**{final}**" if best else final,
        _accuracy(point["best_peeks_at_test"]),
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _accuracy(mean: Row) -> str:
    reach = max(mean["high"] - mean["value"], mean["value"] - mean["low"])
    return f"{100 * mean['value']:.2f} % ± {100 * reach:.2f}"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"


def _device(name: str) -> str:
    return "GPU" if name == "cuda" else "processor"


if __name__ == "__main__":
    main()
