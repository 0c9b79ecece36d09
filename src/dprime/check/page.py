"""The list of codes for the documentation, made from the rules."""

from __future__ import annotations

import re

from dprime.check.report import RULES

TABLE = re.compile(r"<!-- codes -->\n(.*?)<!-- end codes -->", re.DOTALL)
"""Where the list stands in a page."""


def table() -> str:
    """All rules as a table in Markdown.

    >>> table().splitlines()[2].split("|")[1].strip()
    '`DP001`'
    """
    rows = ["| code | severity | mistake | why it matters | what to do |", "|---|---|---|---|---|"]
    rows += [
        f"| `{rule.code}` | {rule.severity} | {rule.title} | {rule.why} | {rule.remedy} |"
        for rule in RULES.values()
    ]
    return "\n".join(rows) + "\n"
