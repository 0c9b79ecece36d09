"""Processes beside the server: their order, their limits, and what is left when they die."""

import os
import signal
import time

import pytest

from dprime.mechanisms import DPSGD
from dprime.privacy_loss import CostlyError
from dprime.web.ranges import CURVE, Setting
from dprime.web.workers import BusyError, TooLongError, Work, Workers

QUICK = Work(0, 30.0)
SETTING = Setting(DPSGD(1.1, 0.004, 14_000), "add-remove", 1)
PID = "__import__('os').getpid()"


@pytest.fixture(scope="module")
def workers():
    found = Workers(1)
    yield found
    found.stop()


@pytest.fixture
def ask(workers):
    return lambda function, value, work=QUICK: workers.submit(work, function, value).result(60)


def test_answers_come_from_elsewhere_and_are_the_same(ask):
    assert ask(eval, PID) != os.getpid() == Workers(0).submit(QUICK, eval, PID).result()
    assert ask(Setting.advantage, SETTING) == SETTING.curve().advantage()
    with pytest.raises(ValueError, match="invalid literal") as caught:
        ask(int, "x")
    assert "Traceback" in caught.value.__notes__[0]


def test_the_most_urgent_is_next_and_the_slow_are_no_hindrance(workers):
    done = []
    held = workers.submit(QUICK, time.sleep, 0.5)
    for turn in (3, 1, 2):
        future = workers.submit(Work(turn, 30.0), abs, -turn)
        future.add_done_callback(lambda future: done.append(future.result()))
    slow = workers.submit(Work(9, 30.0, slow=True), time.sleep, 20.0)
    last = workers.submit(Work(8, 30.0), abs, -8)
    assert last.result(30) == 8
    assert (held.done(), slow.done(), done) == (True, False, [1, 2, 3])


def test_what_takes_too_long_is_ended_with_its_process(ask):
    before = ask(eval, PID)
    with pytest.raises(TooLongError, match=r"more than the 0\.2 seconds"):
        ask(eval, "__import__('time').sleep(60)", Work(0, 0.2))
    assert ask(eval, PID) != before
    for _ in range(100):
        if not os.path.exists(f"/proc/{before}"):
            break
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{before}")


@pytest.mark.parametrize("killed", ["idle", "at work"])
def test_a_process_that_dies_is_replaced(ask, workers, killed):
    pid = ask(eval, PID)
    lost = workers.submit(QUICK, time.sleep, 60.0) if killed == "at work" else None
    time.sleep(0.2)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(BusyError, match="died"):
        (lost or workers.submit(QUICK, abs, -1)).result(60)
    assert ask(eval, PID) != pid


@pytest.mark.parametrize("lost", ["__import__('os')._exit(3)", "lambda: 0"])
def test_what_cannot_come_back_takes_nothing_else_with_it(ask, lost, capfd):
    with pytest.raises(BusyError, match="died"):
        ask(eval, lost)
    assert ask(abs, -1) == 1


def test_a_task_has_limits_of_work_and_memory(ask):
    """What the command line computes in seconds and hundreds of megabytes is refused at once."""
    large = Setting(DPSGD(1.1, 0.999999, 1), "add-remove", 10_000)
    with pytest.raises(CostlyError, match="use a smaller group or more noise"):
        ask(Setting.curve, large, CURVE)
    with pytest.raises(MemoryError):
        ask(bytearray, 2_000_000_000)
    everything = Setting(DPSGD(0.3, 0.5, 1_000_000), "add-remove", 10)
    assert ask(Setting.curve, everything, CURVE).advantage() == pytest.approx(1.0)
    before = ask(eval, PID)
    assert ask(eval, "len(bytearray(b'x' * 500_000_000))") == 500_000_000
    assert ask(eval, PID) != before, "a process that has grown gives its memory back"


def test_a_queue_has_an_end_and_nobody_waits_for_ever(monkeypatch):
    monkeypatch.setattr("dprime.web.workers.MOST_WAITING", 3)
    monkeypatch.setattr("dprime.web.workers.LITTLE", 2)
    workers = Workers(1)
    workers.submit(QUICK, abs, 1).result(60)
    held = workers.submit(QUICK, time.sleep, 60.0)
    while not held.running():
        time.sleep(0.01)
    assert workers.idle()
    futures = [workers.submit(QUICK, abs, -1) for _ in range(4)]
    assert not workers.idle()
    with pytest.raises(BusyError, match="too much to do"):
        futures.pop().result(0)
    workers.stop()
    with pytest.raises(BusyError):
        held.result(10)
    assert all(each.cancelled() for each in futures)
    with pytest.raises(BusyError, match="ends"):
        workers.submit(QUICK, abs, 1).result(10)
    workers.stop()
