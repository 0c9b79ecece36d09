"""`dprime frontier` and `dprime infer`: trainings on parts of a pool, and attacks on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from dprime import atomic, options, text, validate
from dprime.cli import command
from dprime.cli.command import takes
from dprime.cli.outputs import check_name, written
from dprime.cli.tables import interval_cell, plain_table
from dprime.mechanisms import DEFAULT_ADJACENCY
from dprime.membership.planner import PoolPlan
from dprime.membership.requests import FrontierRequest, InferenceRequest
from dprime.option import options_of, read
from dprime.plain import to_json
from dprime.text import round_up

if TYPE_CHECKING:
    from dprime.membership.frontiers import FrontierRecord
    from dprime.membership.inference import InferenceRecord
    from dprime.runs.backends import Backend
    from dprime.show.chart import Chart

WRITTEN = (*options.BACKENDS, options.RUN, options.CHARTS, options.CHART_FORMAT, options.FORCE)
FRONTIER, INFERENCE = options_of(FrontierRequest), InferenceRequest.takes()


@takes(*FRONTIER, options.PLAN_ONLY, *WRITTEN, options.JSON)
def frontier(**given: str) -> None:
    """Compare less data with more noise at an equal bound on attack precision."""
    request = FrontierRequest.of(read(FRONTIER, given))
    if "plan_only" in given:
        _check_nothing_is_written(given)
        command.starting(f"Planning for {request.data}", given)
        _, made = request.planned()
        command.show(to_json(made), given, plan_table(made), made.planned)
        return
    _make_folder(given, "frontier")
    command.check_torch("training")
    command.starting(f"Starting a frontier on {request.data}", given)
    where = command.backend_of(given, request.device)
    found = finish_frontier(request, command.path_of(given, "frontier", request.data), where, given)
    if "charts" in given:
        from dprime.show.membership import frontier_chart  # noqa: PLC0415  it draws

        _draw({"frontier": frontier_chart(found)}, given)


@takes(*INFERENCE, *WRITTEN, options.FAIL_ON, options.JSON)
def infer(**given: str) -> None:
    """Compare membership inference attacks (LiRA, RMIA, …) with the certified bound."""
    command.check_torch("membership inference")
    command.check_fail_on(given)
    request = InferenceRequest.of(read(INFERENCE, given))
    _make_folder(given, "membership-roc", "precision-over-prior")
    command.starting(f"Starting membership inference on {request.data}", given)
    where = command.backend_of(given, request.device)
    found = finish_inference(request, command.path_of(given, "infer", request.data), where, given)
    if "charts" in given:
        from dprime.show.membership import inference_charts  # noqa: PLC0415  it draws

        _draw(inference_charts(found), given)
    command.exit_on([found.verdict], given)


def finish_frontier(
    request: FrontierRequest, path: Path, backend: Backend, given: Mapping[str, str]
) -> FrontierRecord:
    """Train what a run still lacks, and print its table; an interrupted run says how to go on."""
    with command.interruptible(lambda: command.how_to_resume(path)):
        found = request.train(path, backend)
    record = to_json(found)
    command.show({"run": str(path), **record}, given, frontier_table(record), found.sentence)
    command.note(f"Kept in {path}.", given)
    return found


def finish_inference(
    request: InferenceRequest, path: Path, backend: Backend, given: Mapping[str, str]
) -> InferenceRecord:
    """Do what a run still lacks, and print its tables; an interrupted run says how to go on."""
    with command.interruptible(lambda: command.how_to_resume(path)):
        found, population = request.play(path, backend)
    record = to_json(found)
    tables = inference_tables(record)
    if left_out := population["left_out"]:
        are = "record of the test part is" if left_out == 1 else "records of the test part are"
        tables.append(f"{left_out:,} {are} in the pool too, and left out of the population.")
    command.show({"run": str(path), "population": population, **record}, given, *tables)
    command.note(f"Kept in {path}.", given)
    return found


def _check_nothing_is_written(given: Mapping[str, str]) -> None:
    for name in ("run", "charts"):
        if name in given:
            wanted, remedy = "left out where nothing is trained", "leave it out"
            raise validate.invalid_value(name, given[name], wanted, remedy)


def _make_folder(given: Mapping[str, str], *names: str) -> None:
    """Make the folder of charts, whose names begin with these, before anything is trained."""
    form = given.get("format", "svg")
    validate.one_of("format", form, options.CHART_FORMAT.choices)
    if "charts" not in given:
        return
    from dprime.show.needs import check_drawing  # noqa: PLC0415  only charts need it

    check_drawing()
    folder = Path(given["charts"])
    with atomic.placing("charts", folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        for path in sorted(folder.glob(f"{name}*.{form}")):
            check_name("charts", path, (f".{form}",), force="force" in given)


def _draw(drawn: Mapping[str, Chart], given: Mapping[str, str]) -> None:
    form = given.get("format", "svg")
    for name, chart in drawn.items():
        path = Path(given["charts"]) / f"{name}.{form}"
        command.note(written("charts", path, chart.drawn(form)), given)


# Tables -------------------------------------------------------------------------------------------


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
        f"mean of {found['repetitions']} trainings, each on its own draw, with the "
        f"95 % Student-t interval. {choice if several else ''}Best: the best epoch of each "
        "training, found by peeking at the test records. The bound is for one released "
        "model; choosing π by trainings on the pool is not part of it."
    )
    return table


def _epsilon(epsilon: float | None) -> str:
    return "no limit" if epsilon is None else round_up(epsilon).replace("inf", "no limit")


def inference_tables(record: Mapping[str, Any]) -> list[Table | str]:
    """The tables and sentences of what a run keeps."""
    parts: list[Table | str] = []
    for each in record["inferences"]:
        parts += [found_table(each, record["data"]), precision_table(each), each["sentence"]]
    return parts


def found_table(found: Mapping[str, Any], data: str) -> Table:
    """How many members each attack finds, where there are false alarms enough to count."""
    attacks = found["attacks"]
    title = (
        f"{data}: {found['records']:,} records attacked, π = {found['probability']:g}, "
        f"{found['targets']} targets, {found['shadows']} shadow models"
    )
    table = plain_table(title, "Attack", "AUC", *(f"TPR at FPR {x}" for x in attacks[0]["tpr"]))
    for each in attacks:
        table.add_row(each["title"], *map(interval_cell, (each["auc"], *each["tpr"].values())))
    if found["allowed"] is not None and attacks[0]["tpr"]:
        table.add_row(_at_most(found), "", *map(round_up, found["allowed"]["tpr"].values()))
    table.caption = (
        f"Means over the targets with {100 * found['confidence']:g} % Student-t intervals. AUC: "
        "0.5 is guessing. Rates of fewer than ten false alarms are left out."
    )
    return table


def precision_table(found: Mapping[str, Any]) -> Table:
    """How often "member" is right, and what choosing a threshold afterwards gives for nothing."""
    surest = f"Surest {100 * found['top_share']:g} %"
    columns = ("Attack", surest, "Held out", "Best of 40", "Shuffled")
    table = plain_table('How often "member" is right', *columns)
    for each in found["attacks"]:
        names = ("top_precision", "held_out_precision", "best_precision")
        shuffled = f"{each['shuffled_best']['value']:.3f}"
        table.add_row(each["title"], *(interval_cell(each[name]) for name in names), shuffled)
    table.caption = (
        "Held out: threshold chosen on other records. Best of 40: the best of the top 2.5 %, 5 %, "
        "…, chosen after looking; shuffled scores reach the last column for nothing."
    )
    if (allowed := found["allowed"]) is not None:
        limits = (round_up(allowed["top_precision"]), round_up(allowed["precision"]))
        table.add_row(_at_most(found), *limits, "", "")
        table.caption += (
            " At most: of attacks that name as many; held out, of attackers who find at least "
            f"{100 * found['min_tpr']:g} % of the members."
        )
        if found["certified"]:
            table.caption += f" {text.certified(DEFAULT_ADJACENCY)}. Also: {text.POOL}."
    return table


def _at_most(found: Mapping[str, Any]) -> str:
    return "At most (certified)" if found["certified"] else "Allowed by the claim"
