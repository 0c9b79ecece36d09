import copy
import json
import math
import tomllib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

import dprime
from dprime import DPSGD, Composition, Gaussian, PoolSampled, TradeOff
from dprime.mechanisms import ADJACENCIES, Mechanism
from dprime.parameters import steps_from_epochs, steps_in_pass

SMALL_DPSGD = DPSGD(1.0, 0.1, 20)

EVERY = [
    Gaussian(2.0, 3),
    SMALL_DPSGD,
    DPSGD(1.0, 0.1, 20, sampling="fixed-size"),
    DPSGD(1.0, 0.1, 20, sampling="shuffle"),
    Composition(SMALL_DPSGD, Gaussian(3.0)),
    PoolSampled(SMALL_DPSGD, 0.2),
    dprime.Laplace(2.0, 4),
    dprime.RandomizedResponse(1.0, 3, 2),
    dprime.EpsilonDelta(1.0, 1e-5, 3),
    dprime.EpsilonDeltaProfile(((0.5, 0.01), (1.0, 1e-4))),
    dprime.RDP((2.0, 8.0, 32.0), (0.1, 0.4, 1.6)),
    dprime.ZCDP(0.05),
    dprime.GDP(0.4),
    dprime.PLD((0.5, -0.5), (0.62, 0.37)),
]


def toml(value):
    """A value of TOML on one line; None has none."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {toml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    assert value is not None
    return json.dumps(value)


def own_adjacency(mechanism):
    weaker = getattr(mechanism, "sampling", "poisson") != "poisson"
    return "replace" if weaker else mechanism.default_adjacency


def own_curve(mechanism):
    return mechanism.curve(own_adjacency(mechanism))


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda m: type(m).__name__)
class TestContract:
    """What every mechanism must do, whatever it is."""

    def test_its_curve_is_certified_concave_and_between_blind_and_certain(self, mechanism):
        curve = own_curve(mechanism)
        assert curve.kind == "certified"
        grid = np.linspace(0, 1, 101)
        tpr = np.array([curve.tpr(f) for f in grid])
        assert (tpr >= grid - 1e-12).all()
        assert (tpr <= 1).all()
        assert (np.diff(tpr, 2) <= 1e-9).all()
        assert 0 < curve.advantage() < 1
        assert curve.advantage() == pytest.approx((tpr - grid).max(), abs=2e-2)
        assert curve.reversed().advantage() == pytest.approx(curve.advantage(), abs=1e-9)

    def test_it_is_frozen_complete_and_compares_by_value(self, mechanism):
        assert copy.deepcopy(mechanism) == mechanism
        assert hash(mechanism) == hash(copy.deepcopy(mechanism))
        assert mechanism.free_parameters() == []
        with pytest.raises(AttributeError):
            mechanism.adjacency_of_tomorrow = 1

    def test_it_composes_with_a_gaussian(self, mechanism):
        both = Composition(mechanism, Gaussian(50.0)).curve(own_adjacency(mechanism))
        assert both.advantage() >= own_curve(mechanism).advantage() - 1e-9


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("k", [1, 3])
def test_full_batch_is_exactly_gaussian(adjacency, k):
    mu = k * math.sqrt(30) / 8 * (2 if adjacency == "replace" else 1)
    curve = Gaussian(8.0, 30).curve(adjacency, group_size=k)
    assert curve.advantage() == pytest.approx(2 * norm.cdf(mu / 2) - 1, rel=1e-12)
    same = DPSGD(8.0, 1.0, 30).curve(adjacency, group_size=k)
    assert same.advantage() == curve.advantage()


def test_a_group_is_riskier_than_one_and_safer_than_its_chain():
    one, two = DPSGD(1.0, 0.05, 100).curve(), DPSGD(1.0, 0.05, 100).curve(group_size=2)
    assert one.advantage() < two.advantage()
    for fpr in (0.001, 0.01, 0.1, 0.5):  # adding two records one after the other
        assert two.tpr(fpr) <= one.tpr(one.tpr(fpr)) + 1e-9


def test_a_group_of_two_by_simulation():
    noise, rate, trials = 1.0, 0.3, 400_000
    rng = np.random.default_rng(3)
    x_in = rng.binomial(2, rate, trials) / noise + rng.standard_normal(trials)
    x_out = rng.standard_normal(trials)
    curve = DPSGD(noise, rate, 1).curve(group_size=2)
    for cut in (0.5, 1.5, 2.5):
        tpr, fpr = float(np.mean(x_in > cut)), float(norm.sf(cut))
        assert tpr == pytest.approx(curve.tpr(fpr), abs=4 * math.sqrt(tpr * (1 - tpr) / trials))
    assert np.mean(x_out > 1.5) == pytest.approx(norm.sf(1.5), abs=0.002)


def test_replace_dominates_every_pair_of_gradients():
    """The certified replace step lies above pairs that are not opposite and not of full norm."""
    noise, rate = 0.8, 0.3
    curve = DPSGD(noise, rate, 1).curve("replace")
    for a, b in [(1.0, -1.0), (1.0, 0.0), (1.0, 0.5), (0.3, -0.7)]:
        for epsilon in (0.0, 0.2, 0.6, 1.2):

            def gain(x, a=a, b=b, epsilon=epsilon):
                p = (1 - rate) * norm.pdf(x) + rate * norm.pdf(x, a / noise)
                q = (1 - rate) * norm.pdf(x) + rate * norm.pdf(x, b / noise)
                return max(0.0, p - math.exp(epsilon) * q)

            exact, _ = quad(gain, -12, 12, limit=400)
            assert exact <= curve.delta(epsilon) + 1e-9


@pytest.mark.parametrize("sampling", ["fixed-size", "shuffle"])
def test_other_sampling_is_never_accounted_as_poisson(sampling):
    poisson = DPSGD(1.0, 0.1, 20).curve("replace")
    other = DPSGD(1.0, 0.1, 20, sampling=sampling).curve("replace")
    for fpr in (0.001, 0.01, 0.1, 0.5):
        assert other.tpr(fpr) > poisson.tpr(fpr)


def test_fixed_size_step_is_the_theorem():
    noise, rate = 1.5, 0.2
    curve = DPSGD(noise, rate, 1, sampling="fixed-size").curve("replace")
    for epsilon in (0.0, 0.1, 0.4):
        inner = math.log1p(math.expm1(epsilon) / rate)
        exact = rate * TradeOff.gaussian(2 / noise).delta(inner)
        assert exact * (1 - 1e-12) <= curve.delta(epsilon) <= exact * 1.002


def test_fixed_size_bounds_a_real_batch():
    """Two records of one batch of size 1 out of 4, one replaced: the true curve lies below."""
    noise, n = 1.0, 4
    others = [1.0, 1.0, 1.0]  # clipped gradients; the replaced one goes from -1 to 1
    x = np.linspace(-9, 9, 20_001)

    def density(values):
        return sum(norm.pdf(x, v / noise) for v in values) / n

    p, q = density([-1.0, *others]), density([1.0, *others])
    curve = DPSGD(noise, 1 / n, 1, sampling="fixed-size").curve("replace")
    for epsilon in (0.0, 0.2, 0.5, 1.0):
        exact = np.trapezoid(np.maximum(0, p - math.exp(epsilon) * q), x)
        assert exact <= curve.delta(epsilon) + 1e-9


def test_shuffle_counts_every_epoch_even_with_a_dropped_batch():
    assert DPSGD(8.0, 0.4, 20, sampling="shuffle").curve("replace").d_prime() == pytest.approx(
        2 * math.sqrt(10) / 8
    )
    assert DPSGD(8.0, 0.1, 20, sampling="shuffle").curve("replace").d_prime() == pytest.approx(
        2 * math.sqrt(2) / 8
    )


class TestShuffledPhases:
    """A phase counts the passes that it can touch, and it may begin inside one."""

    @staticmethod
    def passes(*phases):
        """Passes of the last phase, which has all the noise that counts; by (rate, steps)."""
        *before, (rate, steps) = phases
        quiet = [DPSGD(1e6, q, n, sampling="shuffle") for q, n in before]
        last = DPSGD(2.0, rate, steps, sampling="shuffle")
        return Composition(*quiet, last).curve("replace").d_prime() ** 2

    def test_a_phase_inside_an_epoch_meets_a_record_once_more(self):
        """Noise 100 hides nothing of the order: both later steps hold the record half the time."""
        whole = Composition(
            DPSGD(100.0, 0.5, 1, sampling="shuffle"), DPSGD(1.0, 0.5, 2, sampling="shuffle")
        )
        assert whole.curve("replace").epsilon(1e-5) >= 13.15
        assert whole.curve("replace").delta(6.0) >= 0.0207

    @pytest.mark.parametrize(
        ("phases", "passes"),
        [
            ([(0.25, 8)], 2),
            ([(0.25, 9)], 3),
            ([(0.4, 20)], 10),  # a pass of two steps drops its last, smaller batch
            ([(0.25, 4), (0.25, 8)], 2),  # the first phase ends with a pass
            ([(0.25, 3), (0.25, 9)], 3),  # one step of its pass, then two passes
            ([(0.25, 3), (0.25, 10)], 4),
            ([(0.25, 3), (0.25, 1)], 1),
            ([(0.25, 3), (0.25, 1), (0.25, 8)], 3),  # not certain to have gone on
            ([(0.3, 3), (0.25, 8)], 3),  # a pass has three steps, or four
            ([(1.0, 5), (0.25, 8)], 2),
        ],
    )
    def test_passes(self, phases, passes):
        assert self.passes(*phases) == pytest.approx(passes, rel=1e-9)

    def test_repeated_and_nested_trainings_each_begin_a_pass(self):
        one = DPSGD(2.0, 0.25, 6, sampling="shuffle")
        index = Composition(one, one, one).curve("replace").d_prime()
        assert index**2 >= 6 * (1 - 1e-9)
        nested = Composition(Composition(one, one), Composition(one))
        assert nested.curve("replace").d_prime() == index


@pytest.mark.parametrize(
    ("rate", "steps"),
    [
        (1 / 3, (3, True)),
        (256 / 60_000, (234, False)),
        (0.1 + 0.2, (3, False)),
        (1.0, (1, True)),
        (math.nextafter(1 / 17, 1), (16, False)),
        (0.05882352941521466, (16, False)),  # above 1/17 by less than 1e-10
        (math.nextafter(0.1, 0), (10, False)),
        (5e-324, (20_000_000, False)),
    ],
)
def test_steps_of_a_pass_are_never_too_many(rate, steps):
    assert steps_in_pass(rate) == steps


def test_every_rate_of_batches_that_divide_the_records_has_whole_passes():
    for batches in (*range(1, 2000), 46_341, 999_983):
        for batch in (1, 3, 7, 64, 1000):
            assert steps_in_pass(batch / (batch * batches)) == (batches, True)


def test_epochs_are_rounded_up():
    assert steps_from_epochs(60, 256 / 60_000) == 14_063
    assert steps_from_epochs(20, 0.01) == 2000
    assert DPSGD(1.0, 0.01, 2000).epochs == pytest.approx(20)


TOLD = {
    "noise_multiplier must be above 0": lambda: DPSGD(-1.0, 0.1, 10),
    "noise_multiplier must be a number": lambda: DPSGD("much", 0.1, 10),
    "noise_multiplier must be a finite number": lambda: DPSGD(math.inf, 0.1, 10),
    r"must be at least 0\.001, but it is 1e-200: less": lambda: Gaussian(1e-200),
    "sample_rate must be above 0 and at most 1": lambda: DPSGD(1.0, 1.1, 10),
    "steps must be a whole number": lambda: DPSGD(1.0, 0.1, 2.5),
    "steps must be at most 10,000,000": lambda: DPSGD(1.0, 0.1, 10_000_001),
    "sampling must be one of poisson": lambda: DPSGD(1.0, 0.1, 10, sampling="cyclic"),
    "mechanisms must name at least one": Composition,
    "mechanisms must be a mechanism": lambda: Composition("dpsgd"),
    "probability must be strictly": lambda: PoolSampled(SMALL_DPSGD, 1.0),
    "training must be a mechanism": lambda: PoolSampled("dpsgd", 0.5),
    "training must be what was run on the": lambda: PoolSampled(PoolSampled(SMALL_DPSGD, 0.5), 0.5),
    "least must be at most the probability": lambda: PoolSampled(SMALL_DPSGD, 0.1, 0.2),
    "epochs must be above 0": lambda: steps_from_epochs(0, 0.1),
    "must be one of add-remove, replace, zero-out, but": lambda: SMALL_DPSGD.curve("near"),
    r"noise_multiplier must be given .* dprime.choose": lambda: DPSGD(None, 0.1, 3).curve(),
    "probability must be given": lambda: PoolSampled(SMALL_DPSGD).prior,
    "group_size must be at least 1": lambda: SMALL_DPSGD.curve(group_size=0),
    "group_size must be at most 1,000,000": lambda: Gaussian(1.0).curve(group_size=1e300),
    "group_size must be 1 for the replace adj": lambda: SMALL_DPSGD.curve("replace", group_size=2),
    "group_size must be 1 for EpsilonDelta": lambda: dprime.EpsilonDelta(1.0).curve(group_size=2),
    "group_size must be 1 for shuffle sampling": lambda: DPSGD(
        1.0, 0.1, 20, sampling="shuffle"
    ).curve("replace", group_size=2),
    "the Poisson analysis does not cover": lambda: DPSGD(1.0, 0.1, 9, sampling="shuffle").curve(),
    "'zero-out' or 'replace' for a training": lambda: DPSGD(1.0, 0.1, 9, public_size=True).curve(
        "add-remove"
    ),
    "adjacency must be 'replace' for this": lambda: Composition(
        SMALL_DPSGD, dprime.RandomizedResponse(1.0)
    ).curve("add-remove"),
    "adjacency must be given, but the parts' own ones differ": lambda: Composition(
        SMALL_DPSGD, dprime.RandomizedResponse(1.0)
    ).curve(),
    "adjacency must be 'add-remove' for a pool": lambda: PoolSampled(SMALL_DPSGD, 0.5).curve(
        "replace"
    ),
    # With a coin for each of three records, one is drawn with 0.271 where the prior is 0.1.
    r"group_size must be 1 for a pool, .*draw whole people": lambda: PoolSampled(
        SMALL_DPSGD, 0.1
    ).curve(group_size=3),
}
"""What is wrong with each of these, or not proved."""


@pytest.mark.parametrize("words", TOLD)
def test_what_is_wrong_or_not_proved_is_refused_in_one_sentence(words):
    with pytest.raises(ValueError, match=words) as error:
        TOLD[words]()
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


def test_pool_reads_the_training():
    pool = PoolSampled(SMALL_DPSGD, 0.2)
    assert pool.prior == 0.2
    assert pool.curve().advantage() == SMALL_DPSGD.curve().advantage()


def test_pure_epsilons_add_up():
    whole = Composition(dprime.Laplace(1.0, 3), dprime.Laplace(2.0, 2))
    curve = whole.curve()
    assert curve.epsilon(1e-14) == pytest.approx(4.0, rel=1e-9)
    assert curve.epsilon(1e-200) <= 4.0 * (1 + 1e-14)
    assert (curve.tpr(0.0), curve.reversed().tpr(0.0)) == (0.0, 0.0)
    assert curve.advantage() == pytest.approx(curve.reversed().advantage(), abs=1e-12)
    assert Composition(whole, Gaussian(5.0)).curve().epsilon(1e-13) > 4.0


def test_deltas_of_steps_are_not_rounded_up_by_the_composition():
    told = -math.expm1(3 * math.log1p(-1e-5))
    curve = dprime.EpsilonDelta(1.0, 1e-5, steps=3).curve()
    assert curve.tpr(0.0) == pytest.approx(told, rel=1e-12)
    assert curve.epsilon(told * (1 + 1e-12)) <= 3.0 * (1 + 1e-12)


def test_pure_epsilons_that_rounding_would_drown():
    curve = dprime.Laplace(1e11, 3).curve()
    assert 0.75e-11 <= curve.advantage() <= 0.76e-11
    assert 2.9e-11 <= curve.epsilon(1e-14) <= 3.01e-11


def test_curves_of_nothing_but_gaussians_stay_exact():
    curve = Composition(Gaussian(2.0, 3), Gaussian(5.0), dprime.GDP(0.1)).curve()
    mu = math.sqrt(3 / 4 + 1 / 25 + 0.01)
    assert curve.d_prime() == pytest.approx(mu, rel=1e-12)
    assert isinstance(curve, TradeOff)


def test_groups_beyond_the_grid_are_refused_at_once():
    with pytest.raises(dprime.NotCertifiableError, match="certified"):
        DPSGD(1.0, 0.01, 10).curve(group_size=10**5)


def test_a_group_of_everyone_is_certain_to_be_noticed():
    assert DPSGD(1.0, 0.01, 100).curve(group_size=1000).advantage() == pytest.approx(1, abs=1e-9)


NOISES = st.none() | st.floats(0.01, 1e4)
STEPS = st.none() | st.integers(1, 10**7)
RELATIONS = {"adjacency": st.sampled_from(ADJACENCIES)}
EPSILONS = st.none() | st.floats(1e-6, 500)
PAIRS = st.lists(st.tuples(st.floats(0, 9), st.floats(0, 1)), min_size=1, max_size=4).map(tuple)
ORDERS = st.lists(st.floats(1.01, 99), min_size=1, max_size=4).map(tuple)
SINGLE = st.one_of(
    st.builds(Gaussian, NOISES, STEPS),
    st.builds(
        DPSGD, NOISES, st.none() | st.floats(1e-6, 1), STEPS, public_size=st.booleans(),
        sampling=st.sampled_from(["poisson", "fixed-size", "shuffle"]),
    ),
    st.builds(dprime.Laplace, NOISES, STEPS, **RELATIONS),
    st.builds(dprime.RandomizedResponse, EPSILONS, st.integers(2, 99), STEPS, **RELATIONS),
    st.builds(dprime.EpsilonDelta, EPSILONS, st.floats(0, 0.9), STEPS, **RELATIONS),
    st.builds(dprime.EpsilonDeltaProfile, PAIRS, **RELATIONS),
    ORDERS.map(lambda orders: dprime.RDP(orders, orders)),
    st.builds(dprime.ZCDP, st.none() | st.floats(1e-9, 9), st.floats(0, 9), **RELATIONS),
    st.builds(dprime.GDP, st.none() | st.floats(1e-9, 9), **RELATIONS),
    st.floats(0.1, 3).map(lambda loss: dprime.PLD((loss, -loss), (0.5, 0.02))),
)  # fmt: skip
COMPOSED = SINGLE | st.lists(SINGLE, min_size=1, max_size=3).map(lambda each: Composition(*each))
ALL = COMPOSED | st.builds(PoolSampled, COMPOSED, st.none() | st.floats(1e-9, 0.999))


@given(mechanism=ALL)
def test_every_mechanism_goes_through_json_and_toml(mechanism):
    described = mechanism.to_dict()
    assert Mechanism.from_dict(json.loads(json.dumps(described, allow_nan=False))) == mechanism
    assert Mechanism.from_dict(tomllib.loads(f"it = {toml(described)}")["it"]) == mechanism


@pytest.mark.parametrize(
    ("described", "words"),
    [
        ({}, "mechanism must be a mapping with a name, but it is without a name"),
        ([], "mechanism must be a mapping with a name"),
        ({"name": "StatedGuarantee"}, "mechanism must be one of"),
        ({"name": "Laplas"}, "mechanism must be one of .*Laplace.*, but it is 'Laplas'"),
        ({"name": "GDP", "epsilon": 1.0}, "epsilon must be left out for GDP, but it is 1.0"),
        ({"name": "RDP", "orders": [2.0]}, "epsilons must be given for RDP, but it is missing"),
        ({"name": "Gaussian", "noise_multiplier": "8"}, "noise_multiplier must be a number"),
        ({"name": "PoolSampled", "training": {"name": "GDP", "mu": -1}}, "mu must be above 0"),
        ({"name": "PoolSampled", "training": 3}, "training must be a mechanism"),
        ({"name": "Composition", "mechanisms": []}, "mechanisms must name at least one"),
        ({"name": "EpsilonDelta", "delta": None}, "delta must be a number, but it is None"),
        ({"name": "DPSGD", "public_size": 1}, "public_size must be true or false"),
    ],
)
def test_a_wrong_description_gets_one_sentence(described, words):
    with pytest.raises(dprime.InputError, match=words):
        Mechanism.from_dict(described)


def test_a_parameter_of_a_part_is_found_and_set_there():
    both = Composition(Gaussian(3.0), DPSGD(None, 0.1, 5))
    assert both.free_parameters() == ["noise_multiplier"]
    assert both.with_parameter("noise_multiplier", 2.0) == Composition(
        Gaussian(3.0), DPSGD(2.0, 0.1, 5)
    )
    assert both.search("noise_multiplier").low == Gaussian().search("noise_multiplier").low
