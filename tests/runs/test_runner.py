"""The runner: what fails is recorded, what ends is stored, and a kill costs one block at most."""

import multiprocessing
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dprime.runs.run import Run
from dprime.runs.runner import BlocksFailedError, counting, describe, execute
from works import play_noting, scores


@pytest.fixture
def store(tmp_path):
    with Run.create(tmp_path / "a.run", "audit", {"seed": 7}, blocks=6) as made:
        yield made


class Work:
    """Runs blocks and remembers which; those in `broken` fail as often as it says."""

    def __init__(self, broken=(), error=lambda block: ValueError(f"block {block} is broken")):
        self.broken, self.error = Counter(dict(broken)), error
        self.ran = []

    def __call__(self, block):
        self.ran.append(block)
        if self.broken[block] > 0:
            self.broken[block] -= 1
            raise self.error(block)
        return scores(block)


def test_every_block_runs_once_in_order(store):
    work, seen = Work(), []
    execute(store, work, on_block=lambda b, state: seen.append((b, state.done, store.busy())))
    assert work.ran == [0, 1, 2, 3, 4, 5]
    assert seen == [(b, b + 1, True) for b in range(6)]  # the lock is held between blocks too
    expected = np.concatenate([scores(b)["scores"] for b in range(6)])
    np.testing.assert_array_equal(store.arrays()["scores"], expected)
    execute(store, work)
    assert len(work.ran) == 6


def test_a_bar_counts_the_trials_of_each_block_that_ends(store):
    store.finish(0, scores(0), seconds=1.0)
    told = []
    execute(store, Work(broken={1: 1}), on_block=counting(store, told.append))
    assert told == [0, 10, 10, 10, 10, 10]


def test_a_block_that_keeps_failing_is_tried_at_the_end_and_left_with_its_error(store):
    store.fail(0, "OSError: earlier")
    work = Work(broken={1: 9, 4: 2})
    execute(store, work, attempts=3)
    assert work.ran == [1, 2, 3, 4, 5, 0, 1, 4, 1, 4]
    assert store.pending() == [1]
    assert store.state().last_error.startswith("ValueError: block 1 is broken (test_runner.py, ")
    assert store.state().last_error.endswith(": raise self.error(block))")
    execute(store, work, attempts=7)
    assert work.ran[10:] == [1, 1, 1, 1, 1, 1, 1]
    assert store.state().complete


def test_running_out_of_memory_is_a_failure_also_when_a_block_is_stored(store, monkeypatch):
    execute(store, Work(broken={2: 9}, error=lambda _: MemoryError()))
    assert store.pending() == [2]
    assert store.state().last_error.startswith("MemoryError (test_runner.py, line ")

    def no_room(*_):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(Run, "finish", no_room)
        execute(store, scores)
    assert store.state().last_error.startswith("MemoryError (test_runner.py, line ")
    execute(store, scores)
    assert store.state().complete


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interruption_is_not(store, kind):
    work = Work(broken={2: 1}, error=lambda _: kind())
    with pytest.raises(kind):
        execute(store, work)
    assert store.done() == [0, 1]
    assert store.state().failed == 0
    assert not store.busy()
    execute(store, work)
    assert work.ran == [0, 1, 2, 2, 3, 4, 5]
    assert store.state().complete


def test_what_cannot_be_stored_is_a_failure_of_the_block(store):
    def work(block):
        return {"scores": [1.0]} if block == 3 else scores(block)

    execute(store, work)
    assert store.pending() == [3]
    assert "arrays must be NumPy arrays of trials" in store.state().last_error


def test_what_fails_everywhere_stops_at_once(store):
    work = Work(broken=dict.fromkeys(range(6), 9), error=lambda _: OSError("no such\n data"))
    with pytest.raises(BlocksFailedError) as caught:
        execute(store, work)
    assert work.ran == [0, 1, 2]
    assert str(caught.value).startswith(
        "The first 3 blocks all failed with OSError: no such data (test_runner.py, line "
    )
    assert store.pending() == [3, 4, 5, 0, 1, 2]
    work.broken.clear()
    execute(store, work)
    assert store.state().complete


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        ({0: 1, 1: 1, 3: 1}, lambda _: OSError("same")),  # one of the first three succeeds
        ({0: 1, 1: 1, 2: 1}, lambda block: OSError(f"other {block}")),
        ({0: 3, 1: 3}, lambda _: OSError("same")),  # two blocks: tried as often as asked
    ],
)
def test_other_failures_do_not_stop_the_run(store, broken, error):
    execute(store, Work(broken, error), attempts=4)
    assert store.state().complete


def test_a_full_disk_is_not_a_failure_of_the_block(store):
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(ValueError, match="disk is full"):
        execute(store, lambda _: {"scores": np.zeros(100_000)})
    assert store.pending() == [0, 1, 2, 3, 4, 5]
    assert store.state().failed == 0


def test_a_callback_that_breaks_costs_no_block(store):
    def broken(block, state):
        raise RuntimeError("no display")

    with pytest.raises(RuntimeError, match="no display"):
        execute(store, scores, on_block=broken)
    assert store.done() == [0]
    assert not store.busy()


def test_what_is_refused(store):
    with pytest.raises(ValueError, match="attempts must be at least 1, but it is 0"):
        execute(store, scores, attempts=0)
    elsewhere = pytest.raises(ValueError, match="being worked on elsewhere")
    with Run.open(store.path) as other, other.working(), elsewhere:
        execute(store, scores)
    assert store.done() == []


def test_errors_in_a_line():
    with pytest.raises(ValueError, match="could not convert") as caught:
        float("x" * 1000)
    text = describe(caught.value)
    assert text.startswith("ValueError: could not convert string to float: 'xxx")
    assert "… (test_runner.py, line " in text
    assert text.endswith(': float("x" * 1000))')
    assert describe(ValueError()) == "ValueError"
    with pytest.raises(ValueError, match="not aligned") as caught:
        np.linalg.multi_dot([np.zeros((2, 3))] * 3)
    assert "test_runner.py" in describe(caught.value)  # the place named is in the user's code


TESTS = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["works", "pytest"])  # a fresh process has them already


@pytest.fixture
def played(monkeypatch):
    """Plays a run in a process, and kills it at a moment of choice; 0, or minus the signal."""
    monkeypatch.setenv("PYTHONPATH", TESTS)

    def play(path, blocks, kill_after=None):
        process = FORKS.Process(target=play_noting, args=(path, blocks))
        process.start()
        process.join(kill_after)
        process.kill()
        process.join()
        return process.exitcode

    return play


def executions(path):
    """How often each block was begun."""
    side = Path(f"{path}.txt")
    return Counter(int(line) for line in side.read_text().split()) if side.exists() else Counter()


def finished(path):
    """The finished blocks of a run that may not be there yet."""
    if not path.exists():
        return set()
    with Run.open(path) as store:
        return set(store.done())


def bytes_of(path):
    with Run.open(path) as store:
        return {name: array.tobytes() for name, array in store.arrays().items()}


KILLS_IN_CREATION, BLOCKS = 20, 60


@pytest.mark.parametrize("kills", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_kills_at_random_moments_lose_nothing_and_repeat_nothing(tmp_path, kills, played):
    """No block that was seen done runs again, and the end is that of a run left in peace."""
    draw = np.random.default_rng(3)
    peace, path = tmp_path / "peace.run", tmp_path / "killed.run"
    assert played(peace, BLOCKS) == 0
    killed, done, ran_when_done = 0, set(), {}
    while killed < kills:
        code = played(path, BLOCKS, kill_after=draw.uniform(0.0, 0.1))
        counts = executions(path)
        for block in done:
            assert counts[block] == ran_when_done[block], f"block {block} ran again"
        now = finished(path)
        assert now >= done, "a finished block was lost"
        ran_when_done |= {block: counts[block] for block in now - done}
        done = now
        if code == 0:  # finished before the kill: begin another
            assert bytes_of(path) == bytes_of(peace)
            path, done, ran_when_done = tmp_path / f"{killed}.run", set(), {}
        else:
            assert code == -signal.SIGKILL
            killed += 1
    assert played(path, BLOCKS) == 0
    assert bytes_of(path) == bytes_of(peace)
    assert set(executions(path)) == set(range(BLOCKS))
    assert sum(executions(path).values()) <= BLOCKS + kills


def test_kills_during_creation_leave_a_whole_run_or_none(tmp_path, played):
    assert played(tmp_path / "peace.run", 1) == 0
    start = time.perf_counter()
    assert played(tmp_path / "timed.run", 1) == 0
    whole = time.perf_counter() - start
    seen = Counter()
    for number, moment in enumerate(np.linspace(0.0, 0.8 * whole, KILLS_IN_CREATION)):
        path = tmp_path / f"{number}.run"
        played(path, 1, kill_after=moment)
        seen[path.exists()] += 1
        if path.exists():
            with Run.open(path) as store:
                assert store.state().blocks == 1
        assert played(path, 1) == 0
        assert bytes_of(path) == bytes_of(tmp_path / "peace.run")
        assert not Path(f"{path}.new").exists()
    assert seen[False] > 0, "no kill came before the run was there"
