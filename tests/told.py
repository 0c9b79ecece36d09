"""What errors and results tell: refusals, by their parameter and requirement; reprs of one line."""

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


def one_line(result, longest=300):
    """Whether its repr is one line that a person can read."""
    shown = repr(result)
    unreadable = ("\n", " object at ", "array(", "<dprime")
    return len(shown) <= longest and not any(part in shown for part in unreadable)
