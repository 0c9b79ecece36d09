"""Model cards as huggingface_hub reads them, and drafts for OpenDP's registry as YAML is read."""

import math

import pytest
import yaml
from huggingface_hub import ModelCard

import dprime
from audited import SIX, run
from dprime.audit import record_of
from dprime.monitor import Monitor
from dprime.show import card_markdown, exports, model_card, registry_entry
from dprime.show.exports import BEGIN, END, TAG
from told import refuses

CARD = """---
license: mit
tags:
- vision
model-index:
- name: beds
  results:
  - task:
      type: tabular-classification
    dataset:
      name: Beds
      type: beds
    metrics:
    - type: accuracy
      value: 0.9
---
# Beds

It plans beds.
"""
VOID = ("broken", "local")
"""Of the six runs, those whose claim protects nobody."""

TRAINING = dprime.DPSGD(noise_multiplier=1.1, sample_rate=0.01, steps=1000)


def record(name):
    return record_of(run(name))


# Hugging Face -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SIX)
def test_a_record_in_a_model_card(name):
    found, made = record(name), model_card(record(name), CARD)
    read, before = ModelCard(made), ModelCard(CARD)
    assert model_card(found, made) == made
    assert (
        read.text == f"{before.text.rstrip()}\n\n{BEGIN}\n{card_markdown(found).strip()}\n{END}\n"
    )
    ours, theirs = read.data.to_dict(), before.data.to_dict()
    told, tags = ours.pop("differential_privacy"), ours.pop("tags")
    assert ours | {"tags": ["vision"]} == theirs
    assert tags == ["vision", *([] if name in VOID else [TAG])]
    assert (told["audit"], told["adversary"]) == (found.verdict.outcome, found.adversary)
    assert ("void" in told) == (name in VOID)
    if name in VOID:
        assert not {"epsilon", "delta", "advantage"} & {*told}
        return
    claimed = found.claim.metrics
    assert told["delta"] == claimed["epsilon"]["delta"]
    for metric in ("epsilon", "advantage"):
        value = claimed[metric]["value"]
        assert value * (1 - 1e-14) <= told[metric] <= value * 1.001  # as every printed ceiling


def test_what_is_refuted_later_is_taken_back_and_other_text_stays():
    first = model_card(record("stands"), CARD)
    assert model_card(record("broken"), first) == model_card(record("broken"), CARD)
    after = f"{CARD}{BEGIN}\nold\n{END}\n\n## Licence\n\n---\n\nMIT\n"
    read = ModelCard(model_card(TRAINING, after)).text
    assert read.endswith(f"{END}\n\n## Licence\n\n---\n\nMIT\n")
    assert "\nold\n" not in read
    assert read.startswith("# Beds\n")


@pytest.mark.parametrize("card", ["", "# Beds\n\n---\n\nIt plans beds.\n"])
def test_a_card_without_metadata(card):
    read = ModelCard(model_card(TRAINING, card))
    assert read.data.tags == [TAG]
    assert read.text.startswith(card or BEGIN)


def test_a_mechanism():
    both = dprime.Composition(TRAINING, dprime.Gaussian(8.0))
    made = ModelCard(model_card(both, adjacency="replace", delta=1e-6))
    told, curve = made.data.differential_privacy, both.curve("replace")
    assert told["adjacency"] == "replace"
    assert told["delta"] == 1e-6
    assert told["epsilon"] == pytest.approx(curve.epsilon(delta=1e-6), rel=1e-3)
    assert told["epsilon"] >= curve.epsilon(delta=1e-6)
    for word in ("noise multiplier 1.1", "Gaussian", "| ε at δ 1e-06 |", "replaced by another"):
        assert word in made.text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("noise", [1.0, 0.0])
def test_a_monitor(private, noise):
    made = private(noise=noise)
    monitor = Monitor(made.engine, **made.named(), conditions={"delta": 1e-3}, show=None)
    assert "void" in ModelCard(model_card(monitor)).data.differential_privacy
    made.train()
    read = ModelCard(model_card(monitor))
    told = read.data.differential_privacy
    if noise:
        found = {answer.name: answer.value for answer in monitor.risk()}
        assert told["epsilon"] == pytest.approx(found["epsilon"], rel=1e-3)
        assert (told["delta"], told["adjacency"], read.data.tags) == (1e-3, "zero-out", [TAG])
    else:
        assert ("void" in told, read.data.tags) == (True, None)
        assert monitor.warnings
    for note in monitor.notes():
        assert note in read.text


test_refused = refuses({
    "the model card be one with": lambda: model_card(TRAINING, f"# Beds\n{BEGIN}\n"),
    "the model card be one with o": lambda: model_card(TRAINING, f"{END}{BEGIN}"),
    "the model card be one with one": lambda: model_card(TRAINING, f"{BEGIN}{BEGIN}{END}"),
    "the model card be readable": lambda: model_card(TRAINING, "---\na: [\n---\n"),
    "the model card be read": lambda: model_card(TRAINING, "---\n- a\n---\n"),
    "delta be given for a mechanism": lambda: model_card(record("stands"), delta=1e-6),
    "sigma be left out": lambda: registry_entry(TRAINING, sigma=1.0),
    "the claim hold": lambda: registry_entry(record("broken")),
    "the claim ho": lambda: registry_entry(record("local")),
})  # fmt: skip


def test_without_the_library_of_the_hub(monkeypatch):
    monkeypatch.setattr(exports, "find_spec", lambda _: None)
    with pytest.raises(dprime.InputError, match="pip install huggingface_hub"):
        model_card(TRAINING)


# OpenDP -------------------------------------------------------------------------------------------


ENTRY = {
    "basic": {
        "name": "", "intended_use": "", "data_product_region": "", "description": "",
        "publication_date": "", "data_curators": [""],
        "data_product_type": "Machine learning model",
    },
    "dp_variant": {
        "variant_name": "Approximate DP", "unprotected_quantities": "The number of records.",
    },
    "privacy_loss": {
        "privacy_unit": "One record",
        "privacy_unit_details": "One record is zeroed out (the number of records is public).",
        "privacy_parameters": {"epsilon": 4.0, "delta": 1e-5},
    },
    "administrative": {"registry_authors": [""]},
}  # fmt: skip


def test_an_entry_of_the_registry():
    found, made = record("stands"), registry_entry(record("stands"))
    read = yaml.safe_load(made)
    parts = read.pop("deployment")
    details = parts["privacy_loss"].pop("privacy_parameters_details")
    mechanisms = parts["implementation"].pop("mechanisms")
    assert read == {"url_slug": "", "status": "Draft", "tier": 2}
    assert parts == {**ENTRY, "implementation": {"justification": found.sentence}}
    assert all(f"{each.title}: {each.shown()}" in details for each in found.claim.profile())
    assert mechanisms.startswith(f"{found.claim.described}.")
    empty = [line.split(":")[0].strip() for line in made.splitlines() if "  # to fill in" in line]
    assert len(empty) == made.count('""') == 8


def test_numbers_stay_numbers_and_texts_texts():
    """YAML takes 1e-05 for a text, and would read other texts as more than that."""
    read, noise, none, hostile = (
        yaml.safe_load(registry_entry(each))["deployment"]
        for each in (TRAINING, dprime.Gaussian(8.0), LIMITLESS, record("evil"))
    )
    assert read["privacy_loss"]["privacy_parameters"]["delta"] == 1e-5
    assert "unprotected_quantities" not in read["dp_variant"]
    assert read["basic"]["data_product_type"] == "Machine learning model"
    assert noise["basic"]["data_product_type"] == ""
    assert "privacy_parameters" not in none["privacy_loss"]
    assert all(isinstance(part, dict) for part in hostile.values())


LIMITLESS = dprime.EpsilonDeltaProfile(((0.5, 0.3),))


def test_an_epsilon_without_a_limit_is_left_out():
    assert math.isinf(LIMITLESS.curve().epsilon(delta=1e-5))
    told = ModelCard(model_card(LIMITLESS)).data.differential_privacy
    assert "advantage" in told
    assert not {"epsilon", "delta"} & {*told}
