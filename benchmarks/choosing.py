"""From a target risk to a noise multiplier: how long it takes, and what the answer really keeps.

Every noise that is found is judged by the same certified curve, dprime's. Where that lies above the
ceiling the exact value decides whether the noise is really too little.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from typing import Any

import dprime
from measure import attempt, say
from settings import ADVANTAGE_GOALS, FPR, TPR_GOALS, Goal, Setting
from tools import opake_process
from truth import exact_values

OUR_REPEATS = 5
CALL_LIMIT_S = 600.0

RISKCAL_RANGE = {"noise_min": 0.3, "noise_max": 50.0}
"""The default range starts at 0.1, where one evaluation takes riskcal 15 s and more."""

Find = Callable[[Goal, float], float]
"""Noise for a goal; the second argument is dprime's answer, for whoever needs a first guess."""


@dataclass(frozen=True)
class Target:
    """A metric to keep, and everyone's way to find the noise for it."""

    name: str
    goals: Sequence[Goal]
    certified: Callable[[dprime.TradeOff], float]
    ways: Mapping[str, Find]


def measure(*, quick: bool) -> dict[str, Any]:
    """Rows for both targets. A quick run asks riskcal for no TPR: that alone takes minutes."""
    return {target.name: _rows(target, quick=quick) for target in (ADVANTAGE, TPR)}


def _rows(target: Target, *, quick: bool) -> list[dict[str, Any]]:
    goals = target.goals[:2] if quick else target.goals
    rows = []
    for number, goal in enumerate(goals, start=1):
        row: dict[str, Any] = {"goal": asdict(goal)}
        answer = 1.0
        for way, find in target.ways.items():
            if quick and target is TPR and way == "riskcal":
                continue
            say(f"choosing for {target.name} {number}/{len(goals)}, {way}: {goal}")
            outcome = attempt(
                partial(find, goal, answer),
                partial(_judged, target, goal),
                repeats=OUR_REPEATS if way == "dprime" else 1,
                limit_s=CALL_LIMIT_S,
            )
            if way == "dprime":
                answer = outcome.values.get("noise") or answer
            row[way] = outcome.as_json()
        rows.append(row)
    return rows


def _judged(target: Target, goal: Goal, noise: float) -> dict[str, float]:
    certified = target.certified(dprime.DPSGD(noise, goal.rate, goal.steps).curve())
    judged = {"noise": noise, "certified": certified}
    if certified > goal.ceiling:
        judged["exact"] = exact_values(Setting(noise, goal.rate, goal.steps))[target.name]
    return judged


def _noise_of(chosen: dprime.DPSGD) -> float:
    assert chosen.noise_multiplier is not None
    return chosen.noise_multiplier


def _dprime_advantage(goal: Goal, _answer: float) -> float:
    open_noise = dprime.DPSGD(sample_rate=goal.rate, steps=goal.steps)
    return _noise_of(dprime.choose(open_noise, advantage=goal.ceiling))


def _dprime_tpr(goal: Goal, _answer: float) -> float:
    open_noise = dprime.DPSGD(sample_rate=goal.rate, steps=goal.steps)
    return _noise_of(dprime.choose(open_noise, tpr=goal.ceiling, fpr=FPR))


def _riskcal_advantage(goal: Goal, _answer: float) -> float:
    found: float = import_module("riskcal.calibration.dpsgd").find_noise_multiplier_for_advantage(
        advantage=goal.ceiling, sample_rate=goal.rate, num_steps=goal.steps
    )
    return found


def _riskcal_tpr(goal: Goal, _answer: float, **options: float) -> float:
    found: float = import_module("riskcal.calibration.dpsgd").find_noise_multiplier_for_err_rates(
        alpha=FPR, beta=1.0 - goal.ceiling, sample_rate=goal.rate, num_steps=goal.steps, **options
    )
    return found


def _riskcal_tpr_narrow(goal: Goal, answer: float) -> float:
    return _riskcal_tpr(goal, answer, **RISKCAL_RANGE)


def _opake_noise(goal: Goal, budget: Any, answer: float) -> float:
    """A bracket is required: it is laid around the answer, more help than a user has."""
    found: float = (
        import_module("opake.accounting")
        .calibrate(
            budget,
            lambda noise: opake_process(noise, goal.rate, goal.steps),
            param_min=answer / 4.0,
            param_max=answer * 4.0,
        )
        .param
    )
    return found


def _opake_advantage(goal: Goal, answer: float) -> float:
    budget = import_module("opake.accounting").advantage_budget(goal.ceiling)
    return _opake_noise(goal, budget, answer)


def _opake_tpr(goal: Goal, answer: float) -> float:
    budget = import_module("opake.accounting").beta_budget(1.0 - goal.ceiling, alpha=FPR)
    return _opake_noise(goal, budget, answer)


ADVANTAGE = Target(
    "advantage",
    ADVANTAGE_GOALS,
    lambda curve: curve.advantage(),
    {
        "dprime": _dprime_advantage,
        "riskcal": _riskcal_advantage,
        "opake": _opake_advantage,
    },
)

TPR = Target(
    "tpr",
    TPR_GOALS,
    lambda curve: curve.tpr(FPR),
    {
        "dprime": _dprime_tpr,
        "riskcal": _riskcal_tpr,
        "riskcal, narrow range": _riskcal_tpr_narrow,
        "opake": _opake_tpr,
    },
)
