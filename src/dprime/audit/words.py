"""The words of an audit: options with their checks, and files of them.

A TOML file describes one audit, or several and what they have in common:

trials = 500            # of all of them
[claim]
epsilon = 4.0
[[audits]]
name = "one"            # of the run's file, too
adversary = "gradient"
[[audits]]
name = "other"
adversary = "di"
claim.epsilon = 2.0     # instead of 4
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from dprime import bounded, options, validate
from dprime.audit.estimators import FOR_TRIALS
from dprime.audit.estimators.base import ASSUMABLE
from dprime.mechanisms import ADJACENCIES
from dprime.metrics import CONDITIONS, OBSERVED
from dprime.option import Option
from dprime.parameters import Check, one_of
from dprime.runs.run import Run
from dprime.seeds import check_seed

LONGEST_FILE = 1_000_000
"""Bytes of a TOML file."""

SEVERAL = "audits"
"""The list of a file that describes several audits."""

RUN_NAME = re.compile(r"[^\W_][\w ,.=-]*")

ADVERSARIES: Mapping[str, tuple[str, ...]] = {
    "di": (),
    "api-access": (),
    "static-poisoning": ("shadows", "outliers"),
    "intermediate-models": ("shadows", "outliers"),
    "adaptive-poisoning": ("pgd_steps", "size"),
    "gradient": ("shadows", "share"),
    "malicious-dataset": ("copies",),
    "opposing-dataset": ("copies",),
    "chosen-weights": ("steps", "learning_rate"),
    "attribute": ("columns", "values", "record"),
    "noise-grid": (),
}
"""The options of each adversary; `dprime.attack` has the adversaries, and needs PyTorch."""


class Word(NamedTuple):
    """An option of an audit, and the check of its value."""

    option: Option
    check: Check


def _text(name: str, value: object) -> str:
    if isinstance(value, str) and value:
        return value
    raise validate.invalid_value(name, value, "a text that is not empty", "give a name")


def _seed(_: str, value: object) -> int:
    return check_seed(value)


def _any(_: str, value: object) -> object:
    return value  # the adversary checks its own options


def _one_of(option: Option, *choices: str) -> Word:
    """One of the option's choices, or of these."""
    listed = option.here(choices=choices or option.choices)
    return Word(listed, one_of(*listed.choices))


_share = validate.inner_probability
_ADJACENCY = options.ADJACENCY.here(
    note="Default: replace for attribute; add-remove with --trainer or --expected-batch-size; "
    "zero-out otherwise."
)
_EVERY = (
    Word(options.ADVERSARY.here(choices=(*ADVERSARIES,)), _text),
    Word(options.DATA, _text),
    Word(options.DATA_DIR, _text),
    Word(options.MAX_RECORDS, partial(validate.whole, least=2)),
    Word(options.RECORD, partial(validate.whole, least=0)),
    Word(options.MODEL, _text),
    Word(options.TRAINER, _text),
    Word(options.EPSILON, validate.at_least_zero),
    Word(options.DELTA, validate.below_one),
    _one_of(_ADJACENCY, *ADJACENCIES),
    Word(options.NOISE_MULTIPLIER, validate.at_least_zero),
    Word(options.SAMPLE_RATE, validate.rate),
    Word(options.EXPECTED_BATCH_SIZE, validate.positive),
    Word(options.STEPS, validate.whole),
    Word(options.LEARNING_RATE, validate.positive),
    Word(options.CLIP_NORM, validate.positive),
    _one_of(options.SENSITIVITY),
    _one_of(options.OPTIMIZER),
    Word(options.MOMENTUM, validate.below_one),
    _one_of(options.LOSS),
    Word(options.TRIALS, partial(validate.whole, least=2)),
    Word(options.BLOCK, validate.whole),
    _one_of(options.METRIC, *OBSERVED, "curve"),
    *(Word(each, validate.number) for each in CONDITIONS if each.table == "conditions"),
    _one_of(options.METHOD, *FOR_TRIALS),
    Word(options.CONFIDENCE, _share),
    _one_of(options.ASSUME, *ASSUMABLE),
    Word(options.BELIEF_LEVEL, _share),
    Word(options.BELIEF_PRIOR, _share),
    Word(options.COLUMNS, _any),
    Word(options.VALUES, _any),
    Word(options.SEED, _seed),
    Word(options.DEVICE, _text),
    Word(options.MEMORY, validate.positive),
)
WORDS: Mapping[str, Word] = {word.option.name: word for word in _EVERY}
"""Every word but those that are tables, in the order of the command's help."""

OF_NOISE = tuple(option.name for option in options.MECHANISM)


def over_file(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What a file has, overridden by the options that were given, each in its table.

    The noise of a training function of the user's own is that of the claim.
    """
    own, tables = "trainer" in given or values.get("trainer"), dict[str, Any]()
    for name, value in given.items():
        claimed = own and name in OF_NOISE and "epsilon" not in given
        table = "claim" if claimed else WORDS[name].option.table
        (tables.setdefault(table, {}) if table else tables)[name] = value
    return merged(values, tables)


def words_in(path: str | Path) -> dict[str, Any]:
    """The words in a TOML file."""
    content = bounded.read_bytes(Path(path), LONGEST_FILE, "give the path of a TOML file")
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:  # of the syntax, a character or a long number
        raise validate.invalid_value("settings", str(path), "TOML", str(error)) from None


def audits_in(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The words of each audit by its name, from those of a file of several.

    Words above the list are common to all audits; each audit's own table overrides them.
    """
    listed = values[SEVERAL]
    tables = isinstance(listed, list) and all(isinstance(each, Mapping) for each in listed)
    if not tables or not listed:
        remedy = f"begin each with [[{SEVERAL}]]"
        raise validate.invalid_value(SEVERAL, listed, "a list of tables", remedy)
    common = {name: value for name, value in values.items() if name != SEVERAL}
    found: dict[str, dict[str, Any]] = {}
    for each in listed:
        name = each.get("name")
        if not isinstance(name, str) or not RUN_NAME.fullmatch(name):
            wanted = "letters, digits, spaces and , . = -, the first a letter or a digit"
            raise validate.invalid_value("name", name, wanted, f"give one in each of [[{SEVERAL}]]")
        if name in found:
            wanted = f"of one of [[{SEVERAL}]] only"
            raise validate.invalid_value("name", name, wanted, "give another")
        found[name] = merged(common, {word: each[word] for word in each if word != "name"})
    return found


def merged(words: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Words, overridden by others, in tables name by name; a value that is no table stays."""
    found = {**words, **over}
    for name, value in over.items():
        if isinstance(value, Mapping) and name in words:
            before = words[name]
            found[name] = {**before, **value} if isinstance(before, Mapping) else before
    return found


def seed_in(path: Path) -> dict[str, int]:
    """The seed of an existing run, for settings that name none."""
    if not path.exists():
        return {}
    with Run.open(path, verify=False) as run:
        return {"seed": run.seed}
