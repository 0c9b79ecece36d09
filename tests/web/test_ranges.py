"""Ranges of settings, and answers that are computed once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from dprime.mechanisms import DPSGD
from dprime.request import MECHANISM
from dprime.web.options import SLIDERS
from dprime.web.ranges import AHEAD, POINT, SHARED, Answers, Setting
from dprime.web.workers import BusyError, TooLongError, Workers, within

SETTING = Setting(DPSGD(1.1, 0.004, 14_000), "add-remove", 1)


def of(setting, name):
    return getattr(setting.mechanism, name)


@pytest.mark.parametrize("over", MECHANISM)
def test_a_range_is_read_at_positions_and_at_the_settings_own_value(over):
    assert {*SHARED[over]} <= {*SLIDERS[over].positions}
    odd = SETTING.moved(over, 0.37 if over != "steps" else 37)
    assert odd in odd.over(over)
    assert [of(each, over) for each in odd.over(over)] == sorted({*SHARED[over], of(odd, over)})


def test_where_nothing_is_certified_the_trivial_limit_stands():
    """For groups no bound is proved when records are replaced; no attacker beats 1."""
    unproved = Setting(DPSGD(1.1, 0.004, 100), "replace", 2)
    with pytest.raises(ValueError, match="no bound is proved"):
        unproved.curve()
    assert unproved.advantage() == 1.0


def test_neighbours_are_one_and_two_moves_away():
    found = SETTING.neighbours()
    assert len(found) == len(set(found)) == 12

    def places(setting):
        return [SLIDERS[name].positions.index(of(setting, name)) for name in MECHANISM]

    for each in found:
        moved = sorted(abs(a - b) for a, b in zip(places(each), places(SETTING), strict=True))
        assert moved in ([0, 0, 1], [0, 0, 2])
    odd = SETTING.moved("noise_multiplier", 1.2345)  # no position of the slider
    assert {of(each, "noise_multiplier") for each in odd.neighbours()} == {1.2345}
    assert len(Setting(DPSGD(0.3, 1.0, 1), "add-remove", 1).neighbours()) == 6


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


def test_the_newest_answers_are_kept_and_none_computed_ahead_without_processes():
    calls, answers = [], Answers(Workers(0), kept=2)
    answers.ahead(AHEAD, calls.append, ["ahead"])
    for value in ("a", "b", "a", "c", "a", "b"):
        answers.of(POINT, calls.append, value)
    assert calls == ["a", "b", "c", "b"]


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
    answers.ahead(AHEAD, work, ["wanted"])
    assert answers._ahead == [], "else the next question would take it from whoever waits"
    held.set()
    for name in ("wanted", "last", "dropped"):  # the last is computed once somebody wants it
        answers.of(POINT, work, name)
    assert done == ["first", "wanted", "last", "dropped"]


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

    for clock, begun in ((None, [7]), (None, [7]), (float("inf"), [7, 7])):
        if clock:
            monkeypatch.setattr("time.monotonic", lambda: float("inf"))
        with pytest.raises(TooLongError, match="more than the 3 seconds"):
            answers.of(POINT, late, 7)
        assert calls == begun


def test_at_the_deadline_whoever_asks_is_told_and_the_task_is_dropped(answers):
    held, calls = threading.Event(), []
    answers.begin(POINT, held.wait, [5])
    with within(0.05), pytest.raises(BusyError, match="too much to do"):
        answers.of(POINT, calls.append, 1)
    held.set()
    answers.of(POINT, calls.append, 2)
    assert calls == [2]
