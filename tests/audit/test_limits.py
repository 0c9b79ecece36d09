"""Limits of those who decide, beside what a claim allows and what was reached."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import binom

from audited import run
from dprime.audit import lower_bound, record_of
from dprime.audit.limits import LIMITS, limits_of, risks
from dprime.curve import TradeOff
from dprime.mechanisms import DPSGD
from dprime.metrics import TARGETS, Reading
from told import refuses

LIMITED = [each.name for each in LIMITS if each.name in TARGETS]


def found(name, **limits):
    """What is said of each limit of a run, by the title of its metric."""
    return {each.numbers.title: each for each in risks(record_of(run(name)), limits_of(limits))}


def outcome(name, **limit):
    (said,) = [each.outcome for each in found(name, **limit).values() if each.outcome]
    return said


def test_every_metric_of_a_claim_that_can_be_chosen_may_have_a_limit():
    metrics = record_of(run("stands")).claim.metrics
    assert {*LIMITED} < {*metrics}
    conditions = {c for name in LIMITED for c in metrics[name]} - {"value", "kind", "note"}
    assert {each.name for each in LIMITS} == {*LIMITED} | conditions
    for name in LIMITED:
        (limit,) = limits_of({name: 0.95})
        assert limit.reading == Reading(name)


def test_what_was_measured_is_told_without_a_limit():
    facts = record_of(run("stands"))
    rows = {each.title: each for each in facts.metrics}
    told = found("stands")
    assert {*told} == {each.title for each in facts.metrics if each.name != "d_prime"}
    for title, risk in told.items():
        assert risk.numbers == rows[title]
        assert (risk.measured, risk.acceptable, risk.outcome) == (True, None, None)


def test_kept_exceeded_or_neither():
    facts = record_of(run("stands"))
    (row,) = [each for each in facts.metrics if each.name == "advantage"]
    assert 0 < row.reached < row.allowed
    assert outcome("stands", advantage=row.allowed) == "kept"
    assert outcome("stands", advantage=row.allowed - 1e-6) == "open"
    assert outcome("stands", advantage=row.reached) == "open"
    assert outcome("stands", advantage=row.reached - 1e-6) == "exceeded"
    assert outcome("broken", advantage=0.1) == "exceeded"  # whatever is claimed
    allowed = found("stands", bayes_security=0.1)["Bayes security"].numbers.allowed
    assert outcome("stands", bayes_security=allowed - 1e-6) == "kept"  # from below
    assert outcome("stands", bayes_security=allowed + 1e-6) == "open"


def test_nothing_is_kept_by_a_claim_that_does_not_hold():
    for name in ("broken", "local"):  # refuted, not DP
        assert found(name)["Membership advantage"].numbers.allowed < 0.999
        assert outcome(name, advantage=0.999) == "open"
    assert record_of(run("objected-above")).crosses
    assert outcome("objected-above", advantage=0.999) == "open"


EVERY = {**dict.fromkeys(LIMITED, 0.95), "epsilon": 50.0, "fpr": 0.003, "prior": 0.2, "delta": 1e-4}
EVERY |= {"bayes_security": 0.2, "exceeded": 1e-4}


@pytest.mark.parametrize("name", ["understated", "no-noise", "broken"])
def test_no_ceiling_is_below_what_is_certified_for_the_tested_settings(name):
    facts = record_of(run(name))
    assert facts.understated
    recipe = facts.attacked["training"]
    noise, sure = recipe["noise_multiplier"], TradeOff.from_lines([(0.0, 1.0)])
    certified = DPSGD(noise, 1.0, 2).curve("zero-out") if noise else sure
    for risk in (*found(name).values(), *found(name, **EVERY).values()):
        numbers = risk.numbers
        reading = Reading(numbers.name, numbers.conditions)
        shown = math.inf if numbers.allowed is None else numbers.allowed
        assert shown == pytest.approx(reading.value(certified), rel=1e-6)
        below = shown < reading.value(facts.claim.curve)
        assert below == (numbers.name == "bayes_security") or name == "understated"
        if risk.acceptable is not None and risk.outcome != "exceeded":
            kept = limits_of({numbers.name: risk.acceptable})[0].keeps(shown)
            assert (risk.outcome == "kept") == (kept and not facts.refuted)


def test_settings_that_are_not_known_certify_nothing_beside_the_claim():
    for name in ("own", "local"):
        facts = record_of(run(name))
        assert (facts.certified, facts.understated) == (None, False)
        assert facts.ceiling is facts.claim.curve


def test_a_bound_that_does_not_count_exceeds_nothing():
    facts = record_of(run("objected-above"))
    assert facts.rows[0].reached > 0.9
    assert not facts.method.decides
    risk = found("objected-above", advantage=0.9)["Membership advantage"]
    assert (risk.measured, risk.numbers.reached, risk.outcome) == (False, None, "open")


@pytest.mark.parametrize("name", ["stands", "assumed", "bayesian", "failed"])
def test_other_conditions_are_read_off_the_claimed_curve_and_the_band(name):
    facts, told = record_of(run(name)), found(name, **EVERY)
    scores = (facts.played.in_scores, facts.played.out_scores)
    lost = [np.full(facts.config.trials - len(each), np.inf) for each in scores]
    band = lower_bound(np.append(scores[0], -lost[0]), np.append(scores[1], lost[1])).curve
    assert "TPR at FPR 0.01" not in told
    for risk in told.values():
        if risk.acceptable is None or not risk.measured:
            continue
        reading = Reading(risk.numbers.name, risk.numbers.conditions)
        assert risk.numbers.reached == pytest.approx(reading.value(band), rel=1e-9)
        assert risk.numbers.allowed == pytest.approx(reading.value(facts.claim.curve), rel=1e-9)
    unmeasured = {each.numbers.name for each in told.values() if not each.measured}
    assert unmeasured == {"belief"} | ({"advantage"} if name == "assumed" else set())


@pytest.mark.slow
@pytest.mark.parametrize("d_prime", [0.7, 2.0])
def test_a_reading_that_is_chosen_after_the_trials_keeps_the_confidence(d_prime):
    """Of many readings the one that lies highest above the truth is looked at in every audit."""
    facts, rng, wrong, audits = record_of(run("stands")), np.random.default_rng(8), 0, 600
    truth = TradeOff.gaussian(d_prime)
    readings = [
        *(Reading("tpr", {"fpr": fpr}) for fpr in np.geomspace(1e-4, 0.9, 25).tolist()),
        *(Reading("success", {"prior": prior}) for prior in (0.05, 0.2, 0.35, 0.5, 0.65, 0.8)),
        *(Reading("precision", {"prior": 0.1, "min_tpr": least}) for least in (0.01, 0.1, 0.5)),
        *(Reading("epsilon", {"delta": delta}) for delta in (1e-6, 1e-3, 0.1)),
    ]
    true = [reading.value(truth) for reading in readings]
    for _ in range(audits):
        curve = lower_bound(rng.normal(d_prime, 1.0, 150), rng.normal(size=150)).curve
        kept = dict(zip(("fpr", "tpr"), map(tuple, curve.points()), strict=True))
        other = dataclasses.replace(facts, lower={"band": (kept["fpr"], kept["tpr"])})
        pairs = zip(readings, true, strict=True)
        wrong += any(reading.value(other.band) > value for reading, value in pairs)
    assert wrong <= binom.ppf(0.999, audits, 0.05)


def test_a_kept_number_is_not_computed_again():
    facts = record_of(run("stands"))
    kept = {**facts.claim.metrics, "success": {"value": 0.75, "prior": 0.5}}
    other = dataclasses.replace(facts, claim=dataclasses.replace(facts.claim, metrics=kept))
    told = {each.numbers.name: each for each in risks(other, limits_of({"success": 0.8}))}
    assert told["success"].numbers.allowed == 0.75


def test_no_limit_is_above_every_number():
    facts = record_of(run("no-limit"))
    unknown = dataclasses.replace(facts, attacked={**facts.attacked, "training": None})
    (risk,) = [each for each in risks(unknown, limits_of({"epsilon": 100.0})) if each.outcome]
    assert (risk.numbers.allowed, risk.outcome) == (None, "open")


test_refused = refuses({
    "fpr be given with a limit": lambda: limits_of({"fpr": 0.1}),
    "prior be given with a limit": lambda: limits_of({"advantage": 0.1, "prior": 0.1}),
    "tpr be above 0.01": lambda: limits_of({"tpr": 0.01}),
    "epsilon be a number": lambda: limits_of({"epsilon": "8"}),
    "delta be": lambda: limits_of({"epsilon": 8.0, "delta": 0.0}),
})  # fmt: skip
