"""`dprime infer`: tables, JSON, charts, and what it refuses."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from dprime.cli import app
from dprime.data import Dataset, Split, load

SMALL = ["infer", "--pool", "120", "--shadows", "12", "--targets", "2", "--epochs", "3",
         "--batch", "20", "--attacks", "lira,attack-p"]  # fmt: skip


def run(*words):
    return CliRunner().invoke(app, [*SMALL, *words])


def test_a_private_training_in_two_tables(tmp_path):
    kept = tmp_path / "shadows"
    result = run("--epsilon", "3", "--charts", str(tmp_path / "c"), "--shadow-file", str(kept))
    assert result.exit_code == 0
    for words in (
        "Attack P",
        "At most (certified)",
        "Surest 10 %",
        "the claim is not refuted",
    ):
        assert words in " ".join(result.stdout.split())
    assert (tmp_path / "c" / "membership-roc.svg").read_text().startswith("<svg")
    again = run("--epsilon", "3", "--shadow-file", str(kept))
    assert again.stdout.split("Drawn")[0] in result.stdout
    other = run("--epsilon", "4", "--shadow-file", str(kept))
    assert "shadow file must be of the same settings" in str(other.exception)


def test_records_of_the_pool_are_left_out_of_the_population(monkeypatch):
    digits = load("digits")
    both = Dataset.of(
        np.concatenate([digits.train.records[:7], digits.test.records]),
        np.concatenate([digits.train.labels[:7], digits.test.labels]),
    )
    monkeypatch.setattr("dprime.cli.pools.load", lambda *_: Split(digits.train, both))
    shown = json.loads(run("--json").stdout)
    assert shown["population"] == {"records": 359, "left_out": 7}
    said = "7 records of the test part are in the pool too, and left out of the population"
    assert said in " ".join(run().stdout.split())
    monkeypatch.undo()
    assert json.loads(run("--json").stdout)["population"] == {"records": 359, "left_out": 0}
    assert "left out of the population" not in run().stdout


def test_several_priors_share_their_shadow_models(tmp_path):
    result = run("--pi", "0.3,0.7", "--epsilon", "3", "--charts", str(tmp_path), "--json")
    runs = json.loads(result.stdout)["runs"]
    assert [each["probability"] for each in runs] == [0.3, 0.7]
    assert runs[0]["allowed"]["precision"] < runs[1]["allowed"]["precision"]
    assert {path.name for path in tmp_path.iterdir()} == {
        "membership-roc-0.3.svg", "membership-roc-0.7.svg", "precision-over-prior-lira.svg",
        "precision-over-prior-attack-p.svg",
    }  # fmt: skip


def test_json_of_a_training_that_is_not_private():
    shown = json.loads(run("--json").stdout)
    assert shown["allowed"] is None
    assert shown["verdict"] == "no claim"
    assert [each["attack"] for each in shown["attacks"]] == ["lira", "attack-p"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--pi", "1"), "probability must be"),
        (("--batch", "200"), "batch must be at most the 60 records"),
        (("--attacks", "lyra"), "attack must be"),
        (("--pool", "1"), "pool must be from 2"),
        (("--data", "none"), "data must be"),
        (("--epsilon", "1", "--noise-multiplier", "1"), "noise_multiplier must be left out"),
        (("--trainer", "nowhere:f"), "trainer must be"),
        (("--trainer", "pools:by_hand", "--clip-norm", "2"), "clip_norm must be left out"),
        (("--device", "tpu"), "device must be"),
        (("--memory", "0"), "memory must be"),
        (("--min-tpr", "0.5"), "min_tpr must be at most 0.1"),
        (("--data", "diabetes"), "pool must be records with classes"),
        (("--charts", "/dev/null"), "charts must be a folder to write to"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(words, sentence):
    assert sentence in str(run(*words).exception)
