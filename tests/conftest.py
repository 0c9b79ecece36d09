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


def pytest_collection_modifyitems(items):
    """With `--dist loadgroup` modules and classes stay together, and so do the tests of Ray."""
    for item in items:
        group = "ray" if item.get_closest_marker("ray") else item.nodeid.rpartition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Call the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("COLUMNS", "400")
    return partial(called, capsys, monkeypatch)
