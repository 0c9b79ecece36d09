"""`dprime infer`: who was in the training set? Attacks beside what the certified curve allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.table import Table

from dprime import text, validate
from dprime.cli.options import (
    Address,
    AsJson,
    FailOn,
    TimeLimit,
    Where,
    Workers,
    backend_asked,
    check_fail_on,
    check_torch,
    exit_on,
    free_path,
    interruptible,
    look_here,
    number_options,
    numbers_given,
    text_option,
    with_options,
)
from dprime.cli.pools import outsiders, pool_named
from dprime.cli.tables import interval_cell, plain_table, show
from dprime.data import Dataset
from dprime.mechanisms import DEFAULT_ADJACENCY
from dprime.plain import to_json
from dprime.text import round_up

if TYPE_CHECKING:
    from dprime.membership.record import InferenceRecord
    from dprime.runs.backends import Backend

Text = str | None
Request = dict[str, Any]
"""An inference by names and numbers, as its run keeps it."""

LARGEST_POPULATION = 1000

MOST_RECORDS = 1000
"""Records of the pool that are attacked where no number is given."""


RECIPE = {
    "epsilon": "The claim: ε at --delta.",
    "delta": "δ of the claim [1e-5].",
    "noise_multiplier": "Instead of ε: noise over C.",
    "batch": "Expected records in a step [64].",
    "epochs": "Passes over a part of the pool [20].",
    "learning_rate": "SGD learning rate [0.5].",
    "clip_norm": "C, the clipping norm [1].",
    "momentum": "SGD momentum [0].",
}
CONFIG = {
    "records": "Records of the pool that are attacked, from the first [1000].",
    "shadows": "Models that the attacker trains [64].",
    "targets": "Models that are attacked [5].",
    "min_tpr": "For the limit of held-out thresholds [0.01].",
    "confidence": "Of the intervals [0.95].",
    "seed": "Random seed [0].",
}
OTHERS = {
    "shadow_pi": "π of shadow models [0.5].",
    "pool": "Records of the pool, from the first; all if not given.",
    "memory": "GB that the training may use [2].",
}
"""Numbers with their help: fields of `Recipe`, of `InferenceConfig`, and others."""

WHOLE = ("batch", "records", "shadows", "targets", "seed", "pool")
OF_THE_ENGINE = ("learning_rate", "clip_norm", "momentum", "memory")


@with_options(number_options({**OTHERS, **CONFIG, **RECIPE}), before="backend")
def infer(
    data: Annotated[str, text_option("The data set's name; digits if not given.")] = "digits",
    data_dir: Annotated[Text, text_option("The folder of the data sets' files.")] = None,
    model: Annotated[
        Text,
        text_option("linear, dense-64-32, conv-16-32 or module:function; dense-64 if not given."),
    ] = None,
    trainer: Annotated[Text, text_option("Your own training function, module:function.")] = None,
    pi: Annotated[
        str, text_option("π: probability that a target has a record; several: 0.1,0.5 [0.5].")
    ] = "0.5",
    attacks: Annotated[
        Text, text_option("E.g. lira,rmia-offline,attack-p; all usual ones if not given.")
    ] = None,
    device: Annotated[Text, text_option("cpu (if not given) or cuda.")] = None,
    backend: Where = "here",
    workers: Workers = None,
    address: Address = None,
    time_limit: TimeLimit = None,
    shadow_file: Annotated[
        Path | None, text_option("Keeps the shadow models' answers apart, for other inferences.")
    ] = None,
    out: Annotated[Path | None, text_option("The run's file; else in runs/.")] = None,
    charts: Annotated[Path | None, text_option("A folder for the charts.")] = None,
    fail_on: FailOn = "refuted",
    as_json: AsJson = False,
    **numbers: Text,
) -> None:
    """Attack models trained on part of a pool: who was in it? Without ε the training is not DP."""
    check_torch("membership inference")
    check_fail_on(fail_on)
    if charts is not None:
        _check_folder(charts)
    if trainer is not None:
        engine = {name: numbers[name] for name in OF_THE_ENGINE}
        _check_left_out({"model": model, "device": device, **engine})
    config: dict[str, Any] = numbers_given(numbers, CONFIG, WHOLE)
    config["probabilities"] = [validate.parse("pi", each) for each in pi.split(",")]
    others = numbers_given(numbers, OTHERS, WHOLE)
    if "shadow_pi" in others:
        config["shadow_probability"] = others.pop("shadow_pi")
    if attacks is not None:
        config["attacks"] = attacks.replace(" ", "").split(",")
    request: Request = {
        "data": data, "data_dir": data_dir, "model": model or "dense-64", "trainer": trainer,
        "recipe": numbers_given(numbers, RECIPE, WHOLE), "config": config,
        "device": device or "cpu", "pool": None, "memory": 2.0, **others,
        "shadow_file": None if shadow_file is None else str(shadow_file),
    }  # fmt: skip
    where = backend_asked(backend, workers, address, time_limit, device or "cpu")
    found = finish_inference(request, out or free_path("infer", data), where, as_json)
    for path in [] if charts is None else _drawn(found, charts):
        if not as_json:
            Console().print(f"Drawn: {path}", style="dim", highlight=False, soft_wrap=True)
    exit_on([found.verdict], fail_on)


def finish_inference(
    request: Request, path: Path, backend: Backend, as_json: bool
) -> InferenceRecord:
    """Do what a run still lacks, and print its tables; an interrupted run says how to go on."""
    look_here()
    split, left_out = outsiders(
        pool_named(request["data"], request["data_dir"], "pool", request["pool"])
    )
    others = split.test.take(range(min(len(split.test), LARGEST_POPULATION)))
    with interruptible(path):
        found = _found(request, split.train, others, path, backend)
    record, population = to_json(found), {"records": len(others), "left_out": left_out}
    tables = inference_tables(record)
    if left_out:
        are = "record of the test part is" if left_out == 1 else "records of the test part are"
        tables.append(f"{left_out:,} {are} in the pool too, and left out of the population.")
    show({"run": str(path), "population": population, **record}, as_json, *tables)
    if not as_json:
        Console().print(f"Kept in {path}.", style="dim", highlight=False, soft_wrap=True)
    return found


def _found(
    request: Request, pool: Dataset, others: Dataset, path: Path, backend: Backend
) -> InferenceRecord:
    """What a request asks for; a run that is there already is gone on with."""
    from dprime.membership.config import InferenceConfig, Recipe  # noqa: PLC0415
    from dprime.membership.inference import infer as infer_from  # noqa: PLC0415  it needs PyTorch
    from dprime.membership.trainers import Trainers  # noqa: PLC0415
    from dprime.train import Compute  # noqa: PLC0415

    trainers = Trainers.named(
        Recipe(**request["recipe"]), pool, model=request["model"], own=request["trainer"],
        compute=Compute(request["device"], request["memory"]),
    )  # fmt: skip
    config = InferenceConfig(**request["config"])
    if config.records is None:
        config = replace(config, records=min(MOST_RECORDS, len(pool)))
    return infer_from(
        pool, others, trainers, config, claim=trainers.claim if trainers.own else None,
        file=path, shadow_file=request["shadow_file"], backend=backend, request=request,
    )  # fmt: skip


def inference_tables(record: Mapping[str, Any]) -> list[Table | str]:
    """The tables and sentences of what a run keeps."""
    parts: list[Table | str] = []
    for each in record["inferences"]:
        parts += [found_table(each, record["data"]), precision_table(each), each["sentence"]]
    return parts


def _check_folder(charts: Path) -> None:
    """A place for charts, before anything is trained."""
    from dprime.show.needs import check_drawing  # noqa: PLC0415  only charts need it

    check_drawing()
    try:
        charts.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        wanted = f"a folder to write to ({error.strerror})"
        raise validate.invalid_value("charts", str(charts), wanted, "give another place") from None


def _check_left_out(engine: dict[str, Text]) -> None:
    """A function of one's own trains as it does: what belongs to the engine would do nothing."""
    for name, given in engine.items():
        if given is not None:
            remedy = "leave it out; batch, epochs and noise_multiplier are what you claim of it"
            raise validate.invalid_value(name, given, "left out with a trainer of your own", remedy)


def found_table(found: Mapping[str, Any], data: str) -> Table:
    """How many members each attack finds, where there are false alarms enough to count."""
    attacks = found["attacks"]
    table = plain_table(
        f"{data}: {found['records']:,} records attacked, π = {found['probability']:g}, "
        f"{found['targets']} targets, {found['shadows']} shadow models",
        "Attack", "AUC", *(f"TPR at FPR {rate}" for rate in attacks[0]["tpr"]),
    )  # fmt: skip
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
    from dprime.show.membership import precision_figures, roc_figure  # noqa: PLC0415  it draws

    found, several = record.inferences, len(record.inferences) > 1
    figures = {
        f"membership-roc{f'-{each.probability:g}' if several else ''}": roc_figure(
            each, record.data
        )
        for each in found
    }
    drawn = [figure.save(folder / f"{name}.svg") for name, figure in figures.items()]
    for name, figure in precision_figures(found, record.data).items() if several else ():
        drawn.append(figure.save(folder / f"precision-over-prior-{name}.svg"))
    return drawn
