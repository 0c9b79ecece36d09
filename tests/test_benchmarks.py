"""Benchmarks: each has its question, and the documents' tables are what the results say."""

import ast
import json
from pathlib import Path

import pytest

from benchmarks import HERE, pages, tables, timing
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
    assert pages.filled(name, text, empty=False) == text


def test_an_empty_place_is_filled_only_where_the_site_is_built():
    text = (DOCS / "scaling.md").read_text()
    start, end = text.index("<!-- begin sizes -->"), text.index("<!-- end sizes -->")
    emptied = text[:start] + "<!-- begin sizes -->\n" + text[end:]
    assert pages.filled("scaling.md", emptied, empty=False) == emptied
    assert pages.filled("scaling.md", emptied, empty=True) == text


def test_a_page_without_its_markers_is_an_error():
    with pytest.raises(ValueError, match="once, but has 0"):
        pages.filled("scaling.md", "# Nothing", empty=True)


def test_a_table_takes_templates_and_functions():
    made = tables.table([{"a": 1.26}], {"<x": "{a:.1f}", "y": lambda row: str(row["a"] * 2)})
    assert made == "| x | y |\n| :--- | ---: |\n| 1.3 | 2.52 |"


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
    timing.write(path, {"rows": [{"a": float("inf")}, {"a": 1.0}], "of": {"n": 1}})
    assert json.loads(path.read_text()) == {"rows": [{"a": "infinite"}, {"a": 1.0}], "of": {"n": 1}}
    assert '  {"a": "infinite"},\n' in path.read_text()


def test_rows_of_a_run_that_was_cut_off_are_kept(tmp_path):
    first = timing.Kept(tmp_path / "found.json")
    first.add({"a": 1})
    assert timing.Kept(tmp_path / "found.json").rows == [{"a": 1}]
    assert timing.Kept(None).rows == []


def test_a_call_that_fails_is_an_outcome():
    def fails():
        raise ValueError("no /tmp/folder/file\nsecond")

    outcome = timing.attempt(fails, dict, limit_s=5)
    assert outcome.status == "failed: ValueError: no file"
    slow = timing.attempt(lambda: timing.time.sleep(2), lambda _: {}, limit_s=0.05)
    assert slow.status == "failed: TimeoutError: took longer than 0.05 s"


def test_turns_do_not_count_the_first_round():
    calls = iter(range(100))
    taken = timing.in_turns({"a": lambda: next(calls), "b": lambda: next(calls)}, 2)
    assert taken == {"a": [2, 4], "b": [3, 5]}
