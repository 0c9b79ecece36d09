"""Purchase-100 takes part where a user has it, and what stands for it keeps its own name."""

import json
import tomllib

import numpy as np
import pytest

from dprime.audit.identifiability import predicted_advantage
from dprime.show.chart import Chart
from papers.bernau import PAPER, cases, figure4, figure5, figure6, figure8, table2
from papers.bernau.trainings import seen
from papers.reproduce import Scale

SCRIPTS = {"figure4": figure4, "figure5": figure5, "figure6": figure6, "figure8": figure8,
           "table2": table2}  # fmt: skip
NAME = "Purchase-100"
ANSWER = {
    "advantage": {"value": 0.2, "standard_error": 0.3},
    "predicted": {"value": 0.2, "standard_error": 0.1},
    "exceedance": {"value": 0.0, "low": 0.0, "high": 0.5},
    "trials": {"in": 5, "out": 5},
}
"""Of `dprime audit`, which other tests run."""


@pytest.fixture(autouse=True)
def asked(monkeypatch):
    """The files that `dprime audit` is asked for, which is not run here."""
    files = []

    def audited(scale, file, folder, trials):
        files.append(file)
        return {each["name"]: ANSWER for each in tomllib.loads(file.read_text())["audits"]}

    monkeypatch.setattr(table2, "audited", audited)
    return files


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("DPRIME_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def purchase(no_data):
    """A few lines in the published form: a class from 1, then 600 binary features."""
    rng = np.random.default_rng(3)
    rows = np.column_stack([np.arange(1, 11), rng.integers(0, 2, (10, 600))])
    folder = no_data / "purchase100"
    folder.mkdir()
    lines = "\n".join(",".join(map(str, row)) for row in rows)
    (folder / "dataset_purchase").write_text(lines + "\n")
    return rows


def said(found):
    """Every word of a script's claims, settings, numbers and pictures, but for reasons."""
    figures = [found.figure] if isinstance(found.figure, Chart) else (found.figure or {}).values()
    return [
        *(claim.what for claim in found.claims),
        *(words for each in figures for words in (each.title, each.text)),
        json.dumps(dict(found.settings), ensure_ascii=False),
        json.dumps(dict(found.numbers), ensure_ascii=False),
    ]


def alone(words):
    """Whether Purchase-100 is named other than as what a stand-in stands for."""
    for case in cases.PURCHASE_LIKE:
        if case.stands_for:
            words = words.replace(f"{case.title} for {NAME}", case.title)
    return NAME in words


def test_without_its_file(no_data):
    assert cases.purchase_like() == (cases.RETAIL, cases.LOCATION)
    assert cases.cases() == (cases.MNIST, cases.RETAIL, cases.LOCATION, cases.ADULT)


def test_without_a_data_folder(monkeypatch):
    monkeypatch.delenv("DPRIME_DATA", raising=False)
    assert cases.PURCHASE not in cases.cases()


def test_with_its_file(purchase):
    assert cases.purchase_like() == cases.PURCHASE_LIKE
    assert cases.cases()[1:-1] == (cases.RETAIL, cases.LOCATION, cases.PURCHASE)


def test_its_records_come_from_that_file(purchase):
    found = Scale("quick").data(cases.PURCHASE.data)
    made = np.concatenate([
        np.column_stack([part.labels + 1, part.records]) for part in (found.train, found.test)
    ])  # fmt: skip
    assert np.array_equal(made[made[:, 0].argsort()], purchase)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_it_has_the_claims_of_its_stand_ins(script, purchase):
    named = [claim.what for claim in SCRIPTS[script].measure(Scale("smoke")).claims]
    own = {what.removeprefix(NAME) for what in named if what.startswith(NAME)}
    for case in (cases.RETAIL, cases.LOCATION):
        assert own == {
            what.removeprefix(case.label) for what in named if what.startswith(case.label)
        }
    assert own


def test_its_audits_are_those_of_retail100():
    assert table2.audits_of(cases.PURCHASE).replace("purchase100", "retail100") == table2.audits_of(
        cases.RETAIL
    )


@pytest.mark.parametrize(
    "case", [cases.RETAIL, cases.LOCATION, cases.PURCHASE], ids=lambda case: case.data
)
def test_four_audits_of_each(case):
    text = table2.audits_of(case)
    for row in cases.ROWS:
        assert f'name = "{case.data} {cases.named(*row)}"\ndata = "{case.data}"' in text
    assert text.count("[[audits]]") == len(cases.ROWS)


def test_audits_of_both_stand_ins_differ_in_the_data_only():
    (_, own), (_, other) = (
        table2.audits_of(case).split("\nadversary", maxsplit=1)
        for case in (cases.LOCATION, cases.RETAIL)
    )
    assert own.replace("location30", "retail100").rstrip() == other.rstrip()


def test_a_full_table_2_is_both_files(asked, no_data):
    table2.paper_size(Scale("full"), no_data)
    assert asked == [table2.FILE, table2.LOCATION_FILE]


def test_and_purchase_100_where_it_is(asked, purchase, tmp_path):
    rows = table2.rows_of(table2.paper_size(Scale("full"), tmp_path))
    assert asked[:2] == [table2.FILE, table2.LOCATION_FILE]
    assert tomllib.loads(asked[2].read_text())["audits"][0]["data"] == "purchase100"
    assert len(rows) == len(cases.cases()) * len(cases.ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_stand_in_is_never_called_purchase(script, no_data):
    found = SCRIPTS[script].measure(Scale("smoke"))
    assert not [words for words in said(found) if alone(words)]
    for case in (cases.RETAIL, cases.LOCATION):
        assert any(claim.what.startswith(f"{case.title} for {NAME}") for claim in found.claims)


@pytest.mark.parametrize("script", SCRIPTS)
def test_nor_in_what_is_published(script):
    result = PAPER.results()[script]
    data = [*result["settings"].get("data", {}), *result["settings"].get("trainings", {})]
    if any(each.startswith(NAME) for each in data):
        pytest.skip("made where Purchase-100 is")
    words = [claim["what"] for claim in result["claims"]] + list(result["figures"].values())
    assert not [each for each in words if alone(each)]


def test_who_calls_it_so_is_found():
    assert alone("Purchase-100, GS bounded: advantage")
    assert not alone("Location-30 for Purchase-100, GS bounded: advantage")


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_the_sensitivity_behind_an_advantage(adjacency):
    scale = Scale("smoke")
    sigmas = seen(scale, cases.LOCATION, "global", adjacency).sigmas
    recipe = cases.recipe_of(scale, cases.LOCATION, "global", adjacency)
    for norm in (0.5, 4.2):
        implied = predicted_advantage(sigmas, np.full_like(sigmas, norm)).value
        assert table2.sensitivity_of(recipe, implied) == pytest.approx(norm, rel=1e-5)


@pytest.mark.parametrize("case", cases.PURCHASE_LIKE, ids=lambda case: case.data)
def test_held_out_records_are_never_trained_on(case):
    scale = Scale("smoke")
    data, others = cases.data_of(scale, case)
    kept = cases.held_out(scale, case).records
    for trained in (data, others):
        assert not (kept[:, None] == trained.records).all(axis=2).any()
