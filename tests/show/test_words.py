"""The sentences: what they say, and on which side their digits are."""

import dataclasses
import functools
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audited import SIX, run
from dprime.attack import ADVERSARIES
from dprime.audit import record_of
from dprime.audit.record import Group, Measured
from dprime.curve import TradeOff
from dprime.guarantees import GDP
from dprime.metrics import OBSERVED, Reading
from dprime.runs.states import Event
from dprime.show import sentences, words
from dprime.show.compared import compared

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


@functools.cache
def record(name):
    return record_of(run(name))


def changed(name, **parts):
    """A record with other parts."""
    return dataclasses.replace(record(name), **parts)


def with_verdict(name, **parts):
    return changed(name, verdict=dataclasses.replace(record(name).verdict, **parts))


HEADLINES = {
    "stands": "The claim is not refuted: in 400 trainings this attacker was not seen to learn more "
    "than the claim allows.",
    "broken": "The claim is refuted: this attacker learned more than the claim allows.",
    "local": "Not DP, and inconclusive: 80 trainings were too few to tell.",
    "objected-above": "Inconclusive: what the attacker reached could not be counted against the "
    "claim.",
    "bayesian": "Inconclusive: the method that was to decide could not have refuted the claim.",
    "few": "Inconclusive: 20 trainings were too few to tell.",
}


@pytest.mark.parametrize("name", HEADLINES)
def test_headlines(name):
    assert words.headline(record(name)) == HEADLINES[name]


@pytest.mark.parametrize("name", SIX)
def test_what_is_not_refuted_is_never_called_safe(name):
    facts = record(name)
    told = " ".join([words.headline(facts), words.how_sure(facts), *words.not_said(facts)])
    rest = told.replace("It does not say that the training is safe", "")
    assert not re.search(r"\b(?:safe|secure|proved|proven|guaranteed)\b", rest)
    if not facts.refuted:
        assert "That is not a proof." in told
    assert "It is not a legal finding." in told


NOTICES = {
    "local": "This training is not DP: the noise was scaled to the local sensitivity",
    "gaussian": "rests on an assumption: The scores are Gaussian in both worlds",
    "objected": "The data speak against the method that was to decide (gaussian): Many scores",
    "bayesian": "The method bayesian gives no valid bound and cannot refute a claim.",
    "assumed": "The method gaussian refutes nothing unless its assumption is accepted (--assume).",
    "failed": "1 of 25 blocks of trainings failed, the last with RuntimeError: no <memory> left",
    "diverged": "of the models diverged and had no score of their own",
    "few": "To notice half of the noise takes 1",
    "objected-above": "lies above the claimed curve elsewhere (by the method band)",
}


@pytest.mark.parametrize(("name", "expected"), NOTICES.items())
def test_notices(name, expected):
    assert any(expected in notice for notice in words.notices(record(name)))


LOST = Event("2026-01-01", 3, "lost with its worker", "its process died", "process 1")


def test_each_notice_alone():
    stands = record("stands")
    config = dataclasses.replace(stands.config, adversary="attribute")
    beginnings = {
        "On the way 1 try was lost with its worker; its block was given out": changed(
            "stands", events=(LOST,)
        ),
        "The accountant certifies ε = ": record("broken"),
        "The scores are odd.": changed("stands", caveats=("The scores are odd.",)),
        "The record is there in both worlds, with one value": changed("stands", config=config),
    }
    for beginning, facts in beginnings.items():
        (notice,) = words.notices(facts)
        assert notice.startswith(beginning)
    assert words.notices(stands) == []


def test_a_claim_that_allows_everything_could_not_have_been_refuted():
    facts = changed("no-limit", attacked={**record("no-limit").attacked, "training": None})
    assert facts.vacuous
    assert "the claim allows everything" in words.headline(facts)
    assert "Nothing was decided" in words.how_sure(facts)
    assert not record("stands").vacuous


def test_a_method_of_unknown_power_is_not_said_to_have_had_too_few_trials():
    own = with_verdict("few", power_known=False)
    assert "it is not known what the method that was to decide" in words.headline(own)
    assert not any("noticed" in notice for notice in words.notices(own))


def test_a_credible_bound_has_no_confidence():
    assert words.certainty(record("stands")) == "95 % confidence"
    assert "which is no confidence" in words.certainty(record("bayesian"))


def test_a_curve_that_crosses_elsewhere_is_in_the_headline():
    fpr, tpr = record("stands").lower["band"]
    crossing = changed("stands", lower={"band": (fpr, tuple(1.0 for _ in tpr))})
    assert crossing.crosses
    assert "was seen to learn more than it allows" in words.headline(crossing)


def test_other_runs_are_counted_and_are_of_the_same_claim_and_training():
    stands, gradient, api = (record(name) for name in ("stands", "gradient", "api"))
    assert "3 attackers were tried" in words.not_said(compared(stands, [gradient, api]))[0]
    assert "one attacker was tried" in words.not_said(stands)[0]
    broken = with_verdict("gradient", outcome="refuted")
    assert compared(broken, [stands]).other_runs == (stands,)
    for other, told in (
        (broken, r"report gradient\.run, with stands\.run beside it"),
        (changed("stands", attacked={**stands.attacked, "records": 7}), "which has other records"),
        (record("broken"), r"run must be a run against the claim of stands\.run"),
    ):
        with pytest.raises(ValueError, match=told):
            compared(stands, [other])


def test_what_decides_nothing_is_no_evidence_either_way():
    for name in ("objected-above", "bayesian", "few"):
        assert "Nothing was decided" in words.how_sure(record(name))
    assert "gave no evidence" in words.how_sure(record("stands"))
    assert words.how_sure(record("broken")).endswith("this one refutes at most 5 %.")


@pytest.mark.parametrize("name", SIX)
def test_the_meaning_is_on_the_safe_side(name):
    facts = record(name)
    tpr, belief = Reading("tpr"), Reading("belief")
    told = " ".join(words.meaning(facts))
    found = re.search(r"of at most ([\d,]+) in 1,000 people", told)
    most = int(found.group(1).replace(",", ""))
    least = 1000 * max(tpr.value(each) for each in (facts.claim.curve, facts.ceiling))
    assert least <= most < least + 1
    assert f"wrongly saying so of {1000 * tpr.conditions['fpr']:g} in 1,000" in told
    if belief.value(facts.ceiling) == 1:
        assert "may become certain" in told
        return
    sure = float(re.search(r"more than ([\d.]+) % sure at most once in 1,000", told).group(1))
    assert 0 <= sure / 100 - belief.value(facts.ceiling) < 1e-4


@pytest.mark.parametrize("name", ["stands", "curve", "success", "gaussian"])
def test_what_a_test_notices_stands_beside_what_the_claim_allows_there(name):
    facts = record(name)
    shown = [float(each) for each in NUMBER.findall(words.noticed(facts).partition("test like")[2])]
    *_, seen, allowed, gap = shown
    assert gap == pytest.approx(seen - allowed)
    found = words.at_the_edge(facts, TradeOff.gaussian(facts.verdict.detects))
    scale = 100 if found.share else 1
    assert 0 <= seen - scale * found.reached < 1e-3 * seen
    assert 0 <= allowed - scale * found.allowed < 1e-3 * allowed
    reading = Reading("tpr" if found.name == "curve" else found.name, found.conditions)
    assert found.allowed == pytest.approx(reading.value(facts.claim.curve))


def test_who_is_noticed_by_the_curve_may_keep_the_claim_where_it_was_decided():
    facts, attacker = record("curve"), TradeOff.gaussian(1.2)
    mechanism = GDP(1.0, adjacency="zero-out")
    row = dataclasses.replace(facts.rows[0], allowed=attacker.tpr(facts.decided_at))
    claim = dataclasses.replace(facts.claim, mechanism=mechanism)
    low = dataclasses.replace(facts, claim=claim, rows=(row, *facts.rows[1:]))
    edge, curve = words.at_the_edge(low, attacker), TradeOff.gaussian(1.0)
    assert edge.allowed == pytest.approx(curve.tpr(edge.conditions["fpr"]))
    gaps = [attacker.tpr(fpr) - curve.tpr(fpr) for fpr in claim.fpr]
    assert edge.reached - edge.allowed == pytest.approx(max(gaps))


SHARES = ("advantage", "tpr", "precision", "success")


@pytest.mark.parametrize("name", [*OBSERVED, "curve"])
@given(reached=st.floats(0, 1), allowed=st.floats(0, 1))
def test_both_numbers_are_on_their_side(name, reached, allowed):
    metric = None if name == "curve" else Reading(name)
    conditions = {"fpr": 0.36} if metric is None else metric.conditions
    told = sentences.plainly(Measured(name, "a title", conditions, reached, allowed))
    scale = 100 if name in (*SHARES, "curve") else 1
    least, most = (float(number) for number in NUMBER.findall(told)[-2:])
    assert least <= scale * reached * (1 + 1e-12) or math.isclose(least, scale * reached)
    assert most >= scale * allowed * (1 - 1e-12)
    assert least == pytest.approx(scale * reached, rel=2e-3, abs=2e-288)
    assert most == pytest.approx(scale * allowed, rel=2e-3, abs=2e-288)
    assert "{" not in told


@pytest.mark.parametrize("name", [*OBSERVED, "curve"])
def test_without_a_limit(name):
    conditions = {"fpr": 0.36} if name == "curve" else Reading(name).conditions
    told = sentences.plainly(Measured(name, "a title", conditions, 0.5, None))
    assert told.endswith("no limit is claimed.")
    nothing = sentences.plainly(Measured(name, "a title", conditions, None, None))
    assert nothing == "Nothing limits what this attacker reaches."
    assert "{" not in sentences.picture_title(Measured(name, "a title", conditions, 0.5, None))


def test_the_interval_of_the_deciding_number():
    stands = record("stands")
    least, most = NUMBER.findall(words.decided(stands))[1:3]
    assert float(least) <= 100 * stands.deciding.reached
    assert float(most) >= 100 * stands.deciding.allowed
    assert "If the claim is true, nobody reaches more than" in words.decided(stands)
    assert "If the claim is true" not in words.decided(record("broken"))
    for name in ("objected-above", "objected", "bayesian"):
        assert words.decided(record(name)).endswith("the bound does not count.")
        told = words.deciding_plainly(record(name))
        assert told.startswith("Were the bound to count, it would say: ")
    assert words.deciding_plainly(stands) == sentences.plainly(stands.deciding)
    assert words.decided(record("no-limit")).endswith("No limit is claimed.")


@given(size=st.integers(2, 50), share=st.floats(0.01, 0.99))
def test_a_group_on_the_safe_side(size, share):
    group = Group(size, share, 1e-3)
    told = sentences.group(group)
    belief, members = (float(number) for number in NUMBER.findall(told)[-3::2])
    assert "(exceeded at most once in 1,000 trainings)" in told
    assert belief / 100 >= share * (1 - 1e-12)
    assert members <= 1 / share * (1 + 1e-12)
    assert members == pytest.approx(1 / share, rel=1e-2)


def test_every_adversary_has_its_sentence():
    assert set(words.SENTENCES["attacks"]) == set(ADVERSARIES)


def test_digits():
    assert sentences.floor(None) == "any number"
    assert sentences.ceiling(None) == "no limit"
    assert sentences.floor(0.12345) == "0.1234"
    assert sentences.ceiling(0.12341) == "0.1235"


# What it rests on, and what it leaves open --------------------------------------------------------

TOLD = [
    ("meaning", "stands", "watches every step of the training"),
    ("meaning", "own", "sees all that the training gives away"),
    ("meaning", "replace", "and not another instead"),
    ("meaning", "broken", "none of this can be relied on"),
    ("meaning", "local", "for the one record that was tested, in these very data, and for nobody"),
    ("what_happened", "stands", "an attacker watched 400 trainings"),
    ("what_happened", "api", "looked at the finished models of 80 trainings on digits (8 records)"),
    ("what_happened", "replace", "whether one record or another had been in the data"),
    ("tested", "stands", "data of the attacker’s own making in the form of digits: 8 copies"),
    ("tested", "stands", "with one record, or with it zeroed out"),
    ("tested", "di", "Trainings on digits (8 records): the record that differs most"),
    ("assumed", "stands", "server of federated learning"),
    ("assumed", "stands", "if the model is computed from the updates alone"),
    ("assumed", "stands", "counts for nothing"),
    ("assumed", "api", "saw the final model only"),
    ("assumed", "own", "all that the training gives away"),
    ("assumed", "public", "without it"),
    ("assumed", "replace", "another record in its place"),
    ("assumed", "sampled-di", "Poisson"),
    ("assumed", "gaussian", "The scores are Gaussian"),
    ("gdpr", "broken", "none of its limits can be relied on"),
    ("hipaa", "broken", "none of its limits can be relied on"),
    ("gdpr", "local", "not DP"),
    ("hipaa", "local", "not DP"),
    ("hipaa", "python-curve", "None follows from this claim"),
    ("hipaa", "stands", "The table is for"),
    ("hipaa", "stands", "protects less"),
    ("hipaa", "replace", "exactly one of k people"),
    ("not_tested", "api", "Attackers who see every update"),
    ("not_tested", "stands", "made its own data set"),
]
NOT_TOLD = [
    ("tested", "stands", "records)"),
    ("not_tested", "stands", "8 records"),
    ("not_tested", "public", "8 records"),
    ("assumed", "stands", "Poisson"),
    ("gdpr", "stands", "can be relied on"),
    ("hipaa", "stands", "can be relied on"),
    ("hipaa", "python-curve", "The table is for"),
    ("hipaa", "replace", "protects less"),
    ("not_tested", "stands", "Attackers who see every update"),
    ("not_tested", "di", "made its own data set"),
]
EVERY = [
    ("assumed", "records are independent"), ("assumed", "each person has one record"),
    ("assumed", "Who sees what"), ("gdpr", "reasonably likely to be used, such as singling out"),
    ("gdpr", "not a legal finding"), ("hipaa", "§ 164.514"),
    ("not_tested", "A stronger one may reach more"),
]  # fmt: skip


def told(part, name):
    sentences = getattr(words, part)(record(name))
    return sentences if isinstance(sentences, str) else " ".join(sentences)


def test_assumptions_law_and_what_is_left_open():
    every = [(part, name, sentence) for name in SIX for part, sentence in EVERY]
    assert [each for each in [*TOLD, *every] if each[2] not in told(*each[:2])] == []
    assert [each for each in NOT_TOLD if each[2] in told(*each[:2])] == []


def test_a_group_of_one_has_one_member():
    assert [sentences.members(count) for count in (1.0, 1.239, 12.0)] == [
        "1 member", "1.23 members", "12 members",
    ]  # fmt: skip
