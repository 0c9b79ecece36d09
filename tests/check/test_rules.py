"""The table of rules, and the page that lists it."""

import re
from pathlib import Path

from dprime.check import MEANINGS, RULES
from dprime.check.page import TABLE, table

PAGE = Path(__file__).parents[2] / "docs" / "check.md"


def test_every_rule_is_complete():
    for code, rule in RULES.items():
        assert code == rule.code
        assert re.fullmatch(r"DP\d{3}", code)
        assert rule.severity in MEANINGS
        assert rule.title[-1] != "."
        for sentence in (rule.why, rule.remedy):
            assert re.fullmatch(r"[A-Zδεa-z_].*\.", sentence), sentence
    assert list(RULES) == sorted(RULES)


def test_the_page_lists_all_codes_as_the_source_has_them():
    listed = TABLE.search(PAGE.read_text(encoding="utf-8")).group(1)
    assert listed.strip() == table().strip()
    for rule in RULES.values():
        assert f"`{rule.code}`" in listed
