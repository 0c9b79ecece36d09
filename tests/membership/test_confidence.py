"""Intervals against their textbook forms, and claim checks against mechanisms that are known."""

import math

import numpy as np
import pytest
from scipy import stats

from dprime.curve import TradeOff
from dprime.membership.confidence import Interval, contradicts, over_repetitions, precision_of_share

PRIOR = 0.3

LEAK, LEAKED_EPSILON = 0.1, math.log(9)
LEAKY = TradeOff.from_lines([(LEAKED_EPSILON, 0.0), (0.0, LEAK * 0.8)])
"""One training in ten answers truly with probability 0.9 about every record, the others not at all:
the advantage is 0.1 · (0.9 - 0.1)."""


def test_means_over_repetitions_are_student_t():
    values = np.random.default_rng(0).normal(size=7)
    for cells, level in ((1, 0.95), (10, 0.995)):
        mean = over_repetitions(values, cells=cells)
        low, high = stats.t.interval(level, 6, values.mean(), stats.sem(values))
        assert mean.numbers == pytest.approx((values.mean(), low, high))
        assert (mean.n, mean.method) == (7, "student-t")


def test_an_interval():
    wide = Interval(0.9, 0.7, 1.1, 5)
    assert wide.within() == Interval(0.9, 0.7, 1.0, 5)
    assert wide.text(2) == "0.90 ± 0.20"
    assert wide.within().text(1, scale=100) == "90.0 (70.0 to 100.0)"  # cut: no ± is true of both


@pytest.mark.parametrize("curve", [TradeOff.gaussian(1.0), TradeOff.from_lines([(1.0, 0.02)])])
@pytest.mark.parametrize(("share", "prior"), [(0.1, 0.5), (0.1, 0.05), (0.5, 0.5), (0.9, 0.3)])
def test_the_most_of_a_share_is_that_of_the_best_test_that_flags_it(curve, share, prior):
    """Of all tests that flag a share π TPR + (1 - π) FPR of the records, by search."""
    tests = [(curve.tpr(fpr), fpr) for fpr in np.linspace(0, min(1, share / (1 - prior)), 20_001)]
    rates = [(prior * tpr + (1 - prior) * fpr, tpr) for tpr, fpr in tests]
    best = max(prior * min(tpr, share / prior) / share for rate, tpr in rates if rate <= share)
    allowed = precision_of_share(curve, share, prior)
    assert best <= allowed <= best + 1e-3
    assert allowed < curve.precision(prior, 0.01) or share <= 0.01


def test_a_leak_in_one_training_of_ten_is_no_contradiction():
    """A binomial bound on the precision would be exceeded in every training that leaks.

    All its answers are good at once, while the certified precision is one of expected rates.
    """
    rng, records = np.random.default_rng(0), 400
    ceiling = LEAKY.precision(prior=0.5, min_tpr=0.5)
    assert ceiling == pytest.approx(0.5 / (0.5 + 0.42), rel=1e-6)
    above, contradicted = [], []
    for turn in range(60):
        epsilon = LEAKED_EPSILON if turn % 10 == 0 else 0.0
        members = rng.random(records) < 0.5
        scores = (members == (rng.random(records) < 1 / (1 + math.exp(-epsilon)))).astype(float)
        top = np.argsort(-(scores + 0.1 * rng.random(records)))[: records // 2]
        correct = int(members[top].sum())
        above.append(stats.binom.sf(correct - 1, records // 2, ceiling) <= 0.05)
        contradicted.append(contradicts(LEAKY, correct, records // 2, records=records, prior=0.5))
    assert np.mean(above) > 0.099
    assert np.mean(contradicted) <= 0.05


def test_a_curve_is_contradicted_where_it_is_wrong():
    """A Gaussian release of each record's presence, claimed at its own d′ and at a third of it."""
    rng, records, flagged = np.random.default_rng(0), 500, 60
    found = {1.0: [], 1 / 3: []}
    for _ in range(60):
        members = rng.random(records) < PRIOR
        top = np.argsort(-(rng.normal(size=records) + 1.5 * members))[:flagged]
        for share, results in found.items():
            claim, correct = TradeOff.gaussian(1.5 * share), int(members[top].sum())
            results.append(contradicts(claim, correct, flagged, records=records, prior=PRIOR))
    assert np.mean(found[1.0]) <= 0.05
    assert np.mean(found[1 / 3]) > 0.9


def test_choices_and_confidence_ask_for_more():
    case = {"records": 1000, "prior": 0.5}
    claim = TradeOff.gaussian(0.5)
    least = next(v for v in range(101) if contradicts(claim, v, 100, **case))
    assert not contradicts(claim, least, 100, **case, choices=40)
    assert not contradicts(claim, least, 100, **case, confidence=0.999)
    assert contradicts(claim, least + 10, 100, **case, choices=40)
