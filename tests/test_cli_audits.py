"""`dprime audit`, `resume` and `bound`, end to end."""

import csv
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from commands import as_json, refused
from dprime.attack import ADVERSARIES
from dprime.audit import lower_bound
from dprime.audit.estimators import ESTIMATORS
from dprime.audit.game import Game
from dprime.data import devices
from dprime.runs.run import Run

AUDIT = ["audit", "--epsilon", "4", "--records", "8", "--steps", "2", "--seed", "1"]
FEW = ["--trials", "12", "--block", "8"]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    with devices.one_thread():
        yield


# audit and resume ---------------------------------------------------------------------------------


def test_audit_shows_a_table_and_the_verdict(call, tmp_path):
    code, out, err = call(*AUDIT, *FEW)
    assert (code, err) == (0, "")
    shown = " ".join(out.split())
    for words in (
        "malicious-dataset: 8 copies of one record", "Reached, at least", "Allowed, at most",
        "(decides)", "Membership advantage", "inconclusive, because the trials are too few.",
        "trials in each world. It rests on 24 trials.",
        "12 + 12 trials", "Kept in runs/malicious-dataset-digits-",
    ):  # fmt: skip
        assert words in shown
    (kept,) = (tmp_path / "runs").glob("*.run")
    with Run.open(kept) as store:
        assert store.state().complete


def test_audit_as_json_and_resume_says_the_same(call):
    code, out, err = call(*AUDIT, *FEW, "--json")
    shown = as_json(out)
    assert (code, err) == (0, "")
    assert shown["verdict"]["outcome"] == "inconclusive"
    allowed = {row["name"]: row["allowed"] for row in shown["rows"]}
    assert allowed["epsilon"] == pytest.approx(4.0, abs=0.01)
    assert shown["trials"] == {
        "in": 12, "out": 12, "counted": shown["trials"]["counted"], "diverged": 0,
    }  # fmt: skip
    code, out, err = call("resume", shown["run"], "--json")
    assert (code, err) == (0, "")
    assert as_json(out) == shown


def test_a_large_seed_is_kept_to_its_last_digit(call):
    largest = 2**256 - 1
    code, _, _ = call(*AUDIT[:-1], str(largest), *FEW, "--out", "a.run", "--json")
    assert code == 0
    with Run.open("a.run") as store:
        assert store.seed == largest


def test_help_names_every_adversary(call):
    code, out, _ = call("audit", "--help")
    assert code == 0
    shown = " ".join(out.replace("│", " ").split())
    assert f"{', '.join([*ADVERSARIES][:-1])} or {[*ADVERSARIES][-1]};" in shown


ATTRIBUTE = [
    "audit", "--adversary", "attribute", "--data", "diabetes", "--records", "8", "--steps", "2",
    "--noise-multiplier", "2", "--seed", "1", *FEW,
]  # fmt: skip


def test_audit_of_an_attribute(call):
    """The record is there in both worlds: replace, and no word of membership but that."""
    code, out, err = call(*ATTRIBUTE, "--column", "age", "--values", "0.2, 0.8", "--record", "3")
    assert (code, err) == (0, "")
    shown = " ".join(out.split())
    assert "attribute: age of record 3: 0.2 or 0.8" in shown
    assert "Advantage between the two values" in shown
    assert "Membership advantage" not in shown
    assert "Differential identifiability" not in shown
    assert (
        "no test of membership. What it reaches is compared with the claim of one record" in shown
    )
    code, out, _ = call(*ATTRIBUTE, "--json")
    shown = as_json(out)
    assert code == 0
    assert shown["about"].startswith("age of record ")
    with Run.open(shown["run"]) as store:
        assert store.config["adjacency"] == "replace"
    assert as_json(call("resume", shown["run"], "--json")[1]) == shown


def test_an_attribute_in_a_file(call, tmp_path):
    (tmp_path / "audit.toml").write_text(
        'adversary = "attribute"\ndata = "diabetes"\nrecords = 8\nrecord = 2\n'
        "trials = 12\nseed = 1\n"
        "[training]\nsteps = 2\nnoise_multiplier = 2.0\n"
        '[options]\ncolumns = "sex"\nvalues = [1, 0]\n'
    )
    assert as_json(call("audit", "audit.toml", "--json")[1])["about"] == "sex of record 2: 1 or 0"
    shown = as_json(call("audit", "audit.toml", "--values", "0,1", "--json")[1])
    assert shown["about"] == "sex of record 2: 0 or 1"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--column", "ages"], "a column of the data, but it is 'ages': give one of age, sex"),
        (["--values", "1,a"], "values must be a number, but it is 'a'"),
        (["--adjacency", "zero-out"], 'give adjacency="replace" (--adjacency replace)'),
        (["--adversary", "di", "--column", "age"], "but it is 'age': give --adversary attribute"),
    ],
)
def test_attributes_that_are_refused(call, tmp_path, words, message):
    refused(call(*ATTRIBUTE, *words), message)
    assert not (tmp_path / "runs").exists()


def test_options_override_a_file(call, tmp_path):
    (tmp_path / "audit.toml").write_text(
        'adversary = "di"\nrecords = 8\ntrials = 50\nseed = 1\n'
        "[training]\nsteps = 2\nnoise_multiplier = 2.0\nsample_rate = 0.5\n"
    )
    code, out, _ = call("audit", "audit.toml", "--trials", "12", "--sample-rate", "1", "--json")
    shown = as_json(out)
    assert code == 0
    assert (shown["settings"]["adversary"], shown["trials"]["in"]) == ("di", 12)
    with Run.open(shown["run"]) as store:
        kept = store.config["training"]
    assert (kept["steps"], kept["noise_multiplier"], kept["sample_rate"]) == (2, 2.0, 1.0)


def test_every_option_reaches_the_settings(call):
    given = {
        "adversary": "di", "data": "diabetes", "records": 9, "record": 0, "model": "dense-3",
        "adjacency": "replace", "trials": 4, "block": 5, "metric": "precision", "method": "band",
        "delta": 1e-4, "confidence": 0.8, "seed": 5, "device": "cpu", "memory": 1.5,
    }  # fmt: skip
    conditions, claim = {"prior": 0.2, "min_tpr": 0.1}, {"epsilon": 9.0}
    training = {
        "noise_multiplier": 2.0, "sample_rate": 0.5, "steps": 2, "learning_rate": 0.3,
        "clip_norm": 0.7, "sensitivity": "local",
    }  # fmt: skip
    options = {**given, **conditions, **claim, **training, "out": "here/a.run"}
    pairs = [(f"--{name.replace('_', '-')}", value) for name, value in options.items()]
    code, out, err = call("audit", *(word for pair in pairs for word in pair), "--json")
    assert (code, err) == (0, "")
    shown = as_json(out)
    assert shown["run"] == "here/a.run"
    assert shown["label"].startswith("not DP")
    assert shown["verdict"]["metric"]["name"] == "precision"
    with Run.open("here/a.run") as store:
        kept = store.config
    training |= {"expected_batch_size": None, "optimizer": "sgd", "momentum": 0.0}
    expected = {**given, "conditions": conditions, "training": training}
    assert {name: kept[name] for name in expected} == expected
    assert (kept["claim"]["name"], kept["claim"]["epsilon"]) == ("EpsilonDelta", 9.0)


STRONG = ["audit", "--noise-multiplier", "0.5", "--epsilon", "0.1", "--records", "8"]


def test_a_claim_that_is_far_too_strong_is_refuted_with_exit_code_1(call):
    words = [*STRONG, "--steps", "2", "--seed", "1", "--trials", "60", "--out", "a.run", "--json"]
    code, out, err = call(*words)
    assert code == 1
    assert as_json(out)["verdict"]["outcome"] == "refuted"
    assert err == (
        "The accountant certifies ε = 15.46 at δ = 1e-05 for this training; the claim is ε = 0.1.\n"
    )
    assert call("resume", "a.run")[0] == 1


def test_a_pipeline_may_stop_where_an_audit_cannot_tell(call):
    assert call(*AUDIT, *FEW, "--out", "a.run")[0] == 0
    assert call(*AUDIT, *FEW, "--out", "b.run", "--fail-on", "inconclusive")[0] == 1
    assert call("resume", "a.run", "--fail-on", "inconclusive")[0] == 1


def test_an_assumption_is_accepted_by_name(call):
    words = [*STRONG, "--steps", "2", "--seed", "1", "--trials", "60", "--method", "gaussian"]
    code, out, _ = call(*words, "--json")
    assert (code, as_json(out)["verdict"]["outcome"]) == (0, "inconclusive")
    code, out, _ = call(*words, "--assume", "gaussian")
    assert code == 1
    assert "assuming that the scores are Gaussian" in " ".join(out.split())


def test_the_numbers_of_the_di_adversary(call):
    words = [*AUDIT, *FEW, "--adversary", "di"]
    code, out, err = call(*words, "--belief", "0.8", "--belief-prior", "0.4")
    assert (code, err) == (0, "")
    for shown in ("Differential identifiability", "Runs whose belief exceeds 0.8, from 0.4"):
        assert shown in out
    assert out.count("point estimate, no confidence") == 3  # none from the advantage
    assert call(*words)[1].count("point estimate, no confidence") == 5
    sampled = call(*words, "--sample-rate", "0.5")[1]
    assert sampled.count("point estimate, no confidence") == 3
    refused(call(*words, "--belief-prior", "1"), "belief_prior must be strictly between 0 and 1")


def test_modules_in_the_folder_of_the_call_are_found(call, tmp_path):
    (tmp_path / "my_own_training.py").write_text(
        "import torch\nfrom torch import nn\n\n"
        "def train(dataset, seed):\n    torch.manual_seed(seed)\n    return network()\n\n"
        "def network():\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))\n"
    )
    own = ["--trainer", "my_own_training:train", "--adversary", "api-access"]
    code, out, err = call(*AUDIT, "--trials", "4", *own, "--json")
    assert (code, err) == (0, "")
    assert as_json(out)["blocks"]["blocks"] == 1
    code, _, err = call(*AUDIT, *FEW, "--model", "my_own_training:network", "--json")
    assert (code, err) == (0, "")


BAD = {
    "--epsilon much": "epsilon must be a number, but it is 'much'",
    "--adversary eve": "adversary must be one of di, api-access",
    "--records 2.5": "records must be a whole number, 0 or more, but it is '2.5'",
    "--trials -1": "trials must be a whole number, 0 or more, but it is '-1'",
    "--block 0": "block must be at least 1, but it is 0",
    "--record 8": "record must be an index from 0 to 7, but it is 8",
    f"--seed {2**256}": "seed must be a whole number from 0 to 2^256 - 1",
    "--noise-multiplier -1": "noise_multiplier must be 0 or more, but it is -1.0",
    "--model resnet": "model must be a network that dprime knows, but it is 'resnet'",
    "--trainer no_such:train --adversary api-access": "trainer must be importable",
    "--trainer os:getcwd": "adversary must be one that needs nothing but a model",
    "--device abacus": "device must be available, but it is 'abacus'",
    "--fpr 0.1": "fpr must be left out to judge by the curve, but it is 0.1",
    "--colour red": "No such option: --colour",
    "no-such.toml": "settings must be a file to read (No such file or directory)",
    "--out .": "path must be the name of no file yet, but it is '.'",
    "--backend cloud": "backend must be one of here, processes, ray",
    "--workers 2": "workers must be left out for here",
    "--fail-on stands": "fail-on must be one of refuted, inconclus",
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input(call, tmp_path, words):
    refused(call(*AUDIT, *words.split()), BAD[words])
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_claimed_unless_something_is_said(call, tmp_path):
    refused(call("audit"), "noise_multiplier must be given in the training, but it is missing")
    (tmp_path / "audit.toml").write_text("training = 3\n")
    refused(call("audit", "audit.toml", *AUDIT[1:]), "training must be a table of names and values")


def test_a_run_is_not_written_over(call, tmp_path):
    for _ in range(3):  # within a second
        assert call(*AUDIT, "--trials", "2")[0] == 0
    first, *others = (tmp_path / "runs").glob("*.run")
    assert len(others) == 2
    words = "path must be the name of no file yet, but it is "
    refused(call(*AUDIT, *FEW, "--out", first), words)


def test_resume_of_what_is_no_run(call, tmp_path):
    (tmp_path / "notes.run").write_text("no run")
    refused(call("resume", "nothing.run"), "path must be a run's file, but it is 'nothing.run'")
    refused(call("resume", "notes.run"), "must be a dprime run, but it is something else")
    refused(call("resume", "."), "path must be a run's file")
    refused(call("resume"), "Missing argument 'run'")


# Interrupted --------------------------------------------------------------------------------------


def test_interrupted_it_says_how_to_go_on(call, monkeypatch):
    whole = as_json(call(*AUDIT, *FEW, "--out", "whole.run", "--json")[1])
    play = Game.play

    def stopping(self, block):
        if block == 1:
            raise KeyboardInterrupt
        return play(self, block)

    with monkeypatch.context() as patched:
        patched.setattr(Game, "play", stopping)
        code, out, err = call(*AUDIT, *FEW, "--out", "a.run", "--json")
        assert (code, out) == (130, "")
        assert err == "Stopped. Go on with: dprime resume a.run\n"
    code, out, _ = call("resume", "a.run", "--json")
    assert code == 0
    assert {**as_json(out), "run": ""} == {**whole, "run": ""}


def test_interrupted_before_there_is_a_run(call, monkeypatch, tmp_path):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("dprime.audit.audits.load", interrupted)
    assert call(*AUDIT, *FEW, "--out", "a.run") == (130, "", "Stopped. Nothing was kept.\n")
    assert list(tmp_path.iterdir()) == []


SLOW = """
import os, time
import numpy as np, torch
from torch import nn

class Model(nn.Module):
    def __init__(self, logits):
        super().__init__()
        self.logits = torch.tensor(logits, dtype=torch.float32)
    def forward(self, x):
        return self.logits.expand(len(x), 10)

def train(dataset, seed):
    time.sleep(float(os.environ.get("PAUSE", "0")))
    return Model(np.random.default_rng(seed).normal(size=10))
"""


def interrupted(path, words, begun, **environment):
    """Start a command in a process of its own, and send it a signal when its run has begun."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dprime", *words, "--out", path.name],
        cwd=path.parent, env={**os.environ, **environment}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    patience = time.monotonic() + 60
    while not begun() and time.monotonic() < patience:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err == f"Stopped. Go on with: dprime resume {path.name}\n"


@pytest.mark.slow
def test_ctrl_c_and_resume(call, tmp_path):
    """A signal in the middle of a run of 8 seconds or more: nothing finished is lost."""
    (tmp_path / "slow_training.py").write_text(SLOW)
    words = [
        "audit", "--trainer", "slow_training:train", "--adversary", "api-access", "--epsilon", "4",
        "--records", "8", "--trials", "20", "--block", "4", "--seed", "1",
    ]  # fmt: skip
    path = tmp_path / "a.run"

    def begun():
        if not path.exists():
            return []
        with Run.open(path) as store:
            return store.done()

    interrupted(path, words, begun, PAUSE="0.2")
    with Run.open(path) as store:
        kept, state = store.done(), store.state()
        first = store.arrays()["score"]
    assert 1 <= len(kept) < 10
    assert state.failed == 0
    code, out, err = call("resume", "a.run", "--json")
    assert (code, err) == (0, "")
    shown = as_json(out)
    assert shown["blocks"]["done"] == 10
    whole = as_json(call(*words, "--out", "b.run", "--json")[1])
    assert shown["rows"] == whole["rows"]
    with Run.open(path) as store, Run.open(tmp_path / "b.run") as other:
        scores = store.arrays()["score"]
        np.testing.assert_array_equal(scores, other.arrays()["score"])
        np.testing.assert_array_equal(scores[: len(first)], first)


@pytest.mark.slow
def test_ctrl_c_of_the_engine(tmp_path):
    """Threads of the engine end with the run; the block in the middle is played again."""
    words = ["audit", "--noise-multiplier", "2", "--records", "40", "--steps", "3000"]
    words += ["--trials", "6", "--block", "2", "--seed", "1"]
    path = tmp_path / "a.run"
    interrupted(path, words, lambda: path.exists() and time.sleep(0.3) is None)
    with Run.open(path) as store:
        assert store.state().failed == 0
        assert store.state().pending > 0
        assert not store.busy()


# where -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_audit_in_processes_is_the_same(call, tmp_path):
    here = as_json(call(*AUDIT, *FEW, "--out", tmp_path / "a.run", "--json")[1])
    there = (*FEW, "--backend", "processes", "--workers", "2", "--out", tmp_path / "b.run")
    code, out, err = call(*AUDIT, *there, "--json")
    assert (code, err) == (0, "")
    assert as_json(out)["bounds"] == here["bounds"]
    with Run.open(tmp_path / "a.run") as a, Run.open(tmp_path / "b.run") as b:
        np.testing.assert_array_equal(a.arrays()["score"], b.arrays()["score"])
        assert set(b.workers()) <= {"process 1", "process 2"}


# bound --------------------------------------------------------------------------------------------


def write_scores(path, inside, outside, header=("world", "trial", "score")):
    rows = [("in", place, score) for place, score in enumerate(inside)]
    rows += [("out", place, score) for place, score in enumerate(outside)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture
def scores(tmp_path):
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(1.0, 1.0, 300), rng.normal(0.0, 1.0, 300)
    write_scores(tmp_path / "scores.csv", inside, outside)
    return inside, outside


def test_bound_is_lower_bound(call, scores):
    assert set(as_json(call("bound", "scores.csv", "--json")[1])) == {"band"}
    for method in ESTIMATORS:
        words = ["--delta", "1e-4", "--method", method, "--json"]
        found = as_json(call("bound", "scores.csv", *words)[1])[method]
        expected = lower_bound(*scores, delta=1e-4, method=method)
        assert found["epsilon"] == expected.epsilon
        assert found["sentence"] == expected.sentence()
        assert found["kind"] == "lower bound"
        assert found["trials"] == [300, 300]


def test_bound_in_words(call, scores):
    code, out, _ = call("bound", "scores.csv")
    assert code == 0
    assert out.count("At 95 % confidence the ε at δ = 1e-05 is at least") == 1
    assert "Membership advantage ≥ 0." in out
    assert "each row comes from a training of its own" in " ".join(out.split())
    one = call("bound", "scores.csv", "--method", "steinke", "--confidence", "0.9")[1]
    assert one.count("At 90 % confidence") == 1
    assert "training of its own" not in one
    credible = call("bound", "scores.csv", "--method", "bayesian")[1]
    assert "confidence" not in credible
    assert "With a posterior probability of 95 %" in credible


def test_bound_of_scores_that_are_infinite_or_all_alike(call, tmp_path):
    write_scores(tmp_path / "far.csv", [float("inf")] * 50, [float("-inf")] * 50)
    write_scores(tmp_path / "same.csv", [0.0] * 50, [0.0] * 50)
    far, same = (as_json(call("bound", name, "--json")[1]) for name in ("far.csv", "same.csv"))
    assert far["band"]["epsilon"] > 1
    assert same["band"]["epsilon"] == 0


GOOD_ROWS = "2,in\n3,in\n0,out\n1,out\n"
CSVS = {
    "empty": (b"", "scores must be a CSV file with the columns score and world, but it is one"),
    "a header alone": (b"score,world\n", "in_scores must be a row of two or more numbers"),
    "no header": (GOOD_ROWS.encode(), "but it is one with 2, in: give a header"),
    "semicolons": (b"score;world\n1;in\n", "but it is one with score;world"),
    "no number": (b"score,world\n1,in\nhigh,in\n", "score in line 3 must be a number, but it is"),
    "no score": (b"score,world\n,in\n", "score in line 2 must be a number, but it is ''"),
    "another world": (b"score,world\n1,in\n\n2,both\n", "world in line 4 must be one of in, out"),
    "no text": (b"\xff\xfe\x00\x01", "scores must be a CSV file to read ('utf-8' codec"),
    "a field too long": (b'score,world\n"' + b"1" * 200_000 + b'",in\n', "field larger than field"),
}  # fmt: skip


@pytest.mark.parametrize("case", CSVS)
def test_broken_csv(call, tmp_path, case):
    content, words = CSVS[case]
    (tmp_path / "scores.csv").write_bytes(content)
    refused(call("bound", "scores.csv"), words)


def test_what_bound_refuses(call, scores):
    for words, told in (
        (["."], "scores must be a CSV file to read"),
        (["nothing.csv"], "No such file or directory"),
        ([], "Missing argument 'scores'"),
        (["scores.csv", "--delta", "x"], "delta must be a number, but it is 'x'"),
        (["scores.csv", "--confidence", "0"], "confidence must be strictly between 0 and 1"),
        (["scores.csv", "--method", "guess"], "method must be one of clopper-pearson, band, gaus"),
    ):
        refused(call("bound", *words), told)


@pytest.mark.parametrize("text", [
    "\ufeffscore,world\n" + GOOD_ROWS,
    "score,world\r\n" + GOOD_ROWS.replace("\n", "\r\n"),
    "world,note,score\nIN,a,2\n1,b,3\n out ,c,0\n0,d,1\n",
])  # fmt: skip
def test_forms_of_the_same_scores(call, tmp_path, text):
    (tmp_path / "scores.csv").write_text(text, newline="")
    found = as_json(call("bound", "scores.csv", "--method", "band", "--json")[1])["band"]
    assert found["epsilon"] == lower_bound([2.0, 3.0], [0.0, 1.0], method="band").epsilon
    assert found["trials"] == [2, 2]
