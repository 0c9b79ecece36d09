"""The pages are what the results say, and nothing else."""

import json

import pytest

from papers.page import DOCS, PAPERS, counted, pages, pictures_of
from papers.paper import HERE
from papers.reproduce import PICTURES, Claim

RESULTS = [
    (paper.name, script, result) for paper in PAPERS for script, result in paper.results().items()
]
IDS = [f"{name}-{script}" for name, script, _ in RESULTS]


@pytest.mark.parametrize("name", sorted(pages()))
def test_a_page_is_what_its_results_give(name):
    assert (DOCS / name).read_text() == pages()[name], "run python -m papers.page"


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_every_table_and_figure_has_results_and_its_pictures(paper):
    assert set(paper.results()) == set(paper.scripts)
    for picture in pictures_of(paper):
        assert (PICTURES / f"{paper.name}-{picture}.svg").read_text().startswith("<svg")


def test_no_picture_is_left_over():
    named = {f"{paper.name}-{name}.svg" for paper in PAPERS for name in pictures_of(paper)}
    assert {path.name for path in PICTURES.iterdir()} == named


@pytest.mark.parametrize(("name", "script", "result"), RESULTS, ids=IDS)
def test_verdicts_follow_from_the_rule(name, script, result):
    assert result["claims"]
    for claim in result["claims"]:
        ends = {"low": float("-inf"), "high": float("inf"), "least": float("-inf"),
                "most": float("inf")}  # fmt: skip
        values = {
            key: ends.get(key) if value is None else value
            for key, value in claim.items()
            if key != "verdict"
        }
        assert Claim(**values).verdict == claim["verdict"]
        if claim["verdict"] == "differs":
            assert any(letter.isdigit() for letter in claim["why"]), claim["what"]


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_every_claim_is_named_once(paper):
    for result in paper.results().values():
        named = [claim["what"] for claim in result["claims"]]
        assert len(named) == len(set(named))


@pytest.mark.parametrize(("name", "script", "result"), RESULTS, ids=IDS)
def test_results_can_be_made_again(name, script, result):
    assert {"seed", "versions", "device", "seconds", "settings"} <= set(result)
    assert '"/' not in json.dumps(result), "a path of a machine"


def test_no_file_of_results_is_left_over():
    for paper in PAPERS:
        known = {f"{script}{kind}.json" for script in paper.scripts for kind in ("", "-quick")}
        kept = {path.name for path in (HERE / paper.name / "results").iterdir()}
        assert kept <= known | {f"{script}-runs.json" for script in paper.scripts}
    assert counted(result for _, _, result in RESULTS).total() > 100
