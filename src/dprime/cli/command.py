"""What the commands share: their options, where they compute, how they print and how they end."""

from __future__ import annotations

import itertools
import json
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table
from typer.core import TyperCommand

from dprime import option, options, text, validate
from dprime.cli.commands import UsageError, without_types
from dprime.option import Option

if TYPE_CHECKING:
    from dprime.runs.backends import Backend

FOLDER = Path(options.RUNS)
"""Where runs are kept unless another place is given."""

HERE = Path()
"""Where runs are looked for, and in its own folder of runs."""

FAILED = 1
"""Exit code where a claim or a limit is not kept, or a check finds a mistake."""

INTERRUPTED = 130
"""Exit code after Ctrl-C."""


def _annotate(each: Option) -> Any:
    return typer.Option(
        each.flag,
        help=escape(each.line()),
        metavar=each.kind.metavar,
        show_default=False,
        autocompletion=(lambda: [*each.choices]) if each.choices else None,
    )


def argument(metavar: str, words: str) -> Any:
    """What a command takes without a name before it."""
    return typer.Argument(help=words, metavar=metavar)


ALSO = {"path": "run", "settings": "file", "attack": "attacks", "pool": "data"}
"""What errors call a parameter of a command besides its own name."""

takes = partial(option.takes, annotate=_annotate)
"""Gives a command its options."""


class Command(TyperCommand):
    """A command whose errors name options as people type them."""

    def get_params(self, ctx: Any) -> list[Any]:
        return without_types(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """`[OPTIONS] RUN [OTHER]...`, as manuals write it."""
        arguments = [each for each in self.params if each.param_type_name == "argument"]
        dots = ["" if each.nargs == 1 else "..." for each in arguments]
        named = [f"{each.metavar}" if each.required else f"[{each.metavar}]" for each in arguments]
        return ["[OPTIONS]", *map("".join, zip(named, dots, strict=True))]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            error.ctx = error.ctx or ctx  # an option without its value does not know its command
            raise

    def invoke(self, ctx: Any) -> Any:
        flags = {x.name: x.opts[0] for x in self.params if x.param_type_name == "option"}
        places = {x.name: str(x.metavar) for x in self.params if x.name not in flags}
        every = {**places, **flags}
        also = {word: every[name] for word, name in ALSO.items() if name in every}
        try:
            return super().invoke(ctx)
        except validate.InputError as error:
            if (typed := error.typed) is not None:
                flags = {name: flags[name] for name in flags if name in typed}
            error.args = (option.as_typed(str(error), {**also, **places, **flags}),)
            raise


# How it prints ------------------------------------------------------------------------------------


def show(record: Mapping[str, Any], given: Mapping[str, Any], *texts: RenderableType) -> None:
    """A result as one JSON object where --json is given, else as tables and sentences."""
    if "json" in given:
        print(json.dumps(record, indent=2, allow_nan=False))
        return
    for each in texts:
        Console(markup=False).print(_in_print(each), highlight=False)


def _in_print(shown: RenderableType) -> RenderableType:
    """A table or a text without the characters that a terminal obeys."""
    if isinstance(shown, Table):
        shown.title, shown.caption = (
            text.printable(each) if isinstance(each, str) else each
            for each in (shown.title, shown.caption)
        )
        for column in shown.columns:
            column.header = _in_print(column.header)
            column._cells = [*map(_in_print, column._cells)]
    return text.printable(shown) if isinstance(shown, str) else shown


def say(words: str, style: str = "", *, error: bool = False) -> None:
    """A line as it is, whatever is in it."""
    shown = text.printable(words)
    Console(stderr=error).print(shown, style=style, highlight=False, markup=False, soft_wrap=True)


def starting(words: str, given: Mapping[str, Any]) -> None:
    """Say at once what takes a while to begin, where no JSON is printed."""
    if "json" not in given:
        say(f"{words} …", "dim", error=True)


def note(words: str, given: Mapping[str, Any]) -> None:
    """Say where something was written, where no JSON is printed."""
    if "json" not in given:
        say(words, "dim")


# How it ends --------------------------------------------------------------------------------------


@contextmanager
def interruptible(then: Callable[[], str]) -> Iterator[None]:
    """Say what was kept where Ctrl-C, or the system's request to end, stops the work."""
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler) if main else None
    try:
        yield
    except KeyboardInterrupt:
        say(f"Stopped{then()}", error=True)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        if main:
            signal.signal(signal.SIGTERM, before)


def how_to_resume(path: Path) -> str:
    """How an interrupted run goes on."""
    from dprime.runs.run import Run  # noqa: PLC0415  it needs NumPy
    from dprime.runs.runner import code_of  # noqa: PLC0415

    if not path.exists():
        return ". Nothing was kept."
    with Run.open(path, verify=False) as run:
        allowed = " --allow-code" if code_of(run) else ""
    return f". Go on with: dprime resume {path}{allowed}"


def exit_on(outcomes: Iterable[str], given: Mapping[str, str]) -> None:
    """Exit code 1 where a claim is refuted, or where an audit could not tell and that counts."""
    if any(outcome in ("refuted", given.get("fail_on")) for outcome in outcomes):
        raise typer.Exit(FAILED)


def check_fail_on(given: Mapping[str, str]) -> None:
    """Refuse another outcome than those that a pipeline may stop on, before anything is trained."""
    validate.one_of("fail_on", given.get("fail_on", "refuted"), options.FAIL_ON.choices)


# Where it computes --------------------------------------------------------------------------------


def check_torch(work: str) -> None:
    """Refuse work that needs PyTorch where it is missing, with the command that installs it."""
    if find_spec("torch") is None:
        lacking = f"installed for {work}"
        raise validate.invalid_input("PyTorch", "missing", lacking, text.install("train"))


def backend_of(given: Mapping[str, str], device: str) -> Backend:
    """Where the work is done, as the options say; the user's own modules are found there."""
    from dprime.runs.backends import backend_named  # noqa: PLC0415  only where it is asked for

    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    chosen = option.read(options.BACKENDS, given)
    return backend_named(chosen.pop("backend", "local"), device=device, **chosen)


def path_of(given: Mapping[str, str], *words: str) -> Path:
    """The run's file that was given, or a name in the folder of runs that no other run has."""
    if "run" in given:
        return Path(given["run"])
    stem = "-".join([*words, f"{datetime.now():%Y%m%d-%H%M%S}"])
    names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
    paths = (FOLDER / f"{name}.run" for name in names)
    return next(path for path in paths if not path.exists())
