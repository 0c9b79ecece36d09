"""`dprime infer`: tables, JSON, charts, and what it refuses."""

import contextlib
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from dprime.cli import app
from dprime.data import Dataset, Split, load
from dprime.membership.pool import outside
from dprime.plain import to_json
from dprime.runs.run import Run

SMALL = ["infer", "--pool", "120", "--shadows", "12", "--targets", "2", "--epochs", "3",
         "--batch", "20", "--attacks", "lira,attack-p"]  # fmt: skip


def run(*words):
    return CliRunner().invoke(app, [*SMALL, *words])


@pytest.fixture(autouse=True)
def folder(tmp_path):
    """Where runs are kept unless another place is given."""
    with contextlib.chdir(tmp_path):
        yield


def kept_out(text):
    """Without the line that names the run."""
    return " ".join(text.split("Kept in")[0].split())


def test_a_private_training_in_two_tables(tmp_path, call):
    kept = tmp_path / "shadows"
    result = run("--epsilon", "3", "--shadow-file", str(kept))
    assert result.exit_code == 0
    for words in ("Attack P", "At most (certified)", "Surest 10 %", "the claim is not refuted"):
        assert words in " ".join(result.stdout.split())
    again = run("--epsilon", "3", "--shadow-file", str(kept))
    assert kept_out(again.stdout) == kept_out(result.stdout)
    other = run("--epsilon", "4", "--shadow-file", str(kept))
    assert "shadows must be of the same settings" in str(other.exception)
    for command in ("resume", "report"):
        assert (
            "must be one with a result, but it is that of shadow models" in call(command, kept)[2]
        )


PRIVATE = ("--epsilon", "3", "--pi", "0.3,0.7", "--out", "a.run")


def test_an_interrupted_inference_is_gone_on_with(monkeypatch, call):
    """Targets and shadow models are trained once, whatever happens; a finished run trains none."""
    from dprime.membership import shadows

    real, trained = shadows._trained, []

    def stopped(trainer, part, *rest):
        if len(trained) == 2:
            trained.append("stopped")
            raise KeyboardInterrupt
        trained.append(part.probability)
        return real(trainer, part, *rest)

    monkeypatch.setattr(shadows, "_trained", stopped)
    result = run(*PRIVATE)
    assert result.exit_code == 130
    assert "Stopped. Go on with: dprime resume a.run" in result.stderr
    with Run.open("a.run") as begun:
        assert (begun.kind, begun.done(), begun.pending()) == ("inference", [0, 1], [2])
    found = json.loads(call("resume", "a.run", "--json")[1])
    assert trained == [0.3, 0.7, "stopped", 0.5]  # two cohorts of targets, and the shadow models
    alone = json.loads(run(*PRIVATE[:-1], "b.run", "--json").stdout)
    assert {**found, "run": ""} == {**alone, "run": ""}
    monkeypatch.setattr(shadows, "_trained", lambda *_: pytest.fail("trained again"))
    assert json.loads(run(*PRIVATE, "--json").stdout) == found
    shown = call("resume", "a.run")[1]
    assert kept_out(shown) == kept_out(call("report", "a.run")[1])
    assert json.loads(call("report", "a.run", "--json")[1])["inferences"] == found["inferences"]
    assert "membership inference on digits" in call("runs", ".")[1]
    other = run(*PRIVATE[:-4], "--pi", "0.3,0.6", "--out", "a.run")
    assert "a.run must be of the same settings" in str(other.exception)


def test_a_run_that_was_begun_in_python(call):
    """It is listed and reported; the command that describes it goes on with it."""
    from dprime.membership import InferenceConfig, Recipe, Trainers, infer

    digits = load("digits")
    pool, recipe = digits.train.distinct().take(range(120)), Recipe(batch=20, epochs=3)
    trainers = Trainers.named(recipe, pool, model="dense-64")
    config = InferenceConfig(["lira", "attack-p"], shadows=12, targets=2)
    found = infer(pool, outside(digits.test, pool), trainers, config, file="a.run")
    assert found.sentence in " ".join(call("report", "a.run")[1].split())
    code, _, err = call("resume", "a.run")
    assert (code, "dprime infer with the options that describe it and --out a.run" in err) == (2, 1)
    shown = json.loads(run("--out", "a.run", "--json").stdout)
    assert shown["inferences"] == to_json(found)["inferences"]
    assert call("resume", "a.run")[0] == 0


def test_a_run_of_an_earlier_version_is_refused(call):
    with Run.create("old.run", "inference", {"seed": 1}, 1, {"device": "cpu", "pi": [0.5]}) as old:
        old.keep({"runs": []})
    for command in ("resume", "report"):
        assert (
            "run must be of this version of dprime, but it is of an earlier one"
            in call(command, "old.run")[2]
        )


def test_records_of_the_pool_are_left_out_of_the_population(monkeypatch):
    digits = load("digits")
    both = Dataset.of(
        np.concatenate([digits.train.records[:7], digits.test.records]),
        np.concatenate([digits.train.labels[:7], digits.test.labels]),
    )
    monkeypatch.setattr("dprime.cli.pools.load", lambda *_: Split(digits.train, both))
    shown = json.loads(run("--out", "a.run", "--json").stdout)
    assert shown["population"] == {"records": 359, "left_out": 7}
    (only,) = shown["inferences"]  # of a training that is not private
    assert (only["allowed"], only["verdict"], shown["verdict"]) == (None, "no claim", "no claim")
    told = "7 records of the test part are in the pool too, and left out of the population"
    assert told in " ".join(run("--out", "a.run").stdout.split())


@pytest.mark.slow
def test_several_priors_share_their_shadow_models_and_are_drawn(tmp_path):
    result = run("--pi", "0.3,0.7", "--epsilon", "3", "--charts", str(tmp_path / "c"), "--json")
    low, high = json.loads(result.stdout)["inferences"]
    assert (low["probability"], high["probability"]) == (0.3, 0.7)
    assert low["allowed"]["precision"] < high["allowed"]["precision"]
    assert {path.name for path in (tmp_path / "c").iterdir()} == {
        "membership-roc-0.3.svg", "membership-roc-0.7.svg", "precision-over-prior-lira.svg",
        "precision-over-prior-attack-p.svg",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--pi", "1"), "probabilities must be"),
        (("--batch", "200"), "batch must be at most the 60 records"),
        (("--attacks", "lyra"), "attack must be"),
        (("--pool", "1"), "pool must be from 2"),
        (("--epsilon", "1", "--noise-multiplier", "1"), "noise_multiplier must be left out"),
        (("--trainer", "nowhere:f"), "trainer must be"),
        (("--trainer", "pools:by_hand", "--clip-norm", "2"), "clip_norm must be left out"),
        (("--device", "tpu"), "device must be"),
        (("--min-tpr", "0.5"), "min_tpr must be at most 0.1"),
        (("--data", "diabetes"), "pool must be records with classes"),
        (("--charts", "/dev/null"), "charts must be a folder to write to"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(words, sentence):
    assert sentence in str(run(*words).exception)
