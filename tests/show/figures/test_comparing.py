import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from dprime.show.figures import comparing


def test_no_two_pencils_look_alike_and_none_like_a_certified_limit():
    looks = [(pencil.ink, pencil.dash) for pencil in comparing.PENCILS]
    assert len(set(looks)) == len(looks)
    assert comparing.SOLID not in {dash for _, dash in looks}
    assert {pencil.ink for pencil in comparing.pencils("curves", 3)} == {"first", "second", "ink"}
    assert len({pencil.dash for pencil in comparing.pencils("curves", 3)}) == 3  # in grey


@pytest.mark.parametrize("count", [0, len(comparing.PENCILS) + 1])
def test_lines_that_could_not_be_told_apart_are_refused(count):
    with pytest.raises(ValueError, match=f"curves must be few enough to tell apart.*{count} lines"):
        comparing.pencils("curves", count)


@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=8), st.integers(1, 9))
def test_the_key_stands_above_every_number(values, rows):
    strip = comparing.Strip.of(values, rows)
    assert strip.bottom < min(values)
    assert max(values) < min(strip.heights)
    assert max(strip.heights) < strip.top
    assert all(strip.bottom <= tick <= min(strip.heights) for tick in strip.ticks)


@given(st.floats(-1.0, 1.0), st.floats(1e-4, 2.0))
def test_ticks_are_round_and_evenly_spaced(low, span):
    ticks = comparing.round_numbers(low, low + span)
    assert 2 <= len(ticks) <= 7
    steps = [b - a for a, b in itertools.pairwise(ticks)]
    assert max(steps) == pytest.approx(min(steps), rel=1e-4)
    assert f"{steps[0]:.0e}"[0] in "125"


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8))
def test_words_keep_apart_and_in_order(heights):
    found = comparing.apart(heights, gap=0.1, bottom=0.0)
    for one, other in itertools.combinations(range(len(heights)), 2):
        assert abs(found[one] - found[other]) >= 0.1 - 1e-9
        if heights[one] < heights[other]:
            assert found[one] < found[other]
    assert min(found) >= 0.0


def test_words_that_are_apart_already_stay():
    assert comparing.apart([0.9, 0.2, 0.5], gap=0.1, bottom=0.0) == [0.9, 0.2, 0.5]


@given(st.integers(1, 200), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_luck_is_the_mean_number_of_intervals_above_the_truth(count, confidence):
    expected = binom.mean(count, (1 - confidence) / 2)
    assert expected - 1e-6 <= comparing.by_luck(count, confidence) < expected + 1


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_printed_interval_is_not_narrower_than_the_interval(one, other):
    low, high = sorted((one, other))
    least, most = (float(part) for part in comparing.share_range(low, high)[:-2].split(" % to "))
    assert least <= 100 * low * (1 + 1e-12)
    assert most >= 100 * high * (1 - 1e-12)


def test_an_interval_encloses_its_value():
    comparing.check_interval("accuracy", 0.1, 0.1, 0.1)
    with pytest.raises(ValueError, match="low, accuracy, high must be ascending"):
        comparing.check_interval("accuracy", 0.2, 0.1, 0.3)
    with pytest.raises(ValueError, match="high must be a finite number"):
        comparing.check_interval("accuracy", 0.2, 0.3, float("nan"))
