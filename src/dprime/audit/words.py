"""The words of an audit: their checks, their help on the command line, and files of them.

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

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from dprime import validate
from dprime.audit.estimators import FOR_TRIALS
from dprime.audit.estimators.base import ASSUMABLE
from dprime.audit.lower import USUAL_METHOD
from dprime.mechanisms import ADJACENCIES
from dprime.metrics import OBSERVED
from dprime.parameters import Check, one_of
from dprime.runs.run import Run
from dprime.seeds import check_seed

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
    """A word with its check and its table in a file; `help` makes it an option, read as `kind`."""

    check: Check
    help: str = ""
    kind: type = str
    table: str = ""


def _text(name: str, value: object) -> str:
    if isinstance(value, str) and value:
        return value
    raise validate.invalid_value(name, value, "a text that is not empty", "give a name")


def _seed(_: str, value: object) -> int:
    return check_seed(value)


_training = partial(Word, kind=float, table="training")
_condition = partial(Word, validate.number, kind=float, table="conditions")
_share = validate.inner_probability

WORDS: Mapping[str, Word] = {
    "adversary": Word(
        _text,
        f"Who attacks: {', '.join([*ADVERSARIES][:-1])} or {[*ADVERSARIES][-1]}; "
        "malicious-dataset if not given.",
    ),
    "data": Word(_text, "The data set's name, e.g. digits, mnist."),
    "data_dir": Word(_text, "The folder of the data sets' files."),
    "records": Word(partial(validate.whole, least=2), "Use only the first N records.", int),
    "record": Word(partial(validate.whole, least=0), "The index of the attacked record.", int),
    "model": Word(_text, "linear, dense-64-32, conv-16-32 or module:function."),
    "trainer": Word(_text, "Your own training function, module:function."),
    "epsilon": Word(
        validate.at_least_zero, "The claim, at --delta; the noise is chosen for it.", float, "claim"
    ),
    "delta": Word(validate.below_one, "δ at which ε is read [1e-5].", float),
    "adjacency": Word(
        one_of(*ADJACENCIES),
        "add-remove, zero-out or replace; replace for attribute, else add-remove for a trainer of "
        "your own or with --expected-batch-size, zero-out without.",
    ),
    "noise_multiplier": _training(validate.at_least_zero, "Noise over the clipping norm."),
    "sample_rate": _training(validate.rate, "Sampling rate."),
    "expected_batch_size": _training(validate.positive, "Divisor of every sum, if it is public."),
    "steps": _training(validate.whole, "Training steps.", kind=int),
    "learning_rate": _training(validate.positive, "Learning rate."),
    "clip_norm": _training(validate.positive, "C, the clipping norm."),
    "sensitivity": _training(one_of("global", "local"), "global, or local (not DP).", kind=str),
    "optimizer": _training(one_of("sgd", "adam")),
    "momentum": _training(validate.below_one),
    "loss": _training(one_of("cross-entropy", "squared-error", "binary-cross-entropy")),
    "trials": Word(partial(validate.whole, least=2), "Trials in each world [1000].", int),
    "block": Word(validate.whole, "Trials that are stored together.", int),
    "metric": Word(
        one_of(*OBSERVED, "curve"),
        f"What decides: {', '.join(OBSERVED)} or curve; the whole curve if not given.",
    ),
    "fpr": _condition("For --metric tpr."),
    "prior": _condition("For --metric precision or success."),
    "min_tpr": _condition("For --metric precision."),
    "method": Word(
        one_of(*FOR_TRIALS),
        f"Of the lower bound: {', '.join(FOR_TRIALS)}; {USUAL_METHOD} if not given.",
    ),
    "confidence": Word(_share, "Of the lower bound [0.95].", float),
    "assume": Word(one_of(*ASSUMABLE), "Accept an assumption that the method rests on: gaussian."),
    "belief": Word(_share, "For di: the belief that counts [0.9].", float),
    "belief_prior": Word(_share, "For di: belief before looking [0.5].", float),
    "seed": Word(_seed, "Random seed of the whole audit; not for a model that you release.", int),
    "device": Word(_text, "cpu or cuda."),
    "memory": Word(validate.positive, "GB that training may take [2].", float),
}
"""Every word but those that are tables, in the order of the command's help."""


def check_names(name: str, given: Any, known: Iterable[str] | None = None) -> None:
    """Refuse what is no table, and what is not known, with the name that was likely meant."""
    if not isinstance(given, Mapping):  # a file may hold anything
        remedy = "give names and values"
        raise validate.invalid_value(name, given, "a table of names and values", remedy)
    known = tuple(given if known is None else known)
    for one in given:
        if one not in known:
            near = difflib.get_close_matches(one, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}."
            raise validate.InputError(f"{name} must be known names, but it is {one!r}: {hint}")


def words_in(path: str | Path) -> dict[str, Any]:
    """The words in a TOML file."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        wanted = f"a file to read ({error.strerror})"
        remedy = "give the path of a TOML file"
        raise validate.invalid_value("settings", str(path), wanted, remedy) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise validate.invalid_value("settings", str(path), "TOML", str(error)) from None


def audits_in(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The words of each audit by its name, from those of a file of several.

    What stands above the audits is common to them; in its own table each says what it has instead.
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
    """Words, and others that win over them, in tables name by name; what is no table stays."""
    found = {**words, **over}
    for name, value in over.items():
        if isinstance(value, Mapping) and name in words:
            before = words[name]
            found[name] = {**before, **value} if isinstance(before, Mapping) else before
    return found


def seed_in(path: Path) -> dict[str, int]:
    """The seed that a run was begun with, for settings that name none; nothing where it is new."""
    if not path.exists():
        return {}
    with Run.open(path, verify=False) as run:
        return {"seed": run.seed}
