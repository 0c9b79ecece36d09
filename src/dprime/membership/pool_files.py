"""A pool in a file: a training set drawn from it, in the same form, and what may be known about it.

pool.csv ──► sample ──► train.csv (secret), train.csv.pool.json (public), members and seed (secret)

Nothing that is returned, raised or written to the public file depends on who was drawn, or on how
many.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

from dprime import text, validate
from dprime.mechanisms import Mechanism, PoolSampled
from dprime.membership.pool import (
    Draw,
    Floats,
    check_distinct,
    check_probabilities,
    draw,
)
from dprime.membership.pool_forms import FORMS, PoolFile, open_pool
from dprime.plain import to_json
from dprime.seeds import SEED_BITS, fresh_seed

ENDING = ".pool.json"
"""What the public file's name adds to that of the training set."""

FORMAT = "dprime pool, version 1"
"""What the public file says of itself."""


@dataclass(frozen=True)
class PoolFacts:
    """What may be known about a draw: everything but who was drawn, how many, and the seed.

    Attributes:
        pool_records: how many records the pool has.
        probability: π; where records differ in it the largest one, whose bound holds for all.
        smallest_probability: the smallest one.
        probability_column: the column that gave them, or None.
        expected_records: how many records are drawn on average.
        empty_probability: the chance that nobody is drawn.
        batch: the expected batch size, where one was given.
        sample_rate: the rate that makes such batches out of the expected size.
    """

    format: str = field(default=FORMAT, init=False)
    pool_records: int
    probability: float
    smallest_probability: float
    probability_column: str | None
    expected_records: float
    empty_probability: float
    batch: int | None = None
    sample_rate: float | None = None

    def risk_command(self, *, noise_multiplier: str = "NOISE", steps: str = "STEPS") -> str:
        """The command that certifies a training on the draw, with π as the prior.

        What is not known stands in capitals.
        """
        expected = f"{self.expected_records!r}".removesuffix(".0")
        return text.command(
            "risk",
            {
                "noise_multiplier": noise_multiplier,
                "sample_rate": f"{'BATCH' if self.batch is None else self.batch}/{expected}",
                "steps": steps,
                "prior": repr(self.probability),
                "belief_prior": repr(self.probability),
            },
        )


def mechanism_of(path: str | Path, training: Mechanism) -> PoolSampled:
    """What was run, from the public file beside a training set: the draw, then the training.

    The training's sampling rate is that of the expected size.
    """
    requirement = f"a public file of dprime sample, such as train.csv{ENDING}"
    try:
        known = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError):
        known = None
    if not isinstance(known, dict) or known.get("format") != FORMAT:
        raise validate.invalid_value("path", str(path), requirement, "give the path of one")
    name = f"probability in {Path(path).name}"
    largest = validate.inner_probability(name, known.get("probability"))
    least = validate.inner_probability(name, known.get("smallest_probability", largest))
    return PoolSampled(training, largest, least if least < largest else None)


def sample(
    pool: str | Path,
    out: str | Path,
    *,
    probability: float | None = None,
    probability_column: str | None = None,
    ignore: Sequence[str] = (),
    batch: int | None = None,
    members: str | Path | None = None,
    seed_file: str | Path | None = None,
    force: bool = False,
) -> PoolFacts:
    """Draw a training set from the pool in a file, and write it in the same form.

    The training set, the members and the seed are written so that only their owner can read them;
    the public file is named like the training set with ".pool.json" added. Either all files are
    written or none.

    Args:
        pool: the file with the records, which must be distinct.
        out: the file for those that were drawn, with the same ending.
        probability: π for all records, strictly between 0 and 1.
        probability_column: the column that has a π for each record, instead. It stays in the
            training set and does not make two records distinct.
        ignore: columns that do not make two records distinct, such as a running number.
        batch: the expected batch size of the training; the sampling rate follows from it.
        members: a file for who was drawn: a line with 0 or 1 for each record of the pool.
        seed_file: the secret seed. It is read if the file is there, else a new one is written.
        force: write over files that are there.

    Returns:
        what may be known, which does not depend on the draw.
    """
    given = {"probability": probability, "probability_column": probability_column}
    validate.exactly_one("probability, probability_column", given, "give one of them")
    paths = _new_paths(pool, out, {"members": members, "seed_file": seed_file}, force=force)
    records = open_pool(pool)
    chances = _chances(records, probability, probability_column)
    left_out = [_column("ignore", name, records.columns) for name in ignore]
    compared = [name for name in records.columns if name not in (*left_out, probability_column)]
    if not compared:
        remedy = "leave a column to tell records apart by"
        raise validate.invalid_input("ignore", "all of them", "some of the columns", remedy)
    check_distinct(records.rows(compared), records.place)
    seed_path = paths.get("seed_file")
    kept = _read_seed(seed_path) if seed_path and seed_path.exists() else None
    seed = fresh_seed() if kept is None else kept
    drawn = draw(len(records), chances, seed=seed)
    facts = _facts(drawn, probability_column, batch)
    texts = {"the public file": json.dumps(to_json(facts), indent=2, allow_nan=False) + "\n"}
    if seed_path and kept is None:
        texts["seed_file"] = f"{seed:0{SEED_BITS // 4}x}\n"
    if members is not None:
        texts["members"] = "".join("1\n" if member else "0\n" for member in drawn.members)
    outputs = [
        Output(name, paths[name], partial(_put, text), secret=name != "the public file")
        for name, text in texts.items()
    ]
    outputs.append(Output("out", paths["out"], partial(records.write, drawn.members)))
    write_together(outputs)
    return facts


def _facts(drawn: Draw, column: str | None, batch: int | None) -> PoolFacts:
    """What may be known about a draw."""
    size = None if batch is None else validate.whole("batch", batch, example=64)
    if size is not None and size > drawn.expected:
        requirement = f"at most the expected size of the draw, {drawn.expected:,.10g}"
        remedy = "give a smaller batch, a larger pool or a larger probability"
        raise validate.invalid_value("batch", size, requirement, remedy)
    return PoolFacts(
        pool_records=len(drawn.members),
        probability=drawn.largest,
        smallest_probability=drawn.smallest,
        probability_column=column,
        expected_records=drawn.expected,
        empty_probability=drawn.empty_probability,
        batch=size,
        sample_rate=None if size is None else size / drawn.expected,
    )


def _chances(records: PoolFile, probability: float | None, column: str | None) -> float | Floats:
    """π for all, or for each record; a sentence says in which line one is wrong."""
    if column is None:
        return validate.inner_probability("probability", probability, example=0.2)
    values = records.numbers(_column("probability_column", column, records.columns))
    check_probabilities(values, lambda index: f"{column} in {records.place(index)}")
    return values


def _column(name: str, column: str, columns: tuple[str, ...]) -> str:
    if columns.count(column) == 1:
        return column
    listed = ", ".join(each for each in columns if each) or "none: it has no names"
    raise validate.invalid_value(
        name, column, f"one of the pool's columns ({listed})", "give its name"
    )


def _new_paths(
    pool: str | Path, out: str | Path, secret: Mapping[str, str | Path | None], *, force: bool
) -> dict[str, Path]:
    """Where everything is written; no two of them the same, and none there already."""
    source, made = Path(pool), Path(out)
    if source.suffix.lower() in FORMS and made.suffix.lower() != source.suffix.lower():
        requirement = f"a file that ends in {source.suffix}, as the pool"
        raise validate.invalid_value("out", str(out), requirement, "the form stays the same")
    named = {name: Path(path) for name, path in secret.items() if path is not None}
    new = {"out": made, "the public file": made.with_name(made.name + ENDING), **named}
    taken: dict[Path, str] = {source.resolve(): "pool"}
    for name, path in new.items():
        if (other := taken.setdefault(path.resolve(), name)) != name:
            requirement = f"another file than {other}"
            raise validate.invalid_value(name, str(path), requirement, "give another name")
    for name, path in new.items():
        if not path.parent.is_dir():
            requirement = "in a folder that is there"
            raise validate.invalid_value(name, str(path), requirement, "make the folder first")
        if path.is_dir() or (path.exists() and name != "seed_file" and not force):
            forced = "" if path.is_dir() else ", or write over it with force"
            remedy = f"give another name{forced}"
            raise validate.invalid_value(name, str(path), "a file that is not there yet", remedy)
    return new


def _read_seed(path: Path) -> int:
    """The seed that is kept in a file; what the file holds is never shown."""
    digits = SEED_BITS // 4
    remedy = "give the name of a file that is not there, and one is made"
    try:
        text = path.read_text(encoding="ascii").strip()
        if len(text) == digits and text.isalnum():
            return int(text, 16)
    except OSError as error:
        requirement = f"a file that can be read ({error.strerror or error})"
        raise validate.invalid_value("seed_file", str(path), requirement, remedy) from None
    except ValueError:
        pass
    requirement = f"a file of {digits} hexadecimal digits"
    raise validate.invalid_value("seed_file", str(path), requirement, remedy)


def others_can_read(path: str | Path) -> bool:
    """Whether a file is there that not only its owner can read."""
    place = Path(path)
    return os.name == "posix" and place.exists() and bool(place.stat().st_mode & 0o044)


@dataclass(frozen=True)
class Output:
    """A file to be written: its name in sentences, its place, and what writes it."""

    name: str
    path: Path
    write: Callable[[BinaryIO], object]
    secret: bool = True


def write_together(outputs: Sequence[Output]) -> None:
    """Write all files or none: each beside its place first, then all are renamed.

    What is secret can only be read by its owner, from its first byte on.
    """
    parts: list[Path] = []
    output = outputs[0]
    try:
        for output in outputs:
            part = output.path.with_name(f".{output.path.name}.{secrets.token_hex(8)}.part")
            parts.append(part)
            mode = 0o600 if output.secret else 0o666
            with open(part, "xb", opener=lambda p, flags: os.open(p, flags, mode)) as stream:  # noqa: B023
                output.write(stream)
        for part, output in zip(parts, outputs, strict=True):
            part.replace(output.path)
    except OSError as error:
        requirement = f"a file that can be written ({error.strerror or error})"
        remedy = "give a place that you can write to"
        raise validate.invalid_value(output.name, str(output.path), requirement, remedy) from None
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def _put(text: str, stream: BinaryIO) -> None:
    stream.write(text.encode())
