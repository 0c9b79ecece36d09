"""`dprime audit` and `bound`: claims put to the test."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from dprime import validate
from dprime.audit.config import OF_NOISE, AuditConfig
from dprime.audit.estimators import ESTIMATORS, FOR_TRIALS
from dprime.audit.estimators.base import LowerBound
from dprime.audit.lower import USUAL_METHOD, lower_bound
from dprime.audit.record import AuditRecord
from dprime.audit.words import SEVERAL, WORDS, audits_in, merged, seed_in, words_in
from dprime.cli import options
from dprime.cli.tables import plain_table
from dprime.metrics import Reading
from dprime.plain import to_json
from dprime.runs.run import Run
from dprime.runs.states import worker_lines
from dprime.text import round_down

OF_AN_ATTRIBUTE = (
    "The record is there in both worlds, with one value or the other: this is no test of "
    "membership. What it reaches is compared with the claim of one record replaced, which covers "
    "every attribute; what this attribute alone reveals, AttributeInference of dprime.monitor "
    "estimates."
)

Text = str | None

OPTIONS = {
    **{
        name: (options.text_option if word.kind is str else options.number_option)(word.help)
        for name, word in WORDS.items()
        if word.help
    },
    "column": options.text_option(
        "For attribute: the column, by name or index, or a one-hot group [0]."
    ),
    "values": options.text_option(
        "For attribute: two values of it in the data's own scaling, as 0.2,0.8, or two categories, "
        "as Female,Male; else its least and largest, or its first two."
    ),
    "seed_from": options.text_option(
        "Take the seed of this run, to repeat it; no text shows a seed."
    ),
    "out": options.text_option("The run's file, or the folder of several; else in runs/."),
}
READ: Mapping[type, Callable[[str, str], Any]] = {
    str: lambda _, text: text,
    float: validate.parse,
    int: options.whole,
}


@options.with_options(OPTIONS, before="backend")
def audit(
    file: Annotated[
        Path | None,
        typer.Argument(help="A TOML file, of one audit or several; options override it."),
    ] = None,
    backend: options.Where = "here",
    workers: options.Workers = None,
    address: options.Address = None,
    time_limit: options.TimeLimit = None,
    fail_on: options.FailOn = "refuted",
    as_json: options.AsJson = False,
    **words: Text,
) -> None:
    """Attack a training repeatedly to test its claim. Exit code 1 if the claim is refuted."""
    options.check_fail_on(fail_on)
    options.check_torch("an audit")
    given, values = options.typed(words), {} if file is None else words_in(file)
    if seed_from := given.pop("seed_from", None):
        if "seed" in given:
            wanted, remedy = "given without --seed", "leave one of them out"
            raise validate.invalid_value("seed_from", seed_from, wanted, remedy)
        with Run.open(seed_from, verify=False) as other:
            values["seed"] = other.seed
    out = given.pop("out", None)
    if SEVERAL in values:
        folder = Path(out or Path(options.FOLDER) / (file.stem if file else SEVERAL))
        configs = {
            name: _resolved({**seed_in(folder / f"{name}.run"), **each}, given)
            for name, each in audits_in(values).items()
        }
    else:
        configs = {"": _resolved(values, given)}
    for name, each in configs.items():
        if certified := each.certified():
            told = f"{name}: {certified}" if name else certified
            Console(stderr=True).print(told, highlight=False, soft_wrap=True)
    config = next(iter(configs.values()))
    where = options.backend_asked(backend, workers, address, time_limit, config.device)
    if SEVERAL in values:
        from dprime.cli.batches import finish_batch  # noqa: PLC0415  it needs PyTorch

        options.exit_on(finish_batch(configs, folder, where, as_json), fail_on)
        return
    from dprime.audit.audits import begin  # noqa: PLC0415  it needs PyTorch

    path = Path(out) if out else options.free_path(config.adversary, config.data)
    finish_audit(path, lambda: begin(config, path, backend=where), as_json, fail_on)


def _resolved(values: Mapping[str, Any], given: Mapping[str, str]) -> AuditConfig:
    """What a file has, and over it the options."""
    own = "trainer" in given or values.get("trainer")
    over: dict[str, Any] = {}
    for name, text in given.items():
        if name in WORDS:
            word = WORDS[name]
            claimed = own and name in OF_NOISE and "epsilon" not in given
            table = "claim" if claimed else word.table  # an own function's recipe is its claim
            (over.setdefault(table, {}) if table else over)[name] = READ[word.kind](name, text)
    adversary = over.get("adversary", values.get("adversary"))
    if attribute := _attribute(adversary, given.get("column"), given.get("values")):
        over["options"] = attribute
    return AuditConfig.from_words(merged(values, over))


def _attribute(adversary: object, column: Text, values: Text) -> dict[str, Any]:
    """The options of the adversary of that name; no other one has a column in question."""
    for name, text in (("column", column), ("values", values)):
        if text is not None and adversary != "attribute":
            wanted, remedy = "left out for other adversaries", "give --adversary attribute"
            raise validate.invalid_value(name, text, wanted, remedy)
    found: dict[str, Any] = {}
    if column is not None:
        parts = [part.strip() for part in column.split(",")]
        found["columns"] = [int(part) if part.isdecimal() else part for part in parts]
    if values is not None:
        found["values"] = [part.strip() for part in values.split(",")]
    return found


def finish_audit(path: Path, run: Callable[[], AuditRecord], as_json: bool, fail_on: str) -> None:
    """Run, and print the answer; an interrupted run says how to go on."""
    options.look_here()
    with options.interruptible(path):
        record = run()
    if as_json:
        print(json.dumps({"run": str(path), **record.to_dict()}, indent=2, allow_nan=False))
        options.exit_on([record.verdict.outcome], fail_on)
        return
    console = Console(highlight=False)
    console.print(audit_table(record))
    if record.identifiability is not None:
        console.print(identified_table(record.identifiability))
    if record.adversary == "attribute":
        console.print(OF_AN_ATTRIBUTE)
    console.print(record.sentence)
    with Run.open(path, verify=False) as kept:
        workers = kept.workers()
    for line in worker_lines(workers) if len(workers) > 1 else ():
        console.print(line, style="dim")
    console.print(f"Kept in {path}.", style="dim")
    options.exit_on([record.verdict.outcome], fail_on)


def audit_table(record: AuditRecord) -> Table:
    """What was reached beside what is allowed, metric by metric."""
    columns = ("What", "Reached, at least", "Allowed, at most")
    table = plain_table(f"{record.adversary}: {record.about}", *columns)
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
    return table


def identified_table(found: Mapping[str, Any]) -> Table:
    """Bernau et al.'s numbers: the adversary's advantage, how sure it was, and ε′."""
    table = plain_table("Differential identifiability", "What", "Value", "How sure")
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
            what, kind = f"ε′ {estimate['source']}", f"{estimate['kind']}, no confidence"
            table.add_row(what, f"{estimate['value']:.4f}", kind)
    return table


# Scores of the user's own attack ------------------------------------------------------------------

SHOWN_OF_SCORES = ("advantage", "tpr", "precision")
"""Metrics that are read off the curve of scores."""

ROWS = {
    True: "each row comes from a training of its own",
    False: "the rows are canaries of one training, each in or out by its own fair coin",
}
"""What must be true of the rows, of trials of two worlds and of one run."""

WORLDS = {"in": "in", "out": "out", "1": "in", "0": "out"}


OF_BOUND = {
    **{name: OPTIONS[name] for name in ("delta", "confidence")},
    "method": options.text_option(
        f"Of the lower bound: {', '.join(ESTIMATORS)}; {USUAL_METHOD} if not given."
    ),
}


@options.with_options(OF_BOUND, before="as_json")
def bound(
    scores: Annotated[
        Path, typer.Argument(help="CSV with the columns score (members high) and world (in, out).")
    ],
    as_json: options.AsJson = False,
    **given: Text,
) -> None:
    """Bound ε from below by your attack's scores, each row a training (or a canary) of its own."""
    inside, outside = read_scores(scores)
    numbers: dict[str, Any] = options.numbers_given(given, ("delta", "confidence"))
    found = lower_bound(inside, outside, method=given["method"] or USUAL_METHOD, **numbers)
    if as_json:
        print(json.dumps({found.method: _bound_json(found)}, indent=2))
        return
    console = Console(highlight=False)
    console.print(found.sentence())
    if found.curve is not None:
        metrics = [Reading(name) for name in SHOWN_OF_SCORES]
        each = [f"{metric.title} ≥ {round_down(found.value(metric))}" for metric in metrics]
        console.print(f"Read off the same curve: {', '.join(each)}.")
    rows = ROWS[found.method in FOR_TRIALS]
    words = f"This holds if {rows}, and the method was chosen before the scores were looked at."
    console.print(words, style="dim")


def _bound_json(found: LowerBound) -> dict[str, Any]:
    kept = ("epsilon", "delta", "confidence", "trials", "counted", "assumption", "objection")
    shown: dict[str, Any] = to_json({name: getattr(found, name) for name in kept})
    shown |= {"decides": found.decides, "kind": "lower bound", "sentence": found.sentence()}
    if found.curve is not None:
        for metric in map(Reading, SHOWN_OF_SCORES):
            shown[metric.name] = {"value": found.value(metric), **metric.conditions}
    return shown


def read_scores(path: Path) -> tuple[list[float], list[float]]:
    """The scores of world `in` and of world `out` in a CSV file with a header."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.DictReader(lines)
            columns = list(reader.fieldnames or ())
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        wanted = f"a CSV file to read ({error})"
        raise validate.invalid_value("scores", str(path), wanted, "give its path") from None
    if not {"score", "world"} <= set(columns):
        shown = f"one with {', '.join(columns) or 'nothing'}"
        remedy = "give a header with score and world, and in or out as the world"
        wanted = "a CSV file with the columns score and world"
        raise validate.invalid_input("scores", shown, wanted, remedy)
    found: dict[str, list[float]] = {"in": [], "out": []}
    for number, row in rows:
        world = (row["world"] or "").strip().lower()
        validate.one_of(f"world in line {number}", world, tuple(WORLDS))
        score = validate.parse(f"score in line {number}", row["score"] or "")
        found[WORLDS[world]].append(score)
    return found["in"], found["out"]
