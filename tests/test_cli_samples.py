"""`dprime sample`: the command prints what may be known, and nothing that depends on the draw."""

import json

import numpy as np
import pytest

from commands import refused
from dprime import DPSGD, PoolSampled
from dprime.membership.pool_files import mechanism_of

COUNT = 80
POOL = "sample pool.csv --out train.csv --force"


@pytest.fixture(autouse=True)
def folder(tmp_path):
    rows = [f'{i},"a [text]\nin {i} lines",{0.05 + i / 200}' for i in range(COUNT)]
    (tmp_path / "pool.csv").write_text("\n".join(["id,text,pi", *rows]) + "\n")
    return tmp_path


def test_nothing_public_differs_between_two_draws(call, folder):
    for chances in ("--sampling-probability 0.2", "--probability-column pi"):
        for form in ("", "--json"):
            seen, drawn = set(), set()
            for seed in range(4):
                (folder / "seed").write_text(f"{seed:064x}")
                (folder / "seed").chmod(0o600)
                line = f"{POOL} {chances} --members who --seed-file seed --batch-size 4 {form}"
                seen.add((call(line), (folder / "train.csv.pool.json").read_text()))
                drawn.add((folder / "who").read_text().count("1"))
            assert len(seen) == 1
            assert len(drawn) > 1  # while the draws differ, even in their size


def test_json_has_the_facts_and_the_command(call, folder):
    options = "--ignore id --batch-size 5 --noise-multiplier 1.2 --steps 40"
    found = call(f"{POOL} --probability-column pi {options} --json").json
    chances = 0.05 + np.arange(COUNT) / 200
    public = json.loads((folder / "train.csv.pool.json").read_text())
    assert public == {name: found[name] for name in public}
    assert found["pool_records"] == COUNT
    assert found["expected_records"] == pytest.approx(chances.sum())
    assert found["sample_rate"] == 5 / found["expected_records"]
    training = DPSGD(1.2, found["sample_rate"], 40)
    ran = PoolSampled(training, chances.max(), chances.min())
    assert mechanism_of("train.csv.pool.json", training) == ran
    assert (found["probability"], found["smallest_probability"]) == (ran.prior, ran.least)


def test_what_is_printed_says_what_was_done_and_certifies_the_training(call, folder):
    options = "--members who --seed-file seed --batch-size 7 --noise-multiplier 2 --steps 30"
    code, text, err = call(f"{POOL} --sampling-probability 1/3 {options}")
    assert (code, err) == (0, "")
    assert text.startswith("Drawn from the 80 records of pool.csv, each kept with probability 0.33")
    for name in ("train.csv", "train.csv.pool.json", "who", "seed"):
        assert f"\n  {name}" in text
        assert (folder / name).exists()
    assert "How many were drawn is not shown" in text
    assert "sampling rate, its divisor and its steps from the expected size" in text
    command = next(line for line in text.splitlines() if line.startswith("  dprime risk"))
    risk = call(command.removeprefix("  dprime "), "--json").json
    ran_there = mechanism_of("train.csv.pool.json", DPSGD(2.0, 7 / (COUNT / 3), 30))
    curve, metrics = ran_there.curve(), risk["metrics"]
    assert metrics["precision"]["prior"] == ran_there.prior == 1 / 3
    assert metrics["belief"]["belief_prior"] == 1 / 3
    assert metrics["precision"]["value"] == curve.precision(prior=1 / 3, min_tpr=0.01)
    assert metrics["success"]["value"] == curve.success(prior=1 / 3)
    assert risk["adjacency"] == "add-remove"


def test_what_is_not_known_stands_in_capitals_and_the_largest_probability_covers_everyone(call):
    assert call(f"{POOL} --sampling-probability 0.2").out.splitlines()[-1] == (
        "  dprime risk --noise-multiplier NOISE --sample-rate BATCH/16 --steps STEPS --prior 0.2 "
        "--belief-prior 0.2"
    )
    text = call(f"{POOL} --probability-column pi").out
    assert "its own probability, 0.05 to 0.445 (pi)" in text
    assert "the largest π, which covers everyone" in text
    assert "--prior 0.445 " in text
    assert "nobody at all" not in text
    told = "nobody at all is drawn with probability 0.017"
    assert told in call(f"{POOL} --sampling-probability 0.05").out


def test_a_seed_that_others_can_read_is_a_warning(call, folder):
    (folder / "seed").write_text("7" * 64)
    (folder / "seed").chmod(0o644)
    code, out, err = call(f"{POOL} --sampling-probability 0.5 --seed-file seed")
    assert code == 0
    assert err.startswith("Warning: others can read seed,")
    assert "7777" not in out + err


REFUSED = {
    "--sampling-probability half": "probability must be a number, but it is 'half'",
    "": "Exactly one of --sampling-probability, --probability-column must be given",
    "--probability-column text": "text in line 2 must be a number",
    "--sampling-probability 0.2 --steps 0": "steps must be at least 1",
}


@pytest.mark.parametrize("given", REFUSED)
def test_a_mistake_leaves_no_file_behind(call, folder, given):
    refused(call(f"{POOL} {given}"), REFUSED[given])
    assert [path.name for path in folder.iterdir()] == ["pool.csv"]
