"""What every backend keeps: the same blocks, each once, whatever happens on the way."""

import os
import signal
from collections import deque
from multiprocessing import util
from threading import Timer

import numpy as np
import pytest

from dprime.runs.backends import End, Processes, Task, backend_named
from dprime.runs.run import Run
from dprime.runs.runner import LOSSES, BlocksFailedError, execute
from told import refuses
from works import Heavy, Large, Late, Noted, Unloadable, Unsendable, break_off, die, hang, scores

BLOCKS = 5
RAY = pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])
ELSEWHERE = pytest.mark.parametrize(
    "name", [pytest.param("processes", marks=pytest.mark.slow), RAY]
)
EVERYWHERE = pytest.mark.parametrize("name", ["local", *ELSEWHERE.args[1]])
LIMIT = 4.0
"""Seconds for a block."""


@pytest.fixture
def store(tmp_path):
    with Run.create(tmp_path / "a.run", "audit", {"seed": 7}, blocks=BLOCKS) as made:
        yield made


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "tries"
    place.mkdir()
    return place


def is_whole(store):
    """Every block is there, and is what it must be."""
    expected = np.concatenate([scores(block)["scores"] for block in range(BLOCKS)])
    np.testing.assert_array_equal(store.arrays()["scores"], expected)
    return store.state().complete


@EVERYWHERE
def test_every_block_is_played_once(name, backend, store, folder):
    work = Noted(folder)
    execute(store, work, backend=backend(name))
    assert is_whole(store)
    assert [work.tries(block) for block in range(BLOCKS)] == [1] * BLOCKS
    assert store.events() == []
    counted = store.workers()
    assert sum(each.blocks for each in counted.values()) == BLOCKS
    assert sum(each.trials for each in counted.values()) == 10 * BLOCKS
    assert all(name and worker.seconds >= 0 for name, worker in counted.items())


@EVERYWHERE
def test_an_error_is_tried_again_and_remembered(name, backend, store, folder):
    work = Noted(folder, break_off)
    execute(store, work, backend=backend(name))
    assert is_whole(store)
    assert work.tries(1) == 2
    (event,) = store.events()
    assert (event.block, event.outcome) == (1, End.FAILED.value)
    assert event.message.startswith("ValueError: block 1 is broken (works.py, line")


@EVERYWHERE
def test_a_block_too_large_is_played_in_less_memory(name, backend, store):
    execute(store, Large(), backend=backend(name))
    assert is_whole(store)
    assert [event.outcome for event in store.events()] == [End.MEMORY.value] * 2


@ELSEWHERE
def test_a_worker_that_dies(name, backend, store, folder):
    work = Noted(folder, die)
    execute(store, work, backend=backend(name))
    assert is_whole(store)
    assert work.tries(1) == 2
    assert [(event.block, event.outcome) for event in store.events()] == [(1, End.LOST.value)]


@ELSEWHERE
def test_a_block_that_kills_every_worker_is_left(name, backend, store, folder):
    execute(store, Noted(folder, die, times=100), backend=backend(name))
    state = store.state()
    assert (state.done, state.failed) == (BLOCKS - 1, 1)
    assert len(store.events()) == LOSSES


@ELSEWHERE
def test_a_block_that_hangs(name, backend, store, folder):
    execute(store, Noted(folder, hang), backend=backend(name, time_limit=LIMIT))
    assert is_whole(store)
    (event,) = store.events()
    assert (event.block, event.outcome) == (1, End.LATE.value)
    assert event.message == f"it took longer than {LIMIT:g} s"


@ELSEWHERE
def test_the_time_limit_counts_from_when_a_worker_can_begin(name, backend, store):
    execute(store, Late(), backend=backend(name, time_limit=1.5))
    assert is_whole(store)
    assert store.events() == []


@EVERYWHERE
def test_what_fails_everywhere_stops_the_run(name, backend, store):
    with pytest.raises(BlocksFailedError, match="The first 3 blocks all failed with"):
        execute(store, len, backend=backend(name))
    assert store.state().done == 0


@ELSEWHERE
def test_what_no_worker_can_have_stops_the_run_and_no_block_has_failed(name, backend, store):
    with pytest.raises(BlocksFailedError, match="no such module here"):
        execute(store, Unloadable(), backend=backend(name))
    assert store.pending() == [*range(BLOCKS)]
    assert store.events() == []


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0.0, 0.1, 0.3, 0.6, 0.9])
def test_a_process_that_is_killed_while_it_starts(moment, store, monkeypatch):
    """The work is larger than what a pipe holds without a reader."""
    plain, killed = util.spawnv_passfds, []

    def spawn(path, arguments, descriptors):
        started = plain(path, arguments, descriptors)
        if "--multiprocessing-fork" in arguments and not killed:
            killed.append(started)
            Timer(moment, os.kill, (started, signal.SIGKILL)).start()
        return started

    monkeypatch.setattr(util, "spawnv_passfds", spawn)
    execute(store, Heavy(), backend=Processes(2))
    assert killed
    assert is_whole(store)
    assert {event.outcome for event in store.events()} <= {End.LOST.value}


def test_what_cannot_be_sent():
    with pytest.raises(ValueError, match="work must be made of importable parts, but it is one"):
        next(Processes(1).outcomes(Unsendable(), deque([Task(0)])))


def named(*given, **options):
    return lambda: backend_named(*given, **options)


test_options = refuses(
    {
        "backend be one of local, processes, ray": named("cloud"),
        "workers be left out for local": named(workers=2),
        "workers be at least 1": named("processes", workers=0),
        "time_limit be above 0": named("processes", time_limit=0.0),
    }
)
