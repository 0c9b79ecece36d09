"""Numbers from scores: exact small cases, naive copies, peers, and simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from dprime.membership.results import (
    held_out_precision,
    mean_tpr,
    precision_over_quantiles,
    roc,
    shuffled_best,
    top_precision,
)

NAN = float("nan")

records = st.lists(
    st.tuples(st.one_of(st.integers(-3, 3).map(float), st.just(NAN)), st.booleans()),
    min_size=2,
    max_size=60,
)
"""Scores with many ties and some missing, and the truth."""


def both_kinds(rows):
    """Two arrays with at least one member and one other record."""
    scores, members = (np.array(column) for column in zip(*rows, strict=True))
    members[:2] = True, False
    return scores, members


def random_case(seed=0, n=200, gain=1.0):
    rng = np.random.default_rng(seed)
    members = rng.random(n) < 0.4
    return gain * members + rng.normal(size=n), members


@given(records)
def test_roc_agrees_with_scikit_learn(rows):
    scores, members = both_kinds(rows)
    found = roc(scores, members)
    lowest = np.where(np.isnan(scores), -99.0, scores)
    assert found.auc == pytest.approx(metrics.roc_auc_score(members, lowest))
    fpr, tpr, _ = metrics.roc_curve(members, lowest, drop_intermediate=False)
    on_curve = set(zip(np.round(fpr, 9), np.round(tpr, 9), strict=True))
    assert set(zip(np.round(found.fpr, 9), np.round(found.tpr, 9), strict=True)) <= on_curve
    assert metrics.auc(found.fpr, found.tpr) == pytest.approx(found.auc)
    for limit in (0.0, 0.1, 0.5, 1.0):
        best = max(t for f, t in zip(fpr, tpr, strict=True) if f <= limit)
        assert found.tpr_at(limit) == pytest.approx(best)


def test_curves_are_averaged_over_target_models():
    rocs = [roc(*random_case(seed)) for seed in range(4)]
    found = mean_tpr(rocs, [0.1, 0.5])
    assert list(found) == [0.1, 0.5]
    assert found[0.5].value == pytest.approx(np.mean([one.tpr_at(0.5) for one in rocs]))
    assert 0 <= found[0.1].low < found[0.1].value < found[0.1].high <= 1
    assert mean_tpr(rocs, [0.1], confidence=0.99)[0.1].high > found[0.1].high


def plain_best(scores, members):
    """Each of the 40 thresholds in turn: the best precision, of the most records."""
    ranked = sorted((s if not np.isnan(s) else -np.inf for s in scores), reverse=True)
    best = (-1.0, 0)
    for i in range(1, 41):
        last = ranked[int(np.ceil(i * len(scores) / 40)) - 1]
        flagged = [m for s, m in zip(scores, members, strict=True) if s >= last]
        if flagged:
            best = max(best, (np.mean(flagged), len(flagged)))
    return best


@given(records)
def test_the_papers_number_is_the_best_of_forty(rows):
    scores, members = both_kinds(rows)
    found = precision_over_quantiles(scores, members)
    precision, flagged = plain_best(scores, members)
    assert found.flagged == flagged
    assert found.value == (pytest.approx(precision) if flagged else None)


def test_shuffled_scores_show_what_choosing_gains():
    """On scores that tell nothing the paper's number is high, as shuffled scores are."""
    rng = np.random.default_rng(0)
    gains, luck = [], []
    for _ in range(40):
        members, scores = rng.random(1000) < 0.5, rng.normal(size=1000)
        shuffled = shuffled_best(scores, members, rng, times=100)
        gains.append(shuffled - members.mean())
        luck.append(precision_over_quantiles(scores, members).value - shuffled)
    assert 0.04 < np.mean(gains) < 0.08
    assert abs(np.mean(luck)) < 3 * np.std(luck) / np.sqrt(40) < 0.03


@given(records)
def test_shuffling_is_that_of_scores_among_records(rows):
    """The same as dealing the scores out and reading the paper's number, ties and NaN included."""
    scores, members = both_kinds(rows)
    found = shuffled_best(scores, members, np.random.default_rng(0), times=1)
    dealt = np.random.default_rng(0).permutation(members)
    ordered = np.sort(-scores)  # NaN is last
    assert found == precision_over_quantiles(-ordered, dealt).value


def test_held_out_precision_is_unbiased_where_scores_tell_nothing():
    """Its mean is the share of members; the best of forty is far above that."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(1500):
        members, scores = rng.random(200) < 0.5, rng.normal(size=200)
        found.append(held_out_precision(scores, members, rng))
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - 0.5) < 3 * error < 0.01


def test_held_out_precision_by_hand():
    """Two levels of scores: whatever the halves are, the upper level is chosen, and it is right."""
    assert held_out_precision([NAN, NAN], [True, False], np.random.default_rng(0)) is None
    scores, members = np.repeat([1.0, 0.0], 200), np.repeat([True, False], 200)
    assert held_out_precision(scores, members, np.random.default_rng(0)) == 1.0
    # every other record of the upper level: the halves' mean is near a half, whoever is in them
    found = held_out_precision(scores, np.arange(400) % 2 == 0, np.random.default_rng(0))
    assert found == pytest.approx(0.5, abs=0.1)


def test_a_threshold_must_accept_enough(monkeypatch):
    """A few lucky records at the top of each half are not chosen."""
    scores = np.concatenate([[9.0] * 20, np.linspace(0, 1, 380)])
    members = np.concatenate([[True] * 20, np.arange(380) % 2 == 0])
    found = []
    for least in (1, 50):
        monkeypatch.setattr("dprime.membership.results.LEAST_FLAGGED", least)
        found.append(held_out_precision(scores, members, np.random.default_rng(0)))
    assert found[1] < 0.8 < found[0] == 1.0


def test_a_fixed_share_is_flagged_whatever_the_scores():
    rng = np.random.default_rng(0)
    members = np.arange(10) < 5
    assert top_precision(members.astype(float), members, 0.5, rng).value == 1.0
    assert top_precision(np.zeros(10), members, 0.35, rng).flagged == 4
    assert top_precision([NAN] * 9 + [0.0], members, 0.1, rng).correct == 0
    drawn = [top_precision(np.zeros(10), members, 0.2, rng).correct for _ in range(300)]
    assert np.mean(drawn) == pytest.approx(1.0, abs=0.12)
