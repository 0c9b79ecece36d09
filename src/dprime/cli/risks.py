"""`dprime risk`, `choose` and `consequences`: from parameters to risks, and back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from rich.table import Table
from rich.text import Text

from dprime import options, text, validate
from dprime.check import check
from dprime.cli.command import argument, say, show, starting, takes
from dprime.cli.tables import plain_table, risk_table
from dprime.consequences import Consequences
from dprime.mechanisms import DEFAULT_ADJACENCY
from dprime.metrics import CONDITIONS, MetricValue, risk_profile
from dprime.option import read
from dprime.request import (
    GOALS,
    OF_CONSEQUENCES,
    RISK,
    STATED,
    TRAINING,
    RiskRequest,
    answer_json,
    choose_request,
    consequences_request,
    leave_out,
    risk_request,
)
from dprime.text import round_up

ENOUGH = "--epsilon 3 --delta 1e-5, or --noise-multiplier 1.1 --sample-rate 0.01 --steps 2000"
SAVED = "Opacus checkpoint, or JSON file of a history or description."
OF_FILES = ("adjacency", "group_size", "dataset_size")
"""What a saved training may be asked for besides."""


@takes(*RISK, *STATED, *CONDITIONS, options.ESTIMATES, options.JSON)
def risk(file: Annotated[Path | None, argument("FILE", SAVED)] = None, **given: str) -> None:
    """Bound what an attacker can achieve against a training, or under a stated guarantee."""
    if file is None and not {each.name for each in (*TRAINING, *STATED)} & given.keys():
        needed = "A training, a guarantee or a file", "be given", "none is"
        raise validate.InputError.of(*needed, f"for example dprime risk {ENOUGH}")
    request, notes = _saved(file, given) if file else (risk_request(given), [])
    if any(each.name in given for each in STATED):
        notes = [text.STATED_ONLY]
    compared = (request.adjacency, request.group_size)
    estimated = request.estimates() if "estimates" in given else []
    answers = risk_profile(request.curve(), request.readings)
    shown = answer_json(request.mechanism, *compared, answers)
    tables = [risk_table(text.describe(shown["mechanism"], *compared), answers, *compared)]
    for estimate in estimated:
        if estimate.warning:
            say(f"Warning: {estimate.warning}", error=True)
        listed = risk_profile(estimate, request.readings)
        found = {answer.name: answer.as_json() for answer in listed}
        shown.setdefault("estimates", {})[estimate.source] = found
        title = f"Estimate, no guarantee: {estimate.source}"
        tables.append(risk_table(title, listed, *compared))
    words = map(Text, notes)  # as they are, whatever is in them
    show({**shown, "notes": notes} if notes else shown, given, *tables, *words)


def _saved(path: Path, given: Mapping[str, str]) -> tuple[RiskRequest, list[str]]:
    """What is asked of a saved training, and what its file leaves open; nothing in it is run."""
    described = (each for each in (*RISK, *STATED) if each.name not in OF_FILES)
    leave_out(given, described, "a file describes the training")
    if not path.is_file():
        remedy = "give the path of a checkpoint or a JSON file, or options such as --epsilon 3"
        raise validate.invalid_value("file", str(path), "a file that exists", remedy)
    starting(f"Reading {path}", given)
    report = check(path, **read((options.DATASET_SIZE, options.DELTA), given))
    if not report.reading.risks:
        said = [each.sentence for each in report.findings] or [*report.reading.missing]
        shown = (
            f"none ({said[0].rstrip('.')})" if report.kind == "saved run" else f"a {report.kind}"
        )
        wanted, remedy = "a saved training with a guarantee", f"see dprime check {path}"
        raise validate.invalid_input(str(path), shown, wanted, remedy)
    found = report.reading.risks[-1]  # of all runs together, where there were several
    relation = given.get("adjacency", found.adjacency)
    if relation not in (found.adjacency, "replace"):
        wanted = f"{found.adjacency!r} or 'replace' for this file"
        raise validate.invalid_value("adjacency", relation, wanted, "leave it out")
    (at,) = (each.conditions for each in found.answers if each.name == "epsilon")
    texts = {**given, "adjacency": relation, "delta": str(at["delta"])}
    notes = [
        f"These are the numbers of {found.about} ({path}).",
        *(each.sentence for each in report.findings),
    ]
    return risk_request(texts, found.mechanism), [*notes, *report.unresolved]


@takes(*RISK, *GOALS, *CONDITIONS, options.ROUND_TO, options.JSON)
def choose(**given: str) -> None:
    """Find the noise, sampling rate or number of steps that keeps a risk below a target."""
    request = choose_request(given)
    compared = (request.adjacency, request.group_size)
    found, readings = request.solve(given.get("round_to", "steps"))
    answers, name = risk_profile(found.curve, readings), found.parameter
    value = getattr(found.mechanism, name)
    told = answer_json(found.mechanism, *compared, answers)
    shown = {"chosen": {"name": name, "value": value}, **told}
    digits = text.safe_digits(name, value)
    title = text.describe(shown["mechanism"], *compared, chosen=name)
    chosen = Text(f"Chosen: {name.replace('_', ' ')} {digits}", "bold")
    show(shown, given, chosen, risk_table(title, answers, *compared))


@takes(*options.LENGTHS, *OF_CONSEQUENCES, options.JSON)
def consequences(**given: str) -> None:
    """Bound what a training on a part of a pool allows in deletion, reconstruction and loss."""
    found = consequences_request(given)
    show(found.as_json(), given, _consequences_table(found))


def _consequences_table(found: Consequences) -> Table:
    title = text.describe(found.mechanism.to_dict(), DEFAULT_ADJACENCY)
    table = plain_table(title, "What", "Certified", "In plain words")
    table.columns[1].no_wrap = True
    for answer in found.answers:
        table.add_row(answer.title, _limit(answer), answer.sentence)
    table.caption = f"{text.certified(DEFAULT_ADJACENCY)}. Also: {text.POOL}."
    return table


def _limit(answer: MetricValue) -> str:
    """A count is a floor, every other number a ceiling."""
    floor = answer.name == "deletion_capacity"
    return f"≥ {answer.value:,}" if floor else f"≤ {round_up(answer.value)}"
