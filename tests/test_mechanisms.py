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
from reference import one_step_delta

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


def own_curve(mechanism):
    weaker = getattr(mechanism, "sampling", "poisson") != "poisson"
    return mechanism.curve("replace" if weaker else None)


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

    def test_both_directions_agree_on_the_advantage(self, mechanism):
        curve = own_curve(mechanism)
        assert curve.reversed().advantage() == pytest.approx(curve.advantage(), abs=1e-9)

    def test_it_is_written_down_and_read_back(self, mechanism):
        described = mechanism.to_dict()
        assert described["name"] == type(mechanism).__name__
        assert Mechanism.from_dict(json.loads(json.dumps(described, allow_nan=False))) == mechanism
        assert Mechanism.from_dict(tomllib.loads(f"it = {toml(described)}")["it"]) == mechanism

    def test_it_is_frozen_and_compares_by_value(self, mechanism):
        import copy

        assert copy.deepcopy(mechanism) == mechanism
        assert hash(mechanism) == hash(copy.deepcopy(mechanism))
        with pytest.raises(AttributeError):
            mechanism.adjacency_of_tomorrow = 1

    def test_nothing_is_missing(self, mechanism):
        assert mechanism.free_parameters() == []

    def test_it_refuses_an_unknown_adjacency(self, mechanism):
        with pytest.raises(ValueError, match="must be one of add-remove, replace, zero-out, but"):
            mechanism.curve("substitute")

    def test_it_composes_with_a_gaussian(self, mechanism):
        relation = "replace" if mechanism.default_adjacency == "replace" else None
        if getattr(mechanism, "sampling", "poisson") != "poisson":
            relation = "replace"
        both = Composition(mechanism, Gaussian(50.0)).curve(relation)
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


def test_groups_are_refused_where_nothing_is_proved():
    with pytest.raises(ValueError, match="group_size must be 1 for the replace adjacency"):
        SMALL_DPSGD.curve("replace", group_size=2)
    with pytest.raises(ValueError, match="group_size must be 1 for EpsilonDelta"):
        dprime.EpsilonDelta(1.0).curve(group_size=2)
    with pytest.raises(ValueError, match="group_size must be 1 for shuffle sampling"):
        DPSGD(1.0, 0.1, 20, sampling="shuffle").curve("replace", group_size=2)


@pytest.mark.parametrize("sampling", ["fixed-size", "shuffle"])
def test_other_sampling_is_never_accounted_as_poisson(sampling):
    poisson = DPSGD(1.0, 0.1, 20).curve("replace")
    other = DPSGD(1.0, 0.1, 20, sampling=sampling).curve("replace")
    for fpr in (0.001, 0.01, 0.1, 0.5):
        assert other.tpr(fpr) > poisson.tpr(fpr)
    with pytest.raises(ValueError, match="the Poisson analysis does not cover"):
        DPSGD(1.0, 0.1, 20, sampling=sampling).curve()


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.4])
def test_fixed_size_step_is_the_theorem(epsilon):
    noise, rate = 1.5, 0.2
    inner = math.log1p(math.expm1(epsilon) / rate)
    full = TradeOff.gaussian(2 / noise).delta(inner)
    value = DPSGD(noise, rate, 1, sampling="fixed-size").curve("replace").delta(epsilon)
    assert rate * full <= value * (1 + 1e-12)
    assert value <= rate * full * 1.002


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
            ([(0.25, 4), (0.25, 8)], 2),  # the first phase ends with a pass
            ([(0.25, 3), (0.25, 8)], 3),  # one step of its pass, then two passes, one cut short
            ([(0.25, 3), (0.25, 9)], 3),
            ([(0.25, 3), (0.25, 10)], 4),
            ([(0.25, 3), (0.25, 1)], 1),
            ([(0.25, 3), (0.25, 1), (0.25, 8)], 3),  # not certain to have gone on
            ([(0.3, 3), (0.25, 8)], 3),  # a pass has three steps, or four
            ([(0.5, 2), (0.25, 8)], 2),
            ([(0.5, 3), (0.25, 8)], 3),
            ([(1.0, 5), (0.25, 8)], 2),
        ],
    )
    def test_passes(self, phases, passes):
        assert self.passes(*phases) == pytest.approx(passes, rel=1e-9)

    def test_other_steps_between_do_not_end_a_pass(self):
        parts = [DPSGD(1e6, 0.25, 3, sampling="shuffle"), DPSGD(2.0, 0.25, 8, sampling="shuffle")]
        between = Composition(parts[0], Gaussian(1e6), parts[1]).curve("replace")
        assert between.d_prime() ** 2 == pytest.approx(3, rel=1e-9)
        nested = Composition(Composition(parts[0]), Composition(Gaussian(1e6), parts[1]))
        assert nested.curve("replace").d_prime() == between.d_prime()

    def test_repeated_trainings_each_begin_a_pass(self):
        one = DPSGD(2.0, 0.25, 6, sampling="shuffle")
        assert Composition(one, one, one).curve("replace").d_prime() ** 2 >= 6 * (1 - 1e-9)


@pytest.mark.parametrize(
    ("rate", "steps"),
    [
        (1 / 3, (3, True)),
        (3 / 9, (3, True)),
        (64 / 1024, (16, True)),
        (64 / 1025, (16, False)),
        (256 / 60_000, (234, False)),
        (0.1, (10, True)),
        (0.1 + 0.2, (3, False)),
        (1.0, (1, True)),
        (0.7, (1, False)),
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


def test_a_single_step_is_read_without_rounding_error():
    curve = DPSGD(5.0, 0.5, 1).curve()
    assert curve.advantage() == pytest.approx(one_step_delta(0.0, 5.0, 0.5), rel=2e-5)


def test_epochs_are_rounded_up():
    assert steps_from_epochs(60, 256 / 60_000) == 14_063
    assert steps_from_epochs(20, 0.01) == 2000
    assert DPSGD(1.0, 0.01, 2000).epochs == pytest.approx(20)


def test_what_is_missing_is_named():
    with pytest.raises(ValueError, match=r"noise_multiplier must be given .* dprime.choose"):
        DPSGD(sample_rate=0.1, steps=3).curve()
    assert DPSGD(sample_rate=0.1).free_parameters() == ["noise_multiplier", "steps"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: DPSGD(-1.0, 0.1, 10),
        lambda: DPSGD(0.0, 0.1, 10),
        lambda: DPSGD(1.0, 0.0, 10),
        lambda: DPSGD(1.0, 1.1, 10),
        lambda: DPSGD(1.0, 0.1, 0),
        lambda: DPSGD(1.0, 0.1, 2.5),
        lambda: DPSGD(1.0, 0.1, 10_000_001),
        lambda: DPSGD("much", 0.1, 10),
        lambda: DPSGD(math.nan, 0.1, 10),
        lambda: DPSGD(math.inf, 0.1, 10),
        lambda: DPSGD(1.0, 0.1, 10, sampling="cyclic"),
        lambda: Gaussian(-2.0),
        Composition,
        lambda: Composition("dpsgd"),
        lambda: PoolSampled(SMALL_DPSGD, 1.0),
        lambda: PoolSampled("dpsgd", 0.5),
        lambda: PoolSampled(PoolSampled(SMALL_DPSGD, 0.5), 0.5),
        lambda: PoolSampled(SMALL_DPSGD, 0.5).curve("replace"),
        lambda: DPSGD(1.0, 0.1, 10).curve(group_size=0),
        lambda: Composition(DPSGD(1.0, 0.1, 10), dprime.RandomizedResponse(1.0)).curve(),
        lambda: steps_from_epochs(0, 0.1),
    ],
)
def test_bad_input_is_one_sentence(make):
    with pytest.raises(ValueError, match="must") as error:
        make()
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


def test_pool_reads_the_training():
    pool = PoolSampled(SMALL_DPSGD, 0.2)
    assert pool.prior == 0.2
    assert pool.curve().advantage() == SMALL_DPSGD.curve().advantage()
    with pytest.raises(ValueError, match="probability must be given"):
        _ = PoolSampled(SMALL_DPSGD).prior


def test_a_pool_refuses_groups_and_exchanged_records():
    """With a coin for each of three records, one is drawn with 0.271 where the prior is 0.1."""
    pool = PoolSampled(DPSGD(8.0, 0.01, 100), 0.1)
    with pytest.raises(ValueError, match=r"group_size must be 1 for a pool, .*draw whole people"):
        pool.curve(group_size=3)
    with pytest.raises(ValueError, match="ask for add-remove"):
        PoolSampled(dprime.RandomizedResponse(1.0), 0.1).curve()


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


@pytest.mark.parametrize("k", [10**5, 10**7, 10**12])
def test_groups_beyond_the_limits_are_refused_at_once(k):
    with pytest.raises(dprime.NotCertifiableError, match="certified"):
        DPSGD(1.0, 0.01, 10).curve(group_size=k)


def test_a_group_of_everyone_is_certain_to_be_noticed():
    assert DPSGD(1.0, 0.01, 100).curve(group_size=1000).advantage() == pytest.approx(1, abs=1e-9)


def test_noise_that_hides_nothing_is_refused():
    with pytest.raises(ValueError, match=r"must be at least 0\.001, but it is 1e-200"):
        Gaussian(1e-200)


@pytest.mark.parametrize("size", [1_000_001, 1e300])
@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_a_person_with_too_many_records_is_refused(size, rate):
    with pytest.raises(ValueError, match="group_size must be at most 1,000,000"):
        DPSGD(noise_multiplier=1.0, sample_rate=rate, steps=9).curve(group_size=size)


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
