"""Membership inference from end to end."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dprime import TradeOff
from dprime.data.dataset import Dataset
from dprime.membership.confidence import precision_of_share
from dprime.membership.game import Scored
from dprime.membership.inference import Asked, conclude, infer
from dprime.membership.planner import outside
from dprime.membership.shadows import answers
from pools import OPEN, OTHERS, POOL, PRIVATE, trainers


def found_with(recipe=None, **given):
    made = trainers() if recipe is None else trainers(recipe)
    options = {"shadows": 24, "targets": 3, "seed": 6, "claim": made.claim(0.5), **given}
    return infer(POOL, OTHERS, made, **options)


@pytest.fixture(scope="module")
def without_privacy():
    return found_with()


@pytest.fixture(scope="module")
def private():
    return found_with(PRIVATE, attacks=["lira-fixed", "rmia", "baseline"])


def test_without_privacy_members_are_found(without_privacy):
    by_name = {each.attack: each for each in without_privacy.outcomes}
    assert by_name["lira"].roc.auc.value > 0.6
    assert by_name["rmia"].top.value > 0.6
    assert by_name["baseline"].roc.auc.value == 0.5
    assert without_privacy.verdict == "no claim"
    assert "not private" in without_privacy.sentence()


def test_a_private_training_keeps_its_claim(private):
    assert private.verdict == "not refuted"
    assert private.allowed_precision == private.claim.precision(prior=0.5, min_tpr=0.01)
    assert all(each.top.value <= private.allowed_top for each in private.outcomes)
    assert private.sentence().endswith("the claim is not refuted, which does not prove it.")


@pytest.mark.parametrize("curve", [TradeOff.gaussian(1.0), TradeOff.from_lines([(1.0, 0.02)])])
@pytest.mark.parametrize(("share", "prior"), [(0.1, 0.5), (0.1, 0.05), (0.5, 0.5), (0.9, 0.3)])
def test_the_most_of_a_share_is_that_of_the_best_test_that_says_so_many(curve, share, prior):
    """Of all tests of which a share π TPR + (1 - π) FPR is said, by search over the curve."""
    tests = [(curve.tpr(fpr), fpr) for fpr in np.linspace(0, min(1, share / (1 - prior)), 20_001)]
    said = [(prior * tpr + (1 - prior) * fpr, tpr) for tpr, fpr in tests]
    best = max(prior * min(tpr, share / prior) / share for rate, tpr in said if rate <= share)
    allowed = precision_of_share(curve, share, prior)
    assert best <= allowed <= best + 1e-3
    assert allowed < curve.precision(prior, 0.01) or share <= 0.01


def test_the_limit_is_of_the_share_that_the_sentence_speaks_of(private):
    """The surest tenth, by an attacker who knows all others, against a full-batch Gaussian."""
    claim = TradeOff.gaussian(1.0)
    found = replace(private, claim=claim, records=10_000)
    rng = np.random.default_rng(5)
    members = rng.random((20, 10_000)) < 0.5
    scored = Scored("best", rng.normal(size=members.shape) + members, members)
    outcome = conclude(scored, "Best", claim, 0.5, Asked(), seed=1)
    shown = replace(found, outcomes=(outcome,), scored=(scored,))
    assert outcome.top.value == pytest.approx(shown.allowed_top, abs=0.005)
    assert shown.allowed_top < shown.allowed_precision - 0.04
    assert f"allows {100 * shown.allowed_top:.2f}"[:-1] in shown.sentence()
    assert shown.as_json()["allowed"]["top_precision"] == shown.allowed_top


def test_a_population_that_was_trained_on_is_refused():
    both = Dataset.of(
        np.concatenate([OTHERS.records, POOL.records[:3]]),
        np.concatenate([OTHERS.labels, POOL.labels[:3]]),
    )
    with pytest.raises(ValueError, match=r"population must be .* but 3 of its 63 records are in"):
        infer(POOL, both, trainers())
    with pytest.raises(ValueError, match=r"population must be .* but 3 of its 63 records are in"):
        answers(trainers()(0.5), POOL, both, models=2, seed=1)
    assert len(outside(both, POOL)) == 60


def test_plain_values(private):
    shown = json.loads(json.dumps(private.as_json(), allow_nan=False))
    assert [each["attack"] for each in shown["attacks"]] == ["lira-fixed", "rmia", "baseline"]
    assert shown["allowed"]["kind"] == "certified"
    assert shown["allowed"]["tpr"] == []  # forty outsiders allow no rate to be counted
    assert shown["attacks"][0]["auc"]["value"] == private.outcomes[0].roc.auc.value


def test_rates_of_too_few_false_alarms_are_left_out(private):
    """Scores that tell nothing would pass a claim there: the threshold is set on the outsiders."""
    rng = np.random.default_rng(3)
    members = rng.random((4, 1000)) < 0.5
    blind = Scored("lira", rng.normal(size=members.shape), members)
    claim = TradeOff.gaussian(0.3)
    outcome = conclude(blind, "LiRA", claim, 0.5, private.asked, seed=1)
    found = replace(private, outcomes=(outcome,), scored=(blind,), claim=claim, records=1000)
    assert found.asked.fpr == (0.001, 0.01, 0.1)
    assert found.counted == (2,)  # 1 % of about 490 outsiders is less than ten
    shown = found.as_json()
    assert [each["fpr"] for each in shown["attacks"][0]["tpr"]] == [0.1]
    assert shown["allowed"]["tpr"][0]["value"] == claim.tpr(fpr=0.1)


def test_the_seed_gives_everything(private):
    again = found_with(PRIVATE, attacks=["lira-fixed", "rmia", "baseline"])
    assert again.as_json() == private.as_json()


def telling_scores(quality):
    """Three targets of 400 records, scores that tell members by so much."""
    rng = np.random.default_rng(1)
    members = rng.random((3, 400)) < 0.5
    return Scored("lira", rng.normal(size=(3, 400)) + quality * members, members)


def test_answers_that_are_too_good_contradict_the_claim():
    claim, asked = TradeOff.gaussian(0.2), Asked()
    good = conclude(telling_scores(3.0), "LiRA", claim, 0.5, asked, seed=1)
    assert good.contradicted == 3
    assert good.top.low > claim.precision(prior=0.5, min_tpr=0.01)
    weak = conclude(telling_scores(0.2), "LiRA", claim, 0.5, asked, seed=1)
    assert weak.contradicted == 0


def test_a_claim_that_answers_exceed_is_refuted(private):
    outcome = conclude(telling_scores(3.0), "LiRA", TradeOff.gaussian(0.2), 0.5, Asked(), seed=1)
    broken = replace(private, outcomes=(outcome,), claim=TradeOff.gaussian(0.2))
    assert broken.verdict == "refuted"
    assert "exceed at 95 % confidence: the claim is refuted." in broken.sentence()


def test_too_few_answers_cannot_tell():
    """All right is not enough against a loose claim: that is no clean bill."""
    made = trainers(PRIVATE)
    found = infer(
        POOL, OTHERS, made, attacks=["yeom"], targets=2, records=12, claim=TradeOff.gaussian(3.0)
    )
    assert not found.telling
    assert found.verdict == "inconclusive"
    assert "Inconclusive, because the answers are too few" in found.sentence()
    above = conclude(telling_scores(0.6), "LiRA", TradeOff.gaussian(0.2), 0.5, Asked(), seed=1)
    lucky = replace(above, contradicted=0)
    unsure = replace(found, outcomes=(lucky,), claim=TradeOff.gaussian(0.2), telling=True)
    assert lucky.top.value > unsure.allowed_top
    assert unsure.verdict == "inconclusive"


def test_a_claim_that_is_only_stated_is_not_called_certified(private):
    stated = replace(private, certified=False)
    assert stated.as_json()["allowed"]["kind"] == "claimed"
    assert "the claim allows" in stated.sentence()


def test_chosen_afterwards_says_more_than_held_out():
    found = conclude(telling_scores(0.0), "LiRA", None, 0.5, Asked(), seed=1)
    assert found.best.value > 0.53
    assert found.best.value == pytest.approx(found.shuffled.value, abs=0.06)
    assert found.held_out.low < 0.5 < found.held_out.high
    assert found.contradicted is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"attacks": []}, "attacks must be one attack or more"),
        ({"attacks": ["lira", "lira"]}, "one of them twice"),
        ({"attacks": ["liar"]}, "attack must be"),
        ({"targets": 1}, "targets must be at least 2"),
        ({"records": 81}, "records must be at most 80"),
        ({"shadows": 1}, "records lack models"),
        ({"probability": 1.0}, "probability must be"),
    ],
)
def test_bad_input(given, words):
    with pytest.raises(ValueError, match=words):
        found_with(**{"attacks": ["lira"], **given})


def test_models_that_diverge():
    wild = replace(OPEN, learning_rate=1e30)
    with pytest.raises(ValueError, match="targets must be finite, but it is such that 2 of 2"):
        found_with(wild, targets=2, attacks=["yeom"])


def test_a_pool_that_repeats_a_record():
    twice = Dataset.of(np.ones((4, 12)), [0, 0, 1, 1])
    with pytest.raises(ValueError, match="pool must be of distinct records"):
        infer(twice, OTHERS, trainers())


@pytest.mark.parametrize(
    "given", [{"fpr": (0.0,)}, {"confidence": 1.0}, {"top_share": 0.0}, {"min_tpr": 0.2}]
)
def test_bad_questions(given):
    with pytest.raises(ValueError, match=f"{next(iter(given))} must be"):
        Asked(**given)
