"""No certified value is below the truth: two or three records, every way to sample and compose.

Nothing here uses dprime but to ask for certified curves. Two data sets and the gradients of their
records are fixed, all draws of batches are enumerated, and the outputs of all steps are sorted into
cells whose probabilities are exact. Sorting into cells is something that an attacker can do, so the
numbers computed from the cells are reached, and they are close to the best that can be.
"""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import norm

import dprime
from dprime import DPSGD, Composition, Gaussian, PoolSampled

SLACK = 1e-12
"""Rounding of sums of a million cells."""

FPRS = (1e-4, 0.01, 0.1, 0.3, 0.7)
EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 6.0, 9.0)
DELTAS = (1e-5, 1e-3, 0.05)
PRIORS = (0.05, 0.5, 0.8)


# Batches: laws of the sums of gradients in all steps, as {(sum, sum, ...): probability}.


def independent(*steps, after=None):
    """Steps that are drawn independently, after others that may not be."""
    law = after or {(): 1.0}
    for step in steps:
        pairs = itertools.product(law.items(), step.items())
        law = {(*before, total): p * q for (before, p), (total, q) in pairs}
    return law


def poisson(gradients, rate):
    """One step: every record with a coin of its own."""
    law = Counter()
    for coins in itertools.product((0, 1), repeat=len(gradients)):
        drawn = sum(coins)
        chance = rate**drawn * (1 - rate) ** (len(coins) - drawn)
        law[round(float(np.dot(coins, gradients)), 9)] += chance
    return law


def fixed_size(gradients, size):
    """One step: a uniform batch."""
    sums = [round(sum(batch), 9) for batch in itertools.combinations(gradients, size)]
    return {total: count / len(sums) for total, count in Counter(sums).items()}


def shuffled(gradients, sizes, *, drop_last=False, anew=()):
    """Steps on batches of these sizes, pass after pass; a pass also begins at the steps `anew`."""
    law, orders = Counter(), list(itertools.permutations(gradients))

    def go_on(left, sums, chance):
        step = len(sums)
        if step == len(sizes):
            law[sums] += chance
            return
        size = sizes[step]
        begins = not left or (step in anew) or (drop_last and len(left) < size)
        for order in orders if begins else [left]:
            total = round(sum(order[:size]), 9)
            go_on(order[size:], (*sums, total), chance / (len(orders) if begins else 1))

    go_on((), (), 1.0)
    return law


def noisy(law_in, law_out, noises, cells=None):
    """Both worlds' probabilities of the cells of the sums with Gaussian noise."""
    cells = cells or {1: 2000, 2: 160, 3: 44, 4: 22}[len(noises)]
    masses, edges = [], []
    for step, noise in enumerate(noises):
        sums = [sums[step] for law in (law_in, law_out) for sums in law]
        low, high = min(sums) - 6 * noise, max(sums) + 6 * noise
        edges.append(np.concatenate([[-np.inf], np.linspace(low, high, cells - 1), [np.inf]]))
    for law in (law_in, law_out):
        total = np.zeros((cells,) * len(noises))
        for sums, chance in law.items():
            outputs = np.array(chance)
            for edge, noise, centre in zip(edges, noises, sums, strict=True):
                cell = np.diff(norm.cdf(edge, centre, noise))
                upper = -np.diff(norm.sf(edge, centre, noise))  # precise in the upper tail
                cell = np.where(edge[:-1] > centre, upper, cell)
                outputs = np.multiply.outer(outputs, cell)
            total += outputs
        masses.append(total.ravel())
    return tuple(masses)


def laplace(distance, scale, cells=400):
    """Laplace noise on a number that is `distance` larger in one world."""
    edges = np.concatenate([[-np.inf], np.linspace(0, distance, cells - 1), [np.inf]])

    def below(x):
        return np.where(x < 0, 0.5 * np.exp(np.minimum(x, 0)), 1 - 0.5 * np.exp(-np.abs(x)))

    return tuple(np.diff(below((edges - centre) / scale)) for centre in (distance, 0.0))


def response(epsilon, categories=2):
    """Randomised response of one person, whose answer is 0 in one world and 1 in the other."""
    odds = np.array([math.exp(epsilon), *[1.0] * (categories - 1)])
    return odds / odds.sum(), odds[[1, 0, *range(2, categories)]] / odds.sum()


def leaking(epsilon, delta):
    """The worst (epsilon, delta): all is told with probability delta, else a response."""
    here, there = ((1 - delta) * world for world in response(epsilon))
    return np.array([delta, 0.0, *here]), np.array([0.0, delta, *there])


def both(*pairs):
    """Independent outputs side by side."""
    result = (np.ones(1), np.ones(1))
    for pair in pairs:
        result = tuple(np.multiply.outer(a, b).ravel() for a, b in zip(result, pair, strict=True))
    return result


class Truth:
    """What attackers who see the cells reach."""

    def __init__(self, p, q):
        self.p, self.q = p, q
        assert p.sum() == pytest.approx(1, abs=1e-9) == q.sum()
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            order = np.argsort(-np.where(q > 0, p / q, np.inf), kind="stable")
        self.tpr = np.concatenate([[0.0], np.cumsum(p[order])])
        self.fpr = np.concatenate([[0.0], np.cumsum(q[order])])

    def delta(self, epsilon):
        return float(np.maximum(0, self.p - math.exp(epsilon) * self.q).sum())

    def epsilon(self, delta):
        low, high = 0.0, 60.0
        for _ in range(45):
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return low

    def success(self, prior):
        return float(np.maximum(prior * self.p, (1 - prior) * self.q).sum())

    def precision(self, prior, least):
        fpr = float(np.interp(least, self.tpr, self.fpr))
        return prior * least / (prior * least + (1 - prior) * fpr)


def check(curve, pair, within=None):
    """Nothing certified is below what is reached; `within`: nor far above."""
    truth, other = Truth(*pair), Truth(*pair[::-1])
    for certified, reached in ((curve, truth), (curve.reversed(), other)):
        assert certified.advantage() >= reached.delta(0.0) - SLACK
        index = certified.d_prime(floor=0.01)
        for fpr in FPRS:
            tpr = np.interp(fpr, reached.fpr, reached.tpr)
            assert certified.tpr(fpr) >= tpr - SLACK
            if fpr >= 0.01 and tpr <= 0.99:
                assert norm.cdf(norm.ppf(fpr) + index) >= tpr - 1e-9
        for prior in PRIORS:
            assert certified.success(prior) >= reached.success(prior) - SLACK
            for least in (0.01, 0.2):
                known = reached.precision(prior, least)
                assert certified.precision(prior, least) >= known - 1e-9
                assert certified.reversed().negative_accuracy(1 - prior, least) >= known - 1e-9
        for belief in (0.6, 0.9):
            ratio = reached.p > belief / (1 - belief) * reached.q
            assert certified.belief_exceeds(belief) >= reached.p[ratio].sum() - SLACK
    for epsilon in EPSILONS:
        assert curve.delta(epsilon) >= max(truth.delta(epsilon), other.delta(epsilon)) - SLACK
    for delta in DELTAS:
        assert curve.epsilon(delta) >= max(truth.epsilon(delta), other.epsilon(delta)) - 1e-9
    if within is not None:
        assert curve.advantage() <= truth.delta(0.0) * (1 + within)


# Poisson batches and full batches.

WITHOUT = [((1.0,), ()), ((1.0, 0.5), (0.5,)), ((-1.0, 1.0, 1.0), (1.0, 1.0))]
"""Gradients of the records in world `in`, and in world `out`."""

EXCHANGED = [((1.0,), (-1.0,)), ((1.0, 0.3), (-1.0, 0.3)), ((0.0, 1.0), (-1.0, 1.0))]

ZEROED = [((1.0,), (0.0,)), ((1.0, 0.5), (0.0, 0.5)), ((-1.0, 1.0, 1.0), (0.0, 1.0, 1.0))]
"""Both worlds have the same number of records; in world `out` the first one counts for nothing."""

LIMITS = {"add-remove": WITHOUT, "replace": EXCHANGED, "zero-out": ZEROED}

SETTINGS = [(1.0, 0.3, 1), (0.6, 0.5, 2), (3.0, 0.1, 2), (1.5, 0.9, 3), (0.4, 1.0, 1)]


@pytest.mark.parametrize(
    ("adjacency", "data"), [(name, data) for name in LIMITS for data in LIMITS[name]]
)
@pytest.mark.parametrize(("noise", "rate", "steps"), SETTINGS)
def test_poisson(adjacency, data, noise, rate, steps):
    laws = (independent(*[poisson(world, rate)] * steps) for world in data)
    curve = DPSGD(noise, rate, steps).curve(adjacency)
    check(curve, noisy(*laws, [noise] * steps), 0.05 if len(data[0]) == 1 else None)


@pytest.mark.parametrize("angle", [0.2, 1.0, 2.0, 3.0])
@pytest.mark.parametrize(("noise", "rate"), [(0.5, 0.2), (1.0, 0.7)])
def test_exchanged_gradients_of_any_angle(angle, noise, rate):
    """In two dimensions: drawn, the record adds (1, 0), exchanged (cos, sin)."""
    here, there = (1.0, 0.0), (round(math.cos(angle), 9), round(math.sin(angle), 9))
    laws = ({(0.0, 0.0): 1 - rate, g: rate} for g in (here, there))
    check(DPSGD(noise, rate, 1).curve("replace"), noisy(*laws, [noise] * 2))


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(("noise", "rate", "steps"), SETTINGS)
def test_groups(size, noise, rate, steps):
    for adjacency, other in (("add-remove", ()), ("zero-out", (0.0,) * size)):
        data = ((1.0,) * size + (0.5,), (*other, 0.5))
        laws = (independent(*[poisson(world, rate)] * steps) for world in data)
        curve = DPSGD(noise, rate, steps).curve(adjacency, group_size=size)
        check(curve, noisy(*laws, [noise] * steps))
    for adjacency, other in (("add-remove", 0.0), ("replace", -size), ("zero-out", 0.0)):
        curve = Gaussian(noise, steps).curve(adjacency, group_size=size)
        worlds = ({(float(total),) * steps: 1.0} for total in (size, other))
        check(curve, noisy(*worlds, [noise] * steps))


def test_phases_of_poisson_batches():
    noises, rates = (0.8, 2.0, 0.8), (0.2, 0.6, 0.2)
    whole = Composition(*(DPSGD(*phase, 1) for phase in zip(noises, rates, strict=True)))
    for other, adjacency in (((), None), ((-1.0,), "replace")):
        laws = (independent(*(poisson(w, rate) for rate in rates)) for w in ((1.0,), other))
        check(whole.curve(adjacency), noisy(*laws, noises), 0.05)


# Batches of a fixed size.


@pytest.mark.parametrize("other", [-1.0, 0.0])
@pytest.mark.parametrize("rest", [(-1.0,), (1.0, 1.0)])
@pytest.mark.parametrize("size", [1, 2, None])
@pytest.mark.parametrize(("noise", "steps"), [(0.5, 1), (1.0, 2), (2.0, 3)])
def test_fixed_size(other, rest, size, noise, steps):
    """The first record has another gradient, or none, in world `out`; None is the full batch."""
    records = 1 + len(rest)
    training = DPSGD(noise, (size or records) / records, steps, sampling="fixed-size")
    worlds = ((first, *rest) for first in (1.0, other))
    laws = (independent(*[fixed_size(world, size or records)] * steps) for world in worlds)
    curve = training.curve("replace" if other else "zero-out")
    check(curve, noisy(*laws, [noise] * steps), 0.05 if size in (None, records) else None)


def test_a_fixed_size_between_other_phases():
    laws = (
        independent(fixed_size(world, 1), poisson(world, 0.4), {sum(world): 1.0})
        for world in ((1.0, -1.0), (-1.0, -1.0))
    )
    drawn = DPSGD(1.0, 0.5, 1, sampling="fixed-size")
    whole = Composition(drawn, DPSGD(0.8, 0.4, 1), Gaussian(3.0))
    check(whole.curve("replace"), noisy(*laws, [1.0, 0.8, 3.0]))


# Shuffled batches.

PHASES = [
    [(100.0, 1, 1), (1.0, 1, 2)],
    [(1.0, 1, 1), (0.7, 1, 1), (1.5, 1, 1)],
    [(1.0, 1, 3)],
    [(5.0, 1, 1), (1.0, 2, 2)],
    [(50.0, 2, 1), (1.0, 1, 3)],
    [(1.0, 1, 2), (0.8, 1, 2)],
    [(50.0, 1, 1), (60.0, 1, 2), (0.8, 1, 1)],
]
"""(noise, batch, steps) of the phases of one training."""


SHUFFLED = [
    ("replace", ((1.0, -1.0), (-1.0, -1.0))),
    ("replace", ((1.0, 0, 0), (-1.0, 0, 0))),
    ("zero-out", ((1.0, -1.0), (0.0, -1.0))),
    ("zero-out", ((1.0, 0, 0), (0.0, 0, 0))),
]


@pytest.mark.parametrize(("adjacency", "data"), SHUFFLED)
@pytest.mark.parametrize("phases", PHASES)
def test_shuffled(adjacency, data, phases):
    """Whether a phase goes on with a pass or begins one, and whether its rest is dropped."""
    records = len(data[0])
    sizes = [size for _, size, steps in phases for _ in range(steps)]
    noises = [noise for noise, _, steps in phases for _ in range(steps)]
    parts = [DPSGD(z, size / records, steps, sampling="shuffle") for z, size, steps in phases]
    nested = Composition(Composition(*parts[:1]), *parts[1:-1], Composition(parts[-1]))
    curves = [each.curve(adjacency) for each in (Composition(*parts), nested)]
    laws = []
    for begins in ((), tuple(np.cumsum([steps for _, _, steps in phases]))):
        for drop_last in (True, False):
            laws.append([shuffled(one, sizes, drop_last=drop_last, anew=begins) for one in data])
    for place, law in enumerate(laws):
        if law not in laws[:place]:  # often these are the same
            for curve in curves:
                check(curve, noisy(*law, noises))


@pytest.mark.parametrize(("noise", "steps"), [(0.7, 1), (2.0, 3)])
def test_shuffled_data_in_one_batch_zeroed(noise, steps):
    laws = ({(total,) * steps: 1.0} for total in (2.0, 1.0))
    training = DPSGD(noise, 1.0, steps, sampling="shuffle")
    check(training.curve("zero-out"), noisy(*laws, [noise] * steps), 0.05)


def test_poisson_steps_between_shuffled_ones_do_not_end_the_pass():
    first, last = (DPSGD(z, 0.5, n, sampling="shuffle") for z, n in ((100.0, 1), (0.6, 2)))
    laws = (
        independent(poisson(world, 0.5), after=shuffled(world, [1, 1, 1]))
        for world in ((1.0, -1.0), (-1.0, -1.0))
    )
    whole = Composition(first, DPSGD(2.0, 0.5, 1), last)
    check(whole.curve("replace"), noisy(*laws, [100.0, 0.6, 0.6, 2.0]))


# Other mechanisms, alone and together.

SINGLE = {
    "laplace": (dprime.Laplace(0.7), laplace(1.0, 0.7)),
    "few answers": (dprime.RandomizedResponse(0.8, adjacency="add-remove"), response(0.8)),
    "many answers": (dprime.RandomizedResponse(1.5, 4, adjacency="add-remove"), response(1.5, 4)),
    "epsilon-delta": (dprime.EpsilonDelta(0.6, 0.01), leaking(0.6, 0.01)),
    "gaussian": (Gaussian(1.3), noisy({(1.0,): 1.0}, {(0.0,): 1.0}, [1.3], 200)),
    "dp-sgd": (DPSGD(0.8, 0.4, 1), noisy({(1.0,): 0.4, (0.0,): 0.6}, {(0.0,): 1.0}, [0.8], 200)),
    "gdp": (dprime.GDP(0.8), noisy({(0.8,): 1.0}, {(0.0,): 1.0}, [1.0], 200)),
    "zcdp": (dprime.ZCDP(0.32), noisy({(0.8,): 1.0}, {(0.0,): 1.0}, [1.0], 200)),
    "rdp": (
        dprime.RDP(orders := (1.5, 2.0, 4.0, 16.0), tuple(0.32 * order for order in orders)),
        noisy({(0.8,): 1.0}, {(0.0,): 1.0}, [1.0], 200),
    ),
    "profile": (dprime.EpsilonDeltaProfile(((0.6, 0.01), (2.0, 0.01))), leaking(0.6, 0.01)),
    "pld": (dprime.PLD((1.0, -1.0), tuple(response(1.0)[0])), response(1.0)),
}  # fmt: skip


TOGETHER = [(name,) for name in SINGLE] + list(itertools.combinations_with_replacement(SINGLE, 2))


@pytest.mark.parametrize("names", TOGETHER)
def test_other_mechanisms(names):
    mechanisms, pairs = zip(*(SINGLE[name] for name in names), strict=True)
    exact = len(names) == 1 and names[0] not in ("zcdp", "rdp", "profile")
    check(Composition(*mechanisms).curve(), both(*pairs), 0.05 if exact else None)


def test_laplace_noise_on_two_numbers_that_share_the_sensitivity():
    check(dprime.Laplace(0.5).curve(), both(laplace(0.4, 0.5, 200), laplace(0.6, 0.5, 200)))


# A pool, of which each record is trained on with a coin of its own.


@pytest.mark.parametrize("share", [0.05, 0.5, 0.8])
@pytest.mark.parametrize(("noise", "rate", "steps"), SETTINGS)
def test_pool(share, noise, rate, steps):
    """Two records of the pool; the attacker knows neither coin."""
    laws = []
    for here in ((1.0,), ()):
        law = Counter()
        for other, chance in (((-1.0,), share), ((), 1 - share)):
            for sums, p in independent(*[poisson(here + other, rate)] * steps).items():
                law[sums] += chance * p
        laws.append(law)
    pool, pair = PoolSampled(DPSGD(noise, rate, steps), share), noisy(*laws, [noise] * steps)
    check(pool.curve(), pair)
    assert pool.curve().precision(pool.prior, 0.05) >= Truth(*pair).precision(share, 0.05)
    assert pool.curve().success(pool.prior) >= Truth(*pair).success(share) - SLACK
