"""`dprime frontier`: at an equal bound on precision, which share of a pool gives the best model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from dprime import text, validate
from dprime.cli import options, pools
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

WORDS = pools.SHARED | {
    "pi": (None, "Shares of the pool to draw, e.g. 0.1,0.3,0.5"),
    "model": ("linear", pools.MODELS),
    "learning_rate": ("1", "One, or several to choose from at each share, e.g. 0.3,1,3"),
}
NUMBERS: pools.Options = {
    "records": (None, "Use only the first N records"),
    "min_tpr": (MIN_TPR, "Smallest TPR of attackers that matter"),
    "delta": (DELTA, "δ at which ε is read"),
    "batch": (256, "Expected records in a batch"),
    "epochs": (None, "Passes over the drawn part [15]"),
    "steps": (None, "Instead: the same steps for every share"),
    "clip_norm": (1.0, "C, the clipping norm"),
    "momentum": (0.0, "SGD momentum"),
    "repetitions": (5, "Trainings at each share"),
    "seed": (None, "Gives draws and trainings; kept in the file"),
    "memory": (2.0, "GB that the training may use"),
}
WHOLE = ("records", "steps", "repetitions", "seed")

EPOCHS = 15.0
"""Passes over the drawn part where neither epochs nor steps are given."""

PICTURES = (".svg", ".png", ".json")


@options.with_options(pools.declared(WORDS, NUMBERS), before="plan_only")
def frontier(
    precision: Annotated[
        str, options.number_option("The bound that every point keeps, e.g. 0.731.")
    ],
    plan_only: Annotated[
        bool, typer.Option("--plan-only", help="The noise of each share; train nothing.")
    ] = False,
    backend: options.Where = "here",
    workers: options.Workers = None,
    address: options.Address = None,
    time_limit: options.TimeLimit = None,
    out: Annotated[
        Path | None,
        options.text_option(
            "The run's file, whose finished points are not trained again; else in runs/."
        ),
    ] = None,
    chart: Annotated[Path | None, options.text_option("A picture, FILE.svg or FILE.png.")] = None,
    as_json: options.AsJson = False,
    **given: Text,
) -> None:
    """At one bound on precision: fewer records with less noise, or more with more noise."""
    _check_files(plan_only, out, chart)
    request: Request = pools.asked(WORDS, given) | {n: usual for n, (usual, _) in NUMBERS.items()}
    request |= options.numbers_given(given, NUMBERS, WHOLE)
    request["precision"] = validate.parse("precision", precision)
    for name in ("pi", "learning_rate"):
        if (listed := request[name]) is not None:
            request[name] = [validate.parse(name, each) for each in listed.split(",")]
    if request["steps"] is None and request["epochs"] is None:
        request["epochs"] = EPOCHS
    if plan_only:
        _, made = _planned(request)
        show(to_json(made), as_json, plan_table(made), made.planned)
        return
    options.check_torch("training")
    where = options.backend_asked(backend, workers, address, time_limit, request["device"])
    path = out or options.free_path("frontier", request["data"])
    found = finish_frontier(request, path, where, as_json)
    if chart is not None:
        pools.note(f"Kept in {_draw(found, chart)}.", as_json)


def finish_frontier(
    request: Request, path: Path, backend: Backend, as_json: bool
) -> FrontierRecord:
    """Train what a run still lacks, and print its table; an interrupted run says how to go on."""
    from dprime.membership.frontiers import frontier as train_all  # noqa: PLC0415  it needs PyTorch
    from dprime.train import SGD, Compute  # noqa: PLC0415
    from dprime.train.models import network_named  # noqa: PLC0415

    options.look_here()
    split, made = _planned(request)
    names = ("learning_rate", "clip_norm", "repetitions", "seed")
    own = {name: request[name] for name in names}
    own["optimizer"] = SGD(momentum=request["momentum"])
    own["compute"] = Compute(request["device"], request["memory"])
    with options.interruptible(path):
        model = network_named(request["model"], split.train)
        found = train_all(made, split, model, file=path, backend=backend, request=request, **own)
    record = to_json(found)
    show({"run": str(path), **record}, as_json, frontier_table(record), found.sentence)
    pools.note(f"Kept in {path}.", as_json)
    return found


def _planned(request: Request) -> tuple[Split, PoolPlan]:
    """The data and the points of a request."""
    split = pools.pool_named(request["data"], request["data_dir"], "records", request["records"])
    own = {name: request[name] for name in ("epochs", "steps", "min_tpr", "delta")}
    own |= {"batch_size": request["batch"], "probabilities": request["pi"]}
    return split, plan(request["precision"], pool_size=len(split.train), **own)


def _check_files(plan_only: bool, out: Path | None, chart: Path | None) -> None:
    """Refuse a place for results that will not be, or a picture of another kind."""
    for name, path in (("out", out), ("chart", chart)):
        if plan_only and path is not None:
            wanted, remedy = "left out where nothing is trained", "leave it out"
            raise validate.invalid_value(name, str(path), wanted, remedy)
    if chart is not None:
        if chart.suffix.lower() not in PICTURES:
            wanted = f"a file that ends in {', '.join(PICTURES)}"
            raise validate.invalid_value("chart", str(chart), wanted, f"end it in {PICTURES[0]}")
        pools.check_charts("chart", chart.parent)


def _draw(found: FrontierRecord, path: Path) -> Path:
    from dprime.show.charts import (  # noqa: PLC0415  it draws
        FrontierPoint,
        FrontierSeries,
        frontier,
    )

    points = []
    for each in found.points:
        joint = each.among(len(found.points)).numbers  # the best is picked among them
        points.append(FrontierPoint(each.probability, *joint, each.epsilon))
    return frontier((FrontierSeries(found.target, tuple(points)),), found.data).save(path)


def plan_table(made: PoolPlan) -> Table:
    """The noise that each share needs, by the curve and by the theorem."""
    who = f"attackers with a TPR of {made.min_tpr:g} or more"
    shares = ("π", "Records", "Steps", "Noise", f"ε at δ {made.delta:g}", "Precision")
    title = f"Precision at most {made.target:g}, for {who}"
    table = plain_table(title, *shares, "Noise by theorem")
    for point in made.points:
        other = point.by_theorem
        theorem = "none" if other is None else round_up(other.noise_multiplier)
        cells = [f"{point.probability:g}", f"{point.expected_records:,.0f}", f"{point.steps:,}"]
        cells += [round_up(point.noise_multiplier), _epsilon(point.epsilon)]
        table.add_row(*cells, round_up(point.precision), theorem)
    table.caption = (
        f"ε and precision are at most these. {text.certified(DEFAULT_ADJACENCY)}. Records: "
        "expected, the number drawn is a secret. Noise by theorem: where the bound goes by one "
        "pair (ε, δ) (Thudi et al. 2024, corrected); more noise, and every risk is smaller."
    )
    return table


def frontier_table(found: Mapping[str, Any]) -> Table:
    """Accuracy at each share, with its interval."""
    several = len(found["learning_rates"]) > 1
    title = (
        f"{found['data']}: precision at most {found['target']:g}, for attackers with a TPR of "
        f"{found['min_tpr']:g} or more"
    )
    rate = ["Rate"] if several else []
    measured = ("Final accuracy, %", "Best, % (peeks)")
    table = plain_table(title, "π", "Records", "Noise", "ε", *rate, *measured)
    for point in found["points"]:
        cells = [f"{point['probability']:g}", f"{point['expected_records']:,.0f}"]
        cells += [round_up(point["noise_multiplier"]), _epsilon(point["epsilon"])]
        cells += [f"{point['learning_rate']:g}"] if several else []
        means = (point["final"], point["best_peeks_at_test"])
        table.add_row(*cells, *(interval_cell(each, 2, scale=100) for each in means))
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
