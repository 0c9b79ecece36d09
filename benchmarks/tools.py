"""Every tool behind one face: ask it about a DP-SGD training, then read what it said.

`ask` is what is timed. `read` is not: it collects further numbers for the tightness tables. Peers
are imported when first asked, so that one which is not installed is a recorded failure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from typing import Any

import dprime
from settings import DELTA, FPR, Setting

PRV_EPS_ERROR = 0.1
PRV_DELTA_ERROR = 1e-10
"""As in prv_accountant's own documentation; it has no defaults."""


_QUESTIONS = count(start=1)


@dataclass(frozen=True)
class Tool:
    """A tool, the distribution it comes in, and the question that it is timed on."""

    name: str
    distribution: str
    module: str
    question: str
    ask: Callable[[Setting], Any]
    read: Callable[[Any], Mapping[str, float]]


def _ask_dprime(setting: Setting) -> Mapping[str, float]:
    """The curve and every metric that it has."""
    curve = dprime.DPSGD(setting.noise, setting.rate, setting.steps).curve()
    return {
        "advantage": curve.advantage(),
        "bayes_security": curve.bayes_security(),
        "tpr": curve.tpr(FPR),
        "precision": curve.precision(0.1, 0.01),
        "success": curve.success(0.5),
        "belief": curve.belief(),
        "belief_exceeds": curve.belief_exceeds(0.9),
        "epsilon": curve.epsilon(DELTA),
        "delta": curve.delta(1.0),
        "d_prime": curve.d_prime(),
    }


def _ask_dp_accounting(setting: Setting) -> tuple[float, Any]:
    dp = import_module("dp_accounting")
    pld = import_module("dp_accounting.pld")
    accountant = pld.PLDAccountant(dp.NeighboringRelation.ADD_OR_REMOVE_ONE)
    step = dp.PoissonSampledDpEvent(setting.rate, dp.GaussianDpEvent(setting.noise))
    accountant.compose(dp.SelfComposedDpEvent(step, setting.steps))
    return accountant.get_epsilon(DELTA), accountant


def _read_dp_accounting(answer: tuple[float, Any]) -> Mapping[str, float]:
    epsilon, accountant = answer
    return {"epsilon": epsilon, "advantage": accountant.get_delta(0.0)}


def opake_process(noise: float, rate: float, steps: int) -> Any:
    """DP-SGD as opake describes it. The module is the torch-free part of opake-dpsgd."""
    dpsgd = import_module("opake.api.accounting.dpsgd")
    return dpsgd.poisson(dpsgd.gaussian(noise), rate) * steps


def _ask_opake(setting: Setting) -> tuple[float, Any]:
    # opake remembers single steps and compositions; a noise that it has never seen, equal to
    # twelve digits, is a new question to it.
    noise = setting.noise * (1.0 + 1e-15 * next(_QUESTIONS))
    loss = opake_process(noise, setting.rate, setting.steps).pld()
    return loss.epsilon_at(DELTA), loss


def _read_opake(answer: tuple[float, Any]) -> Mapping[str, float]:
    epsilon, loss = answer
    return {"epsilon": epsilon, "advantage": loss.advantage(), "tpr": 1.0 - loss.beta_at(FPR)}


def _ask_prv(setting: Setting) -> tuple[float, float, float]:
    prv = import_module("prv_accountant")
    accountant = prv.PRVAccountant(
        prvs=prv.PoissonSubsampledGaussianMechanism(
            noise_multiplier=setting.noise, sampling_probability=setting.rate
        ),
        max_self_compositions=setting.steps,
        eps_error=PRV_EPS_ERROR,
        delta_error=PRV_DELTA_ERROR,
    )
    low, estimate, high = accountant.compute_epsilon(DELTA, setting.steps)
    return low, estimate, high


def _read_prv(answer: tuple[float, float, float]) -> Mapping[str, float]:
    low, estimate, high = answer
    return {"epsilon_low": low, "epsilon_estimate": estimate, "epsilon": high}


def _ask_riskcal(setting: Setting) -> Mapping[str, float]:
    dpsgd = import_module("riskcal.calibration.dpsgd")
    training = {
        "noise_multiplier": setting.noise,
        "sample_rate": setting.rate,
        "num_steps": setting.steps,
    }
    advantage = dpsgd.get_advantage_for_dpsgd(**training)
    return {
        "advantage": advantage,
        "tpr": 1.0 - dpsgd.get_beta_for_dpsgd(**training, alpha=FPR),
    }


def _as_is(values: Mapping[str, float]) -> Mapping[str, float]:
    return values


DPRIME = Tool("dprime", "dprime", "dprime", "curve and ten metrics", _ask_dprime, _as_is)

PEERS = (
    Tool(
        "dp_accounting",
        "dp-accounting",
        "dp_accounting.pld",
        "one ε",
        _ask_dp_accounting,
        _read_dp_accounting,
    ),
    Tool("opake", "opake-accounting", "opake.accounting", "one ε", _ask_opake, _read_opake),
    Tool("prv_accountant", "prv-accountant", "prv_accountant", "one ε", _ask_prv, _read_prv),
    Tool("riskcal", "riskcal", "riskcal", "advantage and one TPR", _ask_riskcal, _as_is),
)

TOOLS = (DPRIME, *PEERS)
