"""Values are checked on their way in (`validate`), and made plain on their way out (`plain`)."""

import json
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprime import validate
from dprime.plain import to_json
from told import refuses

CASES = [
    (validate.number, [-2, 0.5], [math.inf, math.nan, "1", True]),
    (validate.positive, [1e-300, 5, np.float32(2.0)], [0, -1, math.inf, math.nan, "1", True]),
    (validate.at_least_zero, [0, 3.5], [-1e-300, None]),
    (validate.rate, [1, 1e-9], [0, 1.0000001, -0.5]),
    (validate.probability, [0, 1, 0.5], [-1e-9, 1.1]),
    (validate.inner_probability, [0.5, 1e-12], [0, 1]),
    (validate.below_one, [0, 0.99], [1, 1.5]),
    (validate.whole, [1, 7.0, np.int64(4), 10**9], [0, 1.5, -2, "3", False, math.nan]),
]


@pytest.mark.parametrize(("check", "good", "bad"), CASES)
def test_edges(check, good, bad):
    for value in good:
        assert check("dial", value) == value
    for value in bad:
        with pytest.raises(validate.InputError) as refused:
            check("dial", value)
        assert refused.value.parameter == "dial"


KINDS = [float, int, str, bool, complex, Decimal, Fraction, type(None), list[int]]
ANYTHING = st.sampled_from(KINDS).flatmap(st.from_type)


@given(value=ANYTHING, check=st.sampled_from([check for check, _, _ in CASES]))
def test_a_value_is_returned_as_a_finite_number_or_refused_in_one_sentence(value, check):
    try:
        result = check("dial", value)
    except validate.InputError as error:
        sentence, requirement, remedy = str(error), error.requirement, error.remedy
        assert sentence.startswith(f"dial must {requirement}, but it is ")
        assert sentence.endswith(f": {remedy}.")
        assert remedy.startswith("give ")
    else:
        assert math.isfinite(result)
        assert result == float(value)


def test_text_from_the_command_line():
    for text, value in (("1e-5", 1e-5), ("256/60000", 256 / 60000), (" 3 ", 3.0), ("-2", -2.0)):
        assert validate.parse("dial", text) == value
    for text in ("", "abc", "1/0", "1//2", "1/2/3", "0x10", "½"):
        with pytest.raises(
            validate.InputError, match=r"^dial must be a number, but it is .*: give"
        ):
            validate.parse("dial", text)


def test_a_share_may_be_a_percentage():
    for text, value in (("2 %", 0.02), ("0.5%", 0.005), ("1/4 %", 0.0025), ("0.02", 0.02)):
        assert validate.share("dial", text) == value
    for text in ("%", "2 % 3", "2 %%", "two %"):
        with pytest.raises(validate.InputError, match=r"^dial must be a number"):
            validate.share("dial", text)


def test_one_of_and_exactly_one():
    assert validate.one_of("mode", "a", ("a", "b")) == "a"
    assert validate.exactly_one("x, y", {"x": None, "y": 0.0}, "drop one") == "y"


def exactly(**given):
    return lambda: validate.exactly_one("x, y", given, "drop one")


test_what_is_no_choice_is_refused = refuses(
    {
        "mode be one of a, b": lambda: validate.one_of("mode", "c", ("a", "b")),
        "mode be one of a": lambda: validate.one_of("mode", 3, ("a", "b")),
        "Exactly one of x, y be given": exactly(x=1, y=2),
        "Exactly one of x, y": exactly(x=None),
    }
)


@dataclass(frozen=True)
class Inner:
    rate: float
    scores: object


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner
    counted: dict[int, bool]


def test_a_result_becomes_values_that_json_writes_and_reads_unchanged():
    result = Outer("a", Inner(math.nan, np.array([[0.5, math.inf], [1, 2]])), {1: np.bool_(True)})
    inner = {"rate": None, "scores": [[0.5, None], [1.0, 2.0]]}
    found = json.loads(json.dumps(to_json(result), allow_nan=False))
    assert found == to_json(result) == {"name": "a", "inner": inner, "counted": {"1": True}}
    with pytest.raises(TypeError, match="object"):
        to_json([object()])


def test_a_sentence_does_not_show_all_of_a_long_value():
    error = validate.invalid_value("name", "x" * 100_000, "short", "shorten it")
    assert len(str(error)) < 1000
    assert error.value == "x" * 100_000
