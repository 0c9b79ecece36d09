"""The rule, its intervals, and what a script leaves behind."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papers.__main__ import main
from papers.drawing import Line, lines_chart
from papers.reproduce import (
    SEED,
    Claim,
    Estimate,
    Kept,
    Measured,
    Scale,
    by_luck,
    computed,
    exact,
    kept_in,
    kept_or,
    mean,
    normal,
    printed,
    publish,
    run,
    share,
    stated,
)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.8, 1.2, "agrees"), (0.95, 1.05, "agrees"), (1.0, 1.3, "undecided"),
        (0.7, 0.9, "undecided"), (0.5, 2.0, "undecided"), (1.21, 1.4, "differs"),
        (0.1, 0.79, "differs"), (-math.inf, math.inf, "undecided"),
    ],
)  # fmt: skip
def test_a_fifth_around_a_measured_number(low, high, verdict):
    assert printed("x", 1.0, Estimate(1.0, low, high)).verdict == verdict


def test_negative_numbers_have_a_range_too():
    claim = printed("x", -2.0, exact(-2.1))
    assert (claim.least, claim.most) == pytest.approx((-2.4, -1.6))
    assert claim.verdict == "agrees"


@pytest.mark.parametrize(
    ("text", "value", "verdict"),
    [
        ("0.28", 0.2763, "agrees"), ("0.28", 0.2749, "differs"), ("0.28", 0.285, "agrees"),
        ("4.6", 4.65, "agrees"), ("100", 100.4, "agrees"), ("100", 101.0, "differs"),
    ],
)  # fmt: skip
def test_printed_digits(text, value, verdict):
    assert computed("x", text, value).verdict == verdict


def test_a_statement_is_a_range():
    assert stated("gain", "is above 0", Estimate(0.2, 0.1, 0.3), least=0.0).verdict == "agrees"
    assert stated("gain", "is above 0", Estimate(0.2, -0.1, 0.5), least=0.0).verdict == "undecided"
    assert stated("gain", "is above 0", Estimate(-0.2, -0.3, -0.1), least=0.0).verdict == "differs"


@given(st.floats(-5, 5), st.floats(0, 3), st.floats(0, 3), st.floats(-5, 5), st.floats(0, 4))
def test_one_word_for_every_claim(value, below, above, least, width):
    claim = Claim("x", "y", value, value - below, value + above, least, least + width)
    inside = least <= value - below and value + above <= least + width
    apart = value + above < least or least + width < value - below
    assert claim.verdict == ("agrees" if inside else "differs" if apart else "undecided")


@pytest.mark.slow
def test_intervals_cover():
    rng = np.random.default_rng(5)
    draws = rng.normal(1.0, 2.0, (2000, 8))
    hits = np.mean([mean(row).low <= 1.0 <= mean(row).high for row in draws])
    assert hits == pytest.approx(0.95, abs=0.02)
    counts = rng.binomial(40, 0.1, 2000)
    found = [share(int(count), 40) for count in counts]
    assert np.mean([each.low <= 0.1 <= each.high for each in found]) >= 0.94
    alike = 5 * rng.binomial(7, 0.025, 2000)  # seven groups of five that go together
    apart = rng.binomial(35, 0.025, 2000)
    for counted in (alike, apart):
        assert np.mean(counted <= by_luck(7, 5, 0.025)) >= 0.97
    assert normal(1.0, 0.5).high == pytest.approx(1.98, abs=0.001)
    assert mean([3.0]).low == -math.inf


def test_a_difference_has_both_errors():
    apart = normal(1.0, 0.3) - normal(0.5, 0.4)
    assert (apart.value, apart.high - apart.value) == pytest.approx((0.5, 1.96 * 0.5), abs=1e-3)


def measured(scale):
    figure = lines_chart("f", "A line", "x", "y", (Line("a", [(0, 1, 0.5, 1.5), (1, 2)]),))
    claims = [printed("number", 2.0, exact(2.1)), stated("word", "more", exact(1.0), least=0.0)]
    return Measured(claims, {"repetitions": scale.pick(1, 2, 3)}, {"list": [1, 2]}, figure)


@pytest.fixture(autouse=True)
def pictures(tmp_path, monkeypatch):
    place = tmp_path / "pictures"
    monkeypatch.setattr("papers.reproduce.PICTURES", place)
    return place


def test_places_across_have_names_and_each_kind_of_line_its_mark():
    kinds = (Line("a", [(1, 1), (2, 2)]), Line("b", [(1.1, 3)], joined=False),
             Line("c", [(2, 4)], published=True))  # fmt: skip
    figure = lines_chart("f", "Named", "case", "y", kinds, places=("first", "second"))
    assert "a: from 1 at first to 2 at second; b: from 3 at first" in figure.text
    drawn = json.dumps(figure.spec(), ensure_ascii=False)
    assert [row["x"] for row in figure.rows()] == ["first", "second", "first", "second"]
    assert '"range": ["stroke", "circle", "diamond"]' in drawn


def test_what_a_script_leaves_behind(tmp_path, pictures):
    script = tmp_path / "figure1.py"
    result = publish(measured, script, Scale("quick", seed=5), "Figure 1")
    kept = json.loads((tmp_path / "results" / "figure1-quick.json").read_text())
    assert kept == json.loads(json.dumps(result))
    assert (kept["seed"], kept["size"], kept["settings"]) == (5, "quick", {"repetitions": 2})
    assert kept["claims"][1]["most"] is None
    assert {"dprime", "python", "torch"} <= set(kept["versions"])
    assert (pictures / f"{tmp_path.name}-figure1.svg").read_text().startswith("<svg")


def test_a_quick_run_does_not_draw_over_a_full_one(tmp_path, pictures):
    script = tmp_path / "figure1.py"
    publish(measured, script, Scale("full"), "Figure 1")
    picture = pictures / f"{tmp_path.name}-figure1.svg"
    picture.write_text("full")
    publish(measured, script, Scale("quick"), "Figure 1")
    assert picture.read_text() == "full"
    assert len(list((tmp_path / "results").iterdir())) == 2


def test_a_smoke_run_leaves_nothing(tmp_path):
    publish(measured, tmp_path / "figure1.py", Scale("smoke"), "Figure 1")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["mnist", "cifar10", "adult", "location30", "retail100"])
def test_random_records_in_the_place_of_data(name):
    split = Scale("smoke").data(name)
    assert len(split.train) > len(split.test) > 100
    assert split.train.classes == split.test.classes
    assert set(np.unique(split.train.labels)) == set(range(split.train.classes))


def test_trainings_that_are_kept_say_where_and_from_which_seed(tmp_path):
    made = [{"device": "A", "seconds": 1.0, "seed": 7}, {"device": "B", "seconds": 2.0, "seed": 7}]
    assert Kept.of(made) == Kept("A, B", 3.0, 7)
    with pytest.raises(ValueError, match="too many values"):
        Kept.of([made[0], {**made[1], "seed": 8}])
    assert kept_in(tmp_path, "mnist", SEED).name == "mnist.json"
    assert kept_in(tmp_path, "mnist", 5).name == "mnist-seed5.json"


@pytest.mark.parametrize(
    ("words", "told"),
    [(["nobody"], "unknown: nobody; give some of bernau"),
     (["thudi", "--only", "figure77"], "unknown: figure77; there are figure1, figure2"),
     (["thudi", "--only", "figure1", "--device", "tpu"], "device must be available")],
    ids=["paper", "script", "device"],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_sentence(words, told, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["papers", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [(ValueError("no such data"), 2, "no such data"), (KeyboardInterrupt(), 130, "stopped")],
    ids=["input", "stopped"],
)
def test_a_script_ends_without_a_traceback(error, code, told, monkeypatch, capsys):
    def fails(scale):
        raise error

    monkeypatch.setattr("sys.argv", ["figure1", "--smoke"])
    with pytest.raises(SystemExit) as stopped:
        run(fails, "figure1.py", "A figure.")
    assert stopped.value.code == code
    assert told in capsys.readouterr().err


def test_what_is_missing_is_made_once_and_kept(tmp_path, capsys):
    folder, made = tmp_path / "raw", iter([{"seconds": 1.5}])
    for _ in range(2):
        assert kept_or(folder, "mnist", Scale(seed=5), lambda: next(made)) == {"seconds": 1.5}
    assert [each.name for each in folder.iterdir()] == ["mnist-seed5.json"]
    assert capsys.readouterr().err == "mnist-seed5.json is not there: it is made on cpu\n"
