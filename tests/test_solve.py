import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dprime
from dprime import DPSGD, Composition, Gaussian, PoolSampled, choose
from dprime.metrics import TARGETS
from dprime.privacy_loss import NotCertifiableError
from dprime.solve import Target, solve
from test_metrics import EXAMPLES

WITHIN = 1e-3
"""The promise: at most the target and within this share of it."""


def check_kept(mechanism, target, adjacency=None, group_size=1):
    goal = Target.of(target)
    curve = mechanism.curve(goal.adjacency(adjacency), group_size=group_size)
    value = goal.reading.value(curve)
    assert goal.keeps(value)
    sign = 1 if goal.reading.metric.rises else -1
    assert sign * value >= sign * goal.value - WITHIN * (goal.value if sign > 0 else 1 - goal.value)
    return curve


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("known", [{"sample_rate": 0.01}, {"noise_multiplier": 1.0}])
def test_noise_and_rate_for_every_target(known, name):
    check_kept(choose(DPSGD(**known, steps=2000), **EXAMPLES[name]), EXAMPLES[name])


@pytest.mark.parametrize("name", ["advantage", "tpr", "epsilon"])
def test_steps_are_the_largest_safe_whole_number(name):
    chosen = choose(DPSGD(noise_multiplier=1.0, sample_rate=0.01), **EXAMPLES[name])
    goal = Target.of(EXAMPLES[name])
    assert goal.excess(chosen.curve()) <= 0
    one_more = DPSGD(1.0, 0.01, chosen.steps + 1)
    assert goal.excess(one_more.curve()) > 0


def test_epochs_are_the_largest_safe_whole_number():
    chosen = choose(DPSGD(1.0, 0.01), advantage=0.1, whole="epochs")
    assert chosen.steps == 300
    assert DPSGD(1.0, 0.01, 300).curve().advantage() <= 0.1
    assert DPSGD(1.0, 0.01, 400).curve().advantage() > 0.1


@settings(max_examples=25)
@given(
    rate=st.floats(-4, -0.3).map(lambda e: 10**e),
    steps=st.floats(0, 5).map(lambda e: int(10**e)),
    advantage=st.floats(0.02, 0.9),
    replace=st.booleans(),
)
def test_noise_for_any_advantage(rate, steps, advantage, replace):
    adjacency = "replace" if replace else "add-remove"
    try:
        chosen = choose(
            DPSGD(sample_rate=rate, steps=steps), advantage=advantage, adjacency=adjacency
        )
    except ValueError as error:
        assert "nothing to choose" in str(error)  # noqa: PT017
        assert "noise_multiplier from 0.001 up" in str(error) or "certified" in str(error)  # noqa: PT017
        assert DPSGD(0.05, rate, steps).curve(adjacency).advantage() <= advantage
        return
    check_kept(chosen, {"advantage": advantage}, adjacency)


def test_a_group_needs_more_noise():
    one = choose(DPSGD(sample_rate=0.01, steps=2000), advantage=0.1)
    three = choose(DPSGD(sample_rate=0.01, steps=2000), advantage=0.1, group_size=3)
    assert three.noise_multiplier > 2 * one.noise_multiplier
    check_kept(three, {"advantage": 0.1}, group_size=3)


@pytest.mark.parametrize(
    "mechanism",
    [
        dprime.Laplace(steps=30),
        dprime.EpsilonDelta(delta=1e-6, steps=4),
        dprime.RandomizedResponse(steps=5),
        DPSGD(sample_rate=0.1, steps=30, sampling="fixed-size"),
        pytest.param(dprime.ZCDP(), marks=pytest.mark.slow),
    ],
    ids=lambda m: type(m).__name__,
)
def test_any_mechanism_with_one_open_parameter(mechanism):
    adjacency = "replace" if getattr(mechanism, "sampling", "") else None
    chosen = choose(mechanism, advantage=0.3, adjacency=adjacency)
    check_kept(chosen, {"advantage": 0.3}, adjacency)


def test_one_phase_of_a_composition():
    plan = Composition(DPSGD(1.0, 0.01, 500), DPSGD(sample_rate=0.01, steps=1500))
    chosen = choose(plan, advantage=0.2)
    check_kept(chosen, {"advantage": 0.2})
    assert chosen.mechanisms[0] == plan.mechanisms[0]


class TestPool:
    training = DPSGD(1.0, 0.01, 2000)

    def test_probability_for_a_precision(self):
        chosen = choose(PoolSampled(self.training), precision=0.2, min_tpr=0.01)
        curve = chosen.curve()
        assert curve.precision(chosen.prior, 0.01) <= 0.2
        assert curve.precision(chosen.prior * 1.0001, 0.01) > 0.2

    def test_probability_for_a_belief(self):
        chosen = choose(PoolSampled(self.training), belief=0.5, exceeded=0.001)
        assert chosen.curve().belief(chosen.prior, 0.001) == pytest.approx(0.5, rel=1e-9)

    def test_noise_at_a_probability(self):
        open_noise = DPSGD(sample_rate=0.01, steps=2000)
        chosen = choose(PoolSampled(open_noise, 0.1), precision=0.2)
        same = choose(open_noise, precision=0.2, prior=0.1)
        assert chosen.training == same

    def test_epsilon_at_a_probability(self):
        chosen = choose(PoolSampled(dprime.EpsilonDelta(), 0.1), precision=0.2)
        exact = math.log(0.2 / 0.8) - math.log(0.1 / 0.9)
        assert chosen.training.epsilon == pytest.approx(exact, rel=1e-3)
        assert chosen.training.epsilon <= exact

    def test_targets_without_a_prior(self):
        chosen = choose(PoolSampled(DPSGD(sample_rate=0.01, steps=2000), 0.1), advantage=0.1)
        check_kept(chosen, {"advantage": 0.1})

    def test_success_of_the_rarest_record_counts_too(self):
        """At 0.3 blind guessing is right for 0.7 of the records, at 0.5 for half of them."""
        pool = PoolSampled(DPSGD(sample_rate=0.01, steps=2000), 0.5, least=0.3)
        curve = choose(pool, success=0.75).curve()
        assert max(curve.success(prior) for prior in (0.3, 0.4, 0.5)) <= 0.75
        assert curve.success(0.3) >= 0.7499
        with pytest.raises(ValueError, match=r"success must be above 0\.9"):
            choose(PoolSampled(DPSGD(sample_rate=0.01, steps=2000), 0.5, least=0.1), success=0.75)


OPEN, POOL = DPSGD(sample_rate=0.01, steps=2000), PoolSampled(DPSGD(1.0, 0.01, 2000))
DRAWN = PoolSampled(OPEN, 0.95)
SECRET = {"secret_success": 0.7, "max_prior": 0.5}

REFUSED = [
    ("dpsgd", {"advantage": 0.1}, "mechanism must be a mechanism"),
    (DPSGD(sample_rate=0.1), {"advantage": 0.1}, "noise_multiplier and steps are missing"),
    (DPSGD(1.0, 0.1, 10), {"advantage": 0.1}, "but none is missing"),
    (OPEN, {}, "Exactly one of advantage"),
    (Gaussian(5.0, None), {"advantage": 0.3, "whole": "epochs"}, "whole must be 'steps' for a mec"),
    (Gaussian(5.0, None), {"advantage": 0.3, "whole": "days"}, "whole must be one of steps, epo"),
    # a pool
    (DRAWN, SECRET, "adjacency must be 'add-remove' for a pool"),
    (DRAWN, {**SECRET, "adjacency": "replace"}, "adjacency must be 'add-remove' for a pool"),
    (DRAWN, {"advantage": 0.1, "adjacency": "replace"}, "adjacency must be 'add-remove' for"),
    (DRAWN, {"advantage": 0.1, "group_size": 2}, "group_size must be 1 for a pool"),
    (POOL, {"precision": 0.2, "prior": 0.1}, "prior must be left out for a pool"),
    (POOL, {"advantage": 0.2}, "target must be precision or belief"),
    (POOL, {}, "target must be precision or belief"),
    (PoolSampled(dprime.EpsilonDelta(1.0, 0.5)), {"precision": 0.2, "min_tpr": 0.1},
     r"precision 0\.2 cannot be met at any probability"),
    # no value is safe
    (DPSGD(1.0, 0.1), {"advantage": 1e-4}, r"nearest possible .* advantage 0.038\d*, at 1 step"),
    (DPSGD(sample_rate=0.5, steps=10**7), {"bayes_security": 0.99999999},
     "cannot be met at any noise_multiplier up to 100000: the nearest .* bayes_security 0.99"),
    (DPSGD(sample_rate=0.1, steps=10**7), {"epsilon": 1.0, "delta": 1e-13},
     "for delta 1e-13; give a larger delta"),
    (dprime.GDP(), {"advantage": 1e-12}, "cannot be met at any mu from 1e-07 up: the nearest"),
    # every value is safe
    (DPSGD(100.0, 1e-6), {"bayes_security": 0.2},
     "bayes_security stays above its target for every number of steps .* even .* steps are safe"),
    (DPSGD(noise_multiplier=50.0, steps=3), {"advantage": 0.5},
     "advantage stays below its target at every sample_rate up to 1, .* advantage 0.0138"),
    (dprime.Laplace(), {"epsilon": 600, "delta": 1e-5},
     "at every noise_multiplier from 0.002 up, .* at 0.002 .* epsilon 500"),
]  # fmt: skip


@pytest.mark.parametrize(("mechanism", "how", "words"), REFUSED)
def test_what_cannot_be_chosen(mechanism, how, words):
    with pytest.raises(dprime.InputError, match=words):
        choose(mechanism, **how)


def test_the_last_value_that_can_be_certified_is_named(monkeypatch):
    losses = dprime.GDP.stated_losses

    def up_to_3(mechanism):
        if mechanism.mu > 3:
            raise NotCertifiableError("no")
        return losses(mechanism)

    monkeypatch.setattr(dprime.GDP, "stated_losses", up_to_3)
    with pytest.raises(dprime.InputError, match=r"mu that can be certified, .*: at 3 the near"):
        choose(dprime.GDP(), epsilon=400, delta=1e-5)


@pytest.mark.parametrize("mechanism", [Gaussian(), dprime.Laplace()])
@pytest.mark.parametrize("epsilon", [50.0, 400.0])
def test_little_noise_for_a_large_epsilon(mechanism, epsilon):
    target = {"epsilon": epsilon, "delta": 1e-5}
    check_kept(choose(mechanism, **target), target)


def test_shuffled_rates_are_on_the_safe_side_of_a_jump():
    """At 1/17 a pass has 17 steps; any rate above it leaves 16, and more passes."""
    plan = DPSGD(20.0, steps=1000, sampling="shuffle")
    chosen = choose(plan, adjacency="replace", advantage=0.3)
    assert chosen.curve("replace").advantage() <= 0.3
    assert Fraction(chosen.sample_rate) <= Fraction(1, 17)
    above = DPSGD(20.0, math.nextafter(1 / 17, 1), 1000, sampling="shuffle")
    assert above.curve("replace").advantage() > 0.3


def test_steps_up_to_the_last_that_can_be_certified():
    target = DPSGD(20.0, 1e-4, 9_000_000).curve().advantage() * 1.0001
    chosen = choose(DPSGD(20.0, 1e-4), advantage=target)
    assert 8_900_000 < chosen.steps <= 10_000_000
    assert chosen.curve().advantage() <= target


CLOSED = {
    "noise": DPSGD(sample_rate=1.0, steps=30),
    "gaussian": Gaussian(steps=7),
    "mu": dprime.GDP(adjacency="replace"),
    "epsilon": dprime.EpsilonDelta(delta=1e-6, adjacency="replace"),
    "response": dprime.RandomizedResponse(),
}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("mechanism", CLOSED.values(), ids=CLOSED)
def test_closed_forms_are_at_the_target_and_safe(mechanism, name):
    found = solve(mechanism, EXAMPLES[name], adjacency="replace")
    target = Target.of(EXAMPLES[name])
    value = target.reading.value(found.mechanism.curve("replace"))
    assert target.keeps(value)
    assert value == pytest.approx(target.value, rel=1e-10)
    assert target.reading.value(found.curve) == value


def test_the_curve_that_was_found_is_that_of_the_answer():
    for plan in (DPSGD(sample_rate=0.01, steps=500), DPSGD(1.0, 0.01), PoolSampled(Gaussian(9.0))):
        target = {"precision": 0.5} if isinstance(plan, PoolSampled) else {"advantage": 0.1}
        found = solve(plan, target)
        assert found.curve.advantage() == found.mechanism.curve().advantage()
        assert plan.free_parameters() == [found.parameter]
        assert found.mechanism.free_parameters() == []


@settings(max_examples=25, deadline=None)
@given(noise=st.floats(5, 500), advantage=st.floats(0.05, 0.95))
def test_whole_steps_equal_the_closed_form(noise, advantage):
    """mu = sqrt(steps) / z, and the advantage is 2 Phi(mu / 2) - 1."""
    first = Gaussian(noise).curve().advantage()
    if first > advantage:
        return
    steps = choose(Gaussian(noise, None), advantage=advantage).steps
    assert Gaussian(noise, steps).curve().advantage() <= advantage
    assert Gaussian(noise, steps + 1).curve().advantage() > advantage
