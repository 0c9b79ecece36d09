"""The tables and charts of docs/frontier.md."""

from __future__ import annotations

from functools import partial

from benchmarks.tables import Row, table
from dprime.membership.confidence import over_repetitions
from dprime.show.figures.frontier import FrontierFigure, FrontierPoint, FrontierSeries
from dprime.text import round_up

DATA = {"mnist": "MNIST", "adult": "Adult"}


def frontier(found: Row) -> str:
    """All runs, and what they rest on."""
    runs = found["runs"]
    first, machine = runs[0], found["machine"]
    parts = [
        f"![{DATA[data]}: accuracy against π at an equal bound](assets/frontier-{data}.svg)"
        for data in dict.fromkeys(run["data"] for run in runs)
    ]
    seconds = machine["run_s"]
    took = f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"
    device = "processor" if machine["device"] == "cpu" else "GPU"
    return "\n\n".join([*parts, *(_frontier(run) for run in runs)]) + (
        f"\n\n(Means of {first['repetitions']} trainings with 95 % Student-t intervals, on one "
        "half of the test part; the learning rate is the one that did best on the other half. In "
        "the charts the intervals hold for all π together. “Best epoch” peeks at the records it is "
        f"measured on. ε at δ = {first['delta']:g}. All of it took {took} on one {device}.)"
    )


def _frontier(run: Row) -> str:
    left = f", {run['left_out']} repetitions left out" if run["left_out"] else ""
    momentum = f", momentum {run['momentum']:g}" if run["momentum"] else ""

    def accuracy(name: str, point: Row) -> str:
        mean = point[name]
        reach = max(mean["high"] - mean["value"], mean["value"] - mean["low"])
        text = f"{100 * mean['value']:.2f} % ± {100 * reach:.2f}"
        best = name == "final" and point["probability"] == run["best"]
        return f"**{text}**" if best else text

    def epsilon(point: Row) -> str:
        return "no limit" if point["epsilon"] is None else round_up(point["epsilon"], 3)

    made = table(run["points"], {
        "π": "{probability:g}", "records": "{expected_records:,.0f}",
        "noise": lambda point: round_up(point["noise_multiplier"], 3), "ε, at most": epsilon,
        "rate": "{learning_rate:g}", "final accuracy": partial(accuracy, "final"),
        "best epoch, peeks": partial(accuracy, "best_peeks_at_test"),
    })  # fmt: skip
    return (
        f"**{DATA[run['data']]}, precision at most {run['target']:g}** ({run['model']}; a pool of "
        f"{run['pool_size']:,}{left}; batches of {run['batch_size']:g}, {run['epochs']:g} epochs, "
        f"C = {run['clip_norm']:g}{momentum}):\n\n{made}\n\n{run['sentence']}"
    )


def charts(found: Row) -> dict[str, str]:
    """One chart for each data set, in the form of the paper's figure 6."""
    series: dict[str, list[FrontierSeries]] = {}
    for run in found["runs"]:
        points = tuple(_point(point, len(run["points"])) for point in run["points"])
        series.setdefault(run["data"], []).append(FrontierSeries(run["target"], points))
    return {
        f"assets/frontier-{data}.svg": FrontierFigure(tuple(each), DATA[data]).svg()
        for data, each in series.items()
    }


def _point(point: Row, points: int) -> FrontierPoint:
    """With an interval that holds together with those of all points: the best is picked."""
    finals = [each[-1] for each in point["accuracies"]]
    return FrontierPoint(
        point["probability"], *over_repetitions(finals, cells=points).within().numbers,
        float("inf") if point["epsilon"] is None else point["epsilon"], point["noise_multiplier"],
    )  # fmt: skip
