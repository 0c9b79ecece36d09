"""The planner: its numbers against simulated audits, and its limits against every method."""

import math

import numpy as np
import pytest
import scipy

from dprime import DPSGD, TradeOff
from dprime.audit import ClopperPearson, judge, lower_bound, power
from dprime.audit.planner import (
    best_possible,
    detectable,
    epsilon_limit,
    largest_epsilon,
    plan,
)
from dprime.bounds import mu_from_epsilon
from dprime.metrics import Reading
from told import refuses


def mu_of(epsilon):
    return mu_from_epsilon(epsilon, delta=1e-5)


EPSILON_1, EPSILON_4 = TradeOff.gaussian(mu_of(1.0)), TradeOff.gaussian(mu_of(4.0))
ADVANTAGE = Reading("advantage")
BY_EPSILON = {"criterion": Reading("epsilon"), "method": "gaussian", "power": 0.9}


def audits(d_prime, trials, repetitions, seed=1):
    """The scores of simulated audits."""
    rng = np.random.default_rng(seed)
    for _ in range(repetitions):
        yield rng.normal(d_prime, 1.0, trials), rng.normal(0.0, 1.0, trials)


def share_reaching(goal, method, trials, repetitions):
    """How often the real estimator reaches the goal."""
    options = {"confidence": goal.confidence, "method": method, "metric": goal.metric}
    drawn = audits(goal.d_prime, trials, repetitions)
    return np.mean(
        [lower_bound(*each, **options).value(goal.metric) >= goal.target for each in drawn]
    )


def share_refuting(claim, criterion, d_prime, trials, method="band", lost=0):
    """How often the real audit refutes the claim, in 300 of them."""
    metric = None if criterion == "curve" else criterion
    refuted = 0
    for inside, outside in audits(d_prime, trials, 300):
        inside[:lost], outside[:lost] = -math.inf, math.inf
        bound = lower_bound(inside, outside, method=method, metric=metric, assume="gaussian")
        assert bound.lost == lost
        refuted += judge(bound, claim, criterion).refuted
    return refuted / 300


def goal_of(claim, metric, fraction_of_claim=0.85):
    blind = metric.value(TradeOff.gaussian(0.0))
    target = blind + fraction_of_claim * (metric.value(claim) - blind)
    return power.AuditGoal(metric, target, claim.d_prime(), 0.95)


def error_of(share, repetitions, drawn=math.inf):
    """Four standard errors of a share, seen so often, plus those of a drawn prediction."""
    variance = max(share * (1 - share), 0.02)
    return 4 * math.sqrt(variance / repetitions + variance / drawn)


def test_the_gaussian_chance_is_that_of_drawn_t_statistics():
    rng = np.random.default_rng(2)
    for d_prime, target, trials in ((0.27, 0.23, 8000), (0.92, 0.8, 900), (3.0, 2.0, 12)):
        goal = power.AuditGoal(Reading("d_prime"), target, d_prime, 0.9)
        freedom, root = 2 * trials - 2, math.sqrt(trials / 2)
        spread = np.sqrt(rng.chisquare(freedom, 400_000) / freedom)
        null = np.sort((rng.normal(size=400_000) + target * root) / spread)
        limit = null[int(0.9 * len(null))]
        seen = np.mean((rng.normal(size=400_000) + d_prime * root) / spread >= limit)
        assert abs(power.chance(goal, "gaussian", trials) - seen) < 0.006


DRAWN = {"band": power.BANDS, "clopper-pearson": power.CHOICES, "gaussian": math.inf}


@pytest.mark.parametrize(
    ("metric", "method"),
    [
        (Reading("epsilon"), "gaussian"),
        (ADVANTAGE, "band"),
        pytest.param(ADVANTAGE, "clopper-pearson", marks=pytest.mark.slow),
    ],
)
def test_promises_are_kept(metric, method):
    made = plan(EPSILON_4, criterion=metric, method=method, power=0.9)
    goal = power.AuditGoal(made.criterion, made.target, made.d_prime, 0.95)
    seen = share_reaching(goal, method, made.trials, 400)
    assert abs(seen - 0.9) < error_of(0.9, 400, DRAWN[method])


CASES = [  # where the chance is neither small nor nearly certain
    (ADVANTAGE, "clopper-pearson", 2000),
    (ADVANTAGE, "band", 2500),
    (Reading("tpr", {"fpr": 0.1}), "clopper-pearson", 10_000),
    (Reading("precision", {"prior": 0.5, "min_tpr": 0.2}), "band", 8000),
]


@pytest.mark.parametrize(("metric", "method", "trials"), CASES, ids=lambda x: getattr(x, "name", x))
def test_chances_are_those_of_the_real_estimators(metric, method, trials):
    goal = goal_of(EPSILON_4, metric)
    expected = power.chance(goal, method, trials)
    assert 0.15 < expected < 0.95
    seen = share_reaching(goal, method, trials, 300)
    assert abs(seen - expected) < error_of(expected, 300, DRAWN[method])


@pytest.mark.parametrize("method", ["gaussian", pytest.param("band", marks=pytest.mark.slow)])
def test_claims_that_are_false_are_refuted_as_often_as_promised(method):
    made = plan(EPSILON_4, strength=1.5, criterion=ADVANTAGE, method=method, power=0.9)
    seen = share_refuting(EPSILON_4, ADVANTAGE, made.d_prime, made.refuting, method)
    assert abs(seen - 0.9) < error_of(0.9, 300, DRAWN[method])
    assert made.trials < made.refuting


CLAIMS = {
    "Gaussian": EPSILON_4,
    "DP-SGD": DPSGD(noise_multiplier=1.1, sample_rate=256 / 60_000, steps=14_062).curve(),
    "(ε, δ)": TradeOff.from_lines([(1.0, 1e-5)]),
}


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
@pytest.mark.parametrize("method", ["band", "gaussian"])
def test_half_of_the_noise_is_refuted_by_the_curve_as_often_as_promised(claim, method):
    made = plan(claim, method=method)
    assert made.criterion == "curve"
    assert made.strength == 2.0
    error = error_of(0.8, 300, power.BANDS)
    seen = share_refuting(claim, "curve", made.d_prime, made.trials, method)
    assert 0.8 - error < seen < 0.88 + error


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
@pytest.mark.parametrize("trials", [300, 3000])
def test_what_is_called_detectable_is_noticed_in_four_of_five_audits(claim, trials):
    d_prime = detectable(claim, "curve", trials=trials)
    seen = share_refuting(claim, "curve", d_prime, trials)
    assert abs(seen - 0.8) < error_of(0.8, 300, power.BANDS)


@pytest.mark.parametrize(
    ("metric", "lost"),
    [("curve", 3), ("curve", 60), pytest.param(ADVANTAGE, 40, marks=pytest.mark.slow)],
)
def test_lost_trials_count_in_what_would_have_been_noticed(lost, metric):
    d_prime = detectable(EPSILON_4, metric, trials=500, lost=lost)
    assert d_prime > detectable(EPSILON_4, metric, trials=500)
    seen = share_refuting(EPSILON_4, metric, d_prime, 500, lost=lost)
    assert abs(seen - 0.8) < error_of(0.8, 300, power.BANDS)
    assert detectable(EPSILON_4, metric, trials=500, lost=500) is None


def test_the_best_possible_test_has_the_power_that_is_stated():
    """The likelihood ratio of the two truths, drawn: N(μ, 1), N(0, 1) against those moved by h."""
    trials, draws = 60, 200_000
    mu = EPSILON_4.d_prime()
    h = (mu - mu_of(0.5 * 4.0)) / 2
    rng = np.random.default_rng(4)
    means = rng.normal(size=(2, draws)) / math.sqrt(trials)  # all that the ratio depends on

    def log_ratio(inside, outside):
        return trials * h * ((inside - mu + h / 2) - (outside - h / 2))

    null = np.sort(log_ratio(means[0] + mu - h, means[1] + h))
    limit = null[int(0.95 * draws)]
    seen = np.mean(log_ratio(means[0] + mu, means[1]) > limit)
    assert best_possible(trials, EPSILON_4, fraction_of_claim=0.5) == pytest.approx(seen, abs=0.005)
    least = plan(EPSILON_1, criterion=Reading("epsilon"), method="gaussian").least
    assert best_possible(least, EPSILON_1) >= 0.8 > best_possible(least - 1, EPSILON_1)


@pytest.mark.parametrize("metric", [ADVANTAGE, Reading("epsilon"), Reading("tpr", {"fpr": 0.1})])
@pytest.mark.parametrize("trials", [30, 1000, 30_000])
def test_no_method_does_better_than_the_best_possible(metric, trials):
    goal = goal_of(EPSILON_4, metric)
    limit = best_possible(trials, EPSILON_4, metric=metric)
    assert power.chance(goal, "gaussian", trials) <= limit + 1e-6
    for method in ("band", "clopper-pearson"):
        assert power.chance(goal, method, trials) <= limit + 0.05


def test_the_largest_epsilon():
    error = 1 - 0.025 ** (1 / 1000)
    assert largest_epsilon(1000, delta=1e-3, confidence=0.975**2) == pytest.approx(
        math.log((1 - 1e-3 - error) / error)
    )
    assert largest_epsilon(1) == 0.0
    assert largest_epsilon(100, delta=0.99) == 0.0
    assert epsilon_limit(1, delta=0.99) == epsilon_limit(1, delta=0.0, confidence=0.9999) == 0.0


@pytest.mark.parametrize("trials", [10, 1000, 100_000])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.1])
def test_the_largest_epsilon_is_what_a_perfect_attacker_shows(trials, delta):
    ones = np.ones(trials)
    perfect = lower_bound(ones, -ones, delta=delta, method=ClopperPearson(threshold=0.0))
    assert largest_epsilon(trials, delta=delta) == pytest.approx(perfect.epsilon, abs=1e-9)
    for method in ("clopper-pearson", "band"):
        other = lower_bound(ones, -ones, delta=delta, method=method)
        assert other.epsilon <= perfect.epsilon <= epsilon_limit(trials, delta=delta)


@pytest.mark.parametrize("trials", [3, 1000, 100_000])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.1])
def test_the_limit_of_every_method(trials, delta):
    """Randomised response with that ε is right in all trials with probability α exactly."""
    epsilon = epsilon_limit(trials, delta=delta, confidence=0.9)
    claim = TradeOff.from_lines([(epsilon, delta)])
    wrong = (1 - claim.advantage()) / 2  # its best test errs so often in either world
    assert scipy.stats.binom.pmf(0, 2 * trials, wrong) == pytest.approx(0.1, rel=1e-6)


def test_counts_given_ranks_have_the_right_law():
    """Against scores that are really drawn: counts at ranks, jointly with the ranks' own rates."""
    ranks, trials, draws = np.array([1, 5, 20]), 50, 20_000
    rng = np.random.default_rng(6)
    inside = np.sort(rng.normal(1.0, 1.0, (draws, trials)), axis=1)
    outside = np.sort(rng.normal(0.0, 1.0, (draws, trials)), axis=1)
    places = np.hstack([outside[:, trials - ranks], inside[:, ranks - 1]])[:, :, None]
    alarms, missed = (outside[:, None] > places).sum(2), (inside[:, None] < places).sum(2)
    missed[:, :3] = (inside[:, None] <= places[:, :3]).sum(2)
    real = np.hstack([scipy.special.ndtr(-places[:, :, 0]), alarms, missed])
    drawn = np.hstack(power.drawn(1.0, trials, ranks, draws))
    errors = real.std(axis=0) * math.sqrt(2 / draws)
    assert np.all(np.abs(real.mean(axis=0) - drawn.mean(axis=0)) <= 5 * errors)
    moving = errors > 0
    correlations = (np.corrcoef(each[:, moving].T) for each in (drawn, real))
    assert next(correlations) == pytest.approx(next(correlations), abs=0.05)


def test_more_of_everything_needs_more_trials():
    base = plan(EPSILON_4, **BY_EPSILON).trials
    for more in (
        {"fraction_of_claim": 0.9},
        {"power": 0.99},
        {"confidence": 0.99},
        {"strength": 0.95},
    ):
        assert plan(EPSILON_4, **BY_EPSILON | more).trials > base
    assert plan(EPSILON_1, **BY_EPSILON).trials > base


def test_some_goals_are_out_of_reach():
    made = plan(EPSILON_4, **BY_EPSILON, strength=0.8)
    assert (made.trials, made.refuting, made.least) == (None, None, None)
    assert made.sentence().startswith("Not even 1,000,000,000 trials a world let the gaussian")
    made = plan(EPSILON_4, **BY_EPSILON | {"power": 0.94}, strength=1.001)
    assert made.refuting > 1_000_000
    made = plan(EPSILON_4, **BY_EPSILON | {"power": 0.96}, strength=1.5)  # objections are 5 %
    assert made.refuting is None
    assert "Not even 1,000,000,000 trials a world refute the claim so often" in made.sentence()


def test_the_sentence():
    made = plan(EPSILON_4, **BY_EPSILON, strength=1.5)
    assert made.sentence() == (
        f"With {made.trials} trials a world, the gaussian bound at 95 % confidence shows an ε at "
        "δ = 1e-05 of at least 3.4, 85 % of what is claimed (4), in 90 % of audits. With "
        f"{made.refuting} trials a world, the gaussian bound at 95 % confidence refutes the claim "
        "in 90 % of audits, judged by ε at δ = 1e-05. No valid bound reaches that so often "
        f"with fewer than {made.least}. Assumed: the attacker's true curve is Gaussian with d′ = "
        "1.387, 1.5 times the most that keeps the claim."
    )
    assert plan(EPSILON_4).sentence() == (
        f"With {plan(EPSILON_4).trials} trials a world, the band bound at 95 % confidence refutes "
        "the claim in 80 % of audits, judged by the whole curve. Assumed: the attacker's true "
        "curve is Gaussian with d′ = 1.85, 2 times the most that keeps the claim."
    )


NOTHING, BEYOND = TradeOff.gaussian(0.0), TradeOff.from_lines([(1.0, 1e-3)])


def planned(claim=EPSILON_4, **options):
    return lambda: plan(claim, **options)


test_what_is_refused = refuses(
    {
        "strength be above 0": planned(strength=0),
        "confidence be at least 0.5": planned(confidence=0.3),
        "fraction_of_claim be strictly between 0 and 1": planned(fraction_of_claim=1.0),
        "strength be above 1 to judge by the curve": planned(strength=1.0),
        "method be band to judge by the": planned(method="clopper-pearson"),
        "method be one of band, clopper-pearson": planned(method="bayesian"),
        "the claimed ε at δ 1e-05 be finite": planned(NOTHING, **BY_EPSILON),
        "the claimed Membership advantage be finite and above 0": planned(NOTHING),
        "the claimed ε at δ 1e-05 be finite and above 0": planned(BEYOND, **BY_EPSILON),
        "trials be at least 1": lambda: best_possible(0, EPSILON_1),
        "confidence be strictly between 0 and 1": lambda: epsilon_limit(10, confidence=0),
    }
)
