"""`dprime audit` with a file of several audits, `runs` and `bound`, end to end."""

import csv
import io

import numpy as np
import pytest
from rich.console import Console
from rich.text import Text

from commands import as_json, interrupted_at, refused
from dprime.audit import audits, lower_bound
from dprime.audit.estimators import ESTIMATORS
from dprime.cli import runs
from dprime.cli.tables import plain_table
from dprime.runs.run import Run
from specimens.make import copy_of

# Several audits -----------------------------------------------------------------------------------

SEVERAL = """
max_records = 8
trials = 6
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


@pytest.fixture
def two(tmp_path):
    (tmp_path / "two.toml").write_text(SEVERAL)
    return tmp_path


def test_one_table_of_all(call, two):
    code, out, err = call("audit two.toml --seed 1")
    assert code == 0
    for words in ("first, local *", "* not DP", "di: The whole curve",
                  "gradient: Membership advantage", "Differential identifiability"):  # fmt: skip
        assert words in out
    assert "2 of 2: second, inconclusive" in err
    kept = sorted(path.name for path in (two / "runs" / "two").glob("*.run"))
    assert kept == ["first, local.run", "second.run"]
    shown = call("audit two.toml --adversary di --metric advantage --run here").out
    assert "Audits by di: Membership advantage" in shown  # what they have in common
    assert "By, and what" not in shown


def test_as_json_and_with_options_over_the_file(call, two):
    answer = as_json(call("audit two.toml --trials 8 --run here --json").out)
    first, second = answer["audits"]
    assert answer["seconds"] >= first["seconds"] + second["seconds"]
    assert "processor" in answer["device"][0]
    assert {"dprime", "python", "torch"} <= set(answer["versions"])
    assert (first["name"], first["run"]) == ("first, local", "here/first, local.run")
    assert (first["trials"]["in"], second["trials"]["in"]) == (8, 8)
    assert first["identifiability"]["advantage"]["value"] <= 1
    code, _, err = call("audit two.toml --trials 8 --run here --seed 3")
    assert (code, "same settings (another seed)" in err) == (2, True)


def test_several_that_are_interrupted(call, monkeypatch, two):
    monkeypatch.setattr(audits, "begin", interrupted_at(2, audits.begin)[0])
    code, out, err = call("audit two.toml --run kept")
    assert (code, out) == (130, "")
    assert "Stopped after 1 of 2 audits. Give the same command to go on" in " ".join(err.split())
    assert (two / "kept" / "first, local.run").exists()


# runs ---------------------------------------------------------------------------------------------


def test_runs_and_what_is_none(call, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    for line, place in (("runs mine", "mine"), ("runs", "this folder")):
        ended = call(line)
        assert (ended.code, ended.words) == (0, runs.NO_RUN.format(folder=place))
    assert call("runs mine --json").json == {"runs": [], "not_runs": {}}
    path = copy_of("finished", folder)
    (folder / "notes.txt").write_text("Try a stronger adversary.")
    (folder / "empty.run").touch()
    (folder / "cut.run").write_bytes(path.read_bytes()[:3000])
    out = call("runs mine").out
    for words in ("finished.run", "malicious-dataset", "digits", "1/1", "200", "cut.run: "):
        assert words in out
    shown = call("runs mine --json").json
    (only,) = shown["runs"]
    assert (only["name"], only["state"], only["total_trials"]) == ("finished.run", "complete", 200)
    assert set(shown["not_runs"]) == {"empty.run", "cut.run"}


def test_a_run_beside_the_folder_of_runs_is_found_with_those_in_it(call, tmp_path):
    (tmp_path / "runs").mkdir()
    for place in (tmp_path, tmp_path / "runs"):
        copy_of("finished", place)
    names = [each["name"] for each in call("runs --json").json["runs"]]
    assert names == ["finished.run", "runs/finished.run"]


def test_a_name_neither_breaks_the_list_nor_commands_the_terminal(call, tmp_path):
    settings = {"adversary": "[/oops]", "data": "[x]", "seed": 1}
    with Run.create(tmp_path / "runs" / "\x1b[2J.run", "audit", settings, blocks=1):
        pass
    out = call("runs").out
    assert "\x1b" not in out
    for words in ("[/oops]", "[x]", r"\x1b[2J"):
        assert words in out


def test_watching_a_run_from_elsewhere(call, tmp_path, monkeypatch):
    settings = {"adversary": "di", "data": "digits", "seed": 1}
    with (
        Run.create(tmp_path / "runs" / "a.run", "audit", settings, blocks=4) as run,
        run.working(),
    ):
        run.finish(0, {"score": np.zeros(50)}, 0.5, "process 1")
        run.fail(1, "its process died", "lost with its worker", "process 2")
        looks = iter([None, None])

        def looked(_):
            if next(looks, True):
                raise KeyboardInterrupt

        monkeypatch.setattr(runs.time, "sleep", looked)
        code, out, _ = call("runs --watch")
    assert code == 0
    for words in (
        "a.run", "running", "process 1: 1 block, 50 trials, 100 trials/s",
        "lost with its worker: block 1, its process died", "left",
    ):  # fmt: skip
        assert words in out


def test_a_list_reads_no_blocks_and_what_goes_on_checks_them(call, tmp_path):
    """A number that was changed in a block is no matter of a list; nobody concludes from it.

    The block is played again, and the answer is that of the whole run.
    """
    path = copy_of("finished", tmp_path)
    with Run.open(path) as run:
        before = run.result
    with Run.open(path) as run:
        score = run.arrays()["score"][3].tobytes()
    whole = path.read_bytes()
    assert score in whole
    path.write_bytes(whole.replace(score, np.float64(0.5).tobytes()))
    assert call("runs . --json").json["runs"][0]["state"] == "complete"
    refused(call("report", path), "must be a whole run, but it is damaged in block 0")
    after = call("resume", path, "--json").json
    assert after["verdict"] == before["verdict"]
    assert "1 try was found damaged" in after["sentence"]


# bound --------------------------------------------------------------------------------------------


def write_scores(path, inside, outside):
    rows = [
        (world, score) for world, scores in (("in", inside), ("out", outside)) for score in scores
    ]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("world", "score"), *rows])


@pytest.fixture
def scores(tmp_path):
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(1.0, 1.0, 300), rng.normal(0.0, 1.0, 300)
    write_scores(tmp_path / "scores.csv", inside, outside)
    return inside, outside


def test_bound_is_lower_bound(call, scores):
    assert set(call("bound scores.csv --json").json) == {"band"}
    for method in ESTIMATORS:
        found = call(f"bound scores.csv --delta 1e-4 --method {method} --json").json[method]
        expected = lower_bound(*scores, delta=1e-4, method=method)
        assert (found["epsilon"], found["sentence"]) == (expected.epsilon, expected.sentence())
        assert (found["kind"], found["trials"]) == ("lower bound", [300, 300])


def test_bound_in_words(call, scores):
    shown = call("bound scores.csv").words
    assert shown.count("At 95 % confidence the ε at δ = 1e-05 is at least") == 1
    assert "Membership advantage ≥ 0." in shown
    assert "each row comes from a separate training" in shown
    one = call("bound scores.csv --method steinke --confidence 0.9").words
    assert one.count("At 90 % confidence") == 1
    assert "separate training" not in one
    credible = call("bound scores.csv --method bayesian").words
    assert "confidence" not in credible
    assert "With a posterior probability of 95 %" in credible


ROWS = "2,in\n3,in\n0,out\n1,out\n"
CSVS = {
    "": "FILE must be a CSV file with the columns score and world, once each, but it is",
    "score,world\n": "in_scores must be a row of two or more numbers",
    ROWS: "but it is one with 2, in: give a header",
    "score,score,world\n1,2,in\n": "but it is one with score, score, world: give",
    "score;world\n1;in\n": "but it is one with score;world",
    "score,world\n1,in\nhigh,in\n": "score in line 3 must be a number, but it is",
    "score,world\n,in\n": "score in line 2 must be a number, but it is ''",
    "score,world\n1,in\n\n2,both\n": "world in line 4 must be one of in, out",
    "\xff\xfe\x00\x01": "FILE must be a CSV file to read ('utf-8' codec",
    'score,world\n"' + "1" * 200_000 + '",in\n': "field larger than field",
}


@pytest.mark.parametrize("content", CSVS, ids=range(len(CSVS)))
def test_broken_csv(call, tmp_path, content):
    (tmp_path / "scores.csv").write_bytes(content.encode("latin-1"))
    refused(call("bound scores.csv"), CSVS[content])


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffscore,world\n" + ROWS,
        "score,world\r\n" + ROWS.replace("\n", "\r\n"),
        "world,note,score\nIN,a,2\n1,b,3\n out ,c,0\n0,d,1\n",
    ],
)
def test_forms_of_the_same_scores(call, tmp_path, text):
    (tmp_path / "scores.csv").write_text(text, newline="")
    found = call("bound scores.csv --method band --json").json["band"]
    assert found["epsilon"] == lower_bound([2.0, 3.0], [0.0, 1.0], method="band").epsilon
    assert found["trials"] == [2, 2]


INTERVAL = "0.634 (0.000 to 1.000)"
ROWS = [
    ("malicious-dataset-digits-20261119-201243.run", "20/20", INTERVAL, "complete"),
    ("a.run", "1,000,000/2,000,000", "0.5000 ± 0.0003", "failed"),
]


@pytest.mark.parametrize("width", [24, 40, 60, 64, 72, 80, 120])
def test_no_width_cuts_a_number(width):
    table = plain_table("Runs", "Run", "Blocks", "AUC", "State")
    table.caption = "Means over the targets."
    for name, *cells in ROWS:
        table.add_row(Text(name), *cells)
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    out = console.file.getvalue()
    assert max(map(len, out.splitlines())) <= width
    found = out.replace("│", " ").split()
    for _, *cells in ROWS:
        assert {word for cell in cells for word in cell.split()} <= {*found}
    assert {"Runs", "Means", "Blocks", "AUC"} <= {word.strip(":┃") for word in found}


@pytest.mark.parametrize("width", [40, 80])
def test_runs_have_whole_numbers_and_times_with_a_zone(call, tmp_path, monkeypatch, width):
    (tmp_path / "runs").mkdir()
    copy_of("finished", tmp_path / "runs")
    monkeypatch.setenv("COLUMNS", str(width))
    found = call("runs").words.split()
    assert {"1/1", "200", "complete", "UTC"} <= {*found}
