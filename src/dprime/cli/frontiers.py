"""`dprime frontier`: at an equal bound on precision, which share of a pool gives the best model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from dprime import text, validate
from dprime.cli.options import (
    Address,
    AsJson,
    TimeLimit,
    Where,
    Workers,
    backend_asked,
    check_torch,
    free_path,
    if_given,
    interruptible,
    look_here,
    number_option,
    number_options,
    numbers_given,
    text_option,
    with_options,
)
from dprime.cli.pools import pool_named
from dprime.cli.tables import interval_cell, plain_table, show
from dprime.data import Split
from dprime.mechanisms import DEFAULT_ADJACENCY
from dprime.membership.planner import DELTA, MIN_TPR, PoolPlan, plan
from dprime.plain import to_json
from dprime.text import round_up

if TYPE_CHECKING:
    from dprime.membership.frontiers import FrontierRecord
    from dprime.runs.backends import Backend

Text = str | None
Request = dict[str, Any]
"""A frontier by names and numbers, as its run keeps it."""


NUMBERS = {
    "records": "Use only the first N records.",
    "min_tpr": "Smallest TPR of attackers that matter [0.01].",
    "delta": "δ at which ε is read [1e-5].",
    "batch": "Expected records in a batch [256].",
    "epochs": "Passes over the drawn part [15].",
    "steps": "Instead: the same steps for every share.",
    "clip_norm": "C, the clipping norm [1].",
    "momentum": "SGD momentum [0].",
    "repetitions": "Trainings at each share [5].",
    "seed": "Gives draws and trainings; kept in the file.",
    "memory": "GB that the training may use [2].",
}
WHOLE = ("records", "steps", "repetitions", "seed")

DEFAULTS = {
    "records": None, "min_tpr": MIN_TPR, "delta": DELTA, "batch": 256, "epochs": None,
    "steps": None, "clip_norm": 1.0, "momentum": 0.0, "repetitions": 5, "seed": None, "memory": 2.0,
}  # fmt: skip

EPOCHS = 15.0
"""Passes over the drawn part where neither epochs nor steps are given."""

PICTURES = (".svg", ".png", ".json")


@with_options(number_options(NUMBERS), before="plan_only")
def frontier(
    precision: Annotated[str, number_option("The bound that every point keeps, e.g. 0.731.")],
    data: Annotated[str, text_option("The data set's name; digits if not given.")] = "digits",
    data_dir: Annotated[Text, text_option("The folder of the data sets' files.")] = None,
    pi: Annotated[Text, text_option("Shares of the pool to draw, e.g. 0.1,0.3,0.5.")] = None,
    model: Annotated[
        str, text_option("linear, dense-64-32, conv-16-32 or module:function; linear if not given.")
    ] = "linear",
    learning_rate: Annotated[
        str, text_option("One, or several to choose from at each share, e.g. 0.3,1,3 [1].")
    ] = "1",
    plan_only: Annotated[
        bool, typer.Option("--plan-only", help="The noise of each share; train nothing.")
    ] = False,
    device: Annotated[str, text_option("cpu (if not given) or cuda.")] = "cpu",
    backend: Where = "here",
    workers: Workers = None,
    address: Address = None,
    time_limit: TimeLimit = None,
    out: Annotated[
        Path | None,
        text_option("The run's file, whose finished points are not trained again; else in runs/."),
    ] = None,
    chart: Annotated[Path | None, text_option("A picture, FILE.svg or FILE.png.")] = None,
    as_json: AsJson = False,
    **numbers: Text,
) -> None:
    """At one bound on precision: fewer records with less noise, or more with more noise."""
    _check_files(plan_only, out, chart)
    request: Request = {
        "data": data, "data_dir": data_dir, "model": model, "device": device,
        "precision": validate.parse("precision", precision), "pi": if_given(_list, "pi", pi),
        "learning_rate": _list("learning_rate", learning_rate),
        **DEFAULTS, **numbers_given(numbers, NUMBERS, WHOLE),
    }  # fmt: skip
    if request["steps"] is None and request["epochs"] is None:
        request["epochs"] = EPOCHS
    split, made = _planned(request)
    if plan_only:
        show(to_json(made), as_json, plan_table(made), made.planned)
        return
    check_torch("training")
    where = backend_asked(backend, workers, address, time_limit, device)
    path = out or free_path("frontier", data)
    found = _trained(made, split, request, path, where)
    drawn = None if chart is None else _draw(found, chart)
    _told(found, path, as_json)
    if drawn is not None and not as_json:
        Console().print(f"Kept in {drawn}.", style="dim", highlight=False, soft_wrap=True)


def finish_frontier(request: Request, path: Path, backend: Backend, as_json: bool) -> None:
    """Train what a run still lacks, and print its table."""
    split, made = _planned(request)
    _told(_trained(made, split, request, path, backend), path, as_json)


def _planned(request: Request) -> tuple[Split, PoolPlan]:
    """The data and the points of a request."""
    split = pool_named(request["data"], request["data_dir"], "records", request["records"])
    names = ("epochs", "steps", "min_tpr", "delta")
    return split, plan(
        request["precision"], pool_size=len(split.train), batch_size=request["batch"],
        probabilities=request["pi"], **{name: request[name] for name in names},
    )  # fmt: skip


def _told(found: FrontierRecord, path: Path, as_json: bool) -> None:
    record = to_json(found)
    show({"run": str(path), **record}, as_json, frontier_table(record), found.sentence)
    if not as_json:
        Console().print(f"Kept in {path}.", style="dim", highlight=False, soft_wrap=True)


def _check_files(plan_only: bool, out: Path | None, chart: Path | None) -> None:
    """Refuse a place for results that will not be, or a picture of another kind."""
    for name, path in (("out", out), ("chart", chart)):
        if plan_only and path is not None:
            remedy = "leave it out, or leave out --plan-only"
            raise validate.invalid_value(
                name, str(path), "left out where nothing is trained", remedy
            )
    if chart is not None and chart.suffix.lower() not in PICTURES:
        wanted = f"a file that ends in {', '.join(PICTURES)}"
        raise validate.invalid_value("chart", str(chart), wanted, f"end it in {PICTURES[0]}")
    if chart is not None:
        from dprime.show.needs import check_drawing  # noqa: PLC0415  only a chart needs it

        check_drawing()


def _list(name: str, text: str) -> list[float]:
    return [validate.parse(name, each) for each in text.split(",")]


def _trained(
    made: PoolPlan, split: Split, request: Request, path: Path, backend: Backend
) -> FrontierRecord:
    """Train at every point; an interrupted run says how to go on."""
    from dprime.membership.frontiers import frontier as train_all  # noqa: PLC0415  it needs PyTorch
    from dprime.train import SGD, Compute  # noqa: PLC0415
    from dprime.train.models import network_named  # noqa: PLC0415

    look_here()
    names = ("learning_rate", "clip_norm", "repetitions", "seed")
    with interruptible(path):
        return train_all(
            made, split, network_named(request["model"], split.train),
            optimizer=SGD(momentum=request["momentum"]), file=path, backend=backend,
            compute=Compute(request["device"], request["memory"]), request=request,
            **{name: request[name] for name in names},
        )  # fmt: skip


def _draw(found: FrontierRecord, path: Path) -> Path:
    from dprime.show.figures.frontier import (  # noqa: PLC0415  it draws
        FrontierFigure,
        FrontierPoint,
        FrontierSeries,
    )

    points = []
    for each in found.points:
        joint = each.among(len(found.points))  # the best is picked among them
        points.append(
            FrontierPoint(each.probability, *joint.numbers, each.epsilon, each.noise_multiplier)
        )
    figure = FrontierFigure((FrontierSeries(found.target, tuple(points)),), found.data)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return figure.save(path)
    except OSError as error:
        wanted = f"a place to write to ({error.strerror})"
        raise validate.invalid_value("chart", str(path), wanted, "give another place") from None


def plan_table(made: PoolPlan) -> Table:
    """The noise that each share needs, by the curve and by the theorem."""
    table = plain_table(
        f"Precision at most {made.target:g}, for attackers with a TPR of {made.min_tpr:g} or more",
        "π", "Records", "Steps", "Noise", f"ε at δ {made.delta:g}", "Precision", "Noise by theorem",
    )  # fmt: skip
    for point in made.points:
        other = point.by_theorem
        table.add_row(
            f"{point.probability:g}", f"{point.expected_records:,.0f}", f"{point.steps:,}",
            round_up(point.noise_multiplier), _epsilon(point.epsilon), round_up(point.precision),
            "none" if other is None else f"{round_up(other.noise_multiplier)}",
        )  # fmt: skip
    table.caption = (
        f"ε and precision are at most these. {text.certified(DEFAULT_ADJACENCY)}. Records: "
        "expected, the number drawn is a secret. Noise by theorem: where the bound goes by one "
        "pair (ε, δ) (Thudi et al. 2024, corrected); more noise, and every risk is smaller."
    )
    return table


def frontier_table(found: Mapping[str, Any]) -> Table:
    """Accuracy at each share, with its interval."""
    several = len(found["learning_rates"]) > 1
    table = plain_table(
        f"{found['data']}: precision at most {found['target']:g}, for attackers with a TPR of "
        f"{found['min_tpr']:g} or more",
        "π", "Records", "Noise", "ε", *(["Rate"] if several else []), "Final accuracy, %",
        "Best, % (peeks)",
    )  # fmt: skip
    for point in found["points"]:
        table.add_row(
            f"{point['probability']:g}", f"{point['expected_records']:,.0f}",
            round_up(point["noise_multiplier"]), _epsilon(point["epsilon"]),
            *([f"{point['learning_rate']:g}"] if several else []),
            *(interval_cell(point[name], 2, scale=100) for name in ("final", "best_peeks_at_test")),
        )  # fmt: skip
    choice = (
        "Rate: the learning rate that did best on every other test record; accuracies are on the "
        "remaining ones. "
    )
    table.caption = (
        f"ε: at most this, at δ {found['delta']:g}. {text.certified(DEFAULT_ADJACENCY)}. Accuracy: "
        f"mean of {found['repetitions']} trainings, each on a draw of its own, with the "
        f"95 % Student-t interval. {choice if several else ''}Best: the best epoch of each "
        "training, found by peeking at the test records. The bound is for one released "
        "model; choosing π by trainings on the pool is not part of it."
    )
    return table


def _epsilon(epsilon: float | None) -> str:
    return "no limit" if epsilon is None else round_up(epsilon).replace("inf", "no limit")
