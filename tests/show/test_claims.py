"""The claim, made again from its description."""

import pytest

import dprime
from audited import CONCLUDED, run
from dprime.audit.settings import settings_of
from dprime.guarantees import EpsilonDelta
from dprime.metrics import risk_profile
from dprime.runs.run import Run
from dprime.show import facts_of
from dprime.show.claims import claim_of

UNKNOWN = ("python-curve", "no-limit", "evil")


@pytest.mark.parametrize("name", [name for name in CONCLUDED if name not in UNKNOWN])
def test_the_curve_is_that_of_the_audit(name):
    claim = facts_of(run(name)).claim
    with Run.open(run(name)) as store:
        if name == "python":
            claimed = dprime.DPSGD(0.5, 1.0, 4).curve()
        else:
            claimed = settings_of(store).claimed()
    fpr, tpr = claimed.points(claim.fpr)
    again = claim.curve.points(claim.fpr)[1]
    assert tpr == pytest.approx(again, rel=1e-9)
    assert list(claim.fpr) == fpr.tolist()
    assert len(fpr) <= len(claimed.points()[0]) + 1  # the rate that decides is drawn too


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_curve_that_no_file_names(name):
    claim = facts_of(run(name)).claim
    assert claim.curve is None
    assert claim.mechanism is None
    assert claim.described == "a certified curve that was given as a Python object"


def test_a_description_that_does_not_give_the_kept_numbers_does_not_count():
    with Run.open(run("stands")) as store:
        answer, settings = store.result, store.config
    assert claim_of(answer, settings).curve is not None
    answer["claim"]["metrics"]["advantage"]["value"] *= 1.001
    changed = claim_of(answer, settings)
    assert (changed.curve, changed.mechanism) == (None, None)
    assert changed.metrics["advantage"]["value"] == answer["claim"]["metrics"]["advantage"]["value"]


def test_descriptions():
    described = {name: facts_of(run(name)).claim.described for name in ("stands", "broken", "own")}
    assert described["stands"].startswith("DP-SGD with noise multiplier 1.52")
    assert described["stands"].endswith("chosen to keep ε at most 4 at δ = 1e-05")
    assert described["broken"] == ("DP-SGD with noise multiplier 4, sampling rate 1 and 2 steps")
    assert described["own"] == "(ε, δ)-differential privacy with ε = 4, δ = 1e-05"
    replaced = facts_of(run("replace")).claim
    assert replaced.mechanism == EpsilonDelta(2.0, 1e-6)


@pytest.mark.parametrize("name", ["stands", "own", "python-curve", "no-limit"])
def test_the_profile_is_that_of_the_curve(name):
    claim = facts_of(run(name)).claim
    shown = {answer.name: answer for answer in claim.profile()}
    assert {name: answer.as_json() for name, answer in shown.items()} == claim.metrics
    if claim.curve is not None:
        expected = [(a.name, a.title, a.sentence) for a in risk_profile(claim.curve)]
        assert [(a.name, a.title, a.sentence) for a in shown.values()] == expected


def test_the_same_claim_or_another():
    stands, gradient, broken = (facts_of(run(n)).claim for n in ("stands", "gradient", "broken"))
    assert stands.same_as(gradient)
    assert not stands.same_as(broken)
