"""Parts of a pool: what is public about them, and what is refused."""

import numpy as np
import pytest
import torch

from dprime.data.dataset import Dataset
from dprime.train import TrainingConfig, TrainingData, train
from trials import blobs, dense

POOL = blobs(6, (2,))
MEMBERS = np.array([[1, 0, 1, 0, 1, 0], [0, 0, 0, 0, 0, 1]], dtype=bool)


@pytest.mark.parametrize(
    ("probability", "expected"),
    [(0.5, 3.0), (1.0, 6.0), ([0.1, 0.2, 0.3, 0.4, 0.5, 1.0], 2.5)],
)
def test_the_expected_size_follows_from_the_probabilities_alone(probability, expected):
    assert TrainingData.parts(POOL, MEMBERS, probability).expected == pytest.approx(expected)
    assert TrainingData.parts(POOL, ~MEMBERS, probability).expected == pytest.approx(expected)


def test_members_are_a_copy_that_cannot_be_written():
    given = MEMBERS.copy()
    parts = TrainingData.parts(POOL, given, np.full(6, 0.5))
    given[:] = True
    assert np.array_equal(parts.members, MEMBERS)
    assert len(parts.members) == 2
    for array in (parts.members, parts.probability):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = True


BAD = [
    ((MEMBERS[0], 0.5), r"members must be \[trial, 6 records\], but it is of shape \(6,\)"),
    ((MEMBERS[:, :5], 0.5), r"members must be \[trial, 6 records\], but it is of shape \(2, 5\)"),
    ((MEMBERS[:0], 0.5), r"members must be \[trial, 6 records\], but it is of shape \(0, 6\)"),
    ((MEMBERS, 0.0), "probability must be"),
    ((MEMBERS, 1.1), "probability must be"),
    ((MEMBERS, [0.5] * 5), r"probability must be of shape \(6,\), but it is of shape \(5,\)"),
    ((MEMBERS, [0.5] * 5 + [0.0]), "probability must be"),
    ((MEMBERS, [0.5] * 5 + [float("nan")]), "probability must be"),
]


@pytest.mark.parametrize(("given", "message"), BAD, ids=lambda v: str(v)[:25])
def test_bad_input_is_one_sentence(given, message):
    with pytest.raises(ValueError, match=message) as caught:
        TrainingData.parts(POOL, *given)
    assert "\n" not in str(caught.value)


def huge_at(place, count=40):
    """Records of which one is too large for its squared norm in single precision."""
    pool = blobs(count, (5,))
    records = pool.records.copy()
    records[place] = 1e20
    return Dataset.of(records, pool.labels, classes=3), pool


@pytest.mark.parametrize("rate", [0.1, 0.9, 1.0])
@pytest.mark.parametrize("clip_norm", [1.0, None])
def test_a_record_that_a_trial_does_not_have_cannot_reach_it(rate, clip_norm):
    large, small = huge_at(0)
    members = np.random.default_rng(1).random((6, 40)) < 0.5
    members[:, 0] = False
    recipe = TrainingConfig(
        steps=8, learning_rate=0.5, clip_norm=clip_norm, sample_rate=rate,
        noise_multiplier=0.0 if clip_norm is None else 1.0,
    )  # fmt: skip
    weights = [
        train(dense(5, 4, 3), TrainingData.parts(pool, members, 0.5), recipe, seed=3).weights
        for pool in (large, small)
    ]
    assert weights[0].isfinite().all()
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rate", [0.1, 0.9, 1.0])
def test_a_member_too_large_for_its_norm_is_clipped_to_nothing(rate):
    """Its gradient may be 0 times infinity; the weights stay finite whether it is in or not."""
    large, _ = huge_at(3)
    members = np.ones((8, 40), dtype=bool)
    members[::2, 3] = False
    recipe = TrainingConfig(
        steps=20, learning_rate=0.5, clip_norm=1.0, noise_multiplier=8.0, sample_rate=rate
    )
    done = train(dense(5, 4, 3), TrainingData.parts(large, members, 0.5), recipe, seed=3)
    assert not done.diverged.any()
