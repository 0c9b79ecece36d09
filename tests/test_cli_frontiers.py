"""`dprime frontier`: the planner's numbers and the trainings, on the command line."""

import contextlib
import json
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from dprime.cli.frontiers import frontier
from dprime.data import load
from dprime.membership.planner import plan
from dprime.plain import to_json
from dprime.runs.run import Run

app = typer.Typer()
app.command()(frontier)

SMALL = ["--records", "200", "--batch", "20", "--epochs", "1", "--pi", "0.2,0.59", "--seed", "1"]
TRAINED = ["--precision", "0.6", *SMALL, "--repetitions", "2"]


def shown(*arguments):
    result = CliRunner().invoke(app, arguments, catch_exceptions=False, env={"COLUMNS": "80"})
    assert result.exit_code == 0
    return result.stdout


def words(*arguments):
    return " ".join(shown(*arguments).split())


def test_a_plan_of_the_usual_shares_with_steps():
    given = ["--precision", "1/2", "--batch", "100", "--steps", "40", "--min-tpr", "0.05"]
    found = json.loads(shown(*given, "--delta", "1e-6", "--plan-only", "--json"))
    made = plan(
        0.5, pool_size=len(load("digits").train), batch_size=100, steps=40, min_tpr=0.05, delta=1e-6
    )
    assert found == to_json(made)


def test_the_plan_as_a_table():
    text = shown("--precision", "0.6", *SMALL, "--plan-only")
    rows = [line for line in text.splitlines() if line.startswith("│")]
    assert len(rows) == 2  # no number is broken across lines
    assert "0.2" in rows[0]
    assert "Precision at most 0.6, for attackers with a TPR of 0.01 or more" in text
    assert "Noise by theorem" in text
    assert plan(
        0.6, pool_size=200, batch_size=20, epochs=1, probabilities=[0.2, 0.59]
    ).planned in " ".join(text.split())


@pytest.mark.slow
def test_a_plan_is_made_without_pytorch():
    code = (
        "import sys, typer; from dprime.cli.frontiers import frontier\n"
        "app = typer.Typer(); app.command()(frontier); app(standalone_mode=False)\n"
        "assert 'torch' not in sys.modules"
    )
    given = ["--precision", "0.6", *SMALL, "--plan-only"]
    done = subprocess.run(
        [sys.executable, "-c", code, *given], capture_output=True, text=True, check=True
    )
    assert "Precision at most 0.6" in done.stdout


def test_a_frontier_is_trained_and_kept(tmp_path, call, monkeypatch):
    out = tmp_path / "points.run"
    files = ["--out", str(out)]
    found = json.loads(shown(*TRAINED, *files, "--json"))
    assert [point["probability"] for point in found["points"]] == [0.2, 0.59]
    assert all(point["precision"] <= 0.6 for point in found["points"])
    assert len(found["points"][0]["accuracies"]) == 2
    with Run.open(out) as run:
        assert (run.kind, run.state().done) == ("frontier", 2)
        assert {"run": str(out), **run.result} == found
    text = words(*TRAINED, *files)
    assert found["sentence"] in text
    assert "peeking at the test records" in text
    assert "choosing π by trainings on the pool is not part of it" in text
    assert f"Kept in {out}" in text.replace(" /", "/").replace("in/", "in /")
    monkeypatch.setattr("dprime.attack.trainer.train", lambda *_, **__: pytest.fail("again"))
    assert json.loads(shown(*TRAINED, *files, "--json")) == found
    assert json.loads(call("resume", out, "--json")[1]) == found
    for command in ("resume", "report"):
        assert found["sentence"] in " ".join(call(command, out)[1].split())
    assert "frontier on digits" in call("runs", tmp_path)[1]


@pytest.mark.slow
def test_several_learning_rates_and_a_chart(tmp_path):
    chart = tmp_path / "pictures" / "frontier.svg"
    given = [*TRAINED, "--learning-rate", "1e-6,1", "--chart", str(chart)]
    assert "Rate: the learning rate that did best on every other test record" in words(*given)
    found = json.loads(shown(*given, "--json"))
    assert found["learning_rates"] == [1e-6, 1.0]
    assert found["points"][0]["learning_rate"] == 1.0
    assert chart.read_text().startswith("<svg")


def test_an_interrupted_run_is_gone_on_with(tmp_path, monkeypatch, call):
    from dprime.attack import trainer

    real, trained = trainer.train, []

    def stopped(model, data, training, **rest):
        trained.append(data.probability)
        if len(trained) == 2:
            raise KeyboardInterrupt
        return real(model, data, training, **rest)

    monkeypatch.setattr("dprime.attack.trainer.train", stopped)
    out = tmp_path / "points.run"
    result = CliRunner().invoke(app, [*TRAINED, "--out", str(out)])
    assert result.exit_code == 130
    assert f"Stopped. Go on with: dprime resume {out}" in result.stderr
    code, _, err = call("report", out)
    assert (code, "must be concluded, but it is not concluded yet" in err) == (2, True)
    found = json.loads(call("resume", out, "--json")[1])
    assert trained == [0.2, 0.59, 0.59]
    assert found["points"] == json.loads(shown(*TRAINED, "--json"))["points"]


@pytest.fixture(autouse=True)
def folder(tmp_path):
    """Where runs are kept unless another place is given."""
    with contextlib.chdir(tmp_path):
        yield


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--precision", "high"], "precision must be a number, but it is 'high'"),
        (["--precision", "0.6", "--pi", "0.1,x"], "pi must be a number, but it is 'x'"),
        (["--precision", "0.6", "--data", "none"], "data must be one of digits"),
        (["--precision", "0.6", "--records", "1"], "records must be from 2 to"),
        (["--precision", "0.6", "--steps", "3", "--epochs", "4"], "Exactly one of epochs, steps"),
        (["--precision", "0.6", "--plan-only", "--out", "x"], "out must be left out where nothing"),
        (["--precision", "0.6", "--plan-only", "--chart", "x.svg"], "chart must be left out"),
        (["--precision", "0.6", "--chart", "x.gif"], "chart must be a file that ends in .svg"),
        ([*TRAINED, "--model", "nothing"], "model must be a network that dprime knows"),
        ([*TRAINED, "--device", "abacus"], "device must be"),
        ([*TRAINED, "--momentum", "1"], "momentum must be below 1"),
        ([*TRAINED, "--repetitions", "1.5"], "repetitions must be a whole number"),
    ],
)
def test_refusals(arguments, sentence):
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, ValueError)
    assert sentence in str(result.exception)
