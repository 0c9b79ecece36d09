"""`dprime audit` of one audit, and `resume`, end to end."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from commands import as_json, interrupted_at, refused
from dprime.data import devices
from dprime.runs.run import Run

AUDIT = "audit --epsilon 4 --max-records 8 --steps 2 --seed 1"
FEW = f"{AUDIT} --trials 12 --block 8"


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    with devices.one_thread():
        yield


def scores_of(path):
    with Run.open(path) as run:
        return run.arrays()["score"]


# audit and resume ---------------------------------------------------------------------------------


def test_audit_as_json_and_resume_says_the_same(call, tmp_path):
    shown = call(FEW, "--json").json
    assert [*(tmp_path / "runs").glob("*.lock")] == []
    assert shown["verdict"]["outcome"] == "inconclusive"
    allowed = {row["name"]: row["allowed"] for row in shown["rows"]}
    assert allowed["epsilon"] == pytest.approx(4.0, abs=0.01)
    counted = shown["trials"]["counted"]
    assert shown["trials"] == {"in": 12, "out": 12, "counted": counted, "diverged": 0}
    assert call("resume", shown["run"], "--json").json == shown


def test_options_override_a_file(call, tmp_path):
    (tmp_path / "audit.toml").write_text(
        'adversary = "attribute"\ndata = "diabetes"\nmax_records = 8\nrecord = 2\n'
        "trials = 12\nseed = 1\n"
        "[training]\nsteps = 2\nnoise_multiplier = 2.0\nsample_rate = 0.5\n"
        '[options]\ncolumns = "sex"\nvalues = [1, 0]\n'
    )
    assert call("audit audit.toml --json").json["about"] == "sex of record 2: 1 or 0"
    shown = call("audit audit.toml --values 0,1 --trials 10 --sample-rate 1 --json").json
    assert (shown["about"], shown["trials"]["in"]) == ("sex of record 2: 0 or 1", 10)
    with Run.open(shown["run"]) as run:
        kept, adjacency = run.config["training"], run.config["adjacency"]
    assert adjacency == "replace"  # the record is there in both worlds
    assert call("resume", shown["run"], "--json").json == shown
    assert (kept["steps"], kept["noise_multiplier"], kept["sample_rate"]) == (2, 2.0, 1.0)
    (tmp_path / "audit.toml").write_text("training = 3\n")
    refused(call("audit audit.toml --steps 2"), "training must be a table of names and values")


def test_every_option_reaches_the_settings(call):
    given = {
        "adversary": "di", "data": "diabetes", "max_records": 9, "record": 0, "model": "dense-3",
        "adjacency": "replace", "trials": 4, "block": 5, "metric": "precision", "method": "band",
        "delta": 1e-4, "confidence": 0.8, "seed": 2**256 - 1, "device": "cpu", "memory": 1.5,
    }  # fmt: skip
    conditions, claim = {"prior": 0.2, "min_tpr": 0.1}, {"epsilon": 9.0}
    training = {
        "noise_multiplier": 2.0, "sample_rate": 0.5, "steps": 2, "learning_rate": 0.3,
        "clip_norm": 0.7, "sensitivity": "local",
    }  # fmt: skip
    options = {**given, **conditions, **claim, **training, "run": "here/a.run"}
    pairs = [(f"--{name.replace('_', '-')}", value) for name, value in options.items()]
    shown = call("audit", *(word for pair in pairs for word in pair), "--json").json
    assert shown["run"] == "here/a.run"
    assert shown["label"].startswith("not DP")
    assert shown["verdict"]["metric"]["name"] == "precision"
    with Run.open("here/a.run") as run:
        kept = run.config
    training |= {"expected_batch_size": None, "optimizer": "sgd", "momentum": 0.0}
    expected = {**given, "conditions": conditions, "training": training}
    assert {name: kept[name] for name in expected} == expected
    assert (kept["claim"]["name"], kept["claim"]["epsilon"]) == ("EpsilonDelta", 9.0)


STRONG = "audit --noise-multiplier 0.5 --epsilon 0.1 --max-records 8 --steps 2 --seed 1 --trials 60"


def test_a_claim_that_is_far_too_strong_is_refuted_with_exit_code_1(call):
    code, out, err = call(STRONG, "--run", "a.run", "--json")
    assert code == 1
    assert as_json(out)["verdict"]["outcome"] == "refuted"
    told = "The accountant certifies ε = 15.46 at δ = 1e-05 for this training; the claim is ε = 0.1"
    assert err == f"{told}.\n"
    assert call("resume a.run").code == 1


def test_a_pipeline_may_stop_where_an_audit_cannot_tell(call):
    for line, code in (("", 0), ("--fail-on inconclusive", 1)):
        assert call(f"{FEW} --run a{code}.run {line}").code == code
        assert call(f"resume a0.run {line}").code == code


def test_modules_in_the_folder_of_the_call_are_found(call, tmp_path):
    (tmp_path / "my_own_training.py").write_text(
        "import torch\nfrom torch import nn\n\n"
        "def train(dataset, seed):\n    torch.manual_seed(seed)\n    return network()\n\n"
        "def network():\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))\n"
    )
    own = f"{AUDIT} --trials 4 --trainer my_own_training:train --adversary api-access --json"
    assert call(own).json["blocks"]["blocks"] == 1
    assert call(f"{FEW} --model my_own_training:network --run own.run").code == 0
    refused(call("resume own.run"), "imports and calls 'my_own_training:network'")
    assert call("resume own.run --allow-code").code == 0


def test_a_run_is_not_written_over(call, tmp_path):
    for _ in range(3):  # within a second
        assert call(AUDIT, "--trials", "2").code == 0
    first, *others = (tmp_path / "runs").glob("*.run")
    assert len(others) == 2
    refused(call(FEW, "--run", first), "--run must be the name of no file yet, but it is ")
    (tmp_path / "notes.run").write_text("no run")
    refused(call("resume notes.run"), "must be a dprime run, but it is something else")


# Interrupted --------------------------------------------------------------------------------------


def test_interrupted_it_says_how_to_go_on(call, monkeypatch, tmp_path):
    whole = call(FEW, "--run", "whole.run", "--json").json
    for target, kept, told in (
        ("dprime.audit.audits.load", False, "Nothing was kept."),  # before there is a run
        ("dprime.attack.trainer.Game.play", True, "Go on with: dprime resume a.run"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(target, interrupted_at(1, None)[0])
            assert call(FEW, "--run", "a.run") == (130, "", f"Stopped. {told}\n")
        assert (tmp_path / "a.run").exists() == kept
    assert {**call("resume a.run --json").json, "run": ""} == {**whole, "run": ""}


@pytest.mark.slow
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_and_resume(call, tmp_path, which):
    """A signal in the middle of a run: the engine's threads end, and nothing finished is lost."""
    line = "audit --noise-multiplier 2 --max-records 40 --steps 60 --trials 10 --block 2 --seed 1"
    path, command = tmp_path / "a.run", [sys.executable, "-m", "dprime", *line.split()]
    process = subprocess.Popen([*command, "--run", "a.run"], cwd=tmp_path, stderr=subprocess.PIPE)
    patience, done = time.monotonic() + 120, []
    while not done and time.monotonic() < patience:
        time.sleep(0.05)
        if path.exists():
            with Run.open(path) as run:
                done = run.done()
    process.send_signal(which)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.endswith(b" \xe2\x80\xa6\nStopped. Go on with: dprime resume a.run\n")
    with Run.open(path) as run:
        assert 1 <= len(run.done()) < 10
        assert (run.state().failed, run.busy()) == (0, False)
    first, shown = scores_of(path), call("resume a.run --json").json
    assert shown["blocks"]["done"] == 10
    assert shown["rows"] == call(line, "--run", "b.run", "--json").json["rows"]
    np.testing.assert_array_equal(scores_of(path), scores_of(tmp_path / "b.run"))
    np.testing.assert_array_equal(scores_of(path)[: len(first)], first)


@pytest.mark.slow
def test_an_audit_in_processes_is_the_same(call, tmp_path):
    here = call(FEW, "--run", "a.run", "--json").json
    there = call(f"{FEW} --backend processes --workers 2 --run b.run --json").json
    assert there["bounds"] == here["bounds"]
    np.testing.assert_array_equal(scores_of("a.run"), scores_of("b.run"))
    with Run.open("b.run") as run:
        assert set(run.workers()) <= {"process 1", "process 2"}
