"""`dprime sample`: a training set drawn from a pool, and who was drawn kept secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dprime import validate
from dprime.cli.options import AsJson, if_given, number_option
from dprime.mechanisms import DPSGD
from dprime.membership.pool import EMPTY_DRAW
from dprime.membership.pool_files import ENDING, PoolFacts, others_can_read
from dprime.membership.pool_files import sample as draw_from
from dprime.plain import to_json
from dprime.text import round_up

Text = str | None


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
    noise_multiplier: Annotated[Text, number_option("Of the training: for the command.")] = None,
    steps: Annotated[Text, number_option("Of the training: for the command.")] = None,
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
    training = _training(noise_multiplier, steps)
    size = None
    if batch is not None:
        size = validate.whole("batch", validate.parse("batch", batch), example=64)
    if seed_file is not None and others_can_read(seed_file):
        Console(stderr=True).print(
            f"Warning: others can read {seed_file}, and whoever knows the seed knows who was "
            f"drawn: chmod 600 {seed_file}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    seed_was_there = seed_file is not None and seed_file.exists()
    facts = draw_from(
        pool,
        out,
        probability=if_given(validate.parse, "probability", probability),
        probability_column=probability_column,
        ignore=ignore or (),
        batch=size,
        members=members,
        seed_file=seed_file,
        force=force,
    )
    command = facts.risk_command(**training)
    if as_json:
        shown = {**to_json(facts), "out": str(out), "risk_command": command, "note": NOTE}
        print(json.dumps(shown, indent=2, allow_nan=False))
        return
    seed = "read seed" if seed_was_there else "seed"
    _print(pool, facts, {"train": out, "members": members, seed: seed_file}, command)


NOTE = (
    "How many were drawn is not shown: it is a secret like who was drawn. Nothing public may "
    "depend on it, so the training takes its sampling rate, its divisor and its steps from the "
    "expected size."
)


def _training(noise: Text, steps: Text) -> dict[str, str]:
    """What is known of the training, checked, as it was typed."""
    given = {"noise_multiplier": noise, "steps": steps}
    texts = {name: text for name, text in given.items() if text is not None}
    DPSGD(**{name: validate.parse(name, text) for name, text in texts.items()})  # type: ignore[arg-type]
    return texts


def _print(pool: Path, facts: PoolFacts, secret: dict[str, Path | None], command: str) -> None:
    """The public facts, and where the files are."""
    console = Console()

    def say(text: str, style: str = "") -> None:
        console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)

    say(
        f"Drawn from the {facts.pool_records:,} records of {pool}, each kept with "
        f"{_probability(facts)}. Expected: {facts.expected_records:,.10g} records.",
        "bold",
    )
    meanings = {
        "train": "the training set; secret",
        "members": "who was drawn; secret",
        "seed": "a new seed, which gives the draw; secret",
        "read seed": "the seed that was there, which gives the draw; for one draw only, secret",
    }
    lines = [(str(path), meanings[name]) for name, path in secret.items() if path is not None]
    lines.append((f"{secret['train']}{ENDING}", "what may be known; public"))
    width = max(len(path) for path, _ in lines)
    for path, meaning in lines:
        say(f"  {path:{width}}  {meaning}")
    say(NOTE)
    if facts.empty_probability > EMPTY_DRAW:
        say(
            f"Caution: with so few records nobody at all is drawn with probability "
            f"{round_up(facts.empty_probability, 2)}, and a training that stops there would tell."
        )
    if facts.batch is not None:
        say(f"Batches of {facts.batch:,}: sampling rate {facts.sample_rate:.6g}.")
    say(f"What a training on it risks, {_prior(facts)} as the prior:")
    say(f"  {command}")


def _probability(facts: PoolFacts) -> str:
    if facts.smallest_probability == facts.probability:
        return f"probability {facts.probability:.6g}"
    return (
        f"its own probability, {facts.smallest_probability:.6g} to {facts.probability:.6g} "
        f"({facts.probability_column})"
    )


def _prior(facts: PoolFacts) -> str:
    if facts.smallest_probability == facts.probability:
        return "π"
    return "the largest π, which covers everyone,"
