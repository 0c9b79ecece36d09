"""Every entry runs, on random records; Purchase-100 takes part where a user has it."""

import json
import tomllib

import numpy as np
import pytest

from papers.__main__ import named
from papers.bernau import table2, trainings
from papers.bernau.trainings import LOCATION, PURCHASE, PURCHASE_LIKE, RETAIL
from papers.entry import Scale
from papers.page import PAPERS, stored

ALL = [pair for name in PAPERS for pair in named(name)]
SMOKE = Scale("smoke")
NAME = "Purchase-100"
WITH_PURCHASE = [named(f"bernau/{name}")[0][1] for name in
                 ("figure4", "figure5", "figure6", "figure8", "table2")]  # fmt: skip
ANSWER = {
    "advantage": {"value": 0.2, "standard_error": 0.3},
    "predicted": {"value": 0.2, "standard_error": 0.1},
    "exceedance": {"value": 0.0, "low": 0.0, "high": 0.5},
    "trials": {"in": 5, "out": 5},
}
"""Of `dprime audit`, which the first test runs."""


@pytest.mark.slow
@pytest.mark.parametrize("paper, entry", ALL, ids=[f"{p.name}-{e.name}" for p, e in ALL])  # noqa: PT006
def test_it_runs(paper, entry, monkeypatch):
    monkeypatch.delenv("DPRIME_DATA", raising=False)
    result = paper.result(entry, SMOKE)
    assert result["claims"] or result["figures"]
    names = [claim["what"] for claim in result["claims"]]
    assert len(names) == len(set(names))
    json.dumps(result, allow_nan=False)
    assert set(result["figures"]) <= set(stored(paper.name)["results"][entry.name]["figures"])


@pytest.fixture
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


def alone(words):
    """Whether Purchase-100 is named other than as what a stand-in stands for."""
    for case in (RETAIL, LOCATION):
        words = words.replace(f"{case.title} for {NAME}", case.title)
    return NAME in words


def test_it_takes_part_where_its_file_is(no_data, request, monkeypatch):
    assert trainings.cases()[1:-1] == (RETAIL, LOCATION)
    rows = request.getfixturevalue("purchase")
    assert trainings.cases()[1:-1] == PURCHASE_LIKE
    found = Scale("quick").data(PURCHASE.data)
    made = np.concatenate(
        [np.column_stack([part.labels + 1, part.records]) for part in (found.train, found.test)]
    )
    assert np.array_equal(made[made[:, 0].argsort()], rows)
    monkeypatch.delenv("DPRIME_DATA")
    assert PURCHASE not in trainings.cases()


@pytest.mark.slow
@pytest.mark.parametrize("entry", WITH_PURCHASE, ids=lambda entry: entry.name)
def test_it_has_the_claims_of_its_stand_ins(entry, purchase, asked):
    named = [claim.what for claim in entry.measure(SMOKE).claims]
    own = {what.removeprefix(NAME) for what in named if what.startswith(NAME)}
    assert own
    for case in (RETAIL, LOCATION):
        theirs = [what for what in named if what.startswith(case.label)]
        assert own == {what.removeprefix(case.label) for what in theirs}


@pytest.mark.slow
@pytest.mark.parametrize("entry", WITH_PURCHASE, ids=lambda entry: entry.name)
def test_a_stand_in_is_never_called_purchase(entry, no_data, asked):
    found = entry.measure(SMOKE)
    words = [claim.what for claim in found.claims]
    words += [text for each in found.figures.values() for text in (each.title, each.text)]
    words.append(json.dumps([found.settings, found.numbers], ensure_ascii=False))
    assert not [each for each in words if alone(each)]
    assert alone("Purchase-100, GS bounded: advantage")
    assert all(any(case.label in each for each in words) for case in (RETAIL, LOCATION))


def test_nor_in_what_is_published():
    for entry in WITH_PURCHASE:
        result = stored("bernau")["results"][entry.name]
        words = [claim["what"] for claim in result["claims"]]
        words += [each["title"] for each in result["figures"].values()]
        assert not [each for each in words if alone(each)]


@pytest.mark.parametrize("case", PURCHASE_LIKE, ids=lambda case: case.data)
def test_four_audits_of_each_which_differ_in_the_data_only(case):
    text = table2.audits_of(case)
    own, retail = (each.split("\nadversary", 1)[1] for each in (text, table2.audits_of(RETAIL)))
    assert own.replace(case.data, RETAIL.data).rstrip() == retail.rstrip()
    for row in trainings.ROWS:
        assert f'name = "{case.data} {trainings.named(*row)}"\ndata = "{case.data}"' in text
    assert text.count("[[audits]]") == len(trainings.ROWS)


def test_a_full_table_2_is_both_files_and_purchase_where_it_is(asked, purchase, tmp_path):
    rows = table2.rows_of(table2.paper_size(Scale("full"), tmp_path))
    assert asked[:2] == [table2.FILE, table2.LOCATION_FILE]
    assert tomllib.loads(asked[2].read_text())["audits"][0]["data"] == "purchase100"
    assert len(rows) == len(trainings.cases()) * len(trainings.ROWS)
