"""Every tool behind one face: ask it about a DP-SGD training, then read what it said.

`ask` is what is timed. `read` is not: it collects further numbers for the tightness tables. Peers
are imported when first asked, so that one which is not installed is a recorded failure.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import dprime
from benchmarks.timing import seconds

DELTA, FPR = 1e-5, 0.01
PRV_EPS_ERROR, PRV_DELTA_ERROR = 0.1, 1e-10
"""As in prv_accountant's own documentation; it has no defaults."""

RISKCAL_RANGE: dict[str, Any] = {"noise_min": 0.3, "noise_max": 50.0}
"""The default range starts at 0.1, where one evaluation takes riskcal 15 s and more."""


@dataclass(frozen=True)
class Setting:
    """One DP-SGD training: noise multiplier, Poisson sampling rate, steps."""

    noise: float
    rate: float
    steps: int


@dataclass(frozen=True)
class Goal:
    """A risk to keep, for a training whose noise is to be found."""

    rate: float
    steps: int
    ceiling: float


WARM_UP = Setting(3.0, 0.05, 100)
"""Asked once before anything is timed, and nowhere else: a tool may remember its answer."""


Answer = Mapping[str, float]


def _ask_dprime(setting: Setting) -> Answer:
    """The curve and every metric that it has."""
    curve = dprime.DPSGD(setting.noise, setting.rate, setting.steps).curve()
    return {
        "advantage": curve.advantage(), "bayes_security": curve.bayes_security(),
        "tpr": curve.tpr(FPR), "precision": curve.precision(0.1, 0.01),
        "success": curve.success(0.5), "belief": curve.belief(),
        "belief_exceeds": curve.belief_exceeds(0.9), "epsilon": curve.epsilon(DELTA),
        "delta": curve.delta(1.0), "d_prime": curve.d_prime(),
    }  # fmt: skip


def _ask_dp_accounting(setting: Setting) -> tuple[float, Any]:
    dp, pld = import_module("dp_accounting"), import_module("dp_accounting.pld")
    accountant = pld.PLDAccountant(dp.NeighboringRelation.ADD_OR_REMOVE_ONE)
    step = dp.PoissonSampledDpEvent(setting.rate, dp.GaussianDpEvent(setting.noise))
    accountant.compose(dp.SelfComposedDpEvent(step, setting.steps))
    return accountant.get_epsilon(DELTA), accountant


def _read_dp_accounting(answer: tuple[float, Any]) -> Answer:
    epsilon, accountant = answer
    return {"epsilon": epsilon, "advantage": accountant.get_delta(0.0)}


_QUESTIONS = count(start=1)


def _opake_process(noise: float, rate: float, steps: int) -> Any:
    """DP-SGD as opake describes it. The module is the torch-free part of opake-dpsgd."""
    dpsgd = import_module("opake.api.accounting.dpsgd")
    return dpsgd.poisson(dpsgd.gaussian(noise), rate) * steps


def _ask_opake(setting: Setting) -> tuple[float, Any]:
    # opake remembers single steps and compositions; a noise that it has never seen, equal to
    # twelve digits, is a new question to it.
    noise = setting.noise * (1.0 + 1e-15 * next(_QUESTIONS))
    loss = _opake_process(noise, setting.rate, setting.steps).pld()
    return loss.epsilon_at(DELTA), loss


def _read_opake(answer: tuple[float, Any]) -> Answer:
    epsilon, loss = answer
    return {"epsilon": epsilon, "advantage": loss.advantage(), "tpr": 1.0 - loss.beta_at(FPR)}


def _ask_prv(setting: Setting) -> Answer:
    prv = import_module("prv_accountant")
    step = prv.PoissonSubsampledGaussianMechanism(
        noise_multiplier=setting.noise, sampling_probability=setting.rate
    )
    accountant = prv.PRVAccountant(
        prvs=step, max_self_compositions=setting.steps, eps_error=PRV_EPS_ERROR,
        delta_error=PRV_DELTA_ERROR,
    )  # fmt: skip
    low, estimate, high = accountant.compute_epsilon(DELTA, setting.steps)
    return {"epsilon_low": low, "epsilon_estimate": estimate, "epsilon": high}


def _ask_riskcal(setting: Setting) -> Answer:
    dpsgd = import_module("riskcal.calibration.dpsgd")
    training = {
        "noise_multiplier": setting.noise, "sample_rate": setting.rate, "num_steps": setting.steps,
    }  # fmt: skip
    advantage = dpsgd.get_advantage_for_dpsgd(**training)
    return {"advantage": advantage, "tpr": 1.0 - dpsgd.get_beta_for_dpsgd(**training, alpha=FPR)}


@dataclass(frozen=True)
class Tool:
    """A tool, the module whose import is timed, and how it is asked."""

    name: str
    module: str
    ask: Callable[[Setting], Any]
    read: Callable[[Any], Answer] = dict


DPRIME = Tool("dprime", "dprime", _ask_dprime)
PEERS = (
    Tool("dp_accounting", "dp_accounting.pld", _ask_dp_accounting, _read_dp_accounting),
    Tool("opake", "opake.accounting", _ask_opake, _read_opake),
    Tool("prv_accountant", "prv_accountant", _ask_prv),
    Tool("riskcal", "riskcal", _ask_riskcal),
)
TOOLS = {tool.name: tool for tool in (DPRIME, *PEERS)}

# From a risk to a noise ---------------------------------------------------------------------------

Find = Callable[[Goal, float], float]
"""Noise for a goal; the second argument is dprime's answer, for whoever needs a first guess."""


def _dprime(target: str, goal: Goal, _answer: float) -> float:
    training = dprime.DPSGD(sample_rate=goal.rate, steps=goal.steps)
    ceiling: dict[str, Any] = {target: goal.ceiling}
    ceiling |= {"fpr": FPR} if target == "tpr" else {}
    return float(dprime.choose(training, **ceiling).noise_multiplier or 0.0)


def _riskcal(target: str, goal: Goal, _answer: float, **options: Any) -> float:
    dpsgd = import_module("riskcal.calibration.dpsgd")
    training = {"sample_rate": goal.rate, "num_steps": goal.steps, **options}
    if target == "advantage":
        return float(dpsgd.find_noise_multiplier_for_advantage(advantage=goal.ceiling, **training))
    beta = 1.0 - goal.ceiling
    return float(dpsgd.find_noise_multiplier_for_err_rates(alpha=FPR, beta=beta, **training))


def _opake(target: str, goal: Goal, answer: float) -> float:
    """A bracket is required: it is laid around dprime's answer, more help than a user has."""
    opake = import_module("opake.accounting")
    budget = opake.advantage_budget(goal.ceiling)
    if target == "tpr":
        budget = opake.beta_budget(1.0 - goal.ceiling, alpha=FPR)
    found = opake.calibrate(
        budget, lambda noise: _opake_process(noise, goal.rate, goal.steps),
        param_min=answer / 4.0, param_max=answer * 4.0,
    )  # fmt: skip
    return float(found.param)


WAYS: Mapping[str, Mapping[str, Find]] = {
    target: {
        "dprime": partial(_dprime, target),
        "riskcal": partial(_riskcal, target),
        **({"riskcal, narrow range": partial(_riskcal, target, **RISKCAL_RANGE)} if narrow else {}),
        "opake": partial(_opake, target),
    }
    for target, narrow in (("advantage", False), ("tpr", True))
}
"""By target and by tool."""

# Memory, in a process of its own ------------------------------------------------------------------


def peak(name: str, noise: float, rate: float, steps: int) -> dict[str, float]:
    """Memory after the imports and the peak after the answer."""
    tool = TOOLS[name]
    import_module(tool.module)
    tool.ask(WARM_UP)  # whatever is imported on first use
    loaded = _peak_mib()
    taken = seconds(lambda: tool.ask(Setting(noise, rate, steps)))
    return {"loaded_mib": loaded, "peak_mib": _peak_mib(), "seconds": taken}


def _peak_mib() -> float:
    """Peak resident memory of this process.

    Linux's getrusage carries the peak of the process that started this one over; VmHWM does not.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1024
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
