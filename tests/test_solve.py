import math
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dprime
from dprime import DPSGD, GDP, Composition, EpsilonDelta, Gaussian, PoolSampled, choose
from dprime.metrics import TARGETS
from dprime.privacy_loss import NotCertifiableError
from dprime.solve import Target, solve
from test_metrics import EXAMPLES
from told import refuses

OPEN, PLAN = DPSGD(sample_rate=0.01, steps=2000), DPSGD(1.0, 0.01, 2000)
WITHIN, POLISHED = 1e-3, 1e-10
"""The promise: on the safe side, and within this share of the target; nearer in closed form."""


def kept(plan, target, adjacency=None, group_size=1, within=WITHIN):
    """What is found for the one parameter left out; its curve is that of the answer."""
    found = solve(plan, target, adjacency=adjacency, group_size=group_size)
    assert (plan.free_parameters(), found.mechanism.free_parameters()) == ([found.parameter], [])
    goal = Target.of(target)
    curve = found.mechanism.curve(goal.reading.adjacency(adjacency), group_size=group_size)
    value = goal.reading.value(curve)
    assert goal.keeps(value)
    assert value == goal.reading.value(found.curve)
    assert abs(value - goal.value) <= within * (
        goal.value if goal.reading.metric.rises else 1 - goal.value
    )
    return found.mechanism


PLANS = {
    "noise": (OPEN, None, WITHIN),
    "rate": (DPSGD(noise_multiplier=1.0, steps=2000), None, WITHIN),
    "full batch": (DPSGD(sample_rate=1.0, steps=30), "replace", POLISHED),
    "gaussian": (Gaussian(steps=7), "replace", POLISHED),
    "mu": (GDP(adjacency="replace"), "replace", POLISHED),
    "epsilon": (EpsilonDelta(delta=1e-6, adjacency="replace"), "replace", POLISHED),
    "response": (dprime.RandomizedResponse(), "replace", POLISHED),
}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("plan", PLANS)
def test_every_target_is_kept(plan, name):
    mechanism, adjacency, within = PLANS[plan]
    kept(mechanism, EXAMPLES[name], adjacency, within=within)


@pytest.mark.parametrize(
    ("mechanism", "adjacency"),
    [
        (dprime.Laplace(steps=30), None),
        (EpsilonDelta(delta=1e-6, steps=4), None),
        (dprime.RandomizedResponse(steps=5), None),
        (DPSGD(sample_rate=0.1, steps=30, sampling="fixed-size"), "replace"),
        (Composition(DPSGD(1.0, 0.01, 500), DPSGD(sample_rate=0.01, steps=1500)), None),
        (PoolSampled(OPEN, 0.1), None),
        pytest.param(dprime.ZCDP(), None, marks=pytest.mark.slow),
    ],
    ids=lambda m: type(m).__name__,
)
def test_any_mechanism_with_one_open_parameter(mechanism, adjacency):
    kept(mechanism, {"advantage": 0.3}, adjacency)


@pytest.mark.parametrize("name", ["advantage", "tpr", "epsilon"])
def test_steps_are_the_largest_safe_whole_number(name):
    chosen, goal = choose(DPSGD(1.0, 0.01), **EXAMPLES[name]), Target.of(EXAMPLES[name])
    assert goal.excess(chosen.curve()) <= 0
    assert goal.excess(DPSGD(1.0, 0.01, chosen.steps + 1).curve()) > 0


def test_epochs_are_the_largest_safe_whole_number():
    assert choose(DPSGD(1.0, 0.01), advantage=0.1, round_to="epochs").steps == 300
    assert DPSGD(1.0, 0.01, 300).curve().advantage() <= 0.1
    assert DPSGD(1.0, 0.01, 400).curve().advantage() > 0.1


@settings(max_examples=25)
@given(noise=st.floats(5, 500), advantage=st.floats(0.05, 0.95))
def test_whole_steps_equal_the_closed_form(noise, advantage):
    assume(Gaussian(noise).curve().advantage() <= advantage)
    steps = choose(Gaussian(noise, None), advantage=advantage).steps
    assert Gaussian(noise, steps).curve().advantage() <= advantage
    assert Gaussian(noise, steps + 1).curve().advantage() > advantage


def test_steps_up_to_the_last_that_can_be_certified():
    target = DPSGD(20.0, 1e-4, 9_000_000).curve().advantage() * 1.0001
    chosen = choose(DPSGD(20.0, 1e-4), advantage=target)
    assert 8_900_000 < chosen.steps <= 10_000_000
    assert chosen.curve().advantage() <= target


@settings(max_examples=25)
@given(
    rate=st.floats(-4, -0.3).map(lambda e: 10**e),
    steps=st.floats(0, 5).map(lambda e: int(10**e)),
    advantage=st.floats(0.02, 0.9),
    adjacency=st.sampled_from(["add-remove", "replace"]),
)
def test_noise_for_any_advantage(rate, steps, advantage, adjacency):
    try:
        kept(DPSGD(sample_rate=rate, steps=steps), {"advantage": advantage}, adjacency)
    except dprime.InputError as error:
        assert "nothing to choose" in str(error)  # noqa: PT017
        assert "noise_multiplier from 0.001 up" in str(error) or "certified" in str(error)  # noqa: PT017
        assert DPSGD(0.05, rate, steps).curve(adjacency).advantage() <= advantage


def test_a_group_needs_more_noise():
    one, three = (kept(OPEN, {"advantage": 0.1}, group_size=size) for size in (1, 3))
    assert three.noise_multiplier > 2 * one.noise_multiplier


@pytest.mark.parametrize("mechanism", [Gaussian(), dprime.Laplace()])
@pytest.mark.parametrize("epsilon", [50.0, 400.0])
def test_little_noise_for_a_large_epsilon(mechanism, epsilon):
    kept(mechanism, {"epsilon": epsilon, "delta": 1e-5})


def test_shuffled_rates_are_on_the_safe_side_of_a_jump():
    """At 1/17 a pass has 17 steps; any rate above it leaves 16, and more passes."""
    plan = DPSGD(20.0, steps=1000, sampling="shuffle")
    chosen = choose(plan, adjacency="replace", advantage=0.3)
    assert chosen.curve("replace").advantage() <= 0.3
    assert Fraction(chosen.sample_rate) <= Fraction(1, 17)
    above = plan.with_parameter("sample_rate", math.nextafter(1 / 17, 1))
    assert above.curve("replace").advantage() > 0.3


class TestPool:
    def test_probability_for_a_precision(self):
        chosen = choose(PoolSampled(PLAN), precision=0.2, min_tpr=0.01)
        curve = chosen.curve()
        assert curve.precision(chosen.prior, 0.01) <= 0.2
        assert curve.precision(chosen.prior * 1.0001, 0.01) > 0.2

    def test_probability_for_a_belief(self):
        chosen = choose(PoolSampled(PLAN), belief=0.5, exceeded=0.001)
        assert chosen.curve().belief(chosen.prior, 0.001) == pytest.approx(0.5, rel=1e-9)

    def test_the_probability_is_the_prior(self):
        chosen = choose(PoolSampled(OPEN, 0.1), precision=0.2)
        assert chosen.training == choose(OPEN, precision=0.2, prior=0.1)
        exact = math.log(0.2 / 0.8) - math.log(0.1 / 0.9)
        epsilon = choose(PoolSampled(EpsilonDelta(), 0.1), precision=0.2).training.epsilon
        assert exact * 0.999 <= epsilon <= exact

    def test_success_of_the_rarest_record_counts_too(self):
        """At 0.3 blind guessing is right for 0.7 of the records, at 0.5 for half of them."""
        curve = choose(PoolSampled(OPEN, 0.5, least=0.3), success=0.75).curve()
        assert max(curve.success(prior) for prior in (0.3, 0.4, 0.5)) <= 0.75
        assert curve.success(0.3) >= 0.7499


DRAWN, SECRET = PoolSampled(OPEN, 0.95), {"secret_success": 0.7, "max_prior": 0.5}
RARE = PoolSampled(OPEN, 0.5, least=0.1)
COUNTED = Gaussian(5.0, None)
test_what_is_refused = refuses(
    {
        "mechanism be a mechanism": lambda: choose("dpsgd", advantage=0.1),
        "Exactly one of noise_multiplier, steps be": lambda: choose(
            DPSGD(sample_rate=0.1), advantage=0.1
        ),
        "whole be a target": lambda: choose(DPSGD(1.0, 0.1), advantage=0.1, whole=True),
        "Exactly one of the parameters of DPSGD be left out": lambda: choose(PLAN, advantage=0.1),
        "Exactly one of advantage": lambda: choose(OPEN),
        "round_to be 'steps'": lambda: choose(COUNTED, advantage=0.3, round_to="epochs"),
        "round_to be one of steps": lambda: choose(COUNTED, advantage=0.3, round_to="days"),
        "adjacency be 'add-": lambda: choose(DRAWN, adjacency="replace", advantage=0.1),
        "group_size be 1 for a pool": lambda: choose(DRAWN, advantage=0.1, group_size=2),
        "prior be left out": lambda: choose(PoolSampled(PLAN), precision=0.2, prior=0.1),
        "The target be precision or": lambda: choose(PoolSampled(PLAN), advantage=0.2),
        "The target be precision or belief": lambda: choose(PoolSampled(PLAN)),
        "success be above 0.9": lambda: choose(RARE, success=0.75),
    }
)

DELTA = {"delta": 1e-5}
OUT_OF_REACH = [
    # no question about a pool
    (DRAWN, SECRET, "must be .* for a pool"),
    (DRAWN, {**SECRET, "adjacency": "replace"}, "must be .* for a pool"),
    # no value is safe
    (PoolSampled(EpsilonDelta(1.0, 0.5)), {"precision": 0.2, "min_tpr": 0.1},
     r"precision 0\.2 cannot be met at any sampling_probability"),
    (DPSGD(1.0, 0.1), {"advantage": 1e-4}, r"nearest possible .* advantage 0.038\d*, at 1 step"),
    (DPSGD(sample_rate=0.5, steps=10**7), {"bayes_security": 0.99999999},
     "cannot be met at any noise_multiplier up to 100000: the nearest .* bayes_security 0.99"),
    (DPSGD(sample_rate=0.1, steps=10**7), {"epsilon": 1.0, "delta": 1e-13},
     "for delta 1e-13; give a larger delta"),
    (GDP(), {"advantage": 1e-12}, "cannot be met at any mu from 1e-07 up: the nearest"),
    # every value is safe
    (DPSGD(100.0, 1e-6), {"bayes_security": 0.2},
     "bayes_security stays above its target at every number of steps up to 10,000,000, "),
    (DPSGD(noise_multiplier=50.0, steps=3), {"advantage": 0.5},
     "advantage stays below its target at every sample_rate up to 1, .* 0.0138.*, at sample"),
    (dprime.Laplace(), {"epsilon": 600, **DELTA},
     "at every noise_multiplier from 0.002 up, .* epsilon 500, at noise_multiplier 0.002"),
]  # fmt: skip


@pytest.mark.parametrize(("mechanism", "target", "words"), OUT_OF_REACH)
def test_what_cannot_be_chosen(mechanism, target, words):
    with pytest.raises(dprime.InputError, match=words):
        choose(mechanism, **target)


def test_the_last_value_that_can_be_certified_is_named(monkeypatch):
    curve = GDP.curve

    def up_to_3(mechanism, *rest, **options):
        if mechanism.mu > 3:
            raise NotCertifiableError("no")
        return curve(mechanism, *rest, **options)

    monkeypatch.setattr(GDP, "curve", up_to_3)
    with pytest.raises(dprime.InputError, match=r"mu that can be certified, .*, at mu 3"):
        choose(GDP(), epsilon=400, **DELTA)
