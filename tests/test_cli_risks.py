"""`dprime risk`, `choose` and `consequences`."""

import json
import re
from pathlib import Path

import pytest
import torch

import dprime
from commands import refused
from dprime import text
from dprime.consequences import consequences

BAD = str(Path(__file__).parent / "check" / "scripts" / "bad" / "dp001_plain.py")
RISK = "risk --noise-multiplier 1.1 --sample-rate 0.00427 --steps 14062"
CHOOSE = "choose --sample-rate 0.01 --steps 2000"
FOLLOWS = "consequences --noise-multiplier 1 --sample-rate 0.01 --steps 2000"

# risk --------------------------------------------------------------------------------------------


def test_risk_as_json_keeps_its_contract(call):
    shown = call(RISK, "--json").json
    curve = dprime.DPSGD(1.1, 0.00427, 14062).curve()
    assert shown["adjacency"] == "add-remove"
    assert shown["mechanism"]["noise_multiplier"] == 1.1
    assert shown["metrics"]["advantage"] == {"value": curve.advantage(), "kind": "certified"}
    assert shown["metrics"]["precision"] == {
        "value": curve.precision(0.1, 0.01), "kind": "certified", "prior": 0.1, "min_tpr": 0.01,
    }  # fmt: skip
    other = call(RISK, "--adjacency", "zero-out", "--json").json
    assert other == {**shown, "adjacency": "zero-out"}


def test_risk_passes_every_question_on(call):
    asked = {
        "delta": 1e-6, "fpr": 0.1, "prior": 0.3, "min-tpr": 0.05, "belief-level": 0.8,
        "belief-prior": 0.2, "exceeded": 0.01, "epsilon-level": 0.5, "max-prior": 0.2,
        "guess": 0.03,
    }  # fmt: skip
    words = [word for name, value in asked.items() for word in (f"--{name}", value)]
    shown = call(RISK, "--adjacency", "replace", *words, "--json").json
    expected = dprime.profile(**{name.replace("-", "_"): value for name, value in asked.items()})
    assert shown["adjacency"] == "replace"
    assert {reading.name: dict(reading.conditions) for reading in expected} == {
        name: {k: v for k, v in metric.items() if k not in ("value", "kind", "floor")}
        for name, metric in shown["metrics"].items()
    }


STATED = {
    "--epsilon 3 --delta 1e-6": dprime.EpsilonDelta(3.0, 1e-6),
    "--epsilon 3": dprime.EpsilonDelta(3.0, 1e-5),
    "--epsilon 3 --delta 0 --adjacency replace": dprime.EpsilonDelta(3.0, adjacency="replace"),
    "--rho 0.5": dprime.ZCDP(0.5),
    "--mu 0.5": dprime.GDP(0.5),
}


@pytest.mark.parametrize("words", STATED)
def test_a_guarantee_takes_the_place_of_a_training(call, words):
    """Its numbers are those of every mechanism that has it, which is said."""
    shown, curve = call("risk", *words.split(), "--json").json, STATED[words].curve()
    assert shown["mechanism"] == STATED[words].to_dict()
    assert shown["metrics"]["advantage"] == {"value": curve.advantage(), "kind": "certified"}
    found = shown["metrics"]["epsilon"]
    assert found["value"] == curve.epsilon(found["delta"])
    assert shown["notes"] == [text.STATED_ONLY]
    assert text.STATED_ONLY in call("risk", *words.split()).words


SIZES = "risk --noise-multiplier 1.1 --batch-size 256 --dataset-size 60000 --epochs 60"


def test_sizes_take_the_place_of_a_rate(call):
    """The size is public then, so that a record is zeroed out unless it is said to be constant."""
    training = dprime.DPSGD(1.1, 256 / 60_000, 14_063, public_size=True)
    shown = call(SIZES, "--json").json
    assert (shown["mechanism"], shown["adjacency"]) == (training.to_dict(), "zero-out")
    assert shown["metrics"]["tpr"]["value"] == training.curve().tpr(0.01)
    constant = call(SIZES, "--adjacency", "add-remove", "--json").json
    assert "public_size" not in constant["mechanism"]
    chosen = call(SIZES.replace("risk --noise-multiplier 1.1", "choose --epsilon 3"), "--json").json
    again = dprime.DPSGD(chosen["chosen"]["value"], 256 / 60_000, 14_063, public_size=True)
    assert again.to_dict() == chosen["mechanism"]
    assert chosen["metrics"]["epsilon"]["value"] == again.curve().epsilon(1e-5) <= 3.0


HISTORY = [[1.1, 0.01, 500], [1.5, 0.01, 500]]
FILES = {
    "history.json": HISTORY,
    "accountant.json": {"history": HISTORY, "mechanism": "prv"},
    "training.pt": {"accountant": {"history": HISTORY, "mechanism": "rdp"}, "net": {}},
}


@pytest.mark.parametrize("name", FILES)
def test_the_risk_of_a_saved_training(call, name):
    """An accountant's history, for a record zeroed out; a file is not told what it says itself."""
    path = Path(name)
    torch.save(FILES[name], path) if path.suffix == ".pt" else path.write_text(
        json.dumps(FILES[name])
    )
    shown, training = call("risk", name, "--json").json, dprime.from_opacus(HISTORY)
    assert (shown["mechanism"], shown["adjacency"]) == (training.to_dict(), "zero-out")
    assert shown["metrics"]["advantage"]["value"] == training.curve().advantage()
    assert shown["notes"][0].endswith(f" ({name}).")
    ended = call("risk", name, "--max-prior", "0.1", "--adjacency", "replace", "--delta", "1e-6")
    assert (ended.code, ended.err) == (0, "")
    for words in ("--steps 3", "--epsilon 3", "--adjacency add-remove"):
        asked = call("risk", name, *words.split(), "--json")
        refused(asked, f"{words.split()[0]} must be ")


def test_a_saved_training_without_a_guarantee_is_refused(call):
    Path("run.json").write_text('{"noise_multiplier": 0, "sample_rate": 0.1, "steps": 3}')
    refused(
        call("risk run.json --json"), "must be a saved training with a guarantee, but it is none"
    )
    refused(call("risk", BAD, "--json"), "but it is a script: see dprime check")


def test_estimates_are_marked(call):
    setting = "risk --noise-multiplier 0.7 --sample-rate 0.001 --steps 10000 --estimates"
    _, out, err = call(setting, "--adjacency", "replace")
    assert out.count("Estimate, no guarantee") == 2
    assert "Warning" in err
    shown = call(setting, "--json").json["estimates"]
    kinds = [metric["kind"] for metrics in shown.values() for metric in metrics.values()]
    assert {*kinds} == {"estimate"}


# choose ------------------------------------------------------------------------------------------


def test_choose_with_targets_steps_epochs_and_pool(call):
    shown = call(CHOOSE, "--advantage", "0.1", "--json").json
    again = dprime.DPSGD(shown["mechanism"]["noise_multiplier"], 0.01, 2000)
    assert 0.1 >= shown["metrics"]["advantage"]["value"] == again.curve().advantage()
    for words in ("--secret-success 0.2 --max-prior 0.1", "--advantage 0.1 --group-size 2",
                  "--reconstruction-success 0.2 --guess 0.1"):  # fmt: skip
        assert call(f"{CHOOSE} {words} --json").json["mechanism"]["noise_multiplier"] > 0.5
    words = "choose --noise-multiplier 1 --sample-rate 0.01 --json"
    for rest, steps in (("", 384), ("--round-to epochs", 300)):
        assert call(f"{words} --advantage 0.1 {rest}").json["mechanism"]["steps"] == steps
    shown = call(words, "--steps", "2000", "--precision", "0.2").json
    assert shown["mechanism"]["sampling_probability"] == shown["metrics"]["precision"]["prior"]
    assert shown["metrics"]["precision"]["value"] <= 0.2


@pytest.mark.parametrize("ceiling", [0.2, 0.31, 0.77])
def test_a_chosen_number_may_be_typed_in_again(call, ceiling):
    out = call(CHOOSE, "--noise-multiplier", "1", "--precision", ceiling).out
    printed = float(re.search(r"Chosen: sampling probability (\S+)", out).group(1))
    assert dprime.DPSGD(1.0, 0.01, 2000).curve().precision(printed, 0.01) <= ceiling
    out = call(CHOOSE, "--advantage", ceiling).out
    printed = float(re.search(r"Chosen: noise multiplier (\S+)", out).group(1))
    assert dprime.DPSGD(printed, 0.01, 2000).curve().advantage() <= ceiling


# consequences ---------------------------------------------------------------------------


def test_consequences_are_those_of_the_package(call):
    training = dprime.DPSGD(1.0, 0.01, 2000)
    expected = consequences(dprime.PoolSampled(training, 0.001))
    assert call(FOLLOWS, "--sampling-probability", "1/1000", "--json").json == expected.as_json()
    in_epochs = FOLLOWS.replace("--steps 2000", "--epochs 20")
    assert call(in_epochs, "--sampling-probability", "1/1000", "--json").json == expected.as_json()
    asked = "--deniability 0.5 --output-probability 0.1 --min-tpr 0.2 --min-tnr 0.3 --loss-bound 4"
    given = {"deniability": 0.5, "output_probability": 0.1, "min_tpr": 0.2, "min_tnr": 0.3}
    other = consequences(training, sampling_probability=0.001, loss_bound=4.0, **given)
    assert call(f"{FOLLOWS} --sampling-probability 1/1000 {asked} --json").json == other.as_json()
    shown = call(FOLLOWS, "--sampling-probability", "1/1000").out
    for answer in expected.answers:
        assert answer.title in shown
        assert answer.sentence in shown
    for words in ("≥ 54 ", "≤ 0.005956 ", "≤ 0.9998 ", "≤ 0.2264 ", "share 0.001 of a pool"):
        assert words in shown  # floors down, ceilings up
