"""`dprime runs`: what there is, how far it is, and who works on it."""

import json

import numpy as np

from dprime.cli import listing
from dprime.runs.run import Run

AUDIT = ["audit", "--epsilon", "4", "--records", "8", "--steps", "2", "--seed", "1"]
FEW = ["--trials", "12", "--block", "8"]


def test_runs_of_an_empty_folder(call, tmp_path):
    (tmp_path / "runs").mkdir()
    assert call("runs")[:2] == (0, "There is no run in runs.\n")
    assert json.loads(call("runs", "--json")[1]) == {"runs": [], "not_runs": {}}


def test_runs_and_what_is_none(call, tmp_path):
    folder = tmp_path / "mine"
    assert call(*AUDIT, *FEW, "--out", folder / "a.run")[0] == 0
    (folder / "notes.txt").write_text("Try a stronger adversary.")
    (folder / "empty.run").touch()
    (folder / "cut.run").write_bytes((folder / "a.run").read_bytes()[:3000])
    code, out, err = call("runs", "mine")
    assert (code, err) == (0, "")
    for words in ("a.run", "malicious-dataset", "digits", "3/3", "24", "complete", "cut.run: "):
        assert words in out
    shown = json.loads(call("runs", "mine", "--json")[1])
    (only,) = shown["runs"]
    assert (only["name"], only["state"], only["trials"]) == ("a.run", "complete", 24)
    assert set(shown["not_runs"]) == {"empty.run", "cut.run"}


def test_runs_of_what_is_no_folder(call, tmp_path):
    (tmp_path / "file").touch()
    for words in (["runs"], ["runs", "file"]):
        code, out, err = call(*words)
        assert (code, out) == (2, "")
        assert err.startswith(f"Error: folder must be a folder, but it is '{words[-1]}'")


def test_watching_a_run_from_elsewhere(call, tmp_path, monkeypatch):
    path = tmp_path / "runs" / "a.run"
    settings = {"adversary": "di", "data": "digits", "seed": 1}
    with Run.create(path, "audit", settings, blocks=4) as store, store.working():
        store.finish(0, {"score": np.zeros(50)}, 0.5, "process 1")
        store.fail(1, "its process died", "lost with its worker", "process 2")
        seen = []

        def looked(_):
            seen.append(None)
            if len(seen) > 2:
                raise KeyboardInterrupt

        monkeypatch.setattr(listing.time, "sleep", looked)
        code, out, _ = call("runs", "--watch")
    assert code == 0
    for words in (
        "a.run", "running", "process 1: 1 block, 50 trials, 100 trials/s",
        "lost with its worker: block 1, its process died", "left",
    ):  # fmt: skip
        assert words in out


def test_a_list_reads_no_blocks_and_what_goes_on_checks_them(call, tmp_path):
    """A number that was changed in a block is no matter of a list; nobody concludes from it."""
    path = tmp_path / "runs" / "a.run"
    assert call(*AUDIT, *FEW, "--out", path)[0] == 0
    with Run.open(path) as run:
        score = run.arrays()["score"][3].tobytes()
    whole = path.read_bytes()
    assert whole.count(score) >= 1
    path.write_bytes(whole.replace(score, np.float64(0.5).tobytes()))
    assert json.loads(call("runs", "--json")[1])["runs"][0]["state"] == "complete"
    for command in ("resume", "report"):
        code, out, err = call(command, path)
        assert (code, out) == (2, "")
        assert "must be a whole run, but it is damaged in block 0" in err
