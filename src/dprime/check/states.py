"""The saved state of a monitor: its ledger, and what else read the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dprime import validate
from dprime.check.looks.deltas import judged
from dprime.check.report import Report
from dprime.check.risk import Reading, certified
from dprime.check.rules import Finding
from dprime.mechanisms import ADJACENCIES, DPSGD, Gaussian, Mechanism
from dprime.monitor.ledger import Ledger, NoGuarantee
from dprime.monitor.tails import NoiseEnds, with_tails

LOOKED_FOR = ("DP101", "DP201", "DP307", "DP408", "DP409", "DP413", "DP501", "DP502", "DP601")
"""What a saved run can show."""

TAILS_UNKNOWN = (
    "The file does not say whether Opacus' secure_mode was on: the tails that PyTorch's own noise "
    "lacks are not in the numbers."
)

READABLE: dict[str, type[Mechanism]] = {"DPSGD": DPSGD, "Gaussian": Gaussian}
"""Mechanisms that are made again from their description."""


def check_state(
    path: str, state: Mapping[str, Any], records: int | None, delta: float | None
) -> Report:
    """Judge what `Monitor.state_dict()` gave."""
    ledger = _ledger(path, state)
    found = list(judged(delta, records, None)) if delta is not None else []
    reason = next((step.reason for step, _ in ledger.entries if step.reason), "")
    reading = Reading()
    if not ledger.steps:
        found.append(Finding("DP409", None, "The monitor has seen no step."))
    elif reason:
        found.append(Finding("DP408", None, f"No guarantee covers the run: {reason}."))
        reading = Reading(missing=("steps that a guarantee covers",))
    else:
        reading = _reading(path, ledger, state, 1e-5 if delta is None else delta)
    if any(step.sampling != "poisson" for step, _ in ledger.entries):
        found.append(Finding("DP101", None, "Steps were taken on batches that are not Poisson."))
    unclear = [f"The monitor warned: {each}" for each in state.get("warnings", ())]
    if "noise" not in state:
        unclear.append(TAILS_UNKNOWN)
    return Report(
        path, "saved run", tuple(found), reading=reading, unclear=tuple(unclear),
        looked_for=LOOKED_FOR, monitored=True,
    )  # fmt: skip


def _ledger(path: str, state: Mapping[str, Any]) -> Ledger:
    remedy = "save Monitor.state_dict() again"
    try:
        validate.one_of("adjacency", state.get("adjacency"), ADJACENCIES)
        return Ledger.from_state(state["ledger"])
    except (TypeError, KeyError, IndexError):
        raise validate.invalid_input(path, "another", "a monitor's state", remedy) from None
    except validate.InputError as error:
        damage = f"damaged ({str(error).rstrip('.')})"
        raise validate.invalid_input(path, damage, "a monitor's state", remedy) from None


def _reading(path: str, ledger: Ledger, state: Mapping[str, Any], delta: float) -> Reading:
    """The risk of the steps together with all that the monitor was told of besides."""
    named = _besides(path, state)
    others = [mechanism for mechanism in named.values() if mechanism is not None]
    if len(others) < len(named):
        unread = ", ".join(name for name, mechanism in named.items() if mechanism is None)
        what = f"the cost of what read the data besides the steps ({unread})"
        return Reading(missing=(what,))
    about = "the steps that the monitor saw"
    if named:
        about += f" and what read the data besides them ({', '.join(named)})"
    mechanism = ledger.mechanism(*others)
    if "noise" in state:
        mechanism = with_tails(mechanism, ledger, _noise_ends(path, state))
    assert mechanism is not None
    assert not isinstance(mechanism, NoGuarantee)
    try:
        return Reading((certified(about, mechanism, state["adjacency"], delta),))
    except validate.InputError as error:
        return Reading(missing=(f"parameters that can be certified ({str(error).rstrip('.')})",))


def _noise_ends(path: str, state: Mapping[str, Any]) -> NoiseEnds:
    try:
        return NoiseEnds.from_state(state["noise"])
    except (TypeError, ValueError, KeyError):
        remedy = "save Monitor.state_dict() again"
        raise validate.invalid_input(
            path, "damaged (its noise)", "a monitor's state", remedy
        ) from None


def _besides(path: str, state: Mapping[str, Any]) -> dict[str, Mechanism | None]:
    """Each mechanism by its number and name; None where its description cannot be read."""
    found: dict[str, Mechanism | None] = {}
    listed = state.get("besides", [])
    if not isinstance(listed, list | tuple) or not all(isinstance(e, Mapping) for e in listed):
        remedy = "save Monitor.state_dict() again"
        raise validate.invalid_input(path, "damaged (its besides)", "a monitor's state", remedy)
    for place, described in enumerate(listed, 1):
        name = str(described.get("name", "unnamed"))
        label = name if len(listed) == 1 else f"{place}. {name}"
        found[label] = _mechanism(name, described)
    return found


def _mechanism(name: str, described: Mapping[str, Any]) -> Mechanism | None:
    kind = READABLE.get(name)
    if kind is None:
        return None
    try:
        made = Mechanism.from_dict(described)
    except ValueError:
        return None
    return made if set(made.to_dict()) == set(described) and not made.free_parameters() else None
