from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprime.show.figures import words
from dprime.text import odds

numbers = st.floats(1e-9, 1e6)


def read(text):
    return Decimal(text.replace(",", "").removesuffix(" %"))


@given(numbers)
def test_a_ceiling_is_not_below_and_a_floor_not_above(value):
    exact = Decimal(value)
    slack = exact * Decimal("1e-13")
    assert exact - slack <= read(words.up(value)) <= exact * Decimal("1.011")
    assert exact * Decimal("0.989") <= read(words.down(value)) <= exact + slack


@given(st.floats(0.0, 1.0))
def test_shares_are_rounded_to_the_side_they_say(share):
    exact = 100 * Decimal(share)
    slack = exact * Decimal("1e-13")
    assert exact - slack <= read(words.percent_up(share)) <= 100
    assert 0 <= read(words.percent_down(share)) <= exact + slack


@given(st.floats(1e-9, 1 - 1e-9))
def test_less_than_certain_is_never_printed_as_certain(share):
    assert words.percent(share) not in ("0 %", "100 %")
    assert words.percent_down(share) != "100 %"
    assert words.percent_up(share) != "0 %"


@pytest.mark.parametrize("write", [words.up, words.down, words.near])
def test_no_exponent_where_numbers_are_readable(write):
    for value in (1e-6, 0.00012345, 0.5, 1.0, 12.0, 120.0, 123456.0):
        assert "e" not in write(value)


def test_certainty_and_nothing():
    assert [words.percent(x) for x in (0.0, 1.0)] == ["0 %", "100 %"]
    assert [words.percent_up(x) for x in (0.0, 1.0, 1.5)] == ["0 %", "100 %", "100 %"]
    assert words.up(float("inf")) == "∞"
    assert words.down(-0.5) == "0"


@given(st.floats(1e-7, 0.0999))
def test_a_chance_is_never_told_smaller_than_it_is(chance):
    assert 1 / read(odds(chance).split()[2]) >= Decimal(chance) * Decimal("0.999999")


def test_a_chance_that_is_no_rarity_is_a_share():
    assert odds(0.25) == "25 % of the time"
