"""Assumptions, law, and what is left open, for each kind of run."""

import pytest

from audited import CONCLUDED, run
from dprime.audit import record_of
from dprime.show import grounds


def told(part, name):
    return " ".join(getattr(grounds, part)(record_of(run(name))))


@pytest.mark.parametrize("name", CONCLUDED)
def test_what_every_run_assumes(name):
    assumed = told("assumed", name)
    for words in ("records are independent", "each person has one record", "Who sees what"):
        assert words in assumed
    assert "reasonably likely to be used, such as singling out" in told("gdpr", name)
    assert "not a legal finding" in told("gdpr", name)
    assert "§ 164.514" in told("hipaa", name)
    assert "A stronger one may reach more" in told("not_tested", name)


def test_who_sees_what():
    assert "server of federated learning" in told("assumed", "stands")
    assert "if the model is computed from the updates alone" in told("assumed", "stands")
    assert "saw the final model only" in told("assumed", "api")
    assert "all that the training gives away" in told("assumed", "own")
    assert "Attackers who see every update" in told("not_tested", "api")
    assert "Attackers who see every update" not in told("not_tested", "stands")


def test_worlds_batches_and_bounds():
    assert "without it" in told("assumed", "public")
    assert "counts for nothing" in told("assumed", "stands")
    assert "another record in its place" in told("assumed", "replace")
    assert "Poisson" in told("assumed", "sampled-di")
    assert "Poisson" not in told("assumed", "stands")
    assert "The scores are Gaussian" in told("assumed", "gaussian")


def test_limits_that_cannot_be_relied_on():
    for part in ("gdpr", "hipaa"):
        assert "none of its limits can be relied on" in told(part, "broken")
        assert "can be relied on" not in told(part, "stands")
    assert "not DP" in told("gdpr", "local")
    assert "not DP" in told("hipaa", "local")


def test_a_table_needs_the_mechanism():
    assert "None follows from this claim" in told("hipaa", "python-curve")
    assert "The table is for" not in told("hipaa", "python-curve")
    assert "The table is for" in told("hipaa", "stands")
    assert "exactly one of k people" in told("hipaa", "replace")
    assert "protects less" in told("hipaa", "stands")
    assert "protects less" not in told("hipaa", "replace")


def test_made_data_are_said_to_be_made():
    assert "made its own data set" in told("not_tested", "stands")
    assert "made its own data set" not in told("not_tested", "di")
