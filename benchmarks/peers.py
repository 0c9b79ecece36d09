"""Is dprime as fast, as tight and as light as its peers, on the same questions?

Beside dp_accounting, opake, prv_accountant and riskcal, in one process on one machine (memory and
imports in fresh ones): the time for each of 41 trainings and how far above the truth each answer
lies, the time from a target risk to a noise and what that noise really keeps, peak memory, and the
time of an import. Claim: docs/benchmarks.md. The peers need an environment of their own.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import partial

import numpy as np

import dprime
from benchmarks.peer_tools import (
    DPRIME,
    FPR,
    PEERS,
    TOOLS,
    WARM_UP,
    WAYS,
    Goal,
    Setting,
    Tool,
    peak,
)
from benchmarks.tightness import exact
from benchmarks.timing import (
    Found,
    Outcome,
    attempt,
    fresh,
    in_turns,
    medians,
    python,
    say,
    seconds,
)

CHECKED = (
    Setting(1.0, 0.01, 2_000), Setting(0.7, 0.001, 10_000), Setting(1.0, 0.001, 50_000),
    Setting(2.0, 1e-4, 500_000), Setting(4.0, 0.1, 300),
)  # fmt: skip
"""The settings whose values the project's tests pin to five digits."""

BY_RATE: dict[float, tuple[tuple[float, int], ...]] = {
    # Rate 1e-5: nearly all of a step's loss is tiny, one step in a million loses 5 or more.
    1e-5: ((0.5, 100_000), *((noise, 1_000_000) for noise in (0.5, 0.6, 0.8, 1.0, 2.0))),
    1e-4: ((0.5, 10_000), (0.5, 100_000), (0.6, 100_000),
           *((noise, 1_000_000) for noise in (0.7, 0.8, 1.0, 4.0))),
    0.001: ((0.5, 1_000), (0.6, 10_000), (0.8, 50_000), (1.5, 200_000), (2.0, 1_000_000),
            (8.0, 1_000_000)),
    256 / 60_000: ((1.1, 14_062),),  # everyone's: 60,000 records, batches of 256, 60 epochs
    0.01: ((0.5, 100), (0.6, 1_000), (0.8, 1_000), (1.5, 10_000), (2.0, 2_000), (4.0, 100_000),
           (10.0, 1_000_000)),
    0.02: ((3.0, 20_000),),
    0.05: ((1.0, 500),),
    # Rate 0.1: few steps, or much noise.
    0.1: ((0.7, 100), (0.8, 1_000), (1.0, 100), (2.0, 1_000), (8.0, 10_000), (20.0, 100_000),
          (50.0, 1_000_000)),
}  # fmt: skip
SPAN = tuple(
    Setting(noise, rate, steps) for rate, pairs in BY_RATE.items() for noise, steps in pairs
)
SETTINGS = CHECKED + SPAN
QUICK = (*CHECKED[:2], Setting(0.5, 1e-5, 1_000_000))
HEAVIEST = (
    Setting(0.5, 1e-5, 1_000_000), Setting(0.5, 1e-4, 100_000), Setting(0.7, 1e-4, 1_000_000),
    Setting(0.8, 0.1, 1_000), Setting(2.0, 0.001, 1_000_000),
)  # fmt: skip
"""Where the grids of all tools are longest: for the memory table."""

GOALS = {
    "advantage": (
        Goal(0.01, 2_000, 0.1), Goal(0.1, 300, 0.1), Goal(0.001, 10_000, 0.1),
        Goal(256 / 60_000, 14_062, 0.1), Goal(0.001, 50_000, 0.05), Goal(1e-4, 500_000, 0.02),
        Goal(0.1, 10_000, 0.1),
    ),
    "tpr": (  # few: riskcal needs one to three minutes for each with its default options
        Goal(0.1, 1_000, 0.03), Goal(0.01, 2_000, 0.03), Goal(0.2, 500, 0.03),
        Goal(0.1, 300, 0.03), Goal(0.001, 10_000, 0.03), Goal(256 / 60_000, 14_062, 0.02),
    ),
}  # fmt: skip

REPEATS, PEER_REPEATS, CHOICES = 7, 3, 5
CALL_LIMIT_S, CHOICE_LIMIT_S, CHILD_LIMIT_S = 120.0, 600.0, 300.0
WEIGHED = ("dprime", "dp_accounting", "opake")
"""Whose memory is measured."""

RISKCAL_SETTINGS = frozenset((*CHECKED, *QUICK, *SPAN[::4]))
"""riskcal composes with dp_accounting, so a subset shows how it does."""


def measure(quick: bool) -> Found:
    """Memory first, while this process has loaded little."""
    return {"memory": memory(quick), "speed": speed(quick), "choosing": choosing(quick)}


def truth(setting: Setting) -> dict[str, float]:
    """Advantage, TPR and ε of the add/remove curve, as far as they could be found.

    By `tightness.exact`, which shares nothing with any tool. It certifies nothing. It was compared
    with a second, independent inversion of the characteristic function on twelve of the settings:
    they agreed to 1e-7 of the value, most to 1e-11.
    """
    with np.errstate(all="ignore"):
        found = exact(setting.noise, setting.rate, setting.steps, replace=False)
    return {name: float(found[name]) for name in ("advantage", "tpr", "epsilon") if name in found}


def memory(quick: bool) -> Found:
    """Peak memory on the heaviest settings, and what an import costs."""
    rows = []
    for setting in HEAVIEST[:1] if quick else HEAVIEST:
        row: Found = {"setting": vars(setting)}
        for name in WEIGHED:
            ask = partial(fresh, peak, name, *vars(setting).values())
            outcome = attempt(ask, dict, limit_s=CHILD_LIMIT_S)
            row[name] = {"status": outcome.status, **outcome.values}
        rows.append(row)
        say(row)
    return {"peak": rows, "imports": _imports(3 if quick else 15)}


def _imports(rounds: int) -> list[Found]:
    """Median time of a process that imports a module, less that of one that does nothing."""
    modules = ["numpy", *(tool.module for tool in TOOLS.values())]
    lines = {"bare": "pass", **{module: f"import {module}" for module in modules}}
    works = {name: partial(python, "-c", line) for name, line in lines.items()}
    status = {
        name: attempt(work, lambda _: {}, limit_s=CHILD_LIMIT_S).status
        for name, work in works.items()
    }
    timed = {name: partial(seconds, work) for name, work in works.items() if status[name] == "ok"}
    times = medians(in_turns(timed, rounds))
    bare = times["bare"]
    return [
        {"module": each, "status": status[each], "seconds": times.get(each, math.nan) - bare}
        for each in modules
    ]


def speed(quick: bool) -> Found:
    for tool in TOOLS.values():  # imports and first-call work are not what is compared
        _asked(tool, WARM_UP, 1)
    rows = []
    for setting in QUICK if quick else SETTINGS:
        say(f"speed: {setting}")
        reference = attempt(partial(truth, setting), dict, limit_s=CALL_LIMIT_S)
        row: Found = {"setting": vars(setting), "reference": reference.as_json()}
        for tool in TOOLS.values():
            if tool.name != "riskcal" or setting in RISKCAL_SETTINGS:
                repeats = REPEATS if tool is DPRIME else PEER_REPEATS
                row[tool.name] = _asked(tool, setting, repeats).as_json()
        rows.append(row)
    own = [row["dprime"]["seconds"] for row in rows if row["dprime"]["status"] == "ok"]
    return {
        "rows": rows,
        "summary": {peer.name: _summary(rows, peer.name) for peer in PEERS},
        "slowest_dprime_s": max(own, default=None),
    }


def _asked(tool: Tool, setting: Setting, repeats: int) -> Outcome:
    return attempt(partial(tool.ask, setting), tool.read, repeats=repeats, limit_s=CALL_LIMIT_S)


def _summary(rows: Sequence[Found], peer: str) -> Found:
    """How many times dprime's time the peer takes, over the settings that both answered."""
    asked = [row for row in rows if peer in row]
    both = [row for row in asked if row[peer]["status"] == row["dprime"]["status"] == "ok"]
    ratios = [row[peer]["seconds"] / row["dprime"]["seconds"] for row in both]
    if not ratios:
        return {"asked": len(asked), "answered": 0}
    return {
        "asked": len(asked), "answered": len(ratios),
        "geometric_mean": statistics.geometric_mean(ratios), "median": statistics.median(ratios),
        "smallest": min(ratios), "largest": max(ratios),
    }  # fmt: skip


def choosing(quick: bool) -> Found:
    """How long from a target risk to a noise multiplier, and what the answer really keeps.

    Every noise is judged by the same certified curve, dprime's. Where that lies above the ceiling
    the exact value decides whether the noise is really too little. A quick run asks riskcal for no
    TPR: that alone takes minutes.
    """
    return {
        target: [_choice(target, goal, quick) for goal in (goals[:2] if quick else goals)]
        for target, goals in GOALS.items()
    }


def _choice(target: str, goal: Goal, quick: bool) -> Found:
    row: Found = {"goal": vars(goal)}
    answer = 1.0
    for way, find in WAYS[target].items():
        if quick and (target, way) == ("tpr", "riskcal"):
            continue
        say(f"choosing for {target}, {way}: {goal}")
        own = way == "dprime"
        outcome = attempt(
            partial(find, goal, answer), partial(_judged, target, goal),
            repeats=CHOICES if own else 1, limit_s=CHOICE_LIMIT_S,
        )  # fmt: skip
        answer = outcome.values.get("noise") or answer if own else answer
        row[way] = outcome.as_json()
    return row


def _judged(target: str, goal: Goal, noise: float) -> dict[str, float]:
    curve = dprime.DPSGD(noise, goal.rate, goal.steps).curve()
    certified = curve.advantage() if target == "advantage" else curve.tpr(FPR)
    judged = {"noise": noise, "certified": certified}
    if certified > goal.ceiling:
        judged["exact"] = truth(Setting(noise, goal.rate, goal.steps))[target]
    return judged
