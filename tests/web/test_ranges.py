"""Ranges of settings, and answers that are computed once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from dprime.mechanisms import DPSGD
from dprime.request import MECHANISM
from dprime.web.options import SLIDERS
from dprime.web.ranges import AHEAD, POINT, SHARED, Answers, Setting, advantage, neighbours
from dprime.web.workers import BusyError, TooLongError, Workers, within

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


class InTurn:
    """One thread that does what it is given, in its turn, where the test can see it."""

    idle = staticmethod(lambda: True)

    def __init__(self):
        self.thread = ThreadPoolExecutor(1)

    def submit(self, _, function, value):
        return self.thread.submit(function, value)


@pytest.fixture
def answers():
    return Answers(InTurn(), kept=10)


def test_an_answer_is_computed_once(answers):
    calls = []
    answers.begin(POINT, calls.append, [1, 2, 2])
    answers.ahead(AHEAD, calls.append, [2, 3])
    for value in (1, 2, 3):
        answers.of(POINT, calls.append, value)
    assert calls == [1, 2, 3]


def test_the_newest_answers_are_kept():
    calls, answers = [], Answers(Workers(0), kept=2)
    for value in ("a", "b", "a", "c", "a", "b"):
        answers.of(POINT, calls.append, value)
    assert calls == ["a", "b", "c", "b"]


def test_without_processes_nothing_is_computed_ahead():
    calls, here = [], Answers(Workers(0), kept=2)
    here.ahead(AHEAD, calls.append, [1])
    assert calls == []


def test_what_is_asked_for_comes_before_what_is_computed_ahead(answers):
    done, started, held = [], threading.Event(), threading.Event()

    def work(name):
        if name == "first":
            started.set()
            held.wait(5)
        done.append(name)

    answers.ahead(AHEAD, work, ["first", "dropped", "wanted"])
    started.wait(5)
    answers.begin(POINT, work, ["wanted"])
    held.set()
    answers.of(POINT, work, "wanted")
    answers.of(POINT, work, "last")
    assert done == ["first", "wanted", "last"]
    answers.of(POINT, work, "dropped")
    assert done[-1] == "dropped"  # it is computed once somebody wants it


def test_what_somebody_waits_for_is_not_computed_ahead(answers):
    """Else the next question would take it from them."""
    held = threading.Event()
    answers.begin(POINT, held.wait, [5])
    answers.begin(POINT, abs, [-1])
    answers.ahead(AHEAD, abs, [-1, -2])
    assert len(answers._ahead) == 1
    held.set()
    assert answers.of(POINT, abs, -1) == 1


@pytest.mark.parametrize("error", [ValueError("not yet"), BusyError("died")])
def test_an_error_is_not_kept_and_bad_luck_tried_twice(answers, error):
    calls = []

    def fails_once(value):
        calls.append(value)
        if len(calls) == 1:
            raise error
        return value

    if isinstance(error, ValueError):
        with pytest.raises(ValueError, match="not yet"):
            answers.of(POINT, fails_once, 7)
    assert answers.of(POINT, fails_once, 7) == 7


def test_what_takes_too_long_is_not_begun_again_at_once(answers, monkeypatch):
    calls = []

    def late(value):
        calls.append(value)
        raise TooLongError(3.0)

    for _ in range(3):
        with pytest.raises(TooLongError, match="more than the 3 seconds"):
            answers.of(POINT, late, 7)
    assert calls == [7]
    monkeypatch.setattr("time.monotonic", lambda: float("inf"))
    with pytest.raises(TooLongError):
        answers.of(POINT, late, 7)
    assert calls == [7, 7]


def test_at_the_deadline_whoever_asks_is_told_and_the_task_is_dropped(answers):
    held, calls = threading.Event(), []
    answers.begin(POINT, held.wait, [5])
    with within(0.05), pytest.raises(BusyError, match="too much to do"):
        answers.of(POINT, calls.append, 1)
    held.set()
    answers.of(POINT, calls.append, 2)
    assert calls == [2]
