"""`dprime consequences`: what a curve means for deletion, reconstruction and loss."""

from __future__ import annotations

import json

from rich.console import Console
from rich.table import Table

from dprime import text, validate
from dprime.cli.options import AsJson, number_option, typed, with_options
from dprime.cli.risks import ADD_IT, TRAINING
from dprime.consequences import Consequences
from dprime.consequences import consequences as find
from dprime.mechanisms import DEFAULT_ADJACENCY, PoolSampled
from dprime.metrics import MetricValue
from dprime.request import training_request
from dprime.text import round_up

NUMBERS = {
    "deniability": number_option("Probability that none of the records was used [0.8]."),
    "output_probability": number_option(
        "Least probability of what is observed, where none was used [0.01]."
    ),
    "min_tpr": number_option(
        "Least probability of reconstructing the record, if it was used [0.01]."
    ),
    "min_tnr": number_option('Least share of outsiders called "not a member" [0.01].'),
    "loss_bound": number_option("Largest loss [1]."),
}
POOL = {"pool": number_option("Probability with which a record of the pool was trained on.")}


@with_options(TRAINING | POOL | NUMBERS, before="as_json")
def consequences(as_json: AsJson = False, **texts: str | None) -> None:
    """What follows for deletion requests, reconstructions and the loss on a record."""
    given = typed(texts)
    training = training_request(given, ADD_IT)
    numbers = {name: validate.parse(name, given[name]) for name in NUMBERS if name in given}
    found = find(PoolSampled(training, _share(given.get("pool"))), **numbers)
    if as_json:
        print(json.dumps(found.as_json(), indent=2, allow_nan=False))
    else:
        Console().print(_table(found))


def _share(pool: str | None) -> float:
    """The probability with which a record of the pool was trained on."""
    if pool is None:
        remedy = "add --pool with the share of the pool that was trained on, such as 0.1"
        raise validate.invalid_input("pool", "missing", "given", remedy)
    return validate.inner_probability("pool", validate.parse("pool", pool), example=0.1)


def _table(found: Consequences) -> Table:
    title = text.describe(found.mechanism.to_dict(), DEFAULT_ADJACENCY)
    table = Table(title=title, title_justify="left", title_style="bold", pad_edge=False)
    table.add_column("What")
    table.add_column("Certified", justify="right", no_wrap=True)
    table.add_column("In plain words")
    for answer in found.answers:
        table.add_row(answer.title, _shown(answer), answer.sentence)
    table.caption = f"{text.certified(DEFAULT_ADJACENCY)}. Also: {text.POOL}."
    table.caption_justify = "left"
    return table


def _shown(answer: MetricValue) -> str:
    """A count is a floor, every other number a ceiling."""
    if answer.name == "deletion_capacity":
        return f"≥ {answer.value:,}"
    return f"≤ {round_up(answer.value)}"
