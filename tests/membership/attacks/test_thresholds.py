"""Attacks without shadow models: one threshold for all records."""

import numpy as np
import pytest

from dprime.membership.attacks import AttackP, Baseline, Evidence
from dprime.membership.results import precision_over_quantiles
from membership.plain_attacks import attack_p, signals


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
