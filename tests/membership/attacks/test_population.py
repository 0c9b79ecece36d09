"""Attack P: its shares, and the false-positive rate that they stand for."""

import numpy as np
import pytest

from dprime.membership.attacks import AttackP, Evidence
from dprime.membership.signals import Signals
from membership.plain_attacks import attack_p


def signals(logits):
    logits = np.asarray(logits, dtype=float)
    return Signals.from_binary_logits(logits, np.ones(logits.shape[-1]))


def test_agrees_with_the_definition_ties_included():
    rng = np.random.default_rng(0)
    target, others = rng.integers(-3, 4, 30), rng.integers(-3, 4, 17)
    seen = Evidence(signals(target), population=signals(others))
    plain = attack_p(seen.target.probability, seen.population.probability)
    assert AttackP().scores(seen) == pytest.approx(plain, abs=1e-12)


@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_scores_keep_the_false_positive_rate(alpha):
    """Fresh records like the population: (αn + 1)/(n + 1) of them are accused."""
    rng = np.random.default_rng(1)
    rates = []
    for _ in range(200):
        seen = Evidence(signals(rng.normal(size=300)), population=signals(rng.normal(size=99)))
        rates.append((AttackP().scores(seen) >= 1 - alpha).mean())
    expected = (np.floor(alpha * 99) + 1) / 100
    error = np.std(rates) / np.sqrt(200)
    assert np.mean(rates) == pytest.approx(expected, abs=4 * error)
    assert expected <= alpha + 1 / 100
