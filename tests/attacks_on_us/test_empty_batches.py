"""Steps that are left out where nobody was drawn, enumerated for a few records."""

import itertools

import numpy as np
import pytest

from dprime import DPSGD, Composition
from dprime.monitor.ledger import EmptyBatches

GRID = np.linspace(-12.0, 16.0, 28_001)


def laws(noise, rate, others, gradient):
    """Density of a step with and without the record, and the probability that there is none.

    `others` are the gradients of the other records, in one dimension.
    """

    def normal(mean):
        return np.exp(-((GRID - mean) ** 2) / (2 * noise**2)) / (noise * np.sqrt(2 * np.pi))

    without, present = np.zeros_like(GRID), np.zeros_like(GRID)
    nobody = 0.0
    for drawn in itertools.product((0, 1), repeat=len(others)):
        share = np.prod([rate if one else 1 - rate for one in drawn])
        total = float(np.dot(drawn, others))
        if any(drawn):
            without += share * normal(total)
            present += share * (1 - rate) * normal(total)
        else:
            nobody = share
        present += share * rate * normal(total + gradient)
    return present, without, (nobody * (1 - rate), nobody)


def reached(epsilon, noise, rate, others, gradient):
    """δ(ε) of one draw, in the worse direction."""
    present, without, (none_in, none_out) = laws(noise, rate, others, gradient)
    step, factor = GRID[1] - GRID[0], np.exp(epsilon)
    there = np.maximum(present - factor * without, 0).sum() * step
    back = np.maximum(without - factor * present, 0).sum() * step
    return max(
        there + max(none_in - factor * none_out, 0), back + max(none_out - factor * none_in, 0)
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("rate", [0.05, 0.3])
@pytest.mark.parametrize("others", [(1.0,), (1.0, 1.0), (0.5, 1.0, 1.0)])
@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_a_record_alone_is_counted(noise, rate, others, epsilon):
    """The others move the sum up, the record down: where it is alone, no step is like it."""
    true = reached(epsilon, noise, rate, others, -1.0)
    steps = DPSGD(noise, rate, 1)
    alone = EmptyBatches(len(others) + 1, ((rate, 1),))
    counted = Composition(steps, alone).curve("add-remove").delta(epsilon=epsilon)
    assert true <= counted + 1e-7


def test_without_it_the_certificate_was_too_small():
    """One other record, half the time nobody."""
    true = reached(2.0, 1.0, 0.3, (1.0,), -1.0)
    assert true > 1.5 * DPSGD(1.0, 0.3, 1).curve("add-remove").delta(epsilon=2.0)
