"""The rule, its intervals, and what an entry leaves behind."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papers.__main__ import main
from papers.drawing import Line, lines_chart
from papers.entry import SEED, Entry, Kept, Measured, Paper, Scale, kept_or, kept_place
from papers.reproduce import (
    Claim,
    Estimate,
    by_luck,
    computed,
    exact,
    mean,
    normal,
    printed,
    share,
    stated,
)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.8, 1.2, "agrees"), (1.0, 1.3, "undecided"), (0.7, 0.9, "undecided"),
        (1.21, 1.4, "differs"), (0.1, 0.79, "differs"), (-math.inf, math.inf, "undecided"),
    ],
)  # fmt: skip
def test_a_fifth_around_a_measured_number(low, high, verdict):
    assert printed("x", 1.0, Estimate(1.0, low, high)).verdict == verdict
    assert printed("x", -1.0, Estimate(-1.0, -high, -low)).verdict == verdict


@pytest.mark.parametrize(
    ("text", "value", "verdict"),
    [
        ("0.28", 0.2763, "agrees"), ("0.28", 0.2749, "differs"), ("0.28", 0.285, "agrees"),
        ("100", 100.4, "agrees"), ("100", 101.0, "differs"),
    ],
)  # fmt: skip
def test_printed_digits(text, value, verdict):
    assert computed("x", text, value).verdict == verdict


@given(st.floats(-5, 5), st.floats(0, 3), st.floats(0, 3), st.floats(-5, 5), st.floats(0, 4))
def test_one_word_for_every_claim(value, below, above, least, width):
    claim = Claim("x", "y", value, value - below, value + above, least, least + width)
    inside = least <= value - below and value + above <= least + width
    apart = value + above < least or least + width < value - below
    assert claim.verdict == ("agrees" if inside else "differs" if apart else "undecided")


def test_a_reason_stands_where_a_claim_does_not_agree_and_is_measured_only_there():
    asked = []
    for value in (1.0, -1.0):
        claim = stated("x", "above 0", value, least=0.0, reason=lambda: asked.append(1) or "so")
        assert claim.why == ("" if value > 0 else "so")
    assert asked == [1]


@pytest.mark.slow
def test_intervals_cover():
    rng = np.random.default_rng(5)
    draws = rng.normal(1.0, 2.0, (2000, 8))
    hits = np.mean([mean(row).low <= 1.0 <= mean(row).high for row in draws])
    assert hits == pytest.approx(0.95, abs=0.02)
    found = [share(int(count), 40) for count in rng.binomial(40, 0.1, 2000)]
    assert np.mean([each.low <= 0.1 <= each.high for each in found]) >= 0.94
    alike = 5 * rng.binomial(7, 0.025, 2000)  # seven groups of five that go together
    apart = rng.binomial(35, 0.025, 2000)
    for counted in (alike, apart):
        assert np.mean(counted <= by_luck(7, 5, 0.025)) >= 0.97


def test_few_numbers_and_differences():
    assert normal(1.0, 0.5).high == pytest.approx(1.98, abs=0.001)
    assert mean([3.0]).low == -math.inf
    apart = normal(1.0, 0.3) - normal(0.5, 0.4)
    assert (apart.value, apart.high - apart.value) == pytest.approx((0.5, 1.96 * 0.5), abs=1e-3)


def measured(scale):
    kinds = [Line("a", [(1, 1), (2, 2)]), Line("b", [(1.1, 3, 2, 4)], "points"),
             Line("c", [(2, 4)], "published")]  # fmt: skip
    figure = lines_chart("Named", "case", "y", kinds, places=["first", "second"])
    claims = [printed("number", 2.0, exact(2.1)), stated("word", "more", 1.0, least=0.0)]
    return Measured(claims, {"repetitions": scale.pick(1, 2, 3)}, {}, {"": figure, "b": figure})


ENTRY = Entry("figure1", measured, formulas=("word",))
PAPER = Paper("someone", (ENTRY,), stand_ins=("numb",))


def test_what_an_entry_leaves_behind(tmp_path):
    PAPER.publish(ENTRY, Scale("smoke"), tmp_path)
    assert not list(tmp_path.iterdir())
    for size, name in (("full", "results.json"), ("quick", "results-quick.json")):
        result = PAPER.publish(ENTRY, Scale(size, seed=5), tmp_path)
        kept = json.loads((tmp_path / "someone" / name).read_text())
        assert kept["results"] == {"figure1": json.loads(json.dumps(result))}
        assert kept["look"]["config"]
        assert (result["seed"], result["size"]) == (5, size)
    assert [(each["basis"], each["verdict"]) for each in result["claims"]] == [
        ("stand-in", "comparable"), ("formula", "agrees"),
    ]  # fmt: skip
    assert result["claims"][1]["most"] is None
    assert {"dprime", "python", "torch"} <= set(result["versions"])
    assert list(result["figures"]) == ["figure1", "figure1-b"]


def test_places_across_have_names_and_each_kind_of_line_its_mark():
    figure = measured(Scale()).figures[""]
    assert "a: from 1 at first to 2 at second; b: from 3 at first" in figure.text
    drawn = json.dumps(figure.spec(), ensure_ascii=False)
    assert [row["x"] for row in figure.rows()] == ["first", "second", "first", "second"]
    assert '"range": ["stroke", "circle", "diamond"]' in drawn


@pytest.mark.parametrize("name", ["mnist", "cifar10", "adult", "location30", "retail100"])
def test_random_records_in_the_place_of_data(name):
    split = Scale("smoke").data(name)
    assert len(split.train) > len(split.test) > 100
    assert set(np.unique(split.train.labels)) == set(range(split.test.classes))


def test_what_is_kept_says_where_and_from_which_seed():
    made = [{"device": "A", "seconds": 1.0, "seed": 7}, {"device": "B", "seconds": 2.0, "seed": 7}]
    assert Kept.of(made) == Kept("A, B", 3.0, 7)
    with pytest.raises(ValueError, match=r"from one seed, these are from \[7, 8\]"):
        Kept.of([made[0], {**made[1], "seed": 8}])


def test_what_is_missing_is_made_once_and_kept_by_seed(tmp_path, capsys):
    made = []

    def make(seed):
        def of():
            made.append(seed)
            return {"seed": seed}

        return kept_or(tmp_path, "mnist", Scale(seed=seed), of)["seed"]

    assert [make(5), make(5)] == [5, 5]
    assert capsys.readouterr().err == "mnist is not in raw-seed5.json: it is made on cpu\n"
    (tmp_path / "raw.json").write_text('{"mnist": {"seed": 2024}}')
    assert [make(SEED), make(2024), make(6), make(6)] == [2024, 2024, 6, 6]
    assert made == [5, 6]
    assert kept_place(tmp_path, "mnist", 6).name == "raw-seed6.json"


@pytest.mark.parametrize(
    ("words", "told"),
    [(["nobody"], "unknown: nobody; give some of bernau"),
     (["thudi/figure77"], "unknown: figure77; thudi has figure1, figure2"),
     (["thudi/figure1", "--device", "tpu"], "device must be available")],
    ids=["paper", "entry", "device"],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_sentence(words, told, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [(ValueError("no such data"), 2, "no such data"), (KeyboardInterrupt(), 130, "stopped")],
    ids=["input", "stopped"],
)
def test_an_entry_ends_without_a_traceback(error, code, told, monkeypatch, capsys):
    def fails(*_):
        raise error

    monkeypatch.setattr(Paper, "publish", fails)
    with pytest.raises(SystemExit) as stopped:
        main(["thudi/figure1", "--smoke"])
    assert stopped.value.code == code
    assert told in capsys.readouterr().err
