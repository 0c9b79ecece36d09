"""A training set drawn from a pool in a file, in the same form, and the public facts of the draw.

pool.csv ──► sample ──► train.csv (secret), train.csv.pool.json (public), members and seed (secret)

Nothing that is returned, raised or written to the public file depends on who was drawn, or on how
many.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from dprime import atomic, bounded, text, validate
from dprime.mechanisms import Mechanism, PoolSampled
from dprime.membership.pool import Draw, Floats, check_distinct, check_probabilities, draw
from dprime.membership.pool_forms import FORMS, PoolFile, open_pool
from dprime.plain import to_json
from dprime.seeds import SEED_BITS, fresh_seed

ENDING = ".pool.json"  # what the public file's name adds to that of the training set
FORMAT = "dprime pool, version 1"  # what the public file says of itself
PUBLIC = "the public file"
LONGEST_PUBLIC = 10_000_000  # bytes of a public file
SEED_DIGITS = SEED_BITS // 4


@dataclass(frozen=True)
class PoolFacts:
    """The public facts of a draw: all but who was drawn, how many, and the seed.

    `probability` is π; where records differ in it, by the `probability_column`, the largest one,
    whose bound holds for all. `sample_rate` makes batches of the expected `batch_size`.
    """

    format: str = field(default=FORMAT, init=False)
    pool_records: int
    probability: float
    smallest_probability: float
    probability_column: str | None
    expected_records: float
    empty_probability: float
    batch_size: int | None = None
    sample_rate: float | None = None

    def risk_command(self, *, noise_multiplier: str = "NOISE", steps: str = "STEPS") -> str:
        """The command that certifies a training on the draw; what is not known, in capitals."""
        batch = "BATCH" if self.batch_size is None else self.batch_size
        expected = f"{self.expected_records!r}".removesuffix(".0")
        numbers = {
            "noise_multiplier": noise_multiplier,
            "sample_rate": f"{batch}/{expected}",
            "steps": steps,
        }
        priors = dict.fromkeys(("prior", "belief_prior"), repr(self.probability))
        return text.command("risk", numbers | priors)


def mechanism_of(path: str | Path, training: Mechanism) -> PoolSampled:
    """The mechanism, from the public file; the training's rate is of the expected size."""
    try:
        known = json.loads(bounded.read_bytes(Path(path), LONGEST_PUBLIC, ""))
    except (ValueError, RecursionError):
        known = None
    if not isinstance(known, dict) or known.get("format") != FORMAT:
        wanted = f"a public file of dprime sample, such as train.csv{ENDING}"
        raise validate.invalid_value("path", str(path), wanted, "give the path of one")
    name = f"probability in {Path(path).name}"
    largest = validate.inner_probability(name, known.get("probability"))
    least = validate.inner_probability(name, known.get("smallest_probability", largest))
    return PoolSampled(training, largest, least if least < largest else None)


def sample(
    pool: str | Path,
    out: str | Path,
    *,
    sampling_probability: float | None = None,
    probability_column: str | None = None,
    ignore: Sequence[str] = (),
    batch_size: float | None = None,
    members: str | Path | None = None,
    seed_file: str | Path | None = None,
    force: bool = False,
) -> PoolFacts:
    """Draw a training set from the pool in a file, and write it in the same form.

    The training set, the members and the seed are written so that only their owner can read them;
    the public file is named like the training set with ".pool.json" added. Either all files are
    written or none. What is returned does not depend on the draw.

    The records must be distinct, but for the columns to `ignore`, such as a running number. Each is
    kept with `sampling_probability`, or with that in its `probability_column`, which stays in the
    training set and does not make two records distinct. From an expected `batch_size` the sampling
    rate follows. `members` is a file with 0 or 1 for each record of the pool. The secret seed is
    read from `seed_file` if it is there, else a new one is written. `force` writes over files that
    are there.
    """
    given = {"sampling_probability": sampling_probability, "probability_column": probability_column}
    validate.exactly_one("sampling_probability, probability_column", given, "give one of them")
    paths = _new_paths(pool, out, {"members": members, "seed_file": seed_file}, force=force)
    records = open_pool(pool)
    chances = _chances(records, sampling_probability, probability_column)
    left_out = {_column("ignore", name, records.columns) for name in ignore} | {probability_column}
    compared = [name for name in records.columns if name not in left_out]
    if not compared:
        remedy = "leave a column to tell records apart by"
        raise validate.invalid_input("ignore", "all of them", "some of the columns", remedy)
    check_distinct(records.rows(compared), records.place)
    seed_path = paths.get("seed_file")
    kept = _read_seed(seed_path) if seed_path and seed_path.exists() else None
    seed = fresh_seed() if kept is None else kept
    drawn = draw(records.count, chances, seed=seed)
    facts = _facts(drawn, probability_column, batch_size)
    contents: dict[str, atomic.Content] = {PUBLIC: json.dumps(to_json(facts), indent=2) + "\n"}
    if seed_path and kept is None:
        contents["seed_file"] = f"{seed:0{SEED_DIGITS}x}\n"
    if members is not None:
        contents["members"] = "".join("1\n" if member else "0\n" for member in drawn.members)
    contents["out"] = partial(records.write, drawn.members)
    atomic.write_together(paths, contents, private=contents.keys() - {PUBLIC})
    return facts


def _facts(drawn: Draw, column: str | None, batch_size: float | None) -> PoolFacts:
    size = None if batch_size is None else validate.whole("batch_size", batch_size, example=64)
    if size is not None and size > drawn.expected:
        wanted = f"at most the expected size of the draw, {drawn.expected:,.10g}"
        remedy = "give a smaller batch, a larger pool or a larger probability"
        raise validate.invalid_value("batch_size", size, wanted, remedy)
    rate = None if size is None else size / drawn.expected
    pool, smallest, empty = len(drawn.members), drawn.smallest, drawn.empty_probability
    return PoolFacts(pool, drawn.largest, smallest, column, drawn.expected, empty, size, rate)


def _chances(records: PoolFile, probability: float | None, column: str | None) -> float | Floats:
    if column is None:
        return validate.inner_probability("sampling_probability", probability, example=0.2)
    values = records.numbers(_column("probability_column", column, records.columns))
    check_probabilities(values, lambda index: f"{column} in {records.place(index)}")
    return values


def _column(name: str, column: str, columns: tuple[str, ...]) -> str:
    if columns.count(column) == 1:
        return column
    wanted = f"one of the pool's columns ({', '.join(filter(None, columns)) or 'without names'})"
    raise validate.invalid_value(name, column, wanted, "give its name")


def _new_paths(
    pool: str | Path, out: str | Path, secret: Mapping[str, str | Path | None], *, force: bool
) -> dict[str, Path]:
    source, made = Path(pool), Path(out)
    if source.suffix.lower() in FORMS and made.suffix.lower() != source.suffix.lower():
        wanted = f"a file that ends in {source.suffix}, as the pool"
        raise validate.invalid_value("out", str(out), wanted, "the form stays the same")
    named = {name: Path(path) for name, path in secret.items() if path is not None}
    new = {"out": made, PUBLIC: made.with_name(made.name + ENDING), **named}
    taken: dict[Path, str] = {source.resolve(): "pool"}
    for name, path in new.items():
        wanted, remedy = "", "give another name"
        if (other := taken.setdefault(path.resolve(), name)) != name:
            wanted = f"another file than {other}"
        elif not path.parent.is_dir():
            wanted, remedy = "in a folder that is there", "make the folder first"
        elif path.is_dir() or (path.exists() and name != "seed_file" and not force):
            wanted = "a file that is not there yet"
            remedy += "" if path.is_dir() else ", or write over it with force"
        if wanted:
            raise validate.invalid_value(name, str(path), wanted, remedy)
    return new


def _read_seed(path: Path) -> int:
    """The seed that is kept in a file; the file's content is never shown."""
    wanted = f"a file of {SEED_DIGITS} hexadecimal digits"
    digits = bounded.read_bytes(path, LONGEST_PUBLIC, "give the file that dprime made").strip()
    if not re.fullmatch(rb"[0-9a-fA-F]{%d}" % SEED_DIGITS, digits):
        remedy = "give the name of a file that is not there, and one is made"
        raise validate.invalid_value("seed_file", str(path), wanted, remedy)
    return int(digits, 16)


def others_can_read(path: str | Path) -> bool:
    """Whether there is a file that others than its owner can read."""
    place = Path(path)
    return os.name == "posix" and place.exists() and bool(place.stat().st_mode & 0o044)
