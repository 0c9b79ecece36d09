import json

import numpy as np
import pytest

from dprime import DPSGD, TradeOff
from dprime.audit.estimators.one_run import AGREEING, Guessed, least_total
from dprime.canaries.gradients import log_ratio
from dprime.canaries.one_run import lower_epsilon, one_run, plan_guesses, right_guesses
from told import one_line, refuses

LEVEL = AGREEING * 0.05


def gaussian_scores(count, d_prime, seed):
    rng = np.random.default_rng(seed)
    inside = rng.random(count) < 0.5
    return {"score": rng.normal(size=count) + d_prime * inside}, inside


def all_right(count, guesses, delta, epsilon=0.0):
    """Whether right guesses throughout break (epsilon, delta)."""
    claim = TradeOff.from_lines([(epsilon, delta)])
    return least_total(claim.shape.fpr, Guessed(count // 2, guesses, guesses), LEVEL) > 1


# Validity -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("d_prime", [0.3, 1.0, 2.0])
def test_a_true_claim_is_hardly_ever_broken(d_prime):
    runs, claim = 400, TradeOff.gaussian(d_prime)
    seen = (gaussian_scores(400, d_prime, seed) for seed in range(runs))
    broken = sum(one_run(*each, claim).refuted for each in seen)
    assert broken / runs <= 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5


@pytest.mark.parametrize("guesses", [20, 100, 200])
def test_the_level_is_kept_against_the_worst_case_and_used_up(guesses):
    # Of 400 canaries about 200 are in. A training that tells the coins of a random share p of those
    # with probability delta / p, and nothing otherwise, has the curve of (0, delta). With p just
    # large enough for all guesses they are all right with probability 200 delta / guesses.
    edge = LEVEL * guesses / 200
    assert not all_right(400, guesses, 1.01 * edge)
    assert all_right(400, guesses, 0.99 * edge)


def test_the_bound_keeps_the_level_against_the_worst_case_and_uses_it_up():
    seen, edge = Guessed(200, 100, 100), LEVEL * 100 / 200
    assert lower_epsilon(seen, 1.01 * edge, LEVEL) == 0.0
    assert lower_epsilon(seen, 0.99 * edge, LEVEL) > 0.0


def test_randomised_response_reaches_its_own_epsilon_and_no_more():
    # Each coin is told right with probability e/(1 + e): epsilon = 1, and no attacker does better.
    rng, claim = np.random.default_rng(5), TradeOff.gaussian(1.0)
    bounds = []
    for _ in range(200):
        inside = rng.random(2000) < 0.5
        told = np.where(rng.random(2000) < np.e / (1 + np.e), inside, ~inside)
        bounds.append(one_run({"told": told.astype(float)}, inside, claim).bound)
    assert np.mean(np.array(bounds) > 1.0) <= 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5
    assert np.median(bounds) > 0.3


def sampled_gaussian(count, rate, noise, steps, rng):
    """The canaries' process without a network: both scores of one training, as they are made."""
    inside = rng.random(count) < 0.5
    turns = (rng.random((steps, count)) < rate) & inside
    x = turns + noise * rng.normal(size=(steps, count))
    ratio = log_ratio(x, np.ones(count), noise, rate).sum(0)
    return {"likelihood ratio": ratio, "repeated noise": (np.diff(x, axis=0) ** 2).sum(0)}, inside


@pytest.mark.parametrize(("rate", "noise", "steps"), [(0.1, 0.77, 40), (1.0, 4.0, 20)])
def test_the_scores_obey_the_curve_of_the_sampled_gaussian(rate, noise, steps):
    claim, rng, runs = DPSGD(noise, rate, steps).curve(), np.random.default_rng(3), 400
    broken = sum(
        one_run(*sampled_gaussian(200, rate, noise, steps, rng), claim).refuted for _ in range(runs)
    )
    assert broken / runs <= 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5


# Power --------------------------------------------------------------------------------------------


def test_a_false_claim_is_broken_although_its_epsilon_is_out_of_reach():
    claim = DPSGD(0.77, 0.1, 40).curve()
    found = one_run(*sampled_gaussian(1000, 0.1, 0.3, 40, np.random.default_rng(0)), claim)
    assert found.refuted
    assert found.bound < found.claimed
    assert one_line(found)


def test_a_claim_beyond_all_guesses_says_so():
    scores, inside = gaussian_scores(50, 50.0, 0)
    found = one_run(scores, inside, TradeOff.gaussian(8.0))
    assert (found.verdict, found.needed) == ("inconclusive", None)
    assert "use more canaries" in found.sentence


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_an_odd_number_of_canaries_can_refute_too(epsilon):
    claim = TradeOff.from_lines([(epsilon, 1e-5)])
    guesses, needed = plan_guesses(claim, 51, LEVEL)
    assert needed is not None
    assert needed <= guesses <= 26


def test_no_claim_still_has_a_bound():
    found = one_run(*gaussian_scores(1000, 4.0, 0), None)
    assert (found.verdict, found.claimed, found.needed) == ("no claim", None, None)
    assert found.bound > 3.0
    assert "no claim was tested" in found.sentence


def test_two_scores_share_the_level():
    scores, inside = gaussian_scores(1000, 3.0, 1)
    twice = {"one": scores["score"], "two": -scores["score"]}
    one, two = (one_run(s, inside, None) for s in (scores, twice))
    assert two.counted["one"] == one.right
    assert two.bound < one.bound


# Ties and what is not finite ----------------------------------------------------------------------


def test_ties_are_broken_by_most_of_the_ways():
    inside = np.arange(100) < 50
    right = right_guesses(np.zeros(100), inside, 20)
    rng = np.random.default_rng(0)
    ways = [inside[rng.permutation(100)[:20]].sum() for _ in range(20_000)]
    assert np.mean(np.array(ways) >= right) >= AGREEING
    assert np.mean(np.array(ways) >= right + 1) < AGREEING


def test_scores_that_are_not_finite_count_as_zero():
    inside = np.array([True, False, True, False])
    scores = np.array([np.inf, np.nan, 1.0, -1.0])
    assert right_guesses(scores, inside, 1) == 1
    assert right_guesses(scores, inside, 3) == right_guesses(np.array([0, 0, 1, -1.0]), inside, 3)


# What is shown ------------------------------------------------------------------------------------


def test_the_report_rounds_the_bound_down_and_the_claim_up():
    found = one_run(*gaussian_scores(1000, 4.0, 0), TradeOff.gaussian(1.0), steps=7)
    lines = found.report().splitlines()
    assert lines[0] == "Audit in one run: 1,000 canaries, 7 steps."
    shown = float(lines[1].removesuffix(".").rsplit(" ", 1)[1])
    assert 0.999 * found.bound < shown <= found.bound
    assert "(ε at most 4.378 at δ = 1e-05) is refuted" in lines[2]
    assert "in at most 5 % of trainings" in lines[2]


def test_the_json_is_plain_and_tells_no_coin():
    found = one_run(*gaussian_scores(60, 1.0, 0), TradeOff.gaussian(1.0))
    text = json.dumps(found.as_json(), allow_nan=False)
    assert json.loads(text)["verdict"] == "not refuted"
    assert "true" not in text
    assert "false" not in text


def with_wrong(count=60, **changed):
    return one_run(*gaussian_scores(count, 1.0, 0), **({"claim": TradeOff.gaussian(1.0)} | changed))


test_what_is_refused = refuses({
    "delta be strictly between 0 and 1": lambda: with_wrong(delta=0.0),
    "confidence be strictly between 0 and 1": lambda: with_wrong(confidence=1.0),
    "claim be a TradeOff": lambda: with_wrong(claim=8.0),
    "count be at least 50 canaries": lambda: with_wrong(20),
})  # fmt: skip
