"""What a training may be, and what it may be called."""

from dataclasses import replace
from functools import partial

import pytest

import dprime
from dprime import DPSGD
from dprime.train import TrainingConfig
from told import refuses

BASE = {"steps": 10, "learning_rate": 0.1}
PRIVATE = TrainingConfig(**BASE, clip_norm=1.0, noise_multiplier=2.0, sample_rate=0.1)
PUBLIC = replace(PRIVATE, expected_batch_size=5)


def test_labels_and_mechanisms():
    assert PRIVATE.private
    assert PRIVATE.label == "differentially private"
    assert PRIVATE.mechanism() == DPSGD(2.0, 0.1, 10, public_size=True)
    assert PUBLIC.mechanism() == DPSGD(2.0, 0.1, 10)
    assert replace(PRIVATE, clip_norm=3.0).sigma == pytest.approx(1.001 * 6)


def test_a_public_divisor_makes_add_remove_what_zero_out_is_without_one():
    """That zero-out is no add-remove: `attacks_on_us/test_sizes`."""
    assert (PRIVATE.adjacency, PUBLIC.adjacency) == ("zero-out", "add-remove")
    both = dprime.Composition(PRIVATE.mechanism(), PUBLIC.mechanism())
    with pytest.raises(ValueError, match=r"from the number of records, but it is 'add-remove'"):
        both.curve("add-remove")
    same = PUBLIC.mechanism().curve("add-remove"), PRIVATE.mechanism().curve()
    assert same[0].advantage() == same[1].advantage()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"clip_norm": 1.0, "noise_multiplier": 2.0, "sensitivity": "local"}, "not DP"),
        ({"clip_norm": 1.0}, "not private"),
        ({"clip_norm": 1.0, "noise_multiplier": 9e-4}, "not private: a noise multiplier below"),
        ({"clip_norm": 1, "noise_multiplier": 1, "steps": 10_000_001}, "not private: more than 10"),
        ({}, "not private"),
    ],
)
def test_what_is_not_private_has_no_curve(options, words):
    training = TrainingConfig(**{**BASE, **options})
    assert not training.private
    assert training.label.startswith(words)
    with pytest.raises(ValueError, match=f"no certified curve, it is {words}"):
        training.mechanism()


BAD = [
    *(("steps", value) for value in (0, None)),
    *(("clip_norm", value) for value in (0.0, 1e-13, 1e19, float("nan"))),
    *(("learning_rate", 0), ("noise_multiplier", -1), ("sample_rate", 1.5)),
    *(("sensitivity", "mine"), ("loss", 3), ("block", 0)),
]
NO_NORM = {"clip_norm": None, "noise_multiplier": 1.0}
test_bad_input = refuses(
    [(name, partial(TrainingConfig, **{**BASE, name: value})) for name, value in BAD]
    + [("clip_norm", partial(TrainingConfig, **BASE, **NO_NORM))]
)
