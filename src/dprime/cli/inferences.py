"""`dprime infer`: who was in the training set? Attacks beside what the certified curve allows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.table import Table

from dprime import text, validate
from dprime.cli import options, pools
from dprime.cli.tables import interval_cell, plain_table, show
from dprime.mechanisms import DEFAULT_ADJACENCY
from dprime.membership.config import InferenceConfig, Recipe
from dprime.membership.pool import outside
from dprime.plain import to_json
from dprime.text import round_up

if TYPE_CHECKING:
    from dprime.membership.inference import InferenceRecord
    from dprime.runs.backends import Backend

Text = str | None
Request = dict[str, Any]
"""An inference by names and numbers, as its run keeps it."""

LARGEST_POPULATION = 1000

MOST_RECORDS = 1000
"""Records of the pool that are attacked where no number is given."""

WORDS = pools.SHARED | {
    "model": ("dense-64", pools.MODELS),
    "trainer": (None, "Your own training function, module:function"),
    "pi": ("0.5", "π: probability that a target has a record; several: 0.1,0.5"),
    "attacks": (None, "E.g. lira,rmia-offline,attack-p; all usual ones if not given"),
}
RECIPE = pools.numbers_of(Recipe)
CONFIG = pools.numbers_of(InferenceConfig) | {
    "records": (MOST_RECORDS, "Records of the pool that are attacked, from the first")
}
OTHERS: pools.Options = {
    "shadow_pi": (0.5, "π of shadow models"),
    "pool": (None, "Records of the pool, from the first; all if not given"),
    "memory": (2.0, "GB that the training may use"),
}
NUMBERS = OTHERS | CONFIG | RECIPE
WHOLE = [*(name for name, (usual, _) in NUMBERS.items() if isinstance(usual, int)), "pool"]
OF_THE_ENGINE = ("model", "device", "learning_rate", "clip_norm", "momentum", "memory")


@options.with_options(pools.declared(WORDS, NUMBERS), before="backend")
def infer(
    backend: options.Where = "here",
    workers: options.Workers = None,
    address: options.Address = None,
    time_limit: options.TimeLimit = None,
    shadow_file: Annotated[
        Path | None,
        options.text_option("Keeps the shadow models' answers apart, for other inferences."),
    ] = None,
    out: Annotated[Path | None, options.text_option("The run's file; else in runs/.")] = None,
    charts: Annotated[Path | None, options.text_option("A folder for the charts.")] = None,
    fail_on: options.FailOn = "refuted",
    as_json: options.AsJson = False,
    **given: Text,
) -> None:
    """Attack models trained on part of a pool: who was in it? Without ε the training is not DP."""
    options.check_torch("membership inference")
    options.check_fail_on(fail_on)
    if charts is not None:
        pools.check_charts("charts", charts)
    for name in OF_THE_ENGINE if given["trainer"] else ():
        if given[name] is not None:
            wanted = "left out with a trainer of your own"
            remedy = "leave it out; batch, epochs and noise_multiplier are what you claim of it"
            raise validate.invalid_value(name, given[name], wanted, remedy)
    request: Request = pools.asked(WORDS, given) | {"pool": None, "memory": 2.0}
    request |= options.numbers_given(given, OTHERS, WHOLE)
    config: dict[str, Any] = options.numbers_given(given, CONFIG, WHOLE)
    config["probabilities"] = [validate.parse("pi", each) for each in request.pop("pi").split(",")]
    if "shadow_pi" in request:
        config["shadow_probability"] = request.pop("shadow_pi")
    if attacks := request.pop("attacks"):
        config["attacks"] = attacks.replace(" ", "").split(",")
    request["recipe"], request["config"] = options.numbers_given(given, RECIPE, WHOLE), config
    request["shadow_file"] = None if shadow_file is None else str(shadow_file)
    where = options.backend_asked(backend, workers, address, time_limit, request["device"])
    path = out or options.free_path("infer", request["data"])
    found = finish_inference(request, path, where, as_json)
    for drawn in [] if charts is None else _drawn(found, charts):
        pools.note(f"Drawn: {drawn}", as_json)
    options.exit_on([found.verdict], fail_on)


def finish_inference(
    request: Request, path: Path, backend: Backend, as_json: bool
) -> InferenceRecord:
    """Do what a run still lacks, and print its tables; an interrupted run says how to go on."""
    from dprime.membership.inference import infer as infer_from  # noqa: PLC0415  it needs PyTorch
    from dprime.membership.shadows import Trainers  # noqa: PLC0415
    from dprime.train import Compute  # noqa: PLC0415

    options.look_here()
    split = pools.pool_named(request["data"], request["data_dir"], "pool", request["pool"])
    pool, strangers = split.train, outside(split.test, split.train)
    others = strangers.take(range(min(len(strangers), LARGEST_POPULATION)))
    recipe, compute = Recipe(**request["recipe"]), Compute(request["device"], request["memory"])
    named = {"model": request["model"], "own": request["trainer"], "compute": compute}
    config = InferenceConfig(**{"records": min(MOST_RECORDS, len(pool)), **request["config"]})
    play = partial(infer_from, file=path, shadow_file=request["shadow_file"], backend=backend)
    with options.interruptible(path):
        trainers = Trainers.named(recipe, pool, **named)
        claim = trainers.claim if trainers.own else None
        found = play(pool, others, trainers, config, claim=claim, request=request)
    left_out, record = len(split.test) - len(strangers), to_json(found)
    tables = inference_tables(record)
    if left_out:
        are = "record of the test part is" if left_out == 1 else "records of the test part are"
        tables.append(f"{left_out:,} {are} in the pool too, and left out of the population.")
    population = {"records": len(others), "left_out": left_out}
    show({"run": str(path), "population": population, **record}, as_json, *tables)
    pools.note(f"Kept in {path}.", as_json)
    return found


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
    if found["allowed"] is not None:
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


def _drawn(record: InferenceRecord, folder: Path) -> list[Path]:
    """Each π's curves; with several, also each attack's precision against π."""
    from dprime.show.membership import precision_charts, roc_chart  # noqa: PLC0415  it draws

    found, several = record.inferences, len(record.inferences) > 1
    figures = {}
    for each in found:
        name = f"membership-roc-{each.probability:g}" if several else "membership-roc"
        figures[name] = roc_chart(each, record.data)
    drawn = [figure.save(folder / f"{name}.svg") for name, figure in figures.items()]
    for name, figure in precision_charts(found, record.data).items() if several else ():
        drawn.append(figure.save(folder / f"precision-over-prior-{name}.svg"))
    return drawn
