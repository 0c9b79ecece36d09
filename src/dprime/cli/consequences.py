"""`dprime consequences`: what a curve means for deletion, reconstruction and loss."""

from __future__ import annotations

import json
from typing import Annotated

from rich.console import Console
from rich.table import Table

from dprime import text, validate
from dprime.asked import describe, training_asked, typed
from dprime.cli.options import AsJson, number_option
from dprime.cli.risks import ADD_IT, Epochs, Noise, Rate, Steps
from dprime.consequences import Consequences
from dprime.consequences import consequences as find
from dprime.mechanisms import DEFAULT_ADJACENCY, PoolSampled
from dprime.metrics import MetricValue
from dprime.text import round_up


def consequences(
    noise_multiplier: Noise = None,
    sample_rate: Rate = None,
    steps: Steps = None,
    epochs: Epochs = None,
    pool: Annotated[
        str | None, number_option("Probability with which a record of the pool was trained on.")
    ] = None,
    deniability: Annotated[
        str | None, number_option("Probability that none of the records was used [0.8].")
    ] = None,
    output_probability: Annotated[
        str | None,
        number_option("Least probability of what is observed, where none was used [0.01]."),
    ] = None,
    min_tpr: Annotated[
        str | None,
        number_option("Least probability of reconstructing the record, if it was used [0.01]."),
    ] = None,
    min_tnr: Annotated[
        str | None, number_option('Least share of outsiders called "not a member" [0.01].')
    ] = None,
    loss_bound: Annotated[str | None, number_option("Largest loss [1].")] = None,
    as_json: AsJson = False,
) -> None:
    """What follows for deletion requests, reconstructions and the loss on a record."""
    training = training_asked(
        typed(
            noise_multiplier=noise_multiplier,
            sample_rate=sample_rate,
            steps=steps,
            epochs=epochs,
        ),
        ADD_IT,
    )
    asked = typed(
        deniability=deniability,
        output_probability=output_probability,
        min_tpr=min_tpr,
        min_tnr=min_tnr,
        loss_bound=loss_bound,
    )
    numbers = {name: validate.parse(name, typed_text) for name, typed_text in asked.items()}
    found = find(PoolSampled(training, _share(pool)), **numbers)
    if as_json:
        print(json.dumps(found.as_json(), indent=2, allow_nan=False))
    else:
        Console().print(_table(found))


def _share(pool: str | None) -> float:
    """The probability with which a record of the pool was trained on."""
    if pool is None:
        remedy = "add --pool with the share of the pool that was trained on, such as 0.1"
        raise validate.misfit("pool", "missing", "given", remedy)
    return validate.inner_probability("pool", validate.parse("pool", pool), example=0.1)


def _table(found: Consequences) -> Table:
    title = describe(found.mechanism, DEFAULT_ADJACENCY)
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
