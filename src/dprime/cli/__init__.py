"""The command line: parse, call, print. Numbers come from the package, words from `text`."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Annotated, Any

import typer

import dprime
from dprime.cli.commands import OnDemand, listed
from dprime.option import nearest
from dprime.text import printable
from dprime.validate import InputError

app = typer.Typer(
    cls=OnDemand,
    help="What differential privacy really buys: risks from parameters, parameters from risks.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

UsageError: Any = typer.BadParameter.__bases__[0]
"""Unknown options and the like; Typer does not export the class itself."""

BAD_INPUT = 2
"""Exit code for every error that the user can mend."""


UNWRITTEN = (errno.ENOSPC, errno.EPIPE)
"""The disk is full, or nobody reads."""

listed(app)


def _version(show: bool) -> None:
    if show:
        print(f"dprime {dprime.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version.", callback=_version, is_eager=True, metavar=""
        ),
    ] = False,
) -> None: ...


def main() -> None:
    """Run the command line; a mistake of the user ends in one sentence and exit code 2.

    Characters that the terminal lacks are replaced. Output that nobody reads any more ends the
    command without a word, output that does not fit on the disk with a sentence.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        try:
            _call()
        finally:
            print(end="", flush=True)
    except OSError as error:
        if error.errno not in UNWRITTEN or error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more
        if error.errno == errno.ENOSPC:
            _fail("the output must fit on the disk, but it is full; free some space.")
        sys.exit(BAD_INPUT)


def _call() -> None:
    try:
        code = app(standalone_mode=False, prog_name="dprime")
    except UsageError as error:
        called = "dprime" if error.ctx is None else error.ctx.command_path
        sentence, otherwise = error.format_message().rstrip("."), f"see {called} --help."
        if not sentence:  # no command was given, and the help is shown
            sys.exit(BAD_INPUT)
        if typed := getattr(error, "option_name", None):
            given = [name for each in error.ctx.command.params for name in each.opts]
            flags = [name for name in given if name.startswith("--")]
            _fail(f"No such option: {typed}: {nearest(typed, flags, otherwise)}")
        _fail(f"{sentence}: {otherwise}")
    except InputError as error:
        _fail(str(error))
    except typer.Abort:
        sys.exit(130)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _fail(sentence: str) -> None:
    print(f"Error: {printable(' '.join(sentence.split()))}", file=sys.stderr)
    sys.exit(BAD_INPUT)
