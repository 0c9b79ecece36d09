"""The rule and its intervals, what an entry leaves, the stored results, and their pages."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papers import page
from papers.__main__ import main, named
from papers.drawing import Line, lines_chart
from papers.entry import SEED, Entry, Kept, Measured, Paper, Scale, kept_or, kept_place
from papers.reproduce import (
    Claim,
    Estimate,
    by_luck,
    mean,
    normal,
    printed,
    share,
    stated,
)


@given(st.floats(-5, 5), st.floats(0, 3), st.floats(0, 3), st.floats(-5, 5), st.floats(0, 4))
def test_one_word_for_every_claim(value, below, above, least, width):
    claim = Claim("x", "y", value, value - below, value + above, least, least + width)
    inside = least <= value - below and value + above <= least + width
    apart = value + above < least or least + width < value - below
    assert claim.verdict == ("agrees" if inside else "differs" if apart else "undecided")


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.8, 1.2, "agrees"), (0.7, 0.9, "undecided"), (1.21, 1.4, "differs"),
     (-math.inf, math.inf, "undecided")],
)  # fmt: skip
def test_a_fifth_around_a_measured_number(low, high, verdict):
    assert printed("x", 1.0, Estimate(1.0, low, high)).verdict == verdict
    assert printed("x", -1.0, Estimate(-1.0, -high, -low)).verdict == verdict


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
    assert mean([3.0]).low == -math.inf
    apart = normal(1.0, 0.3) - normal(0.5, 0.4)
    assert (apart.value, apart.high - apart.value) == pytest.approx((0.5, 1.96 * 0.5), abs=1e-3)


# What an entry leaves ----------------------------------------------------------------------------


def measured(scale):
    kinds = [Line("a", [(1, 1), (2, 2)]), Line("b", [(1.1, 3, 2, 4)], "points"),
             Line("c", [(2, 4)], "published")]  # fmt: skip
    figure = lines_chart("Named", "case", "y", kinds, places=["first", "second"])
    claims = [printed("number", 2.0, Estimate(2.1, 2.1, 2.1)), stated("word", "more", 1, least=0)]
    return Measured(claims, {"repetitions": scale.pick(1, 2, 3)}, {"": figure, "b": figure})


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


def test_trainings_are_kept_by_seed_and_made_once(tmp_path, capsys):
    made = []

    def make(seed):
        return kept_or(
            tmp_path, "mnist", Scale(seed=seed), lambda: made.append(seed) or {"seed": seed}
        )

    assert [make(5)["seed"], make(5)["seed"]] == [5, 5]
    assert capsys.readouterr().err == "mnist is not in raw-seed5.json: it is made on cpu\n"
    (tmp_path / "raw.json").write_text('{"mnist": {"seed": 2024}}')
    assert [make(seed)["seed"] for seed in (SEED, 2024, 6, 6)] == [2024, 2024, 6, 6]
    assert made == [5, 6]
    assert kept_place(tmp_path, "mnist", 6).name == "raw-seed6.json"
    parts = [{"device": "A", "seconds": 1.0, "seed": 7}, {"device": "B", "seconds": 2.0, "seed": 7}]
    assert Kept.of(parts) == Kept("A, B", 3.0, 7)
    with pytest.raises(ValueError, match=r"from one seed, these are from \[7, 8\]"):
        Kept.of([parts[0], {**parts[1], "seed": 8}])


@pytest.mark.parametrize(
    ("words", "error", "code", "told"),
    [(["nobody"], None, 2, "unknown: nobody; give some of bernau"),
     (["thudi/figure77"], None, 2, "unknown: figure77; thudi has figure1, figure2"),
     (["thudi/figure1", "--device", "tpu"], None, 2, "device must be available"),
     (["thudi/figure1", "--smoke"], ValueError("no such data"), 2, "no such data"),
     (["thudi/figure1", "--smoke"], KeyboardInterrupt(), 130, "stopped")],
    ids=["paper", "entry", "device", "input", "stopped"],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_sentence(words, error, code, told, monkeypatch, capsys):
    def fails(*_):
        raise error

    monkeypatch.setattr(Paper, "publish", fails)
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == code
    assert told in capsys.readouterr().err


# The stored results, and their pages --------------------------------------------------------------

PAPERS = {name: [pair for _, pair in named(name)] for name in page.PAPERS}
ENTRIES = [pytest.param(paper, entry, page.stored(paper.name)["results"][entry.name],
                        id=f"{paper.name}-{entry.name}")
           for name in page.PAPERS for paper, entry in named(name)]  # fmt: skip
ENDS = {"low": -math.inf, "high": math.inf, "least": -math.inf, "most": math.inf}


@pytest.mark.parametrize(("paper", "entry", "result"), ENTRIES)
def test_results_keep_the_rule_and_can_be_made_again(paper, entry, result):
    names = [claim["what"] for claim in result["claims"]]
    assert len(names) == len(set(names))
    assert result["size"] == "full"
    assert {"seed", "versions", "device", "seconds", "settings"} <= set(result)
    assert '"/' not in json.dumps(result), "a path of a machine"
    for values in result["claims"]:
        given = {key: ENDS.get(key) if v is None else v for key, v in values.items()}
        verdict = given.pop("verdict")
        claim = Claim(**given)
        assert (claim.verdict, paper.basis(entry, claim)) == (verdict, claim.basis)
        if verdict in ("differs", "not comparable"):
            assert any(letter.isdigit() for letter in claim.why), claim.what
        other = any(data in claim.what for data in ("retail100", "subset", "Location-30"))
        unseen = claim.published.startswith("expected")
        if other or unseen:  # what rests on other data never agrees
            assert claim.basis == ("not at hand" if unseen else "stand-in")
            assert verdict not in ("agrees", "differs")
        if claim.basis == "formula":
            assert claim.what.startswith("Purchase: ") or "trainings" not in claim.what


def test_pages_have_every_entry_claim_table_and_picture():
    for name, text in page.pages().items():
        assert "{{" not in text
        if name != "index":
            results = page.stored(name)["results"]
            entries = [entry.name for entry in PAPERS[name]]
            marks = page.MARK.findall((page.DOCS / f"{name}.md").read_text())
            assert [mark for _, mark, _ in marks] == ["counts", *entries]
            assert list(results) == entries
            for result in results.values():
                assert all(claim["what"] in text for claim in result["claims"])
                assert all(f"\n{table['title']}:\n" in text for table in result["tables"])
                assert all(f"](figures/{name}-{each}.svg)" in text for each in result["figures"])
    told = "72 of a part of the paper that is not at hand: 54 are as expected"
    assert told in page.pages()["nasr"]
    row = "| [Nasr et al. 2021](nasr.md) | 4 | 6, 2 | 5, 0, 0 | 10, 0, 0 | 54, 1, 17 | "
    assert row in page.pages()["index"]


def test_mkdocs_gets_filled_pages_and_drawn_pictures(monkeypatch):
    one = page.pictures_of("nasr")["section3"]
    monkeypatch.setattr(page, "PAPERS", ("nasr",))
    monkeypatch.setattr(page, "pictures_of", lambda paper: {"section3": one})
    structure = pytest.importorskip("mkdocs.structure.files")
    monkeypatch.setattr(
        structure.File, "generated", lambda config, place, content: (place, content)
    )
    ((place, drawn),) = page.on_files([], {})
    assert place == "papers/figures/nasr-section3.svg"
    assert drawn.startswith("<svg")
    assert f"<title>{one['title']}</title><desc>" in drawn

    class At:
        def __init__(self, uri):
            self.file = type("File", (), {"src_uri": uri})

    assert page.on_page_markdown("a {{ section3 }}", At("papers/nasr.md")).count("\n") > 10
    assert page.on_page_markdown("a {{ section3 }}", At("index.md")) == "a {{ section3 }}"
