"""Options that several commands have."""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console

from dprime import text, validate

if TYPE_CHECKING:
    from dprime.runs.backends import Backend

FOLDER = "runs"
"""Where runs are kept unless another place is given."""

Command = TypeVar("Command", bound=Callable[..., None])
Read = TypeVar("Read")

INTERRUPTED = 130
"""Exit code after Ctrl-C."""

REFUTED = 1
"""Exit code where a claim is refuted."""


def number_option(help_text: str) -> Any:
    """A number, which may be a fraction such as 256/60000."""
    return typer.Option(help=help_text, show_default=False, metavar="NUMBER")


def text_option(help_text: str) -> Any:
    """A name or a text; help texts name the defaults themselves."""
    return typer.Option(help=help_text, show_default=False)


FailOn = Annotated[
    str,
    text_option(
        "Exit with code 1 if the claim is refuted, or also if inconclusive; refuted if not given."
    ),
]
Where = Annotated[
    str, text_option("Where the work is done: here (if not given), processes or ray.")
]
Workers = Annotated[
    str | None, number_option("For processes: how many; one for each core if not given.")
]
Address = Annotated[
    str | None,
    text_option("For ray: auto, host:port or ray://…; one is started here if not given."),
]
TimeLimit = Annotated[
    str | None, number_option("For processes and ray: seconds after which a block is given anew.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def number_options(helps: Mapping[str, str]) -> dict[str, Any]:
    """A number for each of these names, with its help."""
    return {name: number_option(help_text) for name, help_text in helps.items()}


def with_options(options: Mapping[str, Any], *, before: str) -> Callable[[Command], Command]:
    """Give a command that takes keywords these options, before the parameter of this name.

    An option that is not given arrives as None.
    """

    def add(command: Command) -> Command:
        own = list(inspect.signature(command, eval_str=True).parameters.values())[:-1]
        place = [parameter.name for parameter in own].index(before)
        kind = inspect.Parameter.KEYWORD_ONLY
        added = [
            inspect.Parameter(name, kind, default=None, annotation=Annotated[str | None, option])
            for name, option in options.items()
        ]
        parameters = [each.replace(kind=kind) for each in (*own[:place], *added, *own[place:])]
        command.__dict__["__signature__"] = inspect.Signature(parameters)
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        return command

    return add


def typed(options: Mapping[str, str | None]) -> dict[str, str]:
    """The options that were given."""
    return {name: text for name, text in options.items() if text is not None}


def whole(name: str, text: str) -> int:
    """A whole number to its last digit, which a seed needs; 1e3 counts as 1000."""
    if text.isascii() and text.isdecimal():
        return int(text)
    value = validate.parse(name, text)
    if value >= 0 and value.is_integer():
        return int(value)
    raise validate.invalid_value(name, text, "a whole number, 0 or more", "give for example 10")


def numbers_given(
    texts: Mapping[str, str | None], names: Iterable[str], whole_ones: Iterable[str] = ()
) -> dict[str, float]:
    """The numbers among these names that options give; some of them are whole."""
    return {
        name: (whole if name in whole_ones else validate.parse)(name, text)
        for name, text in typed({name: texts[name] for name in names}).items()
    }


def if_given(read: Callable[[str, str], Read], name: str, text: str | None) -> Read | None:
    """What an option says, read in this way; None without it."""
    return None if text is None else read(name, text)


def look_here() -> None:
    """Let Python find the user's own modules in the folder where the command is called."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)


def check_torch(work: str) -> None:
    """Say what is missing before an import fails with less to go on."""
    if find_spec("torch") is None:
        lacking = f"installed for {work}"
        raise validate.invalid_input("PyTorch", "missing", lacking, text.install("train"))


def backend_asked(
    name: str, workers: str | None, address: str | None, time_limit: str | None, device: str
) -> Backend:
    """Where the work is done, as the options say."""
    from dprime.runs.backends import backend_named  # noqa: PLC0415  only where it is asked for

    return backend_named(
        name,
        workers=if_given(whole, "workers", workers),
        address=address,
        time_limit=if_given(validate.parse, "time-limit", time_limit),
        device=device,
    )


def free_path(*words: str) -> Path:
    """A name in the folder of runs that no other run has."""
    stem = "-".join([*words, f"{datetime.now():%Y%m%d-%H%M%S}"])
    names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
    paths = (Path(FOLDER) / f"{name}.run" for name in names)
    return next(path for path in paths if not path.exists())


@contextmanager
def interruptible(path: Path) -> Iterator[None]:
    """Say how a run goes on that is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        then = f"Go on with: dprime resume {path}" if path.exists() else "Nothing was kept."
        Console(stderr=True).print(f"Stopped. {then}", highlight=False, soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None


def check_fail_on(name: str) -> None:
    """Refuse another outcome than those that a pipeline may stop on."""
    validate.one_of("fail-on", name, ("refuted", "inconclusive"))


def exit_on(outcomes: Iterable[str], fail_on: str) -> None:
    """Exit code 1 where a claim is refuted, or where an audit could not tell and that counts."""
    if any(outcome in ("refuted", fail_on) for outcome in outcomes):
        raise typer.Exit(REFUTED)
