"""Ranges of settings, and what processes beside the server compute of them."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dprime.mechanisms import DPSGD
from dprime.request import MECHANISM
from dprime.web.options import SLIDERS
from dprime.web.ranges import SHARED, Answers, Setting, advantage, neighbours, once

SETTING = Setting.of(DPSGD(1.1, 0.004, 14_000), "add-remove", 1)


def test_shared_positions_are_positions_of_the_sliders():
    for name, positions in SHARED.items():
        assert set(positions) <= set(SLIDERS[name].positions)


@pytest.mark.parametrize("over", MECHANISM)
def test_a_range_holds_the_settings_own_value(over):
    odd = SETTING.moved(over, 0.37 if over != "steps" else 37)
    found = odd.over(over)
    assert odd in found
    assert [getattr(each, over) for each in found] == sorted({*SHARED[over], getattr(odd, over)})


def test_where_nothing_is_certified_the_trivial_limit_stands():
    """For groups no bound is proved when records are replaced; no attacker beats 1."""
    unproved = Setting.of(DPSGD(1.1, 0.004, 100), "replace", 2)
    with pytest.raises(ValueError, match="no bound is proved"):
        unproved.curve()
    assert advantage(unproved) == 1.0


def test_neighbours_are_one_and_two_moves_away():
    found = neighbours(SETTING)
    assert len(found) == len(set(found)) == 12
    places = [SLIDERS[name].positions.index(getattr(SETTING, name)) for name in MECHANISM]
    for each in found:
        there = [SLIDERS[name].positions.index(getattr(each, name)) for name in MECHANISM]
        moved = sorted(abs(a - b) for a, b in zip(there, places, strict=True))
        assert moved in ([0, 0, 1], [0, 0, 2])


def test_a_setting_off_the_sliders_has_neighbours_along_the_others():
    odd = SETTING.moved("noise_multiplier", 1.2345)
    assert {each.noise_multiplier for each in neighbours(odd)} == {1.2345}
    assert len(neighbours(Setting(0.3, 1.0, 1, "add-remove", 1))) == 6


def test_who_asks_while_it_is_computed_waits_for_that_one():
    begun, calls = threading.Event(), []

    def slow(key):
        calls.append(key)
        begun.wait(5)
        return [key]

    ask = once(slow, kept=2)
    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(ask, "a") for _ in range(4)]
        begun.set()
        assert all(each.result() is answers[0].result() for each in answers)
    assert calls == ["a"]
    for key in ("b", "a", "c", "a", "b"):
        ask(key)
    assert calls == ["a", "b", "c", "b"], "the two newest are kept"


def test_an_error_of_a_curve_is_not_kept():
    calls = []

    def fails_once(key):
        calls.append(key)
        if len(calls) == 1:
            raise ValueError("not yet")
        return key

    ask = once(fails_once, kept=2)
    with pytest.raises(ValueError, match="not yet"):
        ask(1)
    assert ask(1) == 1


@pytest.fixture(scope="module")
def beside():
    found = Answers(1)
    yield found
    found.stop()


def test_answers_come_from_elsewhere_and_are_the_same(beside):
    assert beside.of(eval, "__import__('os').getpid()") != os.getpid()
    assert beside.of(advantage, SETTING) == advantage(SETTING) == SETTING.curve().advantage()
    for _ in range(2):
        with pytest.raises(ValueError, match="invalid literal"):
            beside.of(int, "x")


def test_without_processes_everything_is_computed_here():
    here, calls = Answers(0), []
    assert here.of(eval, "__import__('os').getpid()") == os.getpid()
    here.ahead(calls.append, [1])
    assert calls == []
    here.stop()


@pytest.fixture
def beside_in_a_thread():
    found = Answers(0)
    found._pool = ThreadPoolExecutor(1)
    yield found
    found.stop()


def test_an_answer_is_computed_once(beside_in_a_thread):
    calls, answers = [], beside_in_a_thread
    answers.begin(calls.append, [1, 2, 2])
    answers.ahead(calls.append, [2, 3])
    for value in (1, 2, 3):
        answers.of(calls.append, value)
    assert calls == [1, 2, 3]


def test_what_is_asked_for_comes_before_what_is_computed_ahead(beside_in_a_thread):
    done, started, held, answers = [], threading.Event(), threading.Event(), beside_in_a_thread

    def work(name):
        if name == "first":
            started.set()
            held.wait(5)
        done.append(name)

    answers.ahead(work, ["first", "dropped", "wanted"])
    started.wait(5)
    answers.begin(work, ["wanted"])
    held.set()
    answers.of(work, "wanted")
    answers.of(work, "last")
    assert done == ["first", "wanted", "last"]
    answers.of(work, "dropped")
    assert done[-1] == "dropped"  # it is computed once somebody wants it


def test_processes_that_die_lose_no_answer():
    answers = Answers(1)
    pid = answers.of(eval, "__import__('os').getpid()")
    answers.begin(eval, ["__import__('time').sleep(60)"])
    answers.begin(advantage, [SETTING])
    os.kill(pid, signal.SIGKILL)
    assert answers.of(advantage, SETTING) == advantage(SETTING)
    assert answers.of(eval, "__import__('os').getpid()") == os.getpid()
    answers.stop()
    answers.stop()


def test_processes_that_die_while_nobody_asks_are_not_missed():
    answers = Answers(1)
    pid = answers.of(eval, "__import__('os').getpid()")
    os.kill(pid, signal.SIGKILL)
    for _ in range(100):  # until the pool has noticed
        if answers._pool._broken:
            break
        time.sleep(0.05)
    answers.begin(advantage, [SETTING])
    answers.ahead(advantage, neighbours(SETTING))
    assert answers.of(advantage, SETTING) == advantage(SETTING)
    answers.stop()


def test_an_error_is_not_kept(beside_in_a_thread):
    calls = []

    def fails_once(value):
        calls.append(value)
        if len(calls) == 1:
            raise ValueError("not yet")
        return value

    with pytest.raises(ValueError, match="not yet"):
        beside_in_a_thread.of(fails_once, 7)
    assert beside_in_a_thread.of(fails_once, 7) == 7


def test_what_somebody_waits_for_is_not_computed_ahead(beside_in_a_thread):
    """Else the next question would take it from them."""
    held, answers = threading.Event(), beside_in_a_thread
    answers.begin(held.wait, [5])
    answers.begin(abs, [-1])
    answers.ahead(abs, [-1, -2])
    assert len(answers._ahead) == 1
    held.set()
    assert answers.of(abs, -1) == 1
