"""What a training may be, and what it may be called."""

from dataclasses import replace

import pytest

import dprime
from dprime import DPSGD
from dprime.train import TrainingConfig

BASE = {"steps": 10, "learning_rate": 0.1}


def test_labels_and_mechanisms():
    private = TrainingConfig(**BASE, clip_norm=1.0, noise_multiplier=2.0, sample_rate=0.1)
    assert private.private
    assert private.label == "differentially private"
    stated = {"noise_multiplier": 2.0, "sample_rate": 0.1, "steps": 10}
    assert private.mechanism() == DPSGD(**stated, public_size=True)
    assert replace(private, expected_batch_size=5).mechanism() == DPSGD(**stated)


def test_add_remove_needs_a_public_divisor():
    private = TrainingConfig(**BASE, clip_norm=1.0, noise_multiplier=2.0, sample_rate=0.1)
    public = replace(private, expected_batch_size=5)
    assert (private.adjacency, public.adjacency) == ("zero-out", "add-remove")
    both = dprime.Composition(private.mechanism(), public.mechanism())
    for ask in (private.mechanism(), both):
        assert ask.default_adjacency == "zero-out"
        with pytest.raises(ValueError, match=r"from the number of records, but it is 'add-remove'"):
            ask.curve("add-remove")
        assert ask.curve("zero-out").advantage() < ask.curve("replace").advantage()
    with pytest.raises(ValueError, match="from the number of records"):
        dprime.PoolSampled(private.mechanism(), 0.1).curve()
    same = public.mechanism().curve("add-remove"), private.mechanism().curve()
    assert same[0].advantage() == same[1].advantage()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"clip_norm": 1.0, "noise_multiplier": 2.0, "sensitivity": "local"}, "not DP"),
        ({"clip_norm": 1.0}, "not private"),
        ({"clip_norm": 1.0, "noise_multiplier": 9e-4}, "not private: a noise multiplier below"),
        (
            {"clip_norm": 1.0, "noise_multiplier": 1.0, "steps": 10_000_001},
            "not private: more than 10,000,000 steps",
        ),
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
    ({"steps": 0}, "steps must be at least 1, but it is 0"),
    ({"steps": None}, "steps must be a number, but it is None"),
    ({"learning_rate": 0}, "learning_rate must be above 0, but it is 0"),
    ({"clip_norm": 0.0}, "clip_norm must be above 0, but it is 0.0"),
    ({"clip_norm": 1e-13}, "clip_norm must be at least 1e-12, but it is 1e-13"),
    ({"clip_norm": float("nan")}, "clip_norm must be a finite number, but it is nan"),
    ({"noise_multiplier": -1}, "noise_multiplier must be 0 or more, but it is -1"),
    ({"noise_multiplier": 1.0}, "clip_norm must be given when noise is added, but it is None"),
    ({"sample_rate": 1.5}, "sample_rate must be above 0 and at most 1, but it is 1.5"),
    ({"sensitivity": "mine"}, "sensitivity must be one of global, local, but it is 'mine'"),
    ({"loss": 3}, "loss must be one of cross-entropy, squared-error, binary-cross-ent"),
    ({"block": 0}, "block must be at least 1, but it is 0"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message) as caught:
        TrainingConfig(**{**BASE, **options})
    assert "\n" not in str(caught.value)
