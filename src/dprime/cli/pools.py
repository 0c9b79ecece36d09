"""What the commands on pools share: the pool, where its records come from, and what is printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.console import Console

from dprime import validate
from dprime.cli.options import number_option, text_option
from dprime.data import Split, load
from dprime.data.loaders import names

Options = dict[str, tuple[Any, str]]
"""By their names: the default, None if there is none to show, and the help."""

SHARED: Options = {
    "data": ("digits", "The data set's name"),
    "data_dir": (None, "The folder of the data sets' files"),
    "device": ("cpu", "cpu or cuda"),
}
MODELS = "linear, dense-64-32, conv-16-32 or module:function"


def numbers_of(config: type) -> Options:
    """The numbers among the fields of a configuration that are options."""
    named = (each for each in fields(config) if each.metadata.get("help"))
    return {each.name: (each.default, each.metadata["help"]) for each in named}


def declared(words: Options, numbers: Options) -> dict[str, Any]:
    """Options whose help texts name their defaults."""
    made = {}
    for name, (default, told) in words.items():
        usual = "" if default is None else f"; {default} if not given"
        made[name] = text_option(f"{told}{usual}.")
    for name, (default, told) in numbers.items():
        usual = "" if default is None else f" [{default:g}]"
        made[name] = number_option(f"{told}{usual}.")
    return made


def asked(words: Options, given: Mapping[str, str | None]) -> dict[str, Any]:
    """What was given for these options, else their defaults."""
    return {name: given[name] or default for name, (default, _) in words.items()}


def pool_named(name: str, folder: str | None, option: str, count: int | None) -> Split:
    """The distinct records of a data set's training part, or the first of them; and its test part.

    A count that does not fit is refused in the name of its option.
    """
    validate.one_of("data", name, names())
    split = load(name, folder)
    pool = split.train.distinct()
    if count is not None:
        if not 2 <= count <= len(pool):
            remedy = f"{name} has {len(pool):,} distinct ones"
            raise validate.invalid_value(option, count, f"from 2 to {len(pool):,}", remedy)
        pool = pool.take(range(count))
    return Split(pool, split.test)


def check_charts(name: str, folder: Path) -> None:
    """Make the folder of charts before anything is trained."""
    from dprime.show.needs import check_drawing  # noqa: PLC0415  only charts need it

    check_drawing()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        wanted = f"a folder to write to ({error.strerror})"
        raise validate.invalid_value(name, str(folder), wanted, "give another place") from None


def note(words: str, as_json: bool) -> None:
    """Say where something was written, where no JSON is printed."""
    if not as_json:
        Console().print(words, style="dim", highlight=False, soft_wrap=True)
