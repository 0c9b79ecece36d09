import math

import pytest

from dprime import DPSGD, Composition
from dprime.mechanisms import Gaussian
from dprime.monitor.ledger import NO_NOISE, Accumulated, Ledger, Step, Unprotected
from dprime.profile import risk_profile


def shuffled(noise, passing, **more):
    return Step(noise, 0.25, "shuffle", passing=passing, **more)


def test_nothing_was_spent():
    assert Ledger().mechanism() is None
    assert Ledger().mechanism(Gaussian(10.0)) == Gaussian(10.0)


def test_equal_steps_are_one_entry_and_one_mechanism():
    ledger = Ledger()
    for noise in (1.0, 1.0, 2.0, 1.0):
        ledger.add(Step(noise, 0.1))
    assert [count for _, count in ledger.entries] == [2, 1, 1]
    assert ledger.mechanism() == Composition(DPSGD(1.0, 0.1, 3), DPSGD(2.0, 0.1, 1))
    assert ledger.mechanism(Gaussian(9.0)).mechanisms[0] == Gaussian(9.0)


def test_the_first_steps_again():
    ledger = Ledger([(Step(1.0, 0.1), 5), (Step(2.0, 0.1), 5)])
    assert ledger.first(7).entries == ((Step(1.0, 0.1), 5), (Step(2.0, 0.1), 2))
    assert ledger.first(0).mechanism() is None


def test_the_state_comes_back():
    ledger = Ledger([(Step(1.0, 0.1), 5), (shuffled(2.0, 3, uncovered="why", stated=1.5), 2)])
    again = Ledger.from_state(ledger.state_dict())
    assert (again.entries, again.steps, again.batches) == (ledger.entries, 7, 7)


@pytest.mark.parametrize("bad", [Step(0.0, 0.1), Step(1e-4, 0.1), Step(1.0, 0.1, uncovered="why")])
def test_one_step_without_protection_leaves_none(bad):
    found = Ledger([(Step(1.0, 0.1), 5), (bad, 1)]).mechanism()
    assert found == Unprotected(6, bad.uncovered or NO_NOISE)
    curve = Composition(DPSGD(1.0, 0.1, 10), found).curve()
    assert (curve.advantage(), curve.epsilon(1e-5)) == (1.0, math.inf)
    assert [answer.value for answer in risk_profile(curve)][:2] == [1.0, 0.0]


def test_batches_that_are_added_up_are_not_one_larger_batch():
    step = Step(1.0, 0.02, batches=3)
    found = Ledger([(step, 50)]).mechanism()
    assert found == Accumulated(DPSGD(1.0, 0.02, 50), 3)
    group = DPSGD(1.0, 0.02, 50).curve(group_size=3)
    assert found.curve().epsilon(1e-5) == group.epsilon(1e-5)
    assert found.curve().epsilon(1e-5) > DPSGD(1.0, 0.06, 50).curve().epsilon(1e-5)


@pytest.mark.parametrize("noises", [(2.0, 1.0), (1.0, 2.0)])
def test_a_pass_costs_its_least_noise(noises):
    steps = [(shuffled(noise, 1), 2) for noise in noises]
    ledger = Ledger([*steps, (shuffled(2.0, 2), 4)])
    curve = ledger.mechanism().curve("replace")
    assert curve.d_prime() == pytest.approx(math.sqrt(4.0 / 1.0 + 4.0 / 4.0), rel=1e-9)


def test_passes_that_were_left_early_count_in_full():
    ledger = Ledger([(shuffled(2.0, number), 1) for number in range(5)])
    assert ledger.steps == 5  # one epoch and a quarter, by the steps
    assert ledger.mechanism() == DPSGD(2.0, 0.25, 17, sampling="shuffle")
    assert ledger.mechanism().curve("replace").d_prime() == pytest.approx(math.sqrt(5.0))


@pytest.mark.parametrize(("begun", "more", "passes"), [(4, 4, 2), (2, 2, 1), (2, 3, 2), (2, 11, 4)])
def test_a_forecast_goes_on_where_the_pass_is(begun, more, passes):
    now = shuffled(2.0, 1)
    future = Ledger([(now, begun)]).extended(now, more, batches_in_epoch=4)
    assert future.steps == begun + more
    curve = future.mechanism().curve("replace")
    assert curve.d_prime() == pytest.approx(math.sqrt(passes))


def test_a_forecast_of_poisson_batches_only_adds_steps():
    now = Step(1.0, 0.1)
    assert Ledger([(now, 3)]).extended(now, 4, 10).mechanism() == DPSGD(1.0, 0.1, 7)


def test_many_noises_are_rounded_to_the_safe_side():
    noises = [1.0 + 0.001 * i for i in range(200)]
    ledger = Ledger([(Step(noise, 0.01), 5) for noise in noises])
    found = ledger.mechanism()
    assert len(found.mechanisms) < 50
    exact = Composition(*(DPSGD(noise, 0.01, 5) for noise in noises)).curve().advantage()
    assert exact <= found.curve().advantage() <= 1.006 * exact
    assert all(part.noise_multiplier < noises[-1] for part in found.mechanisms)
