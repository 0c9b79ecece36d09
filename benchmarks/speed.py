"""How fast and how tight: every tool on every setting, one after the other in one process."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from measure import Outcome, attempt, say
from settings import CHECK_VALUES, QUICK, SETTINGS, SPAN, WARM_UP, Setting
from tools import DPRIME, PEERS, TOOLS, Tool
from truth import exact_values

OUR_REPEATS = 7
PEER_REPEATS = 3
CALL_LIMIT_S = 120.0

RISKCAL_SETTINGS = frozenset((*CHECK_VALUES, *QUICK, *SPAN[::4]))
"""riskcal composes with dp_accounting, so a subset shows how it does."""

Row = dict[str, Any]


def measure(*, quick: bool) -> dict[str, Any]:
    """Rows for every setting and their summary."""
    for tool in TOOLS:  # imports and first-call work are not what is compared
        _run(tool, WARM_UP, repeats=1)
    settings = QUICK if quick else SETTINGS
    rows = []
    for number, setting in enumerate(settings, start=1):
        say(f"speed {number}/{len(settings)}: {setting}")
        rows.append(_row(setting))
    return {
        "rows": rows,
        "summary": {peer.name: _summary(rows, peer.name) for peer in PEERS},
        "slowest_dprime_s": max(_seconds(rows, DPRIME.name), default=None),
    }


def _row(setting: Setting) -> Row:
    truth = attempt(
        lambda: exact_values(setting), lambda found: found, repeats=1, limit_s=CALL_LIMIT_S
    )
    row: Row = {"setting": vars(setting), "reference": truth.as_json()}
    for tool in TOOLS:
        if tool.name == "riskcal" and setting not in RISKCAL_SETTINGS:
            continue
        repeats = OUR_REPEATS if tool is DPRIME else PEER_REPEATS
        row[tool.name] = _run(tool, setting, repeats).as_json()
    return row


def _run(tool: Tool, setting: Setting, repeats: int) -> Outcome:
    return attempt(lambda: tool.ask(setting), tool.read, repeats=repeats, limit_s=CALL_LIMIT_S)


def _seconds(rows: Sequence[Row], name: str) -> list[float]:
    return [row[name]["seconds"] for row in rows if row[name]["status"] == "ok"]


def _summary(rows: Sequence[Row], peer: str) -> dict[str, Any]:
    """How many times dprime's time the peer takes, over the settings that both answered."""
    both = [
        row
        for row in rows
        if peer in row and row[peer]["status"] == row[DPRIME.name]["status"] == "ok"
    ]
    ratios = [row[peer]["seconds"] / row[DPRIME.name]["seconds"] for row in both]
    asked = sum(peer in row for row in rows)
    if not ratios:
        return {"asked": asked, "answered": 0}
    return {
        "asked": asked,
        "answered": len(ratios),
        "geometric_mean": math.exp(statistics.fmean(map(math.log, ratios))),
        "median": statistics.median(ratios),
        "smallest": min(ratios),
        "largest": max(ratios),
    }
