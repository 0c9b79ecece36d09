"""The tails that the noise lacks: what they reveal at most, and that nothing else is revealed."""

import math
from dataclasses import asdict

import numpy as np
import pytest
from scipy.integrate import quad

from dprime import DPSGD, Composition
from dprime.monitor.ledger import Ledger, NoGuarantee, StepRecord
from dprime.monitor.tails import (
    FLOAT32_END,
    FLOAT64_END,
    NoiseEnds,
    NoiseTails,
    _one_pair,
    leaving,
    tails_of,
    with_tails,
    without_tails,
)


def test_the_ends_are_those_of_box_and_muller():
    assert pytest.approx(math.sqrt(-2 * math.log(2.0**-24))) == FLOAT32_END
    assert pytest.approx(math.sqrt(-2 * math.log(2.0**-53))) == FLOAT64_END


@pytest.mark.parametrize("shift", [1e-4, 0.03, 0.5, 1.0, 3.0, 5.7])
@pytest.mark.parametrize("end", [1.5, FLOAT32_END])
def test_one_pair_by_another_integral(shift, end):
    """Over the angle of the pair: how much of each ray lies inside before the shift, not after."""

    def outside(angle):
        edge = math.sqrt(end**2 - (shift * math.sin(angle)) ** 2) - shift * math.cos(angle)
        return math.exp(-0.5 * min(edge, end) ** 2) - math.exp(-0.5 * end**2)

    if shift >= end:
        assert _one_pair(shift, end) == 1.0
        return
    half, _ = quad(outside, 0.0, math.pi, epsabs=0, epsrel=1e-8, limit=400)
    wanted = half / math.pi / -math.expm1(-0.5 * end**2)
    assert _one_pair(shift, end) == pytest.approx(wanted, rel=1e-5)


def test_no_gradient_leaves_more_often_than_is_counted():
    rng = np.random.default_rng(1)
    for pairs in (1, 2, 7, 40):
        for length in (0.3, 1.0, 2.0):
            for _ in range(20):
                shifts = rng.random(pairs) ** rng.uniform(0.0, 8.0) + 1e-12
                shifts *= length / np.linalg.norm(shifts)
                total = sum(_one_pair(each, FLOAT32_END) for each in shifts)
                assert total <= leaving(length, FLOAT32_END, pairs)


class Plane:
    """One pair of numbers under noise that ends at a circle, on a fine lattice."""

    STEP = 0.02

    def __init__(self, end):
        ticks = np.arange(-6.0, 6.0, self.STEP) + self.STEP / 2
        self.x, self.y = np.meshgrid(ticks, ticks)
        self.end = end

    def law(self, moved, *, ends=True):
        squared = (self.x - moved) ** 2 + self.y**2
        mass = np.exp(-0.5 * squared)
        if ends:
            mass = np.where(squared <= self.end**2, mass, 0.0)
        return mass / mass.sum()


def excess(p, q, epsilon):
    """δ at ε."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


@pytest.mark.parametrize("rate", [1.0, 0.2])
@pytest.mark.parametrize("shift", [0.3, 1.0])
@pytest.mark.parametrize("end", [1.2, 2.0, 3.0])
def test_the_ends_cost_what_leaves_and_nothing_else(rate, shift, end):
    """Both directions, with ends so near that they matter, on the lattice of the ideal law."""
    plane = Plane(end)

    def worlds(*, ends):
        out = plane.law(0.0, ends=ends)
        return (1 - rate) * out + rate * plane.law(shift, ends=ends), out

    cut, ideal = worlds(ends=True), worlds(ends=False)
    lost = float(cut[0][cut[1] == 0].sum())
    assert lost == pytest.approx(rate * _one_pair(shift, end), rel=0.03)  # the lattice is coarse
    for epsilon in (0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0):
        for one, other in ((0, 1), (1, 0)):
            delta = excess(cut[one], cut[other], epsilon)
            limit = lost + (1 - lost) * excess(ideal[one], ideal[other], epsilon)
            assert delta <= limit + 1e-9
    assert excess(*cut, 30.0) == pytest.approx(lost)


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_a_replaced_record_counts_twice_the_shift(rate):
    plane, shift = Plane(2.0), 0.4

    def worlds(*, ends):
        rest = (1 - rate) * plane.law(0.0, ends=ends)
        return (rest + rate * plane.law(moved, ends=ends) for moved in (shift, -shift))

    (p, q), (p_ideal, q_ideal) = worlds(ends=True), worlds(ends=False)
    there, back = plane.law(shift), plane.law(-shift)
    lost = rate * float(there[back == 0].sum())
    assert lost == pytest.approx(rate * _one_pair(2 * shift, 2.0), rel=0.03)
    for epsilon in (0.0, 0.1, 0.5, 1.0, 3.0):
        limit = lost + (1 - lost) * excess(p_ideal, q_ideal, epsilon)
        assert excess(p, q, epsilon) <= limit + 1e-9


def test_phases_of_a_training():
    steps = [
        (StepRecord(1.0, 0.1), 5),
        (StepRecord(2.0, 0.1, batches=3), 2),
        (StepRecord(1.0, 0.1), 5),
    ]
    tails = tails_of(steps, NoiseEnds(FLOAT32_END, 100))
    assert tails.phases == ((1.0, 0.1, 10, 1), (2.0, pytest.approx(0.3), 2, 3))
    one, three = leaving(1.0, FLOAT32_END, 100), leaving(1.5, FLOAT32_END, 100)
    assert tails.probability("add-remove") == pytest.approx(1.0 * one + 0.6 * three)
    twice = leaving(2.0, FLOAT32_END, 100)
    assert tails.probability("replace") > 1.0 * twice
    assert tails.curve().delta(100.0) == pytest.approx(tails.probability("add-remove"), rel=1e-6)
    passes = [(StepRecord(1.0, 0.1, "shuffle", pass_index=n), 10) for n in (1, 2)]
    weaker = [(StepRecord(0.5, 0.1, "shuffle", pass_index=2), 1)]
    found = tails_of(passes + weaker, NoiseEnds(FLOAT32_END, 100))
    assert found.phases == ((1.0, 1.0, 1, 1), (0.5, 1.0, 1, 1))


def test_many_noises_are_brought_to_a_grid():
    steps = [(StepRecord(1.0 + n / 1000, 0.1), 1) for n in range(500)]
    tails = tails_of(steps, NoiseEnds(FLOAT32_END, 10))
    assert len(tails.phases) < 100
    exact = sum(0.1 * leaving(1 / (1.0 + n / 1000), FLOAT32_END, 10) for n in range(500))
    assert exact <= tails.probability("add-remove") <= 1.1 * exact


def test_where_no_tails_are_counted():
    ledger = Ledger([(StepRecord(1.0, 0.1), 5)])
    training, ends = ledger.mechanism(), NoiseEnds(FLOAT32_END, 10)
    assert with_tails(training, ledger, NoiseEnds(None, 10)) is training
    assert with_tails(None, Ledger(), ends) is None
    bare = NoGuarantee(5, "why")
    assert with_tails(bare, ledger, ends) is bare
    both = with_tails(training, ledger, ends)
    assert isinstance(both, Composition)
    assert without_tails(both) == training
    assert without_tails(training) is training
    assert NoiseTails(FLOAT64_END, 10**6, ((1.0, 0.1, 1000, 1),)).probability("replace") < 1e-8
    assert both.curve().advantage() == pytest.approx(
        DPSGD(1.0, 0.1, 5).curve().advantage(), abs=1e-5
    )


def test_a_training_that_goes_on_has_the_worse_noise():
    secure, plain = NoiseEnds(None, 10), NoiseEnds(FLOAT32_END, 20)
    assert secure.worst(asdict(plain)) == NoiseEnds(FLOAT32_END, 20)
    assert plain.worst(asdict(secure)) == NoiseEnds(FLOAT32_END, 20)
    assert secure.worst(asdict(secure)) == secure
    assert NoiseEnds(FLOAT64_END, 5).worst(asdict(plain)) == plain
