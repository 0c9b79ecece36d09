"""`dprime sample`: a training set drawn from a pool, and who was drawn kept secret."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from dprime import options
from dprime.cli.command import argument, say, show, takes
from dprime.mechanisms import DPSGD
from dprime.membership.pool import EMPTY_DRAW
from dprime.membership.pool_files import ENDING, PoolFacts, others_can_read
from dprime.membership.pool_files import sample as draw_from
from dprime.option import read
from dprime.plain import to_json
from dprime.text import round_up

NOTE = (
    "How many were drawn is not shown: it is a secret like who was drawn. Nothing public may "
    "depend on it, so the training takes its sampling rate, its divisor and its steps from the "
    "expected size."
)
DRAWN = (
    options.OUT.here(required=True, note="The secret training set, in the pool's format."),
    options.SAMPLING_PROBABILITY,
    options.PROBABILITY_COLUMN,
    options.IGNORE,
    options.BATCH_SIZE,
    options.MEMBERS,
    options.SEED_FILE,
    options.FORCE,
)
CERTIFIED = (options.NOISE_MULTIPLIER, options.STEPS)
"""Numbers of the training, for the command that certifies it."""


@takes(*DRAWN, *CERTIFIED, options.JSON)
def sample(
    pool: Annotated[Path, argument("POOL", "The pool's records: CSV, TSV, Parquet, .npy or .npz.")],
    **given: str,
) -> None:
    """Draw a secret training set from a pool by independent coin flips."""
    DPSGD(**read(CERTIFIED, given))  # checks them
    asked = read(DRAWN, given)
    out, seed_file = asked.pop("out"), asked.get("seed_file")
    if seed_file is not None and others_can_read(seed_file):
        say(
            f"Warning: others can read {seed_file}, and whoever knows the seed knows who was "
            f"drawn: chmod 600 {seed_file}",
            error=True,
        )
    seed_was_there = seed_file is not None and seed_file.exists()
    facts = draw_from(pool, out, **asked)
    training = {each.name: given[each.name] for each in CERTIFIED if each.name in given}
    certify = facts.risk_command(**training)
    if "json" in given:
        show({**to_json(facts), "out": str(out), "risk_command": certify, "note": NOTE}, given)
        return
    _print(pool, facts, _files(out, asked, seed_was_there), certify)


def _files(out: Path, asked: dict[str, Any], seed_was_there: bool) -> dict[str, str]:
    """What was written, and who may see it."""
    read_seed = "the seed that was there, which gives the draw; for one draw only, secret"
    new_seed = "a new seed, which gives the draw; secret"
    told = {out: "the training set; secret", asked.get("members"): "who was drawn; secret"}
    told[asked.get("seed_file")] = read_seed if seed_was_there else new_seed
    told[Path(f"{out}{ENDING}")] = "what may be known; public"
    return {str(path): words for path, words in told.items() if path}


def _print(pool: Path, facts: PoolFacts, files: dict[str, str], certify: str) -> None:
    low, high, prior = facts.smallest_probability, facts.probability, "π"
    kept = f"probability {high:.6g}"
    if low != high:
        kept = f"its own probability, {low:.6g} to {high:.6g} ({facts.probability_column})"
        prior = "the largest π, which covers everyone,"
    say(
        f"Drawn from the {facts.pool_records:,} records of {pool}, each kept with {kept}. "
        f"Expected: {facts.expected_records:,.10g} records.",
        "bold",
    )
    width = max(map(len, files))
    for path, meaning in files.items():
        say(f"  {path:{width}}  {meaning}")
    say(NOTE)
    if facts.empty_probability > EMPTY_DRAW:
        say(
            f"Caution: with so few records nobody at all is drawn with probability "
            f"{round_up(facts.empty_probability, 2)}, and a training that stops there would tell."
        )
    if facts.batch_size is not None:
        say(f"Batches of {facts.batch_size:,}: sampling rate {facts.sample_rate:.6g}.")
    say(f"What a training on it risks, {prior} as the prior:")
    say(f"  {certify}")
