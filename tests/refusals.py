"""Tables of what is refused, by what the error says in data: its parameter and its requirement."""

import pytest

from dprime import InputError


def refuses(cases):
    """A test that each call is refused, in one sentence of the usual form.

    The cases are pairs of the parameter, or its first words, and a call; or a dictionary of calls,
    whose keys begin as the parameter and the requirement do.
    """
    begins = isinstance(cases, dict)
    pairs = [*cases.items()] if begins else cases

    @pytest.mark.parametrize(("expected", "call"), pairs, ids=[name for name, _ in pairs])
    def test(expected, call):
        with pytest.raises(InputError) as refused:
            call()
        error = refused.value
        told = f"{error.parameter} {error.requirement}"
        assert told.startswith(expected if begins else f"{expected} "), told
        assert str(error).startswith(f"{error.parameter} must {error.requirement}, but ")
        assert str(error).endswith(".")
        assert "\n" not in str(error)

    return test
