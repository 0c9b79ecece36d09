"""`dprime sample`: the command prints what may be known, and nothing that depends on the draw."""

import json
import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

from commands import refused
from dprime import DPSGD, PoolSampled, cli
from dprime.membership.pool_files import mechanism_of

COUNT = 80


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f'{i},"a [text]\nin {i} lines",{0.05 + i / 200}' for i in range(COUNT)]
    (tmp_path / "pool.csv").write_text("\n".join(["id,text,pi", *rows]) + "\n")
    return tmp_path


def ran(*arguments):
    return CliRunner().invoke(cli.app, ["sample", *arguments], catch_exceptions=False)


def shown(*arguments):
    result = ran(*arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize("chances", [["--probability", "0.2"], ["--probability-column", "pi"]])
def test_nothing_public_differs_between_two_draws(folder, form, chances):
    seen, drawn = set(), set()
    for seed in range(4):
        (folder / "seed").write_text(f"{seed:064x}")
        (folder / "seed").chmod(0o600)
        result = ran("pool.csv", *chances, "--out", "train.csv", "--members", "who", "--seed-file",
                     "seed", "--batch", "4", "--force", *form)  # fmt: skip
        public = (folder / "train.csv.pool.json").read_text()
        seen.add((result.exit_code, result.stdout, result.stderr, public))
        drawn.add((folder / "who").read_text().count("1"))
    assert len(seen) == 1
    assert len(drawn) > 1  # while the draws differ, even in their size


def test_json_has_the_facts_and_the_command(folder):
    found = json.loads(shown("pool.csv", "--probability-column", "pi", "--out", "train.csv",
                             "--ignore", "id", "--batch", "5", "--noise-multiplier", "1.2",
                             "--steps", "40", "--json"))  # fmt: skip
    chances = 0.05 + np.arange(COUNT) / 200
    assert found["pool_records"] == COUNT
    assert found["probability"] == chances.max()
    assert found["smallest_probability"] == chances.min()
    assert found["expected_records"] == pytest.approx(chances.sum())
    assert found["sample_rate"] == 5 / found["expected_records"]
    public = json.loads((folder / "train.csv.pool.json").read_text())
    assert public == {name: found[name] for name in public}
    training = DPSGD(1.2, found["sample_rate"], 40)
    assert mechanism_of("train.csv.pool.json", training) == PoolSampled(
        training, chances.max(), chances.min()
    )


def test_what_is_printed_says_what_was_done_and_certifies_the_training(folder):
    text = shown("pool.csv", "--probability", "1/3", "--out", "train.csv", "--members", "who",
                 "--seed-file", "seed", "--batch", "7", "--noise-multiplier", "2", "--steps",
                 "30")  # fmt: skip
    assert text.startswith("Drawn from the 80 records of pool.csv, each kept with probability 0.33")
    for name in ("train.csv", "train.csv.pool.json", "who", "seed"):
        assert f"\n  {name}" in text
        assert (folder / name).exists()
    assert "How many were drawn is not shown" in text
    assert "sampling rate, its divisor and its steps from the expected size" in text
    command = next(line for line in text.splitlines() if line.startswith("  dprime risk"))
    words = [*shlex.split(command)[1:], "--json"]
    risk = json.loads(CliRunner().invoke(cli.app, words, catch_exceptions=False).stdout)
    ran_there = mechanism_of("train.csv.pool.json", DPSGD(2.0, 7 / (COUNT / 3), 30))
    curve = ran_there.curve()
    metrics = risk["metrics"]
    assert metrics["precision"]["prior"] == ran_there.prior == 1 / 3
    assert metrics["precision"]["value"] == curve.precision(prior=1 / 3, min_tpr=0.01)
    assert metrics["success"]["value"] == curve.success(prior=1 / 3)
    assert metrics["belief"]["prior"] == 1 / 3
    assert risk["adjacency"] == "add-remove"


def test_what_is_not_known_stands_in_capitals_and_the_largest_probability_covers_everyone(folder):
    text = shown("pool.csv", "--probability", "0.2", "--out", "train.csv")
    assert text.splitlines()[-1] == (
        "  dprime risk --noise-multiplier NOISE --sample-rate BATCH/16 --steps STEPS --prior 0.2 "
        "--belief-prior 0.2"
    )
    text = shown("pool.csv", "--probability-column", "pi", "--out", "train.csv", "--force")
    assert "its own probability, 0.05 to 0.445 (pi)" in text
    assert "the largest π, which covers everyone" in text
    assert "--prior 0.445 " in text
    assert "nobody at all" not in text
    text = shown("pool.csv", "--probability", "0.05", "--out", "train.csv", "--force")
    assert "nobody at all is drawn with probability 0.017" in text


def test_a_seed_that_others_can_read_is_a_warning(folder):
    (folder / "seed").write_text("7" * 64)
    (folder / "seed").chmod(0o644)
    result = ran("pool.csv", "--probability", "0.5", "--out", "a.csv", "--seed-file", "seed")
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: others can read seed,")
    assert "7777" not in result.stderr + result.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--probability", "half"], "probability must be a number, but it is 'half'"),
        ([], "Exactly one of probability, probability_column must be given"),
        (["--probability-column", "text"], "text in line 2 must be a number"),
        (["--probability", "0.2", "--ignore", "nr"], "ignore must be one of the pool's columns"),
        (["--probability", "0.2", "--batch", "17"], "batch must be at most the expected size"),
        (["--probability", "0.2", "--steps", "0"], "steps must be at least 1"),
        (["--probability", "0.2", "--out", "pool.csv", "--force"], "another file than pool"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(call, folder, arguments, sentence):
    refused(call("sample", "pool.csv", "--out", "train.csv", *arguments), sentence)
    assert [path.name for path in folder.iterdir()] == ["pool.csv"]
