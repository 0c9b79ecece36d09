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


SMALL_MODELS = {"attack", "attributes", "audit", "canaries", "monitor", "test_work.py"}


@pytest.fixture(autouse=True, scope="module")
def one_thread(request):
    """Small models: one thread is faster than several, and adds up in the order of workers."""
    if SMALL_MODELS.isdisjoint(request.path.parts):
        yield
        return
    from dprime.data import devices

    with devices.one_thread():
        yield


@pytest.fixture(autouse=True)
def small_trainings(request, monkeypatch):
    """Small trainings run side by side, as large ones do in use; attacks begin with a seed."""
    package = request.path.parent.name
    if package == "train" and request.path.name != "test_slices.py":
        monkeypatch.setattr("dprime.train.slices.WORTH_A_WORKER", 1)
    if package == "attacks_on_us":
        import torch

        torch.manual_seed(0)


@pytest.fixture
def private():
    """Makes tiny private trainings with the real Opacus."""
    from private_training import Maker

    return Maker()


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Call the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("COLUMNS", "400")
    return partial(called, capsys, monkeypatch)
