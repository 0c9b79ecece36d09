"""The privacy card: valid, equal to the run's answer, and the same facts in Markdown."""

import json
import math
import re
from pathlib import Path

import jsonschema
import pytest

from audited import EVIL, SIX, run
from dprime.audit import record_of
from dprime.runs.run import Run
from dprime.show import SCHEMA, card, card_markdown, sentences, words
from dprime.text import round_down, round_up

ROOT = Path(__file__).parents[2]
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker())


ADDED = {("claim", "certified"), ("deployment",)}
ADDED |= {("deployment", name) for name in ("confirmed_by", "accuracy")}
"""Parts that cards of earlier releases do not have; those cards stay valid."""


every_run = pytest.mark.parametrize("name", SIX)


def kept(name):
    with Run.open(run(name)) as store:
        return store.result, store.config


def record(name):
    return record_of(run(name))


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == "urn:dprime:privacy-card:2"


@every_run
def test_a_card_is_valid_and_plain(name):
    shown = card(record(name))
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    VALIDATOR.validate(shown)


def places(schema, value, path=()):
    """Every place in a card that its schema describes."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    yield path
    for name, part in schema.get("properties", {}).items():
        if isinstance(value, dict) and name in value:
            yield from places(part, value[name], (*path, name))


@pytest.mark.parametrize("name", ["stands", "di"])
def test_the_schema_notices_what_is_missing_or_wrong(name):
    whole = card(record(name))
    for path in places(SCHEMA, whole):
        if not path:
            continue
        changed = json.loads(json.dumps(whole))
        inner = changed
        for step in path[:-1]:
            inner = inner[step]
        value = inner.pop(path[-1])
        assert VALIDATOR.is_valid(changed) == (path in ADDED), f"{path} may be missing"
        inner[path[-1]] = [value, {"of": "another kind"}]
        assert not VALIDATOR.is_valid(changed), f"{path} may be anything"
        inner[path[-1]] = value
        assert VALIDATOR.is_valid(changed)
    assert not VALIDATOR.is_valid({**whole, "more": 1})


@every_run
def test_every_number_is_the_stores(name):
    shown, (answer, settings) = card(record(name)), kept(name)
    verdict, first = shown["verdict"], answer["rows"][0]
    assert verdict["outcome"] == answer["verdict"]["outcome"]
    assert verdict["sentence"] == answer["sentence"]
    rows = answer["rows"][settings["metric"] == "curve" :]
    assert [*shown["metrics"]] == [row["name"] for row in rows]
    for end in ("reached", "allowed"):
        assert verdict["metric"][end] == first[end] == answer["verdict"][end]
        assert [each[end] for each in shown["metrics"].values()] == [row[end] for row in rows]
    assert verdict["metric"]["name"] == settings["metric"]
    assert verdict["confidence"] == settings["confidence"]
    assert verdict["method"] == answer["bounds"][0]["method"]
    for bound in answer["bounds"]:
        part = shown["methods"][bound["method"]]
        assert {name: bound[name] for name in part if name != "decides"}.items() <= part.items()
    assert shown["claim"]["metrics"] == answer["claim"]["metrics"]
    assert shown["claim"]["adjacency"] == answer["attacked"]["adjacency"]
    assert shown["attack"]["trials"] == answer["trials"]
    assert shown["attack"]["blocks"] == answer["blocks"]
    for part in ("data", "records", "sees", "training", "trainer"):
        assert shown["attack"][part] == answer["attacked"][part]
    assert shown["identifiability"] == answer.get("identifiability")
    assert shown["run"]["settings"].items() <= settings.items()
    assert set(settings) - set(shown["run"]["settings"]) <= {"data_dir", "seed"}


def test_mechanism_and_groups():
    names = {"broken": "DPSGD", "own": "EpsilonDelta", "python-curve": "GDP"}
    claimed = {name: card(record(name))["claim"]["mechanism"] for name in names}
    assert {name: each["name"] for name, each in claimed.items()} == names
    assert claimed["broken"]["noise_multiplier"] == 4.0
    for each in card(record("stands"))["groups"]:
        assert each["prior"] == 1 / each["size"]
        assert math.isclose(each["equivalent"], 1 / each["belief"])


# Markdown -----------------------------------------------------------------------------------------


@every_run
def test_the_markdown_says_the_same(name):
    facts = record(name)
    text = card_markdown(facts)
    assert text.startswith("## Privacy\n")
    assert {*re.findall(r"^(#+) ", text, re.M)[1:]} == {"###"}
    plain = text.replace("&lt;", "<").replace("\\|", "|").replace("\\[", "[")
    parts = [words.headline(facts), words.how_sure(facts), words.decided(facts)]
    parts += words.notices(facts) + words.meaning(facts) + words.not_said(facts)
    parts += words.assumed(facts) + words.not_tested(facts) + words.gdpr(facts)
    assert [each for each in parts if " ".join(each.split()) not in plain] == []
    for each in facts.metrics:
        assert f"| {sentences.title(each)} | {' | '.join(sentences.ends(each))} |" in text
    assert "seed 1" not in text


def test_a_name_cannot_become_a_program_in_markdown():
    text = card_markdown(record("evil"))
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert EVIL not in outside
    assert "<script" not in outside


def test_floors_and_ceilings_in_the_table():
    facts = record("stands")
    rows = re.findall(r"^\| (.+) \| (\S+)( %)? \| (\S+)( %)? \|$", card_markdown(facts), re.M)
    found = {title: (low, high, share) for title, low, share, high, _ in rows}
    for each in facts.metrics:
        low, high, share = found[sentences.title(each)]
        assert bool(share) == each.share
        scale = 100 if share else 1
        assert (low, high) == (round_down(scale * each.reached), round_up(scale * each.allowed))
