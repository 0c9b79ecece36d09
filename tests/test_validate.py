import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprime import validate

CHECKS = [
    validate.number,
    validate.positive,
    validate.at_least_zero,
    validate.rate,
    validate.probability,
    validate.inner_probability,
    validate.below_one,
    validate.whole,
]

ANYTHING = st.one_of(
    st.floats(),
    st.integers(),
    st.text(max_size=8),
    st.none(),
    st.booleans(),
    st.lists(st.integers(), max_size=2),
    st.complex_numbers(),
    st.decimals(),
    st.fractions(),
)


@given(value=ANYTHING, check=st.sampled_from(CHECKS))
def test_a_value_is_returned_as_a_finite_number_or_refused_in_one_sentence(value, check):
    try:
        result = check("dial", value)
    except ValueError as error:
        sentence = str(error)
        assert sentence.startswith("dial must be ")
        assert sentence.endswith(".")
        assert " but it is " in sentence
        assert ": give " in sentence
    else:
        assert math.isfinite(result)
        assert result == float(value)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (validate.positive, [1e-300, 5, np.float32(2.0)], [0, -1, math.inf, math.nan, "1", True]),
        (validate.at_least_zero, [0, 3.5], [-1e-300, None]),
        (validate.rate, [1, 1e-9], [0, 1.0000001, -0.5]),
        (validate.probability, [0, 1, 0.5], [-1e-9, 1.1]),
        (validate.inner_probability, [0.5, 1e-12], [0, 1]),
        (validate.below_one, [0, 0.99], [1, 1.5]),
        (validate.whole, [1, 7.0, np.int64(4), 10**9], [0, 1.5, -2, "3", False, math.nan]),
    ],
)
def test_edges(check, good, bad):
    for value in good:
        assert check("dial", value) == value
    for value in bad:
        with pytest.raises(ValueError, match="dial must be"):
            check("dial", value)


def test_text_from_the_command_line():
    for text, value in (("1e-5", 1e-5), ("256/60000", 256 / 60000), (" 3 ", 3.0), ("-2", -2.0)):
        assert validate.parse("dial", text) == value
    for text in ("", "abc", "1/0", "1//2", "1/2/3", "0x10", "½"):
        with pytest.raises(ValueError, match=r"dial must be a number, but it is .*: give a number"):
            validate.parse("dial", text)


def test_one_of_and_exactly_one():
    assert validate.one_of("mode", "a", ("a", "b")) == "a"
    with pytest.raises(ValueError, match="mode must be one of a, b, but it is 'c': give for"):
        validate.one_of("mode", "c", ("a", "b"))
    with pytest.raises(ValueError, match="mode must be one of a, b, but it is 3"):
        validate.one_of("mode", 3, ("a", "b"))
    assert validate.exactly_one("x, y", {"x": None, "y": 0.0}, "drop one") == "y"
    with pytest.raises(ValueError, match="Exactly one of x, y must be given, but got x=1 and y=2"):
        validate.exactly_one("x, y", {"x": 1, "y": 2}, "drop one")
    with pytest.raises(ValueError, match="but got none of them: drop one"):
        validate.exactly_one("x, y", {"x": None}, "drop one")
