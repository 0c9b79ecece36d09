import copy
import json
import math
import tomllib

import numpy as np
import pytest
from scipy.stats import norm

import dprime
from dprime import DPSGD, GDP, Composition, EpsilonDelta, Gaussian, Laplace, PoolSampled, TradeOff
from dprime.mechanisms import ADJACENCIES, Mechanism
from dprime.parameters import steps_from_epochs, steps_in_pass
from told import refuses

read = Mechanism.from_dict
SMALL = DPSGD(1.0, 0.1, 20)
SHUFFLED = DPSGD(1.0, 0.1, 20, sampling="shuffle")
RESPONSE = dprime.RandomizedResponse(1.0, 3, 2)

EVERY = [
    Gaussian(2.0, 3),
    SMALL,
    DPSGD(1.0, 0.1, 20, public_size=True),
    DPSGD(1.0, 0.1, 20, sampling="fixed-size"),
    SHUFFLED,
    Composition(SMALL, Gaussian(3.0)),
    PoolSampled(SMALL, 0.2),
    PoolSampled(Composition(SMALL, Laplace(3.0)), 0.2, least=0.1),
    Laplace(2.0, 4, adjacency="replace"),
    RESPONSE,
    EpsilonDelta(1.0, 1e-5, 3),
    dprime.EpsilonDeltaProfile(((0.5, 0.01), (1.0, 1e-4))),
    dprime.RDP((2.0, 8.0, 32.0), (0.1, 0.4, 1.6)),
    dprime.ZCDP(0.05, 0.01),
    GDP(0.4),
    dprime.PLD((0.5, -0.5), (0.62, 0.37)),
]


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda m: type(m).__name__)
class TestContract:
    """What every mechanism must do, whatever it is."""

    def test_its_curve_is_certified_concave_and_between_blind_and_certain(self, mechanism):
        weaker = getattr(mechanism, "sampling", "poisson") != "poisson"
        curve = mechanism.curve("replace" if weaker else None)
        assert curve.kind == "certified"
        grid = np.linspace(0, 1, 101)
        tpr = np.array([curve.tpr(f) for f in grid])
        assert (tpr >= grid - 1e-12).all()
        assert (tpr <= 1).all()
        assert (np.diff(tpr, 2) <= 1e-9).all()
        assert 0 < curve.advantage() < 1
        assert curve.advantage() == pytest.approx((tpr - grid).max(), abs=2e-2)
        assert curve.reversed().advantage() == pytest.approx(curve.advantage(), abs=1.5e-15)

    def test_it_is_frozen_and_compares_by_value(self, mechanism):
        assert copy.deepcopy(mechanism) == mechanism
        assert hash(mechanism) == hash(copy.deepcopy(mechanism))
        with pytest.raises(AttributeError):
            mechanism.adjacency_of_tomorrow = 1

    def test_it_goes_through_json_and_toml_whatever_is_left_out(self, mechanism):
        assert mechanism.free_parameters() == []
        forms = [mechanism]
        for name in ("noise_multiplier", "sample_rate", "steps", "epsilon", "rho", "mu"):
            if hasattr(mechanism, name):
                forms.append(mechanism.with_parameter(name, None))
                assert forms[-1].free_parameters() == [name]
        for each in forms:
            text = json.dumps(each.to_dict(), allow_nan=False)
            assert "null" not in text  # of which TOML has none
            toml = "it = " + text.replace('": ', '" = ')
            assert read(json.loads(text)) == read(tomllib.loads(toml)["it"]) == each


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("k", [1, 3])
def test_full_batch_is_exactly_gaussian(adjacency, k):
    mu = k * math.sqrt(30) / 8 * (2 if adjacency == "replace" else 1)
    curve = Gaussian(8.0, 30).curve(adjacency, group_size=k)
    assert curve.advantage() == pytest.approx(2 * norm.cdf(mu / 2) - 1, rel=1e-12)
    same = DPSGD(8.0, 1.0, 30).curve(adjacency, group_size=k)
    assert same.advantage() == curve.advantage()


def test_a_group_is_riskier_than_one_and_safer_than_its_chain():
    plan = DPSGD(1.0, 0.05, 100)
    one, two = plan.curve(), plan.curve(group_size=2)
    assert one.advantage() < two.advantage()
    for fpr in (0.001, 0.01, 0.1, 0.5):  # adding two records one after the other
        assert two.tpr(fpr) <= one.tpr(one.tpr(fpr)) + 1e-9
    assert plan.curve(group_size=2000).advantage() == pytest.approx(1, abs=1e-9)


def test_fixed_size_step_is_the_theorem():
    noise, rate = 1.5, 0.2
    curve = DPSGD(noise, rate, 1, sampling="fixed-size").curve("replace")
    for epsilon in (0.0, 0.1, 0.4):
        inner = math.log1p(math.expm1(epsilon) / rate)
        exact = rate * TradeOff.gaussian(2 / noise).delta(inner)
        assert exact * (1 - 1e-12) <= curve.delta(epsilon) <= exact * 1.002


PASSES = [
    (2, [(0.25, 8)]),
    (3, [(0.25, 9)]),
    (10, [(0.4, 20)]),  # a pass of two steps drops its last, smaller batch
    (2, [(0.25, 4), (0.25, 8)]),  # the first phase ends with a pass
    (3, [(0.25, 3), (0.25, 9)]),  # one step of its pass, then two passes
    (4, [(0.25, 3), (0.25, 10)]),
    (1, [(0.25, 3), (0.25, 1)]),
    (3, [(0.25, 3), (0.25, 1), (0.25, 8)]),  # not certain to have gone on
    (3, [(0.3, 3), (0.25, 8)]),  # a pass has three steps, or four
    (2, [(1.0, 5), (0.25, 8)]),
]
"""Passes that the last of several phases can touch; phases are (rate, steps)."""


@pytest.mark.parametrize(("passes", "phases"), PASSES)
def test_a_shuffled_phase_counts_the_passes_that_it_can_touch(passes, phases):
    quiet = [DPSGD(1e6, *phase, sampling="shuffle") for phase in phases[:-1]]
    last = DPSGD(2.0, *phases[-1], sampling="shuffle")
    index = Composition(*quiet, last).curve("replace").d_prime()
    assert index**2 == pytest.approx(passes, rel=1e-9)


def test_steps_of_a_pass_are_never_too_many():
    above = (math.nextafter(1 / 17, 1), 0.05882352941521466)  # the second by less than 1e-10
    for rate in (1 / 3, 1.0):
        assert steps_in_pass(rate) == (round(1 / rate), True)
    for rate, steps in ((256 / 60_000, 234), (0.1 + 0.2, 3), (math.nextafter(0.1, 0), 10)):
        assert steps_in_pass(rate) == (steps, False)
    assert [steps_in_pass(rate) for rate in above] == [(16, False)] * 2
    assert steps_in_pass(5e-324) == (20_000_000, False)
    for batches in (*range(1, 2000), 46_341, 999_983):
        for batch in (1, 3, 7, 64, 1000):
            assert steps_in_pass(batch / (batch * batches)) == (batches, True)


def test_epochs_are_rounded_up():
    assert steps_from_epochs(60, 256 / 60_000) == 14_063
    assert steps_from_epochs(20, 0.01) == 2000
    assert DPSGD(1.0, 0.01, 2000).epochs == pytest.approx(20)


def test_pure_epsilons_add_up():
    whole = Composition(Laplace(1.0, 3), Laplace(2.0, 2))
    curve = whole.curve()
    assert curve.epsilon(1e-14) == pytest.approx(4.0, rel=1e-9)
    assert 4.0 <= curve.epsilon(1e-200) <= 4.0 * (1 + 1e-14)
    assert (curve.tpr(0.0), curve.reversed().tpr(0.0)) == (0.0, 0.0)
    assert curve.advantage() == pytest.approx(curve.reversed().advantage(), abs=1e-12)
    assert Composition(whole, Gaussian(5.0)).curve().epsilon(1e-13) > 4.0
    tiny = Laplace(1e11, 3).curve()  # which rounding would drown
    assert 0.75e-11 <= tiny.advantage() <= 0.76e-11
    assert 2.9e-11 <= tiny.epsilon(1e-14) <= 3.01e-11


def test_deltas_of_steps_are_not_rounded_up_by_the_composition():
    told = -math.expm1(3 * math.log1p(-1e-5))
    curve = EpsilonDelta(1.0, 1e-5, steps=3).curve()
    assert curve.tpr(0.0) == pytest.approx(told, rel=1e-12)
    assert curve.epsilon(told * (1 + 1e-12)) <= 3.0 * (1 + 1e-12)


def test_curves_of_nothing_but_gaussians_stay_exact():
    curve = Composition(Gaussian(2.0, 3), Gaussian(5.0), GDP(0.1)).curve()
    assert curve.d_prime() == pytest.approx(math.sqrt(3 / 4 + 1 / 25 + 0.01), rel=1e-12)


@pytest.mark.parametrize("size", [10**5, 1e300])
def test_groups_beyond_the_grid_are_refused_at_once(size):
    with pytest.raises(dprime.NotCertifiableError, match="certified"):
        DPSGD(1.0, 0.01, 10).curve(group_size=size)


def test_a_parameter_of_a_part_is_found_and_set_there():
    both = Composition(Gaussian(3.0), DPSGD(None, 0.1, 5))
    assert both.free_parameters() == ["noise_multiplier"]
    set_there = Composition(Gaussian(3.0), DPSGD(2.0, 0.1, 5))
    assert both.with_parameter("noise_multiplier", 2.0) == set_there
    assert both.search("noise_multiplier") == Gaussian(None).search("noise_multiplier")


BELOW = {"name": "GDP", "mu": -1}
DIFFERENT = Composition(SMALL, RESPONSE)
test_what_is_wrong_or_not_proved_is_refused = refuses(
    {
        "noise_multiplier be above 0": lambda: DPSGD(-1.0, 0.1, 10),
        "noise_multiplier be at least 0.001": lambda: Gaussian(1e-200),
        "noise_multiplier be a number": lambda: Gaussian("8"),
        "sample_rate be above 0 and at most 1": lambda: DPSGD(1.0, 1.1, 10),
        "steps be a whole number": lambda: DPSGD(1.0, 0.1, 2.5),
        "steps be at most 10,000,000": lambda: DPSGD(1.0, 0.1, 10_000_001),
        "sampling be one of poisson": lambda: DPSGD(1.0, 0.1, 10, sampling="cyclic"),
        "public_size be true or false": lambda: read({"name": "DPSGD", "public_size": 1}),
        "mechanisms name at least one": Composition,
        "mechanisms be a mechanism": lambda: Composition("dpsgd"),
        "sampling_probability be strictly": lambda: PoolSampled(SMALL, 1.0),
        "training be a mechanism": lambda: read({"name": "PoolSampled", "training": 3}),
        "training be what was run on the": lambda: PoolSampled(PoolSampled(SMALL, 0.5), 0.5),
        "least be at most the sampling_probability": lambda: PoolSampled(SMALL, 0.1, 0.2),
        "least be strictly": lambda: PoolSampled(SMALL, 0.5, 0.0),
        "epochs be above 0": lambda: steps_from_epochs(0, 0.1),
        "mu be above 0": lambda: read({"name": "PoolSampled", "training": BELOW}),
        "mechanism be a mapping with a name": lambda: read({}),
        "mechanism be one of": lambda: read({"name": "StatedGuarantee"}),
        "epsilon be left out for GDP": lambda: read({"name": "GDP", "epsilon": 1.0}),
        "epsilons be given for RDP": lambda: read({"name": "RDP", "orders": [2.0]}),
        # What is not proved.
        "adjacency be one of add-remove, replace, zero-out": lambda: SMALL.curve("near"),
        "adjacency be 'zero-out' or 'replace' for a training": lambda: EVERY[2].curve("add-remove"),
        "adjacency be 'replace' for this": lambda: DIFFERENT.curve("add-remove"),
        "adjacency be given": DIFFERENT.curve,
        "adjacency be 'zero-out' or": PoolSampled(EVERY[2], 0.2).curve,  # no question of zero-out
        "adjacency be 'add-remove' for a pool": lambda: EVERY[6].curve("replace"),
        "noise_multiplier be given": lambda: DPSGD(None, 0.1, 3).curve(),
        "sampling_probability be given": lambda: PoolSampled(SMALL).prior,
        "group_size be at least 1": lambda: SMALL.curve(group_size=0),
        "group_size be 1 for the replace adj": lambda: SMALL.curve("replace", group_size=2),
        "group_size be 1 for EpsilonDelta": lambda: EpsilonDelta(1.0).curve(group_size=2),
        "group_size be 1 for shuffle": lambda: SHUFFLED.curve("zero-out", group_size=2),
        # With a coin for each of three records, one is drawn with 0.271 where the prior is 0.1.
        "group_size be 1 for a pool": lambda: PoolSampled(SMALL, 0.1).curve(group_size=3),
        "sampling be poisson for the add-remove": SHUFFLED.curve,
    }
)


# From epochs --------------------------------------------------------------------------------------

SIZES = {"batch_size": 256, "dataset_size": 60_000}


def test_sizes_and_epochs_take_the_place_of_rate_and_steps():
    training = DPSGD.from_epochs(**SIZES, epochs=60, noise_multiplier=1.1)
    assert training == DPSGD(1.1, 256 / 60_000, 14_063, public_size=True)
    assert training.default_adjacency == "zero-out"
    constant = DPSGD.from_epochs(**SIZES, epochs=60, public_size=False, sampling="shuffle")
    assert constant == DPSGD(None, 256 / 60_000, 14_063, sampling="shuffle")


test_what_from_epochs_refuses = refuses(
    {
        "batch_size be at most": lambda: DPSGD.from_epochs(batch_size=5, dataset_size=4, epochs=10),
        "epochs be above 0": lambda: DPSGD.from_epochs(**SIZES, epochs=0),
    }
)


def test_no_part_of_a_composition_is_left_out_in_silence():
    with pytest.raises(dprime.InputError, match="given once"):
        Composition(Gaussian(2.0), mechanisms=(Gaussian(0.1),))
