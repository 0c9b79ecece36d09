"""Inference from end to end: what is trained, attacked, concluded, and said."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dprime import InputError
from dprime.curve import TradeOff
from dprime.data.dataset import Dataset
from dprime.membership import Cohort, InferenceConfig, Scored, Trainers, answers, infer, outside
from dprime.membership.confidence import contradicts, precision_of_share
from dprime.membership.config import Recipe
from dprime.membership.inference import conclude
from dprime.plain import to_json
from dprime.text import round_up
from pools import OPEN, OTHERS, POOL, PRIVATE, by_hand, trainers
from told import one_line

CLAIM = TradeOff.gaussian(0.2)
PRIVATELY = {"recipe": PRIVATE, "attacks": ["lira-fixed", "rmia", "baseline"]}


def found_with(recipe=OPEN, claim=None, **given):
    config = InferenceConfig(**{"shadows": 24, "targets": 3, "seed": 6, **given})
    (found,) = infer(POOL, OTHERS, trainers(recipe), config, claim=claim).inferences
    return found


@pytest.fixture(scope="module")
def private():
    return found_with(**PRIVATELY)


def reached(quality, shape=(3, 400), claim=CLAIM, seed=1):
    """What scores reach that tell members of some targets by this much."""
    rng = np.random.default_rng(seed)
    members = rng.random(shape) < 0.5
    scored = Scored("lira", rng.normal(size=shape) + quality * members, members)
    return conclude(scored, "LiRA", claim, 0.5, InferenceConfig(seed=1))


def test_without_privacy_members_are_found():
    found = found_with()
    by_name = {each.attack: each for each in found.attacks}
    assert by_name["lira"].auc.value > 0.6
    assert by_name["rmia"].top_precision.value > 0.6
    assert by_name["baseline"].auc.value == 0.5
    assert found.verdict == "no claim"
    assert "not private" in found.sentence


def test_a_private_training_keeps_its_claim(private):
    assert (private.verdict, private.certified) == ("not refuted", True)
    assert private.claim.epsilon(1e-5) == trainers(PRIVATE).claim(0.5).epsilon(1e-5)
    assert private.allowed.precision == private.claim.precision(prior=0.5, min_tpr=0.01)
    limit = private.allowed.top_precision
    assert limit == precision_of_share(private.claim, 8 / len(POOL), 0.5)
    assert f"the certified curve allows {round_up(100 * limit)} %" in private.sentence
    assert all(each.top_precision.value <= limit for each in private.attacks)
    assert private.sentence.endswith("the claim is not refuted, which does not prove it.")
    assert all(one_line(each) for each in (private, *private.attacks))
    assert "the claim allows" in replace(private, certified=False).sentence
    shown = json.loads(json.dumps(to_json(private), allow_nan=False))
    assert [each["attack"] for each in shown["attacks"]] == PRIVATELY["attacks"]
    assert shown["allowed"]["tpr"] == {}  # forty outsiders allow no rate to be counted
    assert shown["attacks"][0]["auc"]["value"] == private.attacks[0].auc.value
    assert not {"claim", "scored"} & {*shown, *shown["attacks"][0]}
    assert to_json(found_with(**PRIVATELY)) == to_json(private)  # the seed gives everything


def test_a_training_function_is_held_to_what_is_claimed_of_it():
    made, config = Trainers(PRIVATE, POOL, own=by_hand), InferenceConfig(["yeom"], targets=2)
    (claimed,) = infer(POOL, OTHERS, made, config, claim=made.claim).inferences
    assert claimed.allowed.precision == made.claim(0.5).precision(prior=0.5, min_tpr=0.01)
    assert not claimed.certified
    (free,) = infer(POOL, OTHERS, made, config).inferences
    assert (free.verdict, free.allowed) == ("no claim", None)
    assert "The training has no claim: nothing limits" in free.sentence


@pytest.mark.slow
def test_the_limit_is_of_the_share_that_the_sentence_speaks_of(private):
    """The surest tenth, by an attacker who knows all others, against a full-batch Gaussian."""
    claim = TradeOff.gaussian(1.0)
    result = reached(1.0, (20, 10_000), claim, seed=5)
    found = replace(private, claim=claim, records=10_000, attacks=(result,))
    assert result.top_precision.value == pytest.approx(found.allowed.top_precision, abs=0.005)
    assert found.allowed.top_precision < found.allowed.precision - 0.04
    assert f"allows {100 * found.allowed.top_precision:.2f}"[:-1] in found.sentence


def test_pools_and_populations_that_share_a_record_and_models_that_diverge():
    parts = [(OTHERS.records, POOL.records[:3]), (OTHERS.labels, POOL.labels[:3])]
    both = Dataset.of(*map(np.concatenate, parts))
    assert len(outside(both, POOL)) == 60
    for parameter, call in (
        ("population", lambda: infer(POOL, both, trainers())),
        ("population", lambda: answers(Cohort.of(trainers()(0.5), 2, seed=1), POOL, both)),
        ("pool", lambda: infer(Dataset.of(np.ones((4, 12)), [0, 0, 1, 1]), OTHERS, trainers())),
        ("targets", lambda: found_with(replace(OPEN, learning_rate=1e30), attacks=["yeom"])),
    ):
        with pytest.raises(InputError) as refused:
            call()
        assert refused.value.parameter == parameter


def test_rates_of_too_few_false_alarms_are_left_out(private):
    """Scores that tell nothing would pass a claim there: the threshold is set on the outsiders."""
    blind = reached(0.0, (4, 1000), seed=3)
    assert list(blind.tpr) == [0.1]  # 1 % of about 490 outsiders is less than ten
    found = replace(private, attacks=(blind,), claim=CLAIM, records=1000)
    assert found.allowed.tpr == {0.1: CLAIM.tpr(fpr=0.1)}


def test_answers_that_are_too_good_refute_the_claim(private):
    good, weak = reached(3.0), reached(0.2)
    assert (good.targets_that_contradict, weak.targets_that_contradict) == (3, 0)
    assert good.top_precision.low > CLAIM.precision(prior=0.5, min_tpr=0.01)
    found = replace(private, attacks=(good, weak), claim=CLAIM)
    assert found.verdict == "refuted"
    assert "exceed at 95 % confidence: the claim is refuted." in found.sentence


def test_too_few_answers_are_inconclusive():
    """All right is not enough against a loose claim: that is no clean bill."""
    loose = TradeOff.gaussian(3.0)
    found = found_with(PRIVATE, lambda _: loose, attacks=["yeom"], targets=2, records=12)
    assert (found.telling, found.certified, found.verdict) == (False, False, "inconclusive")
    assert "Inconclusive, because the answers are too few" in found.sentence
    lucky = replace(reached(0.6), targets_that_contradict=0)
    unsure = replace(found, attacks=(lucky,), claim=CLAIM, telling=True)
    assert lucky.top_precision.value > unsure.allowed.top_precision
    assert unsure.verdict == "inconclusive"


def test_whether_answers_could_tell_goes_by_the_number_that_is_flagged():
    """A tenth of 30 records is 3, though 0.1 · 30 is a little more as a float."""
    claim, recipe = TradeOff.gaussian(0.7), Recipe(batch_size=5, epochs=1)
    few = {"attacks": ["yeom"], "targets": 2, "records": 30, "sampling_probabilities": (0.1,)}
    told = [contradicts(claim, n, n, records=30, prior=0.1, choices=2) for n in (3, 4)]
    assert [found_with(recipe, lambda _: claim, **few).telling, True] == told


def test_chosen_afterwards_says_more_than_held_out():
    found = reached(0.0, (20, 400), claim=None)
    assert found.best_precision.value > 0.53
    assert found.best_precision.value == pytest.approx(found.shuffled_best.value, abs=0.06)
    assert found.held_out_precision.low < 0.5 < found.held_out_precision.high
    assert found.targets_that_contradict is None
