"""`dprime audit` and `bound`: claims put to the test."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from dprime import validate
from dprime.audit.config import ADVERSARIES, CHECKS, OF_NOISE, AuditConfig
from dprime.audit.estimators import ESTIMATORS, FOR_TRIALS
from dprime.audit.estimators.base import LowerBound
from dprime.audit.files import SEVERAL, audits_in, seed_of, words_in
from dprime.audit.lower import USUAL_METHOD, lower_bound
from dprime.audit.record import AuditRecord
from dprime.cli.options import (
    FOLDER,
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
    number_option,
    number_options,
    text_option,
    whole,
    with_options,
)
from dprime.metrics import OBSERVED, Reading
from dprime.plain import to_json
from dprime.runs.run import Run
from dprime.runs.states import worker_lines
from dprime.text import round_down

if TYPE_CHECKING:
    from dprime.runs.backends import Backend

OF_AN_ATTRIBUTE = (
    "The record is there in both worlds, with one value or the other: this is no test of "
    "membership. What it reaches is compared with the claim of one record replaced, which covers "
    "every attribute; what this attribute alone reveals, AttributeInference of dprime.monitor "
    "estimates."
)

Text = str | None
Confidence = Annotated[Text, number_option("Of the lower bound [0.95].")]
Delta = Annotated[Text, number_option("δ at which ε is read [1e-5].")]


NUMBERS = {
    "epsilon": "The claim: ε at --delta; the noise is chosen for it.",
    "noise_multiplier": "Noise over the clipping norm.",
    "sample_rate": "Sampling rate.",
    "expected_batch_size": "Divisor of every sum, if it is a public constant.",
    "steps": "Training steps.",
    "learning_rate": "Learning rate.",
    "clip_norm": "C, the clipping norm.",
    "records": "Use only the first N records.",
    "record": "The index of the attacked record.",
    "trials": "Trials in each world [1000].",
    "block": "Trials that are stored together.",
    "delta": "δ at which ε is read [1e-5].",
    "fpr": "For --metric tpr.",
    "prior": "For --metric precision or success.",
    "min_tpr": "For --metric precision.",
    "confidence": "Of the lower bound [0.95].",
    "belief": "For di: the belief that counts [0.9].",
    "belief_prior": "For di: belief before looking [0.5].",
    "seed": "Random seed of the whole audit; not for a model that you release.",
    "memory": "GB that training may take [2].",
}
COUNTS = ("steps", "records", "record", "trials", "block", "seed")
OF_METRIC = ("fpr", "prior", "min_tpr")


@with_options(number_options(NUMBERS), before="backend")
def audit(
    file: Annotated[
        Path | None,
        typer.Argument(help="A TOML file, of one audit or several; options override it."),
    ] = None,
    adversary: Annotated[
        Text,
        text_option(
            f"Who attacks: {', '.join([*ADVERSARIES][:-1])} or {[*ADVERSARIES][-1]}; "
            "malicious-dataset if not given."
        ),
    ] = None,
    data: Annotated[Text, text_option("The data set's name, e.g. digits, mnist.")] = None,
    data_dir: Annotated[Text, text_option("The folder of the data sets' files.")] = None,
    model: Annotated[
        Text, text_option("linear, dense-64-32, conv-16-32 or module:function.")
    ] = None,
    trainer: Annotated[Text, text_option("Your own training function, module:function.")] = None,
    adjacency: Annotated[
        Text,
        text_option(
            "add-remove, zero-out or replace; replace for attribute, else add-remove for a trainer "
            "of your own or with --expected-batch-size, zero-out without."
        ),
    ] = None,
    sensitivity: Annotated[Text, text_option("global, or local (not DP).")] = None,
    metric: Annotated[
        Text,
        text_option(f"What decides: {', '.join(OBSERVED)} or curve; the whole curve if not given."),
    ] = None,
    method: Annotated[
        Text,
        text_option(f"Of the lower bound: {', '.join(FOR_TRIALS)}; {USUAL_METHOD} if not given."),
    ] = None,
    assume: Annotated[
        Text, text_option("Accept an assumption that the method rests on: gaussian.")
    ] = None,
    column: Annotated[
        Text,
        text_option("For attribute: the column, by name or index, or a one-hot group [0]."),
    ] = None,
    two_values: Annotated[
        Text,
        typer.Option(
            "--values",
            help="For attribute: two values of it in the data's own scaling, as 0.2,0.8, or two "
            "categories, as Female,Male; else its least and largest, or its first two.",
            show_default=False,
        ),
    ] = None,
    seed_from: Annotated[
        Path | None, text_option("Take the seed of this run, to repeat it; no text shows a seed.")
    ] = None,
    device: Annotated[Text, text_option("cpu or cuda.")] = None,
    backend: Where = "here",
    workers: Workers = None,
    address: Address = None,
    time_limit: TimeLimit = None,
    out: Annotated[
        Path | None, text_option("The run's file, or the folder of several; else in runs/.")
    ] = None,
    fail_on: FailOn = "refuted",
    as_json: AsJson = False,
    **numbers: Text,
) -> None:
    """Attack a training repeatedly to test its claim. Exit code 1 if the claim is refuted."""
    check_fail_on(fail_on)
    check_torch("an audit")
    texts = {
        "adversary": adversary, "data": data, "data_dir": data_dir, "model": model,
        "trainer": trainer, "adjacency": adjacency, "metric": metric, "method": method,
        "device": device, "assume": assume, "sensitivity": sensitivity,
    }  # fmt: skip

    def resolved(values: dict[str, Any]) -> AuditConfig:
        """What a file has, and over it what was given here."""
        given: dict[str, Any] = {n: text for n, text in texts.items() if text is not None}
        for name, text in numbers.items():
            if text is not None:
                given[name] = (whole if name in COUNTS else validate.parse)(name, text)
        values, claimed = dict(values), ["epsilon"]
        if (trainer or values.get("trainer")) and "epsilon" not in given:
            claimed += OF_NOISE  # the recipe of the user's own function is the claim
        tables = {"claim": claimed, "training": CHECKS, "conditions": OF_METRIC}
        for table, names in tables.items():
            _merge(values, table, {name: given.pop(name) for name in names if name in given})
        values |= given
        _merge(values, "options", _attribute(values.get("adversary"), column, two_values))
        return AuditConfig.from_words(values)

    def where(config: AuditConfig) -> Backend:
        return backend_asked(backend, workers, address, time_limit, config.device)

    values = {} if file is None else words_in(file)
    if seed_from is not None:
        _merge_seed(values, seed_from, numbers["seed"])
    if SEVERAL in values:
        folder = out or Path(FOLDER) / (file.stem if file else SEVERAL)
        several = {
            name: resolved({**seed_of(folder, name), **each})
            for name, each in audits_in(values).items()
        }
        _tell_certified(several)
        from dprime.cli.batches import finish_batch  # noqa: PLC0415  it needs PyTorch

        outcomes = finish_batch(several, folder, where(next(iter(several.values()))), as_json)
        exit_on(outcomes, fail_on)
        return
    config = resolved(values)
    path = out or free_path(config.adversary, config.data)
    _tell_certified({"": config})
    from dprime.audit.audits import begin  # noqa: PLC0415  it needs PyTorch

    finish_audit(path, lambda: begin(config, path, backend=where(config)), as_json, fail_on)


def _tell_certified(configs: Mapping[str, AuditConfig]) -> None:
    """Before the first trial: what the accountant certifies where claim and training are known."""
    for name, each in configs.items():
        if certified := each.certified():
            told = f"{name}: {certified}" if name else certified
            Console(stderr=True).print(told, highlight=False, soft_wrap=True)


def _attribute(adversary: object, column: Text, values: Text) -> dict[str, Any]:
    """The options of the adversary of that name; no other one has a column in question."""
    for name, text in (("column", column), ("values", values)):
        if text is not None and adversary != "attribute":
            wanted, remedy = "left out for other adversaries", "give --adversary attribute"
            raise validate.invalid_value(name, text, wanted, remedy)
    options: dict[str, Any] = {}
    if column is not None:
        parts = [part.strip() for part in column.split(",")]
        options["columns"] = [int(part) if part.isdecimal() else part for part in parts]
    if values is not None:
        options["values"] = [part.strip() for part in values.split(",")]
    return options


def bound(
    scores: Annotated[
        Path, typer.Argument(help="CSV with the columns score (members high) and world (in, out).")
    ],
    delta: Delta = None,
    confidence: Confidence = None,
    method: Annotated[
        Text,
        text_option(f"Of the lower bound: {', '.join(ESTIMATORS)}; {USUAL_METHOD} if not given."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bound ε from below by your attack's scores, each row a training (or a canary) of its own."""
    inside, outside = read_scores(scores)
    given = {"delta": delta, "confidence": confidence}
    options = {name: validate.parse(name, text) for name, text in given.items() if text is not None}
    found = lower_bound(inside, outside, method=method or USUAL_METHOD, **options)  # type: ignore[arg-type]
    if as_json:
        print(json.dumps({found.method: _bound_json(found)}, indent=2))
        return
    console = Console()
    console.print(found.sentence(), highlight=False)
    if found.curve is not None:
        metrics = [Reading(name) for name in SHOWN_OF_SCORES]
        each = [f"{metric.title} ≥ {round_down(found.value(metric))}" for metric in metrics]
        console.print(f"Read off the same curve: {', '.join(each)}.", highlight=False)
    console.print(_needs(found), style="dim", highlight=False)


def _needs(found: LowerBound) -> str:
    """What must be true of the rows."""
    if found.method in FOR_TRIALS:
        return (
            "This holds if each row comes from a training of its own, and the method was chosen "
            "before the scores were looked at."
        )
    return (
        "This holds if the rows are canaries of one training, each in or out by its own fair coin, "
        "and the method was chosen before the scores were looked at."
    )


SHOWN_OF_SCORES = ("advantage", "tpr", "precision")
"""Metrics that are read off the curve of scores."""


def read_scores(path: Path) -> tuple[list[float], list[float]]:
    """The scores of world `in` and of world `out` in a CSV file with a header."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.DictReader(lines)
            columns = list(reader.fieldnames or ())
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise validate.invalid_value(
            "scores", str(path), f"a CSV file to read ({error})", "give its path"
        ) from None
    if not {"score", "world"} <= set(columns):
        shown = f"one with {', '.join(columns) or 'nothing'}"
        remedy = "give a header with score and world, and in or out as the world"
        wanted = "a CSV file with the columns score and world"
        raise validate.invalid_input("scores", shown, wanted, remedy)
    found: dict[str, list[float]] = {"in": [], "out": []}
    for number, row in rows:
        world = (row["world"] or "").strip().lower()
        validate.one_of(
            f"world in line {number}", {"1": "in", "0": "out"}.get(world, world), WORLDS
        )
        kept = found[{"1": "in", "0": "out"}.get(world, world)]
        kept.append(validate.parse(f"score in line {number}", row["score"] or ""))
    return found["in"], found["out"]


WORLDS = ("in", "out")


def _bound_json(found: LowerBound) -> dict[str, Any]:
    kept = ("epsilon", "delta", "confidence", "trials", "counted", "assumption", "objection")
    shown: dict[str, Any] = {
        **to_json({name: getattr(found, name) for name in kept}),
        "decides": found.decides, "kind": "lower bound", "sentence": found.sentence(),
    }  # fmt: skip
    if found.curve is not None:
        for name in SHOWN_OF_SCORES:
            metric = Reading(name)
            shown[name] = {"value": found.value(metric), **metric.conditions}
    return shown


def finish_audit(path: Path, run: Callable[[], AuditRecord], as_json: bool, fail_on: str) -> None:
    """Run, and print the answer; an interrupted run says how to go on."""
    look_here()
    with interruptible(path):
        record = run()
    if as_json:
        print(json.dumps({"run": str(path), **record.to_dict()}, indent=2, allow_nan=False))
        exit_on([record.verdict.outcome], fail_on)
        return
    console = Console()
    console.print(audit_table(record))
    if record.identifiability is not None:
        console.print(identified_table(record.identifiability))
    if record.adversary == "attribute":
        console.print(OF_AN_ATTRIBUTE, highlight=False)
    console.print(record.sentence, highlight=False)
    for line in _played_by(path):
        console.print(line, style="dim", highlight=False)
    console.print(f"Kept in {path}.", style="dim", highlight=False)
    exit_on([record.verdict.outcome], fail_on)


def _played_by(path: Path) -> list[str]:
    """A line for each worker, where there were several."""
    with Run.open(path, verify=False) as run:
        workers = run.workers()
    return worker_lines(workers) if len(workers) > 1 else []


def audit_table(record: AuditRecord) -> Table:
    """What was reached beside what is allowed, metric by metric."""
    title = f"{record.adversary}: {record.about}"
    table = Table(title=title, title_justify="left", title_style="bold", pad_edge=False)
    table.add_column("What")
    table.add_column("Reached, at least", justify="right")
    table.add_column("Allowed, at most", justify="right")
    for number, row in enumerate(record.rows):
        what = row.title
        if record.adversary == "attribute" and row.name == "advantage":  # none of membership
            what = "Advantage between the two values"
        table.add_row(what + ("" if number else " (decides)"), *row.shown)
    trials = f"{record.trials['in']:,} + {record.trials['out']:,} trials"
    method = record.method.method
    rest = "" if method == "band" else f"; the first row by {method}"
    table.caption = (
        f"Reached: by the distribution-free band at {100 * record.config.confidence:g} % "
        f"confidence, for all its rows together{rest}; {trials}."
    )
    table.caption_justify = "left"
    return table


def identified_table(found: Mapping[str, Any]) -> Table:
    """Bernau et al.'s numbers: the adversary's advantage, how sure it was, and ε′."""
    table = Table(title="Differential identifiability", title_justify="left", pad_edge=False)
    table.add_column("What")
    table.add_column("Value", justify="right")
    table.add_column("How sure")
    means = {
        "advantage": "Advantage",
        "predicted": "Advantage that the local sensitivities predict",
    }
    for name, what in means.items():
        if (mean := found[name]) is not None:
            error = f"± {mean['standard_error']:.4f} (standard error)"
            table.add_row(what, f"{mean['value']:.4f}", error)
    share = found["exceedance"]
    table.add_row(
        f"Runs whose belief exceeds {share['belief']:g}, from {share['prior']:g} (δ′)",
        f"{share['value']:.4f}",
        f"{share['low']:.4f} to {share['high']:.4f} at {100 * share['confidence']:g} %",
    )
    for estimate in found["epsilons"].values():
        if estimate is not None:
            what = f"ε′ {estimate['source']}"
            table.add_row(what, f"{estimate['value']:.4f}", f"{estimate['kind']}, no confidence")
    return table


def _merge(values: dict[str, Any], name: str, more: Mapping[str, Any]) -> None:
    """Options win over what a file has; what is no table is left for the settings to refuse."""
    before = values.get(name, {})
    if more and isinstance(before, Mapping):
        values[name] = {**before, **more}


def _merge_seed(values: dict[str, Any], run: Path, seed: Text) -> None:
    """The seed of another run, which wins over what a file has."""
    if seed is not None:
        wanted = "given without --seed"
        raise validate.invalid_value("seed_from", str(run), wanted, "leave one of them out")
    with Run.open(run, verify=False) as other:
        values["seed"] = other.seed
