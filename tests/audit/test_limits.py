"""Limits of those who decide, beside what a claim allows and what was reached."""

import dataclasses

import pytest

from audited import run
from dprime.audit import record_of
from dprime.audit.limits import LIMITS, limits_of, risks
from dprime.metrics import TARGETS, Reading
from refusals import refuses

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


def test_bayes_security_is_kept_from_below():
    allowed = found("stands", bayes_security=0.1)["Bayes security"].numbers.allowed
    assert outcome("stands", bayes_security=allowed - 1e-6) == "kept"
    assert outcome("stands", bayes_security=allowed + 1e-6) == "open"


def test_nothing_is_kept_by_a_claim_that_does_not_hold():
    for name in ("broken", "local"):  # refuted, not DP
        assert found(name)["Membership advantage"].numbers.allowed < 0.999
        assert outcome(name, advantage=0.999) == "open"
    assert record_of(run("objected-above")).crosses
    assert outcome("objected-above", advantage=0.999) == "open"


def test_nothing_is_kept_by_a_claim_of_less_than_is_certified():
    facts = record_of(run("stands"))
    epsilon = facts.claim.curve.epsilon(facts.config.delta)
    limits = limits_of({"advantage": 0.999})
    for proved, said in ((epsilon, "kept"), (1.01 * epsilon, "open"), (None, "kept")):
        other = dataclasses.replace(facts, proved=proved)
        assert [each.outcome for each in risks(other, limits) if each.outcome] == [said]


def test_what_a_claim_does_not_allow_may_be_exceeded_all_the_same():
    assert outcome("broken", advantage=0.1) == "exceeded"


def test_a_bound_that_does_not_count_exceeds_nothing():
    facts = record_of(run("objected-above"))
    assert facts.rows[0].reached > 0.9
    assert not facts.method.decides
    risk = found("objected-above", advantage=0.9)["Membership advantage"]
    assert (risk.measured, risk.numbers.reached, risk.outcome) == (False, None, "open")


def test_other_conditions_are_read_off_the_claimed_curve():
    risk = found("stands", tpr=0.5, fpr=0.2)["TPR at FPR 0.2"]
    curve = record_of(run("stands")).claim.curve
    assert (risk.measured, risk.numbers.reached) == (False, None)
    assert risk.numbers.allowed == Reading("tpr", {"fpr": 0.2}).value(curve)
    assert "TPR at FPR 0.01" not in found("stands", tpr=0.5, fpr=0.2)


def test_a_kept_number_is_not_computed_again():
    facts = record_of(run("stands"))
    kept = {**facts.claim.metrics, "success": {"value": 0.75, "prior": 0.5}}
    other = dataclasses.replace(facts, claim=dataclasses.replace(facts.claim, metrics=kept))
    told = {each.numbers.name: each for each in risks(other, limits_of({"success": 0.8}))}
    assert told["success"].numbers.allowed == 0.75


def test_no_limit_is_above_every_number():
    risk = found("no-limit", epsilon=100.0)["ε at δ 1e-05"]
    assert (risk.numbers.allowed, risk.outcome) == (None, "open")


test_refused = refuses({
    "fpr be given with a limit": lambda: limits_of({"fpr": 0.1}),
    "prior be given with a limit": lambda: limits_of({"advantage": 0.1, "prior": 0.1}),
    "tpr be above 0.01": lambda: limits_of({"tpr": 0.01}),
    "epsilon be a number": lambda: limits_of({"epsilon": "8"}),
    "delta be": lambda: limits_of({"epsilon": 8.0, "delta": 0.0}),
})  # fmt: skip


@pytest.mark.parametrize("name", LIMITED)
def test_a_limit_has_the_conditions_that_are_usual(name):
    (limit,) = limits_of({name: 0.95})
    assert limit.reading == Reading(name)
