"""What an option is, and how commands, routes and files take the options that `options` declares.

    Option ──┬─► takes: the signature of a command (Typer) or a route (FastAPI)
             ├─► read: values from texts
             └─► configured: a field of a configuration

A configuration checks the values. Loads neither NumPy nor Typer.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from dprime import validate

Function = TypeVar("Function", bound=Callable[..., Any])
Texts = Mapping[str, str]
"""Options as they were typed, by their names."""


def whole(name: str, text: str) -> int:
    """A whole number to its last digit, which a seed needs; 1e3 counts as 1000.

    A point is refused: 2.000 is two in one country and two thousand in another.
    """
    if text.isascii() and text.isdecimal():
        return int(text)
    with suppress(validate.InputError):
        value = -1.0 if "." in text else validate.parse(name, text)
        if value >= 0 and value.is_integer():
            return int(value)
    remedy = f"write it in digits, {'without a point' if '.' in text else 'such as 60000'}"
    raise validate.invalid_value(name, text, "a whole number, 0 or more", remedy)


def _same(_: str, text: Any) -> Any:
    return text


def _listed(read: Callable[[str, str], Any]) -> Callable[[str, str], list[Any]]:
    return lambda name, text: [read(name, each.strip()) for each in text.split(",")]


@dataclass(frozen=True)
class Kind:
    """How a text is read, and what stands for it in a help text; a flag has no text."""

    metavar: str
    read: Callable[[str, Any], Any]
    type: type = str


NUMBER = Kind("NUMBER", validate.parse)
SHARE = Kind("NUMBER", validate.share)
NUMBERS = Kind("NUMBER,…", _listed(validate.parse))
SHARES = Kind("NUMBER,…", _listed(validate.share))
WHOLE = Kind("WHOLE NUMBER", whole)
TEXT = Kind("NAME", _same)
TEXTS = Kind("NAME,…", _listed(_same))
INDEXES = Kind("COLUMN,…", _listed(lambda _, text: int(text) if text.isdecimal() else text))
REPEATED = Kind("COLUMN", _same, list[str])  # a column's name may have a comma
FILE, FOLDER, PLACE = (
    Kind(metavar, lambda _, text: Path(text)) for metavar in ("FILE", "FOLDER", "PATH")
)
NAMED_FILE, NAMED_FOLDER = Kind("FILE", _same), Kind("FOLDER", _same)  # kept in a run
FLAG = Kind("", _same, bool)


@dataclass(frozen=True)
class Option:
    """One word of the interface; `--name-with-dashes` on the command line.

    The table is the one in which it stands in a file. A default is shown, and belongs to the
    configuration. `note` is what one command adds to the help.
    """

    name: str
    help: str
    kind: Kind = NUMBER
    default: Any = None
    choices: tuple[str, ...] = ()
    table: str = ""
    note: str = ""
    required: bool = False

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    def here(self, default: Any = None, **other: Any) -> Option:
        """The option as one command has it: its default, choices or note."""
        return replace(self, default=self.default if default is None else default, **other)

    def read(self, text: Any) -> Any:
        return self.kind.read(self.name, text)

    def line(self) -> str:
        """What `--help` says, with choices, default and note.

        >>> Option("sampling", "How", default="poisson", choices=("poisson", "full")).line()
        'How: poisson or full [poisson].'
        """
        words = f": {_either(self.choices)}" if self.choices else ""
        usual = "" if self.default in (None, ()) else f" [{_shown(self.default)}]"
        return f"{self.help}{words}{usual}." + (f" {self.note}" if self.note else "")


def _either(choices: tuple[str, ...]) -> str:
    *most, last = choices
    return f"{', '.join(most)} or {last}" if most else last


def _shown(value: Any) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(map(_shown, value))
    return value if isinstance(value, str) else f"{value:g}".replace("1e-05", "1e-5")


def takes(*options: Option, annotate: Callable[[Option], Any]) -> Callable[[Function], Function]:
    """Give a function that takes keywords the signature that Typer or FastAPI reads.

    Its own positional parameters come first, then the options. Those that were not given, and flags
    that are off, are left out of its keywords.
    """

    def add(function: Function) -> Function:
        @functools.wraps(function)
        def call(*values: Any, **given: Any) -> Any:
            known = {n: x for n, x in given.items() if x is not None and x is not False}
            return function(*values, **known)

        own = inspect.signature(function, eval_str=True).parameters.values()
        before = [each for each in own if each.kind is not inspect.Parameter.VAR_KEYWORD]
        added = [_parameter(option, annotate(option)) for option in options]
        call.__dict__["__signature__"] = inspect.Signature([*before, *added])
        call.__annotations__ = {each.name: each.annotation for each in (*before, *added)}
        call.__dict__["options"] = options
        return call  # type: ignore[return-value]

    return add


def _parameter(option: Option, about: Any) -> inspect.Parameter:
    kept, empty = option.kind.type, inspect.Parameter.empty
    default = False if kept is bool else empty if option.required else None
    of: Any = Annotated[kept | None if default is None else kept, about]
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=of
    )


def read(options: Iterable[Option], texts: Mapping[str, Any]) -> dict[str, Any]:
    """The values of those options that were given."""
    return {each.name: each.read(texts[each.name]) for each in options if each.name in texts}


def configured(option: Option, default: Any = None, check: Any = None, **more: Any) -> Any:
    """A field of a configuration that is an option, too; its class is `Checked`."""
    checked = {} if check is None else {"check": check}
    return field(default=default, metadata={"option": option, **checked}, **more)


def options_of(configuration: type) -> tuple[Option, ...]:
    """The fields of a configuration that are options, with its defaults."""
    named = (each for each in fields(configuration) if "option" in each.metadata)
    return tuple(each.metadata["option"].here(each.default) for each in named)


# Errors -------------------------------------------------------------------------------------------


def nearest(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """The remedy for a name that nothing goes by: those with its words, beginning or letters.

    >>> nearest("--records", ["--record", "--max-records"]), nearest("noise", ["noise_multiplier"])
    ('did you mean --max-records?', 'did you mean noise_multiplier?')
    >>> nearest("-e", ["--steps", "--epochs", "--epsilon"])
    'did you mean --epochs or --epsilon?'
    """
    bare, typed = {each.strip("-"): each for each in known}, name.strip("-")
    words = set(re.split("[-_]+", name.strip("-_")))
    near = [each for each in bare if words <= {*re.split("[-_]+", each.strip("_"))}]
    near = near or [each for each in bare if each.startswith(typed.lower() or "-")]
    near = near or difflib.get_close_matches(typed, bare, 1)
    if near:
        return f"did you mean {_either(tuple(bare[each] for each in near[:3]))}?"
    return otherwise or f"known are {', '.join(bare.values())}."


def check_names(name: str, given: Any, known: Collection[str] | None) -> None:
    """Refuse what is no table, and what is not known, with the name that was likely meant."""
    if not isinstance(given, Mapping):  # a file may hold anything
        wanted = "a table of names and values"
        raise validate.invalid_value(name, given, wanted, "give names and values")
    for one in given:
        if known is not None and one not in known:
            words = f"{name} must be known names, but it is {one!r}: {nearest(one, known)}"
            raise validate.InputError(words)


@contextmanager
def names_of_file(file: Path | None, given: Iterable[str]) -> Iterator[None]:
    """Let errors name words of the file as it does, and only what was given by its flag."""
    try:
        yield
    except validate.InputError as error:
        error.typed = None if file is None else frozenset(given)
        raise


def as_typed(sentence: str, flags: Mapping[str, str]) -> str:
    """A sentence of an error with its names as they are typed.

    >>> as_typed("prior must be below 1, but it is 2: give prior=0.1.", {"prior": "--prior"})
    '--prior must be below 1, but it is 2: give --prior 0.1.'
    """
    subject, must, rest = sentence.partition(" must ")
    if not must:
        subject, rest = "", sentence
    if subject in flags:
        subject = flags[subject]
    elif subject.startswith("Exactly one of "):
        subject = re.sub(r"\w+", lambda word: flags.get(word[0], word[0]), subject)
    value = r"(?<!['\w])(\w+)=([\"']?)([-\w.,]*\w)\2"  # not in what the user typed
    rest = re.sub(value, lambda w: f"{flags[w[1]]} {w[3]}" if w[1] in flags else w[0], rest)
    long_name = r"(?<![-\w'])[a-z]+_[a-z_]+(?![\w'=])"  # no word of a sentence has a line in it
    rest = re.sub(long_name, lambda word: flags.get(word[0], word[0]), rest)
    return f"{subject}{must}{rest}"
