"""The command line: parse, call, print. Numbers come from the package, words from `text`."""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer

import dprime
from dprime.cli.commands import OnDemand, UsageError, listed
from dprime.option import nearest
from dprime.text import printable
from dprime.validate import InputError

app = typer.Typer(
    cls=OnDemand,
    help="What differential privacy really buys: risks from parameters, parameters from risks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

BAD_INPUT = 2
"""Exit code for every error that the user can mend."""

FULL = "the output must fit on the disk, but it is full: free some space."
NO_MEMORY = "dprime must fit into memory, but there is too little: free some, or raise the limit."
LACKING = re.compile(
    "failed to map segment|can(no|')t allocate memory|out of memory", re.IGNORECASE
)
"""Words of libraries that cannot be loaded or cannot compute for lack of memory."""

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
    command without a word; output that does not fit on the disk, or work that does not fit into
    memory, with a sentence. Messages about work in progress are dropped where nothing takes them.
    """
    _open_streams()
    try:
        try:
            code = _call()
        finally:
            print(end="", flush=True)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EPIPE) or error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more
        code = _failed(FULL) if error.errno == errno.ENOSPC else BAD_INPUT
    sys.exit(code)


class _Unheard(io.FileIO):
    """Standard error: what cannot be written there is dropped, and the work goes on."""

    def write(self, data: Any) -> int:
        with suppress(OSError):
            super().write(data)
        return len(data)


def _open_streams() -> None:
    """Open what is closed, so that no other file takes its number; replace unknown characters."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w" if number else "r"))  # noqa: SIM115
    if (error := sys.stderr) is sys.__stderr__ and error is not None:
        raw = io.BufferedWriter(_Unheard(error.fileno(), "w", closefd=False))
        sys.stderr = io.TextIOWrapper(raw, error.encoding, line_buffering=True)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _call() -> int:
    try:
        code = app(standalone_mode=False, prog_name="dprime")
    except UsageError as error:
        sentence = _usage(error)  # empty where no command was given, and the help is shown
        return _failed(sentence) if sentence else BAD_INPUT
    except InputError as error:
        return _failed(str(error))
    except typer.Abort:
        return 130
    except (MemoryError, ImportError, OSError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not LACKING.search(str(error)):
            raise
        return _failed(NO_MEMORY)
    return code if isinstance(code, int) else 0


def _usage(error: Any) -> str:
    """What was typed wrongly, the nearest that is known, and where to read more."""
    params = error.ctx.command.params
    help_of = f"see {error.ctx.command_path} --help"
    flags = ["--help", *(name for each in params for name in each.opts if name[:2] == "--")]
    typed, missing = getattr(error, "option_name", None), getattr(error, "param", None)
    if typed and typed not in flags:
        near = nearest(typed, flags, help_of)
        sentence = f"No such option: {typed}" + ("" if near == help_of else f": {near}")
    elif missing is not None:
        name = missing.metavar if missing.param_type_name == "argument" else missing.opts[0]
        sentence = f"{name} must be given, but it is missing"
    else:
        sentence = error.format_message().rstrip(".")
        if found := re.search(r"extra argument\S* \((.*)\)", sentence):
            needed = "must be an option or its value, but it is neither"
            sentence = f"{found[1]} {needed}; options begin with two hyphens"
    if sentence.endswith("?"):
        return f"{sentence} {help_of.capitalize()}."
    return sentence and f"{sentence}: {help_of}."


def _failed(sentence: str) -> int:
    print(f"Error: {printable(' '.join(sentence.split()))}", file=sys.stderr)
    return BAD_INPUT
