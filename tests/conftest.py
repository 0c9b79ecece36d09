"""Property tests draw the same examples every time, and no test depends on the machine's speed."""

import sys
from functools import partial

import pytest
from hypothesis import settings

from commands import called

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


def pytest_make_parametrize_id(val):
    """Functions by their names: their addresses differ between the processes of a run."""
    return val.__qualname__ if callable(val) and hasattr(val, "__qualname__") else None


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Call the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("COLUMNS", "400")
    return partial(called, capsys, monkeypatch)
