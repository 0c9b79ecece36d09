"""What a call of the command line ended with: (exit code, standard output, standard error)."""

import json

import pytest


def as_json(text):
    """One JSON object without NaN and Infinity."""
    return json.loads(text, parse_constant=pytest.fail)


def refused(answer, words):
    """Exit code 2, and one sentence with these words."""
    code, out, err = answer
    assert (code, out) == (2, "")
    assert words in err
    assert err.startswith("Error: ")
    assert err.endswith((".\n", "?\n"))
    assert err.count("\n") == 1
