"""Attacks by a threshold on the loss: their definitions, and the rates that scores stand for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprime.membership.attacks import AttackP, AttackR, Baseline, Evidence
from dprime.membership.attacks.thresholds import interpolated_ranks
from dprime.membership.results import precision_over_quantiles
from membership.plain_attacks import attack_p, attack_r, halves, signals


def test_the_precision_of_the_baseline_is_the_share_of_members():
    """Also where the target has no answer."""
    scores = Baseline().scores(Evidence(signals([np.nan, 1.0, 2.0, np.nan])))
    best = precision_over_quantiles(scores, [True, False, False, False])
    assert (best.value, best.flagged) == (0.25, 4)


def test_attack_p_agrees_with_its_definition_ties_included():
    rng = np.random.default_rng(0)
    target, others = signals(rng.integers(-3, 4, 30)), signals(rng.integers(-3, 4, 17))
    scores = AttackP().scores(Evidence(target, population=others))
    assert scores == pytest.approx(attack_p(target.probability, others.probability), abs=1e-12)


@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_attack_p_keeps_the_false_positive_rate(alpha):
    """Fresh records like the population: (αn + 1)/(n + 1) of them are accused."""
    rng = np.random.default_rng(1)
    rates = []
    for _ in range(200):
        evidence = Evidence(signals(rng.normal(size=300)), population=signals(rng.normal(size=99)))
        rates.append((AttackP().scores(evidence) >= 1 - alpha).mean())
    expected = (np.floor(alpha * 99) + 1) / 100
    assert np.mean(rates) == pytest.approx(expected, abs=4 * np.std(rates) / np.sqrt(200))


@pytest.mark.parametrize("inside", [False, True])
def test_attack_r_agrees_with_its_definition(inside):
    rng = np.random.default_rng(0)
    members = halves(rng, 9, 4, 60)
    seen = Evidence(signals(rng.normal(size=60)), signals(rng.normal(size=(9, 60))), members)
    plain = attack_r(seen.target.probability, seen.shadows.probability, members, inside=inside)
    within = ~np.isnan(plain)
    assert 20 < within.sum() < 60
    found = AttackR(thresholds_from="in" if inside else "out").scores(seen)
    assert found[within] == pytest.approx(plain[within], abs=1e-9)
    count, beyond = 4 if inside else 5, found[~within]
    assert ((beyond > count / (count + 1)) | (beyond < 1 / (count + 1))).all()


@pytest.mark.parametrize(
    ("alpha", "low", "high"),
    [(0.1, 0.088, 0.112), (0.2, 0.188, 0.212), (0.5, 0.488, 0.512), (0.05, 0.04, 0.07)],
)
def test_attack_r_keeps_the_false_positive_rate_with_ten_models(alpha, low, high):
    """The smallest rate that the ranks of ten models know is 1/11; 0.05 rests on the line."""
    rng = np.random.default_rng(7)
    target, shadows = signals(rng.normal(size=40_000)), signals(rng.normal(size=(10, 40_000)))
    seen = Evidence(target, shadows, np.zeros((10, 40_000), bool))
    assert low < (AttackR().scores(seen) >= 1 - alpha).mean() < high


def ranks_of(values, others):
    wide = np.broadcast_to(np.array(others, dtype=float)[:, None], (len(others), len(values)))
    return interpolated_ranks(np.array(values, dtype=float), wide, np.ones(wide.shape, bool))


few = st.lists(st.integers(-4, 4), min_size=1, max_size=6)


@given(few, st.lists(st.floats(-6, 6), min_size=2, max_size=6))
def test_ranks_rise_with_the_value_and_tie_in_the_middle(others, values):
    ranks = ranks_of(sorted(values), others)
    assert (np.diff(ranks) >= -1e-12).all()
    assert ((ranks >= 0) & (ranks <= len(others) + 1)).all()
    at = np.array(others)
    below, equal = ((compare(at[:, None], at)).sum(0) for compare in (np.less, np.equal))
    assert ranks_of(others, others) == pytest.approx(below + (equal + 1) / 2)


def test_models_that_are_not_chosen_do_not_count_and_one_tells_above_from_below():
    others = np.array([[1.0], [9.0], [3.0], [-7.0]])
    chosen = np.array([[True], [False], [True], [False]])
    assert interpolated_ranks(np.array([2.0]), others, chosen) == 1.5
    assert ranks_of([0.0, 1.0, 2.0], [1.0]).tolist() == [0.5, 1.0, 1.5]
