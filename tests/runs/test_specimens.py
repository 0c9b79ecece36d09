"""Runs that an earlier build of this minor version kept: they are listed, read and gone on with."""

import numpy as np
import pytest

import dprime
from dprime.attack.trainer import Game
from dprime.membership import shadows
from dprime.runs.run import Run
from specimens.make import COMMANDS, copy_of

FINISHED = [name for name in COMMANDS if name != "interrupted"]


def test_they_are_listed(call, tmp_path):
    for name in COMMANDS:
        copy_of(name, tmp_path)
    listed = call("runs . --json").json
    assert listed["not_runs"] == {}
    states = {each["name"]: each["state"] for each in listed["runs"]}
    assert states == {f"{name}.run": "complete" for name in FINISHED} | {
        "interrupted.run": "incomplete"
    }


@pytest.mark.parametrize("name", FINISHED)
def test_the_finished_ones_are_read_and_nothing_is_played_again(call, tmp_path, monkeypatch, name):
    path = copy_of(name, tmp_path)
    for owner, played in ((Game, "play"), (shadows, "_trained")):
        monkeypatch.setattr(owner, played, lambda *_, **__: pytest.fail("played again"))
    with Run.open(path) as run:
        sentence = run.result["sentence"] if name != "inference" else run.result["verdict"]
    assert sentence in call("resume", path).words
    assert sentence in call("report", path, *(["--json"] if name == "finished" else [])).words


def test_the_interrupted_one_ends_as_the_finished_one(call, tmp_path, monkeypatch):
    """A patch release refuses to go on with what another played in part, as the file says which."""
    finished, path = (copy_of(name, tmp_path) for name in ("finished", "interrupted"))
    with Run.open(path) as run:
        assert run.done() == [0]
        monkeypatch.setattr(dprime, "__version__", run.versions["dprime"])
    assert (
        call("resume", path).words.split("Kept in")[0]
        == (call("resume", finished).words.split("Kept in")[0])
    )
    with Run.open(path) as run, Run.open(finished) as other:
        np.testing.assert_allclose(run.arrays()["score"], other.arrays()["score"], rtol=1e-4)
