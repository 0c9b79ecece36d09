"""`dprime frontier`: at an equal bound on precision, which share of a pool gives the best model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from dprime import text, validate
from dprime.cli.options import (
    INTERRUPTED,
    Address,
    AsJson,
    TimeLimit,
    Where,
    Workers,
    backend_asked,
    check_torch,
    look_here,
    number_option,
    text_option,
    whole,
)
from dprime.cli.pools import pool_named
from dprime.data import Split
from dprime.mechanisms import DEFAULT_ADJACENCY
from dprime.membership.planner import Plan, plan
from dprime.text import round_up

if TYPE_CHECKING:
    from dprime.membership.frontiers import Frontier

Text = str | None

EPOCHS = 15.0
"""Passes over the drawn part where neither epochs nor steps are given."""

PICTURES = (".svg", ".png", ".json")


def frontier(
    precision: Annotated[str, number_option("The bound that every point keeps, e.g. 0.731.")],
    data: Annotated[str, text_option("The data set's name; digits if not given.")] = "digits",
    data_dir: Annotated[Text, text_option("The folder of the data sets' files.")] = None,
    records: Annotated[Text, number_option("Use so many records, from the first.")] = None,
    pi: Annotated[Text, text_option("Shares of the pool to draw, e.g. 0.1,0.3,0.5.")] = None,
    min_tpr: Annotated[
        str, number_option("Smallest TPR of attackers that matter [0.01].")
    ] = "0.01",
    delta: Annotated[str, number_option("δ at which ε is read [1e-5].")] = "1e-5",
    batch: Annotated[str, number_option("Expected records in a batch [256].")] = "256",
    epochs: Annotated[Text, number_option("Passes over the drawn part [15].")] = None,
    steps: Annotated[Text, number_option("Instead: the same steps for every share.")] = None,
    model: Annotated[
        str, text_option("linear, dense-64-32, conv-16-32 or module:function; linear if not given.")
    ] = "linear",
    learning_rate: Annotated[
        str, text_option("One, or several to choose from at each share, e.g. 0.3,1,3 [1].")
    ] = "1",
    clip_norm: Annotated[str, number_option("C, the clipping norm [1].")] = "1",
    momentum: Annotated[str, number_option("Of SGD [0].")] = "0",
    repetitions: Annotated[str, number_option("Trainings at each share [5].")] = "5",
    plan_only: Annotated[
        bool, typer.Option("--plan-only", help="The noise of each share; train nothing.")
    ] = False,
    seed: Annotated[Text, number_option("Gives draws and trainings; kept in the file.")] = None,
    device: Annotated[str, text_option("cpu (if not given) or cuda.")] = "cpu",
    memory: Annotated[str, number_option("GB that the training may use [2].")] = "2",
    backend: Where = "here",
    workers: Workers = None,
    address: Address = None,
    time_limit: TimeLimit = None,
    out: Annotated[
        Path | None,
        text_option("JSON file for finished points; those in it are not trained again."),
    ] = None,
    chart: Annotated[Path | None, text_option("A picture, FILE.svg or FILE.png.")] = None,
    as_json: AsJson = False,
) -> None:
    """At one bound on precision: fewer records with less noise, or more with more noise."""
    _check_files(plan_only, out, chart)
    split = pool_named(data, data_dir, "records", records)
    made = plan(
        validate.parse("precision", precision),
        pool_size=len(split.train),
        batch_size=validate.parse("batch", batch),
        epochs=_epochs(epochs, steps),
        steps=None if steps is None else whole("steps", steps),
        probabilities=None if pi is None else _list("pi", pi),
        min_tpr=validate.parse("min_tpr", min_tpr),
        delta=validate.parse("delta", delta),
    )
    if plan_only:
        _print(made.as_json() if as_json else [plan_table(made), made.sentence()])
        return
    check_torch("training")
    options = {
        "learning_rate": _list("learning_rate", learning_rate),
        "clip_norm": validate.parse("clip_norm", clip_norm),
        "repetitions": whole("repetitions", repetitions),
        "seed": None if seed is None else whole("seed", seed),
        "memory": validate.parse("memory", memory),
        "device": device,
        "backend": backend_asked(backend, workers, address, time_limit, device),
        "file": out,
    }
    found = _trained(made, split, model, validate.parse("momentum", momentum), options)
    drawn = None if chart is None else _draw(found, chart)
    if as_json:
        _print(found.as_json())
        return
    _print([frontier_table(found), found.sentence()])
    for path in filter(None, (out, drawn)):
        Console().print(f"Kept in {path}.", style="dim", highlight=False, soft_wrap=True)


def _check_files(plan_only: bool, out: Path | None, chart: Path | None) -> None:
    """Refuse a place for results that will not be, or a picture of another kind."""
    for name, path in (("out", out), ("chart", chart)):
        if plan_only and path is not None:
            remedy = "leave it out, or leave out --plan-only"
            raise validate.refusal(name, str(path), "left out where nothing is trained", remedy)
    if chart is not None and chart.suffix.lower() not in PICTURES:
        wanted = f"a file that ends in {', '.join(PICTURES)}"
        raise validate.refusal("chart", str(chart), wanted, f"end it in {PICTURES[0]}")
    if chart is not None:
        from dprime.show.needs import check_drawing  # noqa: PLC0415  only a chart needs it

        check_drawing()


def _epochs(epochs: Text, steps: Text) -> float | None:
    if epochs is not None:
        return validate.parse("epochs", epochs)
    return EPOCHS if steps is None else None


def _list(name: str, text: str) -> list[float]:
    return [validate.parse(name, each) for each in text.split(",")]


def _trained(
    made: Plan, split: Split, model: str, momentum: float, options: dict[str, Any]
) -> Frontier:
    """Train at every point; an interrupted run says what is left of it."""
    from dprime.membership.frontiers import frontier as train_all  # noqa: PLC0415  it needs PyTorch
    from dprime.train import SGD  # noqa: PLC0415
    from dprime.train.models import network_named  # noqa: PLC0415

    look_here()
    network = network_named(model, split.train)
    try:
        return train_all(made, split, network, optimizer=SGD(momentum=momentum), **options)
    except KeyboardInterrupt:
        place = options["file"]
        kept = place is not None and place.exists()
        then = f"Finished points are in {place}." if kept else "Nothing was kept."
        Console(stderr=True).print(f"Stopped. {then}", highlight=False, soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None


def _draw(found: Frontier, path: Path) -> Path:
    from dprime.show.figures.frontier import (  # noqa: PLC0415  it draws
        FrontierFigure,
        FrontierPoint,
        FrontierSeries,
    )

    joint = [each.among(len(found.measured)) for each in found.measured]  # the best is picked
    points = tuple(
        FrontierPoint(
            probability=each.point.probability,
            accuracy=mean.value,
            low=mean.low,
            high=mean.high,
            epsilon=each.point.epsilon,
            noise_multiplier=each.point.noise_multiplier,
        )
        for each, mean in zip(found.measured, joint, strict=True)
    )
    figure = FrontierFigure((FrontierSeries(found.plan.target, points),), found.data)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return figure.save(path)
    except OSError as error:
        wanted = f"a place to write to ({error.strerror})"
        raise validate.refusal("chart", str(path), wanted, "give another place") from None


def _print(what: dict[str, Any] | Sequence[Table | str]) -> None:
    """One JSON object, or tables and sentences."""
    if isinstance(what, dict):
        print(json.dumps(what, indent=2, allow_nan=False))
        return
    console = Console()
    for each in what:
        console.print(each, highlight=False)


def plan_table(made: Plan) -> Table:
    """The noise that each share needs, by the curve and by the theorem."""
    table = _table(
        f"Precision at most {made.target:g}, for attackers with a TPR of {made.min_tpr:g} or more",
        (
            "π",
            "Records",
            "Steps",
            "Noise",
            f"ε at δ {made.delta:g}",
            "Precision",
            "Noise by theorem",
        ),
    )
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


def frontier_table(found: Frontier) -> Table:
    """Accuracy at each share, with its interval."""
    made, several = found.plan, len(found.learning_rates) > 1
    table = _table(
        f"{found.data}: precision at most {made.target:g}, for attackers with a TPR of "
        f"{made.min_tpr:g} or more",
        (
            "π",
            "Records",
            "Noise",
            "ε",
            *(["Rate"] if several else []),
            "Final accuracy, %",
            "Best, % (peeks)",
        ),
    )
    for each in found.measured:
        point = each.point
        table.add_row(
            f"{point.probability:g}", f"{point.expected_records:,.0f}",
            round_up(point.noise_multiplier), _epsilon(point.epsilon),
            *([f"{each.learning_rate:g}"] if several else []),
            each.final.text(2, scale=100), each.best.text(2, scale=100),
        )  # fmt: skip
    choice = (
        "Rate: the learning rate that did best on every other test record; accuracies are on the "
        "remaining ones. "
    )
    table.caption = (
        f"ε: at most this, at δ {made.delta:g}. {text.certified(DEFAULT_ADJACENCY)}. Accuracy: "
        f"mean of {found.repetitions} trainings, each on a draw of its own, with the "
        f"95 % Student-t interval. {choice if several else ''}Best: the best epoch of each "
        "training, found by peeking at the test records. The bound is for one released "
        "model; choosing π by trainings on the pool is not part of it."
    )
    return table


def _epsilon(epsilon: float) -> str:
    return round_up(epsilon).replace("inf", "no limit")


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", pad_edge=False)
    table.caption_justify = "left"
    for name in columns:
        table.add_column(name, justify="right")
    return table
