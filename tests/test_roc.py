import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprime.roc import auc

scores = st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 1.0, 2.0]), min_size=1, max_size=12)


@given(scores, scores)
def test_the_area_counts_pairs(inside, outside):
    pairs = [(a > b) + 0.5 * (a == b) for a in inside for b in outside]
    assert auc(np.array(inside), np.array(outside)) == pytest.approx(np.mean(pairs), abs=1e-12)
