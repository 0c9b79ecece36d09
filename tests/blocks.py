"""Blocks of a run, and what a run of them must hold."""

import numpy as np
import pytest

from dprime import InputError

CONFIG = {"adversary": "gradient", "data": {"name": "digits", "records": 100}, "seed": 7}


def scores(block, trials=4):
    draw = np.random.default_rng([7, block])
    return {"scores": draw.normal(size=(trials, 3)), "in_world": draw.random(trials) < 0.5}


def joined(blocks, trials=4):
    """What a run of these blocks must hold."""
    parts = [scores(block, trials) for block in blocks]
    return {name: np.concatenate([part[name] for part in parts]) for name in scores(0)}


def assert_holds(run, expected):
    found = run.arrays()
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


def refused(words):
    """A refusal in one sentence with these words."""
    return pytest.raises(InputError, match=rf"must (be|have) [^\n]*{words}[^\n]*\.$")
