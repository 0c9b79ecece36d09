"""Tables of what is refused, by what the error says in data: its parameter and its requirement."""

import pytest

from dprime import InputError


def refuses(cases):
    """A test that each call is refused; a key begins as its parameter and its requirement do."""

    @pytest.mark.parametrize("expected", cases)
    def test(expected):
        with pytest.raises(InputError) as refused:
            cases[expected]()
        error = refused.value
        assert f"{error.parameter} {error.requirement}".startswith(expected)
        assert str(error).startswith(f"{error.parameter} must {error.requirement}, but ")
        assert str(error).endswith(".")
        assert "\n" not in str(error)

    return test
