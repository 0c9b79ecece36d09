import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dprime
from dprime import DPSGD, Composition, Gaussian, PoolSampled, choose
from dprime.metrics import TARGETS
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
def test_noise_for_every_target(name):
    chosen = choose(DPSGD(sample_rate=0.01, steps=2000), **EXAMPLES[name])
    check_kept(chosen, EXAMPLES[name])


@pytest.mark.parametrize("name", TARGETS)
def test_rate_for_every_target(name):
    chosen = choose(DPSGD(noise_multiplier=1.0, steps=2000), **EXAMPLES[name])
    check_kept(chosen, EXAMPLES[name])


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


def test_exact_gaussian_noise():
    chosen = choose(Gaussian(steps=30), advantage=0.26789)
    assert chosen.noise_multiplier == pytest.approx(8.0, rel=1e-3)


@pytest.mark.parametrize(
    "mechanism",
    [
        dprime.Laplace(steps=30),
        dprime.GDP(),
        dprime.EpsilonDelta(delta=1e-6, steps=4),
        dprime.RandomizedResponse(steps=5),
        DPSGD(sample_rate=0.1, steps=30, sampling="fixed-size"),
    ],
    ids=lambda m: type(m).__name__,
)
def test_any_mechanism_with_one_open_parameter(mechanism):
    adjacency = "replace" if getattr(mechanism, "sampling", "") else None
    chosen = choose(mechanism, advantage=0.3, adjacency=adjacency)
    check_kept(chosen, {"advantage": 0.3}, adjacency)


def test_zcdp_by_its_rho():
    chosen = choose(dprime.ZCDP(), epsilon=1.0, delta=1e-5)
    check_kept(chosen, {"epsilon": 1.0, "delta": 1e-5})


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

    @pytest.mark.parametrize(
        ("how", "words"),
        [
            ({"secret_success": 0.7, "max_prior": 0.5}, "must be about who was drawn .*secret_su"),
            ({"advantage": 0.1, "adjacency": "replace"}, "adjacency must be 'add-remove'"),
            ({"advantage": 0.1, "group_size": 2}, "group_size must be 1 for a pool"),
        ],
    )
    def test_what_a_pool_does_not_answer(self, how, words):
        with pytest.raises(ValueError, match=words):
            choose(PoolSampled(DPSGD(sample_rate=0.01, steps=2000), 0.95), **how)

    @pytest.mark.parametrize(
        ("target", "words"),
        [
            ({"precision": 0.2, "prior": 0.1}, "prior must be left out for a pool"),
            ({"advantage": 0.2}, "target must be precision or belief"),
            ({}, "target must be precision or belief"),
        ],
    )
    def test_bad_targets(self, target, words):
        with pytest.raises(ValueError, match=words):
            choose(PoolSampled(self.training), **target)

    def test_a_training_that_reveals_everything(self):
        with pytest.raises(ValueError, match=r"precision 0\.2 cannot be met at any probability"):
            choose(PoolSampled(dprime.EpsilonDelta(1.0, 0.5)), precision=0.2, min_tpr=0.1)


@pytest.mark.parametrize(
    ("mechanism", "target", "words"),
    [
        (DPSGD(1.0, 0.1), {"advantage": 1e-4}, r"nearest possible value is advantage 0.038\d*, at"),
        (DPSGD(sample_rate=1e-4, steps=1), {"advantage": 0.1}, "nearest possible value is advan"),
        (DPSGD(100.0, 1e-6), {"advantage": 0.5}, r"even .* steps are safe"),
        (
            DPSGD(sample_rate=0.5, steps=10_000_000),
            {"bayes_security": 0.99999999},
            "nearest possible value is bayes_security 0.99",
        ),
        (DPSGD(sample_rate=0.1), {"advantage": 0.1}, "noise_multiplier and steps are missing"),
        (DPSGD(1.0, 0.1, 10), {"advantage": 0.1}, "but none is missing"),
        (DPSGD(sample_rate=0.1, steps=10), {}, "Exactly one of advantage"),
        (Gaussian(noise_multiplier=1.0, steps=None), {"advantage": 0.01}, "cannot be met"),
        ("dpsgd", {"advantage": 0.1}, "mechanism must be a mechanism"),
        (
            DPSGD(sample_rate=0.1, steps=10_000_000),
            {"epsilon": 1.0, "delta": 1e-13},
            "for delta 1e-13; give a larger delta",
        ),
    ],
)
def test_what_cannot_be_chosen(mechanism, target, words):
    with pytest.raises(ValueError, match=words):
        choose(mechanism, **target)


def test_epochs_need_a_rate():
    with pytest.raises(ValueError, match="whole must be 'steps' for a mechanism without"):
        choose(Gaussian(5.0, steps=None), advantage=0.3, whole="epochs")
    with pytest.raises(ValueError, match="whole must be one of steps, epochs, but it is 'days'"):
        choose(Gaussian(5.0, steps=None), advantage=0.3, whole="days")


@pytest.mark.parametrize(
    ("mechanism", "target", "words"),
    [
        (
            DPSGD(noise_multiplier=50.0, steps=3),
            {"advantage": 0.5},
            "advantage stays below its target at every sample_rate up to 1, .* advantage 0.0138",
        ),
        (
            DPSGD(noise_multiplier=50.0, steps=3),
            {"bayes_security": 0.2},
            "bayes_security stays above its target at every sample_rate up to 1, .* 0.98",
        ),
        (
            Gaussian(),
            {"epsilon": 1e7, "delta": 1e-5},
            "epsilon stays below its target at every noise_multiplier from 0.001 up",
        ),
        (
            dprime.Laplace(),
            {"epsilon": 600, "delta": 1e-5},
            "at every noise_multiplier from 0.002 up, .* at 0.002 .* epsilon 500",
        ),
        (
            dprime.ZCDP(),
            {"epsilon": 1e9, "delta": 1e-5},
            "at every rho that can be certified, so there is nothing to choose: at 504",
        ),
        (
            DPSGD(sample_rate=0.5, steps=10**7),
            {"advantage": 1e-6},
            "cannot be met at any noise_multiplier up to 100000: the nearest",
        ),
        (dprime.GDP(), {"advantage": 1e-12}, "cannot be met at any mu from 1e-07 up: the nearest"),
        (
            DPSGD(100.0, 1e-6),
            {"bayes_security": 0.2},
            "bayes_security stays above its target for every number of steps",
        ),
    ],
)
def test_the_end_of_a_range_is_named(mechanism, target, words):
    with pytest.raises(ValueError, match=words):
        choose(mechanism, **target)


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


def test_a_pool_refuses_an_adjacency_for_every_target():
    for target in ({"secret_success": 0.7, "max_prior": 0.5}, {"advantage": 0.1}):
        with pytest.raises(ValueError, match="pool"):
            choose(PoolSampled(Gaussian(), 0.3), adjacency="replace", **target)
