"""Many canaries in one run: both methods against brute force."""

import itertools
import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from dprime import DPSGD, EpsilonDelta, TradeOff
from dprime.audit import Mahloujifar, Steinke, lower_bound, rejects
from dprime.audit.estimators import one_run
from dprime.audit.estimators.one_run import (
    Guessed,
    exact_p_value,
    guess,
    least_total,
    published_p_value,
)
from dprime.audit.scores import Scores


def worst_case(seen, epsilon, delta):
    """The largest Pr[W >= v] of any symmetric (epsilon, delta)-DP mechanism, by linear programming.

    Unknown are p_0 ... p_c and the positive parts of what the two kinds of events (canary i right,
    canary i wrong) lose when the coin of i is flipped; their sum over m is at most delta.
    """
    m, c, v, e = seen.canaries, seen.guesses, seen.right, math.exp(epsilon)
    p, parts = c + 1, 2 * c
    limits, right_sides = [], []
    for k in range(1, c + 1):
        row = np.zeros(p + parts)
        row[k], row[k - 1], row[p + k - 1] = k, -e * (c - k + 1), -1
        limits.append(row)
    for k in range(c):
        row = np.zeros(p + parts)
        row[k], row[k + 1], row[p + c + k] = c - k, -e * (k + 1), -1
        limits.append(row)
    right_sides = [0.0] * len(limits) + [m * delta]
    limits.append(np.repeat([0.0, 1.0], [p, parts]))
    objective = np.zeros(p + parts)
    objective[v:p] = -1
    total = np.repeat([[1.0, 0.0]], [p, parts], axis=1)
    solved = scipy.optimize.linprog(
        objective, A_ub=np.array(limits), b_ub=right_sides, A_eq=total, b_eq=[1.0]
    )
    assert solved.status == 0
    return -solved.fun


SETTINGS = [
    (Guessed(m, c, v), epsilon, delta)
    for m, c in ((4, 4), (10, 4), (12, 12), (40, 20), (60, 60))
    for v in range(1, c + 1, max(1, c // 5))
    for epsilon in (0.0, 0.5, 2.0)
    for delta in (0.0, 1e-3, 1e-2)
]


def test_the_exact_p_value_is_the_worst_case():
    for seen, epsilon, delta in SETTINGS:
        exact = exact_p_value(seen, epsilon, delta)
        assert exact == pytest.approx(worst_case(seen, epsilon, delta), abs=1e-7)


def worst_mechanism(m, c, v, epsilon, delta):
    """The largest Pr[W >= v] of any (epsilon, delta)-DP mechanism whatever, no symmetry assumed.

    Unknown are the probability of every set of c guesses under every outcome of the coins, and the
    positive parts of the differences between neighbours.
    """
    coins = list(itertools.product((-1, 1), repeat=m))
    sets = [g for g in itertools.product((-1, 0, 1), repeat=m) if sum(map(abs, g)) == c]
    place = {(s, g): i for i, (s, g) in enumerate(itertools.product(coins, sets))}
    pairs = [(s, (*s[:i], -s[i], *s[i + 1 :])) for s in coins for i in range(m)]
    size = len(place) + len(pairs) * len(sets)
    limits, right_sides = [], []
    for n, (s, flipped) in enumerate(pairs):
        parts = len(place) + n * len(sets)
        for i, g in enumerate(sets):
            row = np.zeros(size)
            row[place[s, g]], row[place[flipped, g]] = 1, -math.exp(epsilon)
            row[parts + i] = -1
            limits.append(row)
            right_sides.append(0.0)
        row = np.zeros(size)
        row[parts : parts + len(sets)] = 1
        limits.append(row)
        right_sides.append(delta)
    totals = np.zeros((len(coins), size))
    objective = np.zeros(size)
    for (s, g), i in place.items():
        totals[coins.index(s), i] = 1
        right = sum(a == b for a, b in zip(s, g, strict=True))
        objective[i] = -(right >= v) / len(coins)
    solved = scipy.optimize.linprog(
        objective, A_ub=np.array(limits), b_ub=right_sides, A_eq=totals, b_eq=np.ones(len(coins))
    )
    assert solved.status == 0
    return -solved.fun


@pytest.mark.parametrize(("m", "c"), [(2, 1), (2, 2), (3, 2), (3, 3)])
@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_no_mechanism_does_better_than_the_exact_p_value(m, c, delta):
    for v, epsilon in itertools.product(range(1, c + 1), (0.0, 1.0)):
        found = worst_mechanism(m, c, v, epsilon, delta)
        assert exact_p_value(Guessed(m, c, v), epsilon, delta) == pytest.approx(found, abs=1e-7)


def test_the_published_p_value_is_larger_wherever_it_is_used():
    used = [s for s in SETTINGS if exact_p_value(*s) <= 0.5]
    assert len(used) > 50
    for setting in used:
        assert published_p_value(*setting) >= exact_p_value(*setting) - 1e-12
    large = [(Guessed(20_000, 1000, v), e, 1e-5) for v in (600, 800, 950) for e in (0.1, 1.0, 2.0)]
    for setting in large:
        if exact_p_value(*setting) <= 0.5:
            assert published_p_value(*setting) >= exact_p_value(*setting)


def test_the_published_p_value_fails_close_to_one():
    """The counterexample of the docstring, as a mechanism: 4 coins, 16 sets of guesses."""
    moved = 0.0009375
    sides = list(itertools.product((0, 1), repeat=4))

    def law(coins):
        right = [sum(a == b for a, b in zip(coins, guesses, strict=True)) for guesses in sides]
        return np.array([1 / 16 + moved / 15 if k else 1 / 16 - moved for k in right])

    for coins in sides:
        assert law(coins).sum() == pytest.approx(1.0)
        for i in range(4):
            flipped = tuple(1 - c if j == i else c for j, c in enumerate(coins))
            distance = np.maximum(law(coins) - law(flipped), 0).sum()
            assert distance <= 0.001 + 1e-12  # (0, 0.001)-DP
    some_right = 1 - (1 / 16 - moved)
    assert exact_p_value(Guessed(4, 4, 1), 0.0, 0.001) == pytest.approx(some_right, abs=1e-12)
    assert published_p_value(Guessed(4, 4, 1), 0.0, 0.001) == pytest.approx(0.938)
    assert some_right > 0.938


@given(
    counts=st.tuples(st.integers(1, 40), st.integers(0, 40), st.integers(0, 40)),
    epsilon=st.floats(0, 5),
    delta=st.sampled_from([0.0, 1e-5, 1e-2]),
)
def test_the_published_p_value_by_enumeration(counts, epsilon, delta):
    c, v, more = counts
    v, m = min(v, c), c + more
    q = math.exp(epsilon) / (1 + math.exp(epsilon))
    pmf = [math.comb(c, k) * q**k * (1 - q) ** (c - k) for k in range(c + 1)]
    worst = max((sum(pmf[max(0, v - i) : v]) / i for i in range(1, m + 1)), default=0.0)
    expected = min(1.0, sum(pmf[v:]) + 2 * m * delta * worst)
    assert published_p_value(Guessed(m, c, v), epsilon, delta) == pytest.approx(expected, abs=1e-10)


@given(
    counts=st.tuples(st.integers(1, 300), st.integers(0, 300), st.integers(0, 300)),
    epsilon=st.floats(0, 3),
    step=st.floats(0, 1),
    delta=st.sampled_from([0.0, 1e-5, 1e-2]),
)
def test_p_values_grow_with_epsilon_and_delta(counts, epsilon, step, delta):
    c, v, more = counts
    seen = Guessed(c + more, c, min(v, c))
    here = exact_p_value(seen, epsilon, delta)
    assert 0 <= here <= 1
    assert exact_p_value(seen, epsilon + step, delta) >= here - 1e-12
    assert exact_p_value(seen, epsilon, delta + 1e-3) >= here


def test_a_mass_too_small_for_a_float():
    seen = Guessed(40_000, 40_000, 39_999)
    assert one_run._binomial(seen, 0.0)[0][seen.right] == 0.0
    p = exact_p_value(seen, 0.0, 1e-5)
    assert 0.4 / 39_999 < p < 0.41 / 39_999


def least_by_linear_programming(seen, epsilon, delta, level):
    """The least total mass with Pr[W >= v] = level that inequality (1) allows."""
    m, c, v, e = seen.canaries, seen.guesses, seen.right, math.exp(epsilon)
    limits, right_sides = [], []
    for j in range(1, v + 1):
        hits = np.array([k * (k >= j) for k in range(c + 1)])
        misses = np.array([(c - k) * (k >= j - 1) for k in range(c + 1)])
        limits += [hits - e * misses, e * hits - misses]  # the two lines of the (ε, δ) curve
        right_sides += [m * delta, m * (delta - 1 + e)]
    solved = scipy.optimize.linprog(
        np.ones(c + 1),
        A_ub=np.array(limits, dtype=float),
        b_ub=right_sides,
        A_eq=[[float(k >= v) for k in range(c + 1)]],
        b_eq=[level],
    )
    return solved.fun if solved.status == 0 else math.inf


@pytest.mark.parametrize("delta", [0.0, 1e-3, 1e-2])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_the_least_total_is_that_of_a_linear_program(epsilon, delta):
    compared = 0
    for m, c in ((6, 6), (20, 8), (30, 30)):
        for v in range(1, c + 1, 2):
            for level in (0.01, 0.05, 0.3):
                seen = Guessed(m, c, v)
                greedy = least_total(one_run._inverse(epsilon, delta), seen, level)
                exact = least_by_linear_programming(seen, epsilon, delta, level)
                if greedy <= 1:
                    assert greedy == pytest.approx(exact, rel=1e-6, abs=1e-9)
                    compared += 1
                else:
                    assert exact > 1
    assert compared > 5


def test_what_is_rejected_is_rejected_rightly():
    """No (epsilon, delta)-DP mechanism reaches v as often as the level, where F is rejected."""
    rejected = 0
    for seen, epsilon, delta in SETTINGS:
        for level in (0.05, 0.5):
            if least_total(one_run._inverse(epsilon, delta), seen, level) > 1:
                assert worst_case(seen, epsilon, delta) < level
                rejected += 1
    assert rejected > 20


def test_the_curve_of_epsilon_and_delta_inverted():
    curve = EpsilonDelta(epsilon=1.0, delta=0.01).curve()
    inverse = one_run._inverse(1.0, 0.01)
    for tpr in np.linspace(0, 1, 21):
        assert inverse(tpr) == pytest.approx(curve.fpr(float(tpr)), abs=1e-12)


def test_guesses_without_ties():
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(1, 1, 480), rng.normal(0, 1, 520)
    for guesses in (1, 2, 7, 126, 1000):
        seen = guess(Scores(inside, outside), guesses)
        labelled = sorted([(x, 1) for x in inside] + [(x, 0) for x in outside])
        top = labelled[len(labelled) - (guesses + 1) // 2 :]
        bottom = labelled[: guesses // 2]
        right = sum(label for _, label in top) + sum(1 - label for _, label in bottom)
        assert seen == Guessed(1000, guesses, right)
    assert guess(Scores(inside, outside)).guesses == round(1000**0.7) == 126


@given(seed=st.integers(0, 30), levels=st.integers(1, 5), guesses=st.integers(1, 60))
def test_ties_are_broken_as_19_of_20_orders_would_or_worse(seed, levels, guesses):
    rng = np.random.default_rng(seed)
    labels = rng.random(60) < 0.5
    labels[:4] = [True, True, False, False]
    scores = rng.integers(0, levels, 60) + 0.0
    found = guess(Scores(scores[labels], scores[~labels]), guesses).right
    as_in = (guesses + 1) // 2
    reached = 0
    for _ in range(400):
        order = np.lexsort((rng.random(60), scores))
        ranked = labels[order]
        right = ranked[60 - as_in :].sum() + (~ranked[: guesses - as_in]).sum()
        reached += right >= found
    assert reached >= 400 * 0.95 - 4 * math.sqrt(400 * 0.95 * 0.05)


@given(seed=st.integers(0, 30))
def test_the_worlds_may_be_exchanged(seed):
    rng = np.random.default_rng(seed)
    inside, outside = rng.normal(1.5, 1, 100), rng.normal(0, 1, 104)
    for method in (Steinke(guesses=40), Mahloujifar(guesses=40)):
        plain = lower_bound(inside, outside, method=method)
        assert lower_bound(-outside, -inside, method=method).epsilon == plain.epsilon


def test_epsilon_is_where_the_p_value_passes_the_level():
    seen = Guessed(2000, 205, 180)
    for p_value in (exact_p_value, published_p_value):
        epsilon = one_run._epsilon(p_value, seen, 1e-5, 0.05)
        assert p_value(seen, epsilon, 1e-5) <= 0.05 < p_value(seen, epsilon + 1e-5, 1e-5)


def test_the_example_of_the_paper():
    """Steinke, Nasr and Jagielski 2023, appendix D: 75 of 100 right, 1,000 canaries: 0.673."""
    found = one_run._epsilon(published_p_value, Guessed(1000, 100, 75), 1e-4, 0.05)
    assert found == pytest.approx(0.673, abs=5e-4)


def test_rejecting_a_claim():
    rng = np.random.default_rng(0)
    scores = rng.normal(1.5, 1, 1000), rng.normal(0, 1, 1010)
    assert rejects(TradeOff.gaussian(0.8), *scores)
    assert not rejects(TradeOff.gaussian(1.5), *scores)
    assert rejects(EpsilonDelta(epsilon=1.0, delta=1e-5).curve(), *scores)
    claim = DPSGD(noise_multiplier=1.0, sample_rate=0.01, steps=2000)
    assert rejects(claim.curve(), *scores)
    assert rejects(claim.curve().reversed(), *scores)


def test_a_claim_is_taken_in_both_directions():
    curve = DPSGD(noise_multiplier=1.0, sample_rate=0.05, steps=100).curve()
    both = one_run._both_directions(curve.shape)
    for fpr in np.geomspace(1e-6, 0.99, 40):
        larger = max(curve.tpr(float(fpr)), curve.reversed().tpr(float(fpr)))
        assert larger - 1e-12 <= both.tpr(float(fpr)) <= larger + 0.02


def test_unfair_coins_are_objected_to():
    assert one_run.unfair(Scores(np.zeros(520), np.zeros(480))) is None
    words = one_run.unfair(Scores(np.zeros(700), np.zeros(300)))
    assert words.startswith("700 of 1,000 canaries are in, which fair coins hardly give")
    rng = np.random.default_rng(0)
    bound = lower_bound(rng.normal(9, 1, 700), rng.normal(0, 1, 300), method="steinke")
    assert bound.objection == words
