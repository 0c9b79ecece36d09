"""Benchmarks: the tables of the documents are what the results say."""

from pathlib import Path

import pytest

from benchmarks import pages, timing

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("name", pages.PAGES)
def test_a_page_says_what_its_results_say(name):
    text = (DOCS / name).read_text()
    assert pages.page_filled(name, text, empty=False) == text


def test_a_page_without_its_markers_is_an_error():
    with pytest.raises(ValueError, match="markers of each of backends, sizes once"):
        pages.page_filled("scaling.md", "# Nothing", empty=True)


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


def test_an_empty_place_is_filled_only_where_the_site_is_built():
    text = (DOCS / "scaling.md").read_text()
    start, end = text.index("<!-- begin sizes -->"), text.index("<!-- end sizes -->")
    emptied = text[:start] + "<!-- begin sizes -->\n" + text[end:]
    assert pages.page_filled("scaling.md", emptied, empty=False) == emptied
    assert pages.page_filled("scaling.md", emptied, empty=True) == text
