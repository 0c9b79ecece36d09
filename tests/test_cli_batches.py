"""`dprime audit` with a file of several audits, end to end."""

import json

import pytest

from dprime.audit import batch

FILE = """
records = 8
trials = 6
seed = 1
training.steps = 2
claim.epsilon = 4.0

[[audits]]
name = "first, local"
adversary = "di"
training.sensitivity = "local"

[[audits]]
name = "second"
adversary = "gradient"
metric = "advantage"
"""


@pytest.fixture(autouse=True)
def file(tmp_path):
    """In the folder where the command line is called."""
    (tmp_path / "two.toml").write_text(FILE)


def test_one_table_of_all(call, tmp_path):
    code, out, err = call("audit", "two.toml")
    assert code == 0
    assert "first, local *" in out
    assert "* not DP" in out
    assert "di: The whole curve" in out
    assert "gradient: Membership advantage" in out
    assert "Differential identifiability" in out
    assert "2 of 2: second, inconclusive" in err
    assert sorted(path.name for path in (tmp_path / "runs" / "two").glob("*.run")) == [
        "first, local.run", "second.run",
    ]  # fmt: skip


def test_as_json_and_with_options_over_the_file(call):
    code, out, _ = call("audit", "two.toml", "--trials", "8", "--out", "here", "--json")
    assert code == 0
    answer = json.loads(out)
    first, second = answer["audits"]
    assert answer["seconds"] >= first["seconds"] + second["seconds"]
    assert "processor" in answer["device"][0]
    assert {"dprime", "python", "torch"} <= set(answer["versions"])
    assert (first["name"], first["run"]) == ("first, local", "here/first, local.run")
    assert (first["trials"]["in"], second["trials"]["in"]) == (8, 8)
    assert first["identifiability"]["advantage"]["value"] <= 1
    assert second["seconds"] > 0


def test_what_they_have_in_common_is_in_the_title(call):
    code, out, _ = call("audit", "two.toml", "--adversary", "di", "--metric", "advantage")
    assert code == 0
    assert "Audits by di: Membership advantage" in out
    assert "By, and what" not in out


def test_a_seed_that_was_drawn_is_kept(call, tmp_path):
    (tmp_path / "two.toml").write_text(FILE.replace("seed = 1\n", ""))
    first = json.loads(call("audit", "two.toml", "--out", "here", "--json")[1])
    again = json.loads(call("audit", "two.toml", "--out", "here", "--json")[1])
    for one, other in zip(first["audits"], again["audits"], strict=True):
        assert one["rows"] == other["rows"]
    code, _, err = call("audit", "two.toml", "--out", "here", "--seed", "3")
    assert code == 2
    assert "same settings (another seed)" in err


def test_interrupted_it_says_how_to_go_on(call, monkeypatch, tmp_path):
    real, calls = batch.begin, []

    def begin(*args, **given):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*args, **given)

    monkeypatch.setattr(batch, "begin", begin)
    code, out, err = call("audit", "two.toml", "--out", "kept")
    assert (code, out) == (130, "")
    assert "Stopped after 1 of 2 audits. Give the same command to go on" in " ".join(err.split())
    assert (tmp_path / "kept" / "first, local.run").exists()
