"""`dprime sample`: a training set drawn from a pool, and who was drawn kept secret."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from dprime import validate
from dprime.cli.options import AsJson, if_given, number_option, typed
from dprime.cli.tables import show
from dprime.mechanisms import DPSGD
from dprime.membership.pool import EMPTY_DRAW
from dprime.membership.pool_files import ENDING, PoolFacts, others_can_read
from dprime.membership.pool_files import sample as draw_from
from dprime.plain import to_json
from dprime.text import round_up

Text = str | None

NOTE = (
    "How many were drawn is not shown: it is a secret like who was drawn. Nothing public may "
    "depend on it, so the training takes its sampling rate, its divisor and its steps from the "
    "expected size."
)


def sample(
    pool: Annotated[Path, typer.Argument(help="The records: CSV, TSV, Parquet, .npy or .npz.")],
    out: Annotated[Path, typer.Option(help="The training set, in the pool's form. Secret.")],
    probability: Annotated[
        Text, number_option("π, the probability with which each record is kept.")
    ] = None,
    probability_column: Annotated[
        Text, typer.Option(help="The column with a π for each record, instead.")
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(help="A column that does not make two records distinct, such as an id."),
    ] = None,
    batch: Annotated[Text, number_option("Batch size of the training: gives its rate.")] = None,
    noise_multiplier: Annotated[Text, number_option("Its noise, for the command.")] = None,
    steps: Annotated[Text, number_option("Its steps, for the command.")] = None,
    members: Annotated[
        Path | None, typer.Option(help="A file for who was drawn, 0 or 1 a line. Secret.")
    ] = None,
    seed_file: Annotated[
        Path | None, typer.Option(help="The secret seed: read if it is there, else written.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over files.")] = False,
    as_json: AsJson = False,
) -> None:
    """Draw a training set from a pool of distinct records, each with its own coin."""
    training = typed({"noise_multiplier": noise_multiplier, "steps": steps})
    DPSGD(**{name: validate.parse(name, text) for name, text in training.items()})  # type: ignore[arg-type]
    if seed_file is not None and others_can_read(seed_file):
        _say(
            f"Warning: others can read {seed_file}, and whoever knows the seed knows who was "
            f"drawn: chmod 600 {seed_file}",
            error=True,
        )
    seed_was_there = seed_file is not None and seed_file.exists()
    given: dict[str, Any] = {"members": members, "seed_file": seed_file, "force": force}
    given |= {"probability_column": probability_column, "ignore": ignore or ()}
    for name, number in (("probability", probability), ("batch", batch)):
        given[name] = if_given(validate.parse, name, number)
    facts = draw_from(pool, out, **given)
    command = facts.risk_command(**training)
    if as_json:
        show({**to_json(facts), "out": str(out), "risk_command": command, "note": NOTE}, True)
        return
    read = "the seed that was there, which gives the draw; for one draw only, secret"
    written = "a new seed, which gives the draw; secret"
    told = {out: "the training set; secret", members: "who was drawn; secret"}
    told[seed_file] = read if seed_was_there else written
    told[Path(f"{out}{ENDING}")] = "what may be known; public"
    _print(pool, facts, {str(path): words for path, words in told.items() if path}, command)


def _say(text: str, style: str = "", *, error: bool = False) -> None:
    Console(stderr=error).print(text, style=style, highlight=False, markup=False, soft_wrap=True)


def _print(pool: Path, facts: PoolFacts, files: dict[str, str], command: str) -> None:
    """The public facts, and where the files are."""
    low, high, prior = facts.smallest_probability, facts.probability, "π"
    kept = f"probability {high:.6g}"
    if low != high:
        kept = f"its own probability, {low:.6g} to {high:.6g} ({facts.probability_column})"
        prior = "the largest π, which covers everyone,"
    _say(
        f"Drawn from the {facts.pool_records:,} records of {pool}, each kept with {kept}. "
        f"Expected: {facts.expected_records:,.10g} records.",
        "bold",
    )
    width = max(map(len, files))
    for path, meaning in files.items():
        _say(f"  {path:{width}}  {meaning}")
    _say(NOTE)
    if facts.empty_probability > EMPTY_DRAW:
        _say(
            f"Caution: with so few records nobody at all is drawn with probability "
            f"{round_up(facts.empty_probability, 2)}, and a training that stops there would tell."
        )
    if facts.batch is not None:
        _say(f"Batches of {facts.batch:,}: sampling rate {facts.sample_rate:.6g}.")
    _say(f"What a training on it risks, {prior} as the prior:")
    _say(f"  {command}")
