import itertools
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from dprime.show import wording
from dprime.text import odds

numbers = st.floats(1e-9, 1e6)


def read(text):
    return Decimal(text.replace(",", "").removesuffix(" %"))


@given(numbers)
def test_a_ceiling_is_not_below_and_a_floor_not_above(value):
    exact = Decimal(value)
    slack = exact * Decimal("1e-13")
    assert exact - slack <= read(wording.up(value)) <= exact * Decimal("1.011")
    assert exact * Decimal("0.989") <= read(wording.down(value)) <= exact + slack
    assert read(wording.down(-value)) <= -exact + slack


@given(st.floats(0.0, 1.0))
def test_shares_are_rounded_to_the_side_they_say(share):
    exact = 100 * Decimal(share)
    slack = exact * Decimal("1e-13")
    assert exact - slack <= read(wording.percent_up(share)) <= 100
    assert 0 <= read(wording.percent_down(share)) <= exact + slack


@given(st.floats(1e-9, 1 - 1e-9))
def test_less_than_certain_is_never_printed_as_certain(share):
    assert wording.percent(share) not in ("0 %", "100 %")
    assert wording.percent_down(share) != "100 %"
    assert wording.percent_up(share) != "0 %"


def test_ends_and_exponents():
    assert [wording.percent(x) for x in (0.0, 1.0)] == ["0 %", "100 %"]
    assert [wording.percent_up(x) for x in (0.0, 1.0, 1.5)] == ["0 %", "100 %", "100 %"]
    assert wording.up(float("inf")) == "∞"
    for write in (wording.up, wording.down, wording.near):
        readable = (1e-6, 0.00012345, 0.5, 1.0, 12.0, 120.0, 123456.0)
        assert not any("e" in write(value) for value in readable)


@given(st.floats(1e-7, 0.0999))
def test_a_chance_is_never_told_smaller_than_it_is(chance):
    assert 1 / read(odds(chance).split()[2]) >= Decimal(chance) * Decimal("0.999999")


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_printed_interval_is_not_narrower_than_the_interval(one, other):
    low, high = sorted((one, other))
    least, most = (float(part) for part in wording.share_range(low, high)[:-2].split(" % to "))
    assert least <= 100 * low * (1 + 1e-12)
    assert most >= 100 * high * (1 - 1e-12)


@given(st.integers(1, 200), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_luck_is_the_mean_number_of_intervals_above_the_truth(count, confidence):
    expected = binom.mean(count, (1 - confidence) / 2)
    assert expected - 1e-6 <= wording.by_luck(count, confidence) < expected + 1


@given(st.integers(0, 200))
def test_what_is_read_aloud_begins_and_ends_with_the_first_and_the_last(count):
    places = wording.some_of(count)
    assert len(places) == min(count, wording.READ_ALOUD)
    assert places[:1] + places[-1:] == ([0, count - 1] if count else [])
    assert all(low < high for low, high in itertools.pairwise(places))
