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


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """A process that dies ends the run, and is named: the one in its place might wait for ever.

    It would first be given the tests that the dead one had finished, and say nothing of them.
    """
    if hasattr(config.option, "maxworkerrestart"):
        config.option.maxworkerrestart = "0"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With `--dist loadscope` one process has all tests of Ray, which share a cluster."""
    if config.getvalue("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            of_ray = "/test_ray.py" in nodeid or nodeid.endswith("[ray]")
            return "ray" if of_ray else super()._split_scope(nodeid)

    return Together(config, log)


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Call the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("COLUMNS", "400")
    return partial(called, capsys, monkeypatch)
