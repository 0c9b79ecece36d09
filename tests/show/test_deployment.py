"""What a report is told of those who decide: a file, and options over it."""

import jsonschema
import pytest

from audited import SIX, run
from dprime.audit import record_of
from dprime.show import SCHEMA, card, card_markdown, words
from dprime.show.deployment import DEPLOYMENT, FIELDS, LONGEST, Deployment
from told import refuses

FILE = """
organisation = "A clinic"
purpose = '''Plan
beds'''
[acceptable]
tpr = 0.05
fpr = 0.001
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "about.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_options_win_over_the_file(file):
    about = Deployment.from_options({"about": file, "organisation": "Another", "fpr": 0.01})
    assert (about.organisation, about.purpose, about.contact) == ("Another", "Plan beds", None)
    (limit,) = about.limits
    assert (limit.reading.title, limit.value) == ("TPR at FPR 0.01", 0.05)


def test_every_field_and_limit_is_an_option():
    names = [option.name for option in DEPLOYMENT]
    assert len(names) == len(set(names))
    assert {"about", *FIELDS, "epsilon", "delta"} <= {*names}


@pytest.mark.parametrize("name", SIX)
def test_a_card_has_the_fields_and_the_answer(name):
    facts, about = record_of(run(name)), Deployment.of({"purpose": "Plan | beds", "advantage": 0.3})
    shown = card(facts, about)
    jsonschema.Draft202012Validator(SCHEMA).validate(shown)
    assert shown["deployment"]["purpose"] == "Plan | beds"
    assert [each["acceptable"] for each in shown["deployment"]["risks"]].count(0.3) == 1
    text = card_markdown(facts, about)
    assert "What the model is for: Plan \\| beds" in text
    assert shown["deployment"]["answer"] in text


ANSWERS = {
    "stands": (0.999, "acceptable.kept"),
    "broken": (0.999, "acceptable.open_void"),
    "objected-above": (0.999, "acceptable.open_above"),
    "few": (0.001, "acceptable.open_more"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer(name):
    limit, place = ANSWERS[name]
    shown = card(record_of(run(name)), Deployment.of({"advantage": limit}))["deployment"]
    told = words.say(place, listed="Membership advantage", what=words.say("kept_if.claimed"))
    assert told in shown["answer"]


def test_what_is_certified_limits_where_the_claim_does_not():
    for name, by in (("stands", "the claim allows"), ("understated", "the certificate allows")):
        shown = card(record_of(run(name)))["deployment"]
        assert all(by in each["sentence"] for each in shown["risks"])
        assert words.say("acceptable.none") in shown["answer"]  # no limit was stated


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("organization = 'A'", "did you mean organisation?"),
        ("[acceptable]\nepsilom = 8", "did you mean epsilon?"),
        ("acceptable = 8", "acceptable must be a table"),
        ("organisation", "settings must be TOML"),
    ],
)
def test_a_file_with_a_mistake(file, text, expected):
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=expected.replace("?", r"\?")):
        Deployment.from_options({"about": file})


test_refused = refuses({
    "purpose be a text of at most": lambda: Deployment(purpose="a" * (LONGEST + 1)),
    "contact be a text of at most": lambda: Deployment(contact=" "),
    "recipients be a text": lambda: Deployment(recipients=7),
})  # fmt: skip
