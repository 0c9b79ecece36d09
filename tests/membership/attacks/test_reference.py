"""Attack R: its ranks, and the false-positive rate that they stand for with few models."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprime.membership.attacks import AttackR, Evidence
from dprime.membership.attacks.thresholds import interpolated_ranks
from membership.plain_attacks import attack_r, halves, signals


@pytest.mark.parametrize("inside", [False, True])
def test_agrees_with_the_definition(inside):
    rng = np.random.default_rng(0)
    members = halves(rng, 9, 4, 60)
    seen = Evidence(signals(rng.normal(size=60)), signals(rng.normal(size=(9, 60))), members)
    plain = attack_r(seen.target.probability, seen.shadows.probability, members, inside=inside)
    within = ~np.isnan(plain)
    assert 20 < within.sum() < 60
    found = AttackR(thresholds_from="in" if inside else "out").scores(seen)
    assert found[within] == pytest.approx(plain[within], abs=1e-9)
    count = 4 if inside else 5
    beyond = found[~within]
    assert ((beyond > count / (count + 1)) | (beyond < 1 / (count + 1))).all()


def accused(alpha, models, records=40_000):
    """The share of targets without the record that are said to be members."""
    rng = np.random.default_rng(7)
    target, shadows = signals(rng.normal(size=records)), signals(rng.normal(size=(models, records)))
    seen = Evidence(target, shadows, np.zeros((models, records), bool))
    return (AttackR().scores(seen) >= 1 - alpha).mean()


@pytest.mark.parametrize("alpha", [0.1, 0.2, 0.5])
def test_scores_keep_the_false_positive_rate_with_ten_models(alpha):
    assert accused(alpha, 10) == pytest.approx(alpha, abs=0.012)


def test_below_what_ranks_can_tell_the_rate_is_close():
    """With ten models 1/11 is the smallest rate that ranks know; 0.05 rests on the line."""
    assert 0.04 < accused(0.05, 10) < 0.07


def test_thresholds_from_members_do_not_keep_the_rate():
    """T's way: models with the record are surer, so hardly any other record is accused."""
    rng = np.random.default_rng(2)
    shadows = signals(rng.normal(size=(10, 5000)) + 2.0)
    seen = Evidence(signals(rng.normal(size=5000)), shadows, np.ones((10, 5000), bool))
    assert (AttackR(thresholds_from="in").scores(seen) >= 0.8).mean() < 0.02


few = st.lists(st.integers(-4, 4), min_size=1, max_size=6)


@given(few, st.lists(st.floats(-6, 6), min_size=2, max_size=6))
def test_ranks_rise_with_the_value_and_tie_in_the_middle(others, values):
    column = np.array(others, dtype=float)[:, None]
    ordered = np.sort(np.array(values))
    wide = np.broadcast_to(column, (len(others), len(ordered)))
    ranks = interpolated_ranks(ordered, wide, np.ones(wide.shape, bool))
    assert (np.diff(ranks) >= -1e-12).all()
    assert ((ranks >= 0) & (ranks <= len(others) + 1)).all()
    at = np.array(others, dtype=float)
    wide = np.broadcast_to(column, (len(others), len(others)))
    below = (wide < at).sum(0)
    equal = (wide == at).sum(0)
    own = interpolated_ranks(at, wide, np.ones(wide.shape, bool))
    assert own == pytest.approx(below + (equal + 1) / 2)


def test_models_that_are_not_chosen_do_not_count_and_one_tells_above_from_below():
    others = np.array([[1.0], [9.0], [3.0], [-7.0]])
    chosen = np.array([[True], [False], [True], [False]])
    assert interpolated_ranks(np.array([2.0]), others, chosen) == 1.5
    one, chosen = np.array([[1.0, 1.0, 1.0]]), np.ones((1, 3), bool)
    assert interpolated_ranks(np.array([0.0, 1.0, 2.0]), one, chosen).tolist() == [0.5, 1.0, 1.5]
