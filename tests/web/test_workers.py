import os
import signal
import time

import pytest

from dprime.mechanisms import DPSGD
from dprime.web.sweeps import Point, Sweeps, advantage, advantages
from dprime.web.workers import Workers

POINT = Point(DPSGD(1.1, 0.004, 14_000), "add-remove", 1)


@pytest.fixture(scope="module")
def workers():
    found = Workers(2)
    found.start()
    found.wait(60)
    yield found
    found.stop()


def test_calls_are_made_elsewhere(workers):
    assert workers.running
    assert workers.call(os.getpid) != os.getpid()


def test_their_numbers_are_the_same(workers):
    assert workers.call(advantages, [POINT]) == [advantage(POINT)]


def test_an_error_comes_back_as_it_is(workers):
    with pytest.raises(ValueError, match="invalid literal"):
        workers.call(int, "x")


def test_sweeps_are_computed_by_them(workers):
    sweeps = Sweeps(workers)
    points = [Point(DPSGD(z, 0.01, 100), "replace", 1) for z in (1.0, 2.0, 3.0, 4.0, 5.0)]
    assert sum(len(sent.result()) for sent in sweeps.ask(points)) == 5
    assert sweeps.ask(points) == []
    assert [sweeps.advantage(point) for point in points] == [advantage(point) for point in points]


def test_without_processes_everything_is_computed_here():
    workers = Workers(0)
    workers.start()
    assert not workers.running
    assert workers.call(os.getpid) == os.getpid()
    sweeps = Sweeps(workers)
    assert sweeps.ask([POINT]) == []
    assert sweeps.advantage(POINT) == advantage(POINT)


def test_processes_that_die_lose_no_answer():
    workers = Workers(1)
    workers.start()
    workers.wait(60)
    sweeps = Sweeps(workers)
    pid = workers.call(os.getpid)
    sleeping = workers.sent(time.sleep, 60)
    sent = sweeps.ask([POINT])
    os.kill(pid, signal.SIGKILL)
    assert sweeps.advantage(POINT) == advantage(POINT)
    assert sent[0].exception() is not None
    assert sleeping.exception() is not None
    assert workers.call(os.getpid) == os.getpid()
    workers.stop()


def test_stopping_twice_does_no_harm():
    workers = Workers(1)
    workers.start()
    workers.stop()
    workers.stop()
    assert workers.sent(abs, 1) is None
