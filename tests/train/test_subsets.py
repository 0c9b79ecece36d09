"""Parts of a pool: what is public about them, and what is refused."""

import numpy as np
import pytest

from dprime.train import Subsets
from trials import blobs

POOL = blobs(6, (2,))
MEMBERS = np.array([[1, 0, 1, 0, 1, 0], [0, 0, 0, 0, 0, 1]], dtype=bool)


@pytest.mark.parametrize(
    ("probability", "expected"),
    [(0.5, 3.0), (1.0, 6.0), ([0.1, 0.2, 0.3, 0.4, 0.5, 1.0], 2.5)],
)
def test_the_expected_size_follows_from_the_probabilities_alone(probability, expected):
    assert Subsets(POOL, MEMBERS, probability).expected == pytest.approx(expected)
    assert Subsets(POOL, ~MEMBERS, probability).expected == pytest.approx(expected)


def test_members_are_a_copy_that_cannot_be_written():
    given = MEMBERS.copy()
    parts = Subsets(POOL, given, np.full(6, 0.5))
    given[:] = True
    assert np.array_equal(parts.members, MEMBERS)
    assert len(parts) == 2
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
        Subsets(POOL, *given)
    assert "\n" not in str(caught.value)
