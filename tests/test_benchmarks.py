"""Benchmarks: each has its question, and the documents' tables are what the results say."""

import ast
import json
from pathlib import Path

import pytest

from benchmarks import HERE, pages, timing
from benchmarks.__main__ import NAMES, merged

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_has_a_question_a_claim_and_a_quick_form(name):
    module = ast.parse((HERE / f"{name}.py").read_text())
    functions = {each.name: each for each in module.body if isinstance(each, ast.FunctionDef)}
    told = ast.get_docstring(module)
    assert "?" in told.split("\n")[0]
    assert "Claim: docs/" in told or name == "tightness"
    assert functions["measure"].args.args[0].arg == "quick"


@pytest.mark.parametrize("name", pages.PAGES)
def test_a_page_says_what_its_results_say(name):
    text = (DOCS / name).read_text()
    assert pages.page_filled(name, text, empty=False) == text


def test_an_empty_place_is_filled_only_where_the_site_is_built():
    text = (DOCS / "scaling.md").read_text()
    start, end = text.index("<!-- begin sizes -->"), text.index("<!-- end sizes -->")
    emptied = text[:start] + "<!-- begin sizes -->\n" + text[end:]
    assert pages.page_filled("scaling.md", emptied, empty=False) == emptied
    assert pages.page_filled("scaling.md", emptied, empty=True) == text


def test_a_page_without_its_markers_is_an_error():
    with pytest.raises(ValueError, match="markers of each of backends, sizes once"):
        pages.page_filled("scaling.md", "# Nothing", empty=True)


@pytest.mark.parametrize(
    ("value", "how", "text"),
    [
        (0.1234, "%.1f", "12.3 %"), (0.0123, "time", "12.3 ms"), (12.34, "time", "12.3 s"),
        (3.14, "times", "3.1×"), (1234.5, "times", "1,234×"), (0.123, "two", "0.12"),
        (12345.6, "two", "12,346"), (1.23401, "up", "1.24"), (1234, ",", "1,234"),
    ],
)  # fmt: skip
def test_a_number_is_shown_as_its_table_says(value, how, text):
    assert pages.shown(value, how) == text


def test_a_value_below_the_reference_stands_out():
    row = {"reference": {"values": {"epsilon": 2.0}}, "slow": {"status": "failed: late"}}
    for tool, value in (("above", 2.5), ("below", 1.9), ("equal", 2.0 - 1e-7)):
        row[tool] = {"status": "ok", "values": {"epsilon": value}}
    shown = {
        tool: pages.excess(row, tool, "epsilon")
        for tool in ("above", "below", "equal", "slow", "absent")
    }
    assert (shown["above"], shown["below"]) == ("+25 %", "**−5 %**")
    assert not shown["equal"].startswith("*")
    assert (shown["slow"], shown["absent"]) == ("failed", "")
    assert pages.excess(row, "above", "tpr") == "none"


def test_a_part_that_is_measured_again_leaves_the_others():
    before = {
        "machine": {"cpu": "a", "cores": 2},
        "power": {"rows": [1]},
        "settings": {"a": 1, "b": 2},
    }
    now = {"machine": {"cpu": "b"}, "settings": {"b": 3}}
    assert merged(before, now) == {
        "machine": {"cpu": "b", "cores": 2}, "power": {"rows": [1]}, "settings": {"a": 1, "b": 3},
    }  # fmt: skip


def test_results_are_plain_json(tmp_path):
    path = tmp_path / "found.json"
    timing.write(path, {"rows": [{"a": float("inf")}, {"a": 1.0}], "of": {"n": float("nan")}})
    assert json.loads(path.read_text()) == {
        "rows": [{"a": "infinite"}, {"a": 1.0}],
        "of": {"n": None},
    }
    assert '  {"a": "infinite"},\n' in path.read_text()


def test_rows_of_a_run_that_was_cut_off_are_kept(tmp_path):
    first = timing.Kept(tmp_path / "found.json")
    first.add({"a": 1})
    assert timing.Kept(tmp_path / "found.json").rows == [{"a": 1}]
    assert timing.Kept(None).rows == []


def test_a_call_that_fails_is_an_outcome():
    def fails():
        raise ValueError("no /srv/folder/file\nsecond")

    outcome = timing.attempt(fails, dict, limit_s=5)
    assert outcome.status == "failed: ValueError: no file"
    slow = timing.attempt(lambda: timing.time.sleep(2), lambda _: {}, limit_s=0.05)
    assert slow.status == "failed: TimeoutError: took longer than 0.05 s"
