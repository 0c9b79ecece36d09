"""Property tests draw the same examples every time, and no test depends on the machine's speed."""

import sys

import pytest
from hypothesis import settings

from dprime import cli

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Run the command line in an empty folder: (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("COLUMNS", "140")

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["dprime", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        shown = capsys.readouterr()
        return stop.value.code, shown.out, shown.err

    return run
