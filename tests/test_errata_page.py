"""The page of errata: what is printed, a counter-example that runs, a correction and a test."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

import test_errata

ERRATA_PAGE = Path(__file__).parent.parent / "docs" / "errata.md"
PAGE = ERRATA_PAGE.read_text(encoding="utf-8")
ERRATA = dict(re.findall(r"^### (.+?)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
"""What stands below each title."""
PARTS = re.compile(
    r"\n\*\*Printed\.\*\* .+?^> .+?"
    r"^\*\*Counter-example\.\*\* [^`]+^```python\n(?P<code>.+?)^```\n\n"
    r"```text\n(?P<output>.+?)^```\n\n"
    r"\*\*Correction\.\*\* .+?^In dprime: .+?Tests?: `test_.+",
    re.MULTILINE | re.DOTALL,
)
SLIPS = re.compile(
    r"^## Smaller slips .+?^\|---\|---\|---\|\n(?P<rows>(?:\| .+? \|\n)+)\n"
    r"```python\n(?P<code>.+?)^```\n\n```text\n(?P<output>.+?)^```\n\nTest: `test_\w+`\n\Z",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?")
PLACE = re.compile(r"(?:section|equation|theorem|table)s? [\d.]+(?: to [\d.]+)?", re.IGNORECASE)


def parts(title: str) -> re.Match[str]:
    found = PARTS.fullmatch(ERRATA[title])
    assert found, f"{title!r}: a printed formula, a counter-example that runs, a correction"
    return found


def test_the_page_names_every_test() -> None:
    here = {name for name in vars(test_errata) if name.startswith("test_")}
    assert sorted(re.findall(r"`(test_\w+)`", PAGE)) == sorted(here)


def run_alone(code: str) -> str:
    """What it prints after the page's first lines."""
    first = re.findall(r"^```python\n(.*?)^```", PAGE.split("\n## ")[0], re.MULTILINE | re.DOTALL)
    with redirect_stdout(StringIO()) as out:
        exec("".join([*first, code]), {"__name__": "erratum"})
    return out.getvalue()


@pytest.mark.parametrize("title", ERRATA)
def test_the_page_has_a_counter_example_that_runs_alone(title: str) -> None:
    assert run_alone(parts(title)["code"]) == parts(title)["output"]


@pytest.mark.parametrize("title", ERRATA)
def test_the_page_says_in_words_what_is_computed(title: str) -> None:
    found = parts(title)
    words = PLACE.sub("", ERRATA[title].replace(found["code"], "").replace(found["output"], ""))
    said = {number for number in NUMBER.findall(words) if "." in number}
    assert said <= set(NUMBER.findall(found["code"] + found["output"]))


def test_the_page_computes_what_is_right_about_a_slip() -> None:
    found = SLIPS.search(PAGE)
    assert found, "smaller slips: a table, and a block that runs"
    assert run_alone(found["code"]) == found["output"]
    for row in found["rows"].splitlines():
        _where, _printed, right = row.split(" | ")
        numbers = {number for number in NUMBER.findall(PLACE.sub("", right)) if "." in number}
        assert numbers, row
        assert numbers <= set(NUMBER.findall(found["output"])), row
