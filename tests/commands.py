"""Calls of the command line, and what they end with."""

import json
import re
import shlex
import sys
from typing import NamedTuple

import pytest

from dprime import cli
from dprime.options import DECLARED

TYPED = {name: option.flag for name, option in DECLARED.items()}
"""How the names of options are typed."""


BEGUN = re.compile(r"\A\S[^\n]* …\n")
"""What a command says before it loads much."""


class Ended(NamedTuple):
    """What a call ended with: exit code, standard output, standard error after its beginning."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """The one JSON object that a call printed which did all that it should."""
        assert (self.code, self.err) == (0, "")
        return as_json(self.out)

    @property
    def words(self):
        """What it printed, whatever the width of a line."""
        return " ".join(self.out.replace("│", " ").split())


def called(capsys, monkeypatch, line, *words):
    """Call the command line with the words of a line, and with others as they are."""
    monkeypatch.setattr(sys, "argv", ["dprime", *shlex.split(line), *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    out, err = capsys.readouterr()
    return Ended(stop.value.code, out, re.sub(BEGUN, "", err))


def interrupted_at(number, real):
    """A function that Ctrl-C ends at this call of it, and the list of its calls."""
    calls = []

    def called_on(*args, **given):
        calls.append(args)
        if len(calls) == number:
            raise KeyboardInterrupt
        return real(*args, **given)

    return called_on, calls


def as_json(text):
    """One JSON object without NaN and Infinity."""
    return json.loads(text, parse_constant=pytest.fail)


def refused(ended, words):
    """Exit code 2, and one sentence with these words."""
    code, out, err = ended
    assert (code, out) == (2, "")
    assert words in err
    assert err.startswith("Error: ")
    assert err.endswith((".\n", "?\n"))
    assert err.count("\n") == 1
