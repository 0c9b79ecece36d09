"""A monitor's saved state: with that of Opacus' accountant, and of which training it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dprime import validate

if TYPE_CHECKING:
    from dprime.monitor.monitor import Monitor

STATE_VERSION = 2
"""The version of what `Monitor.state_dict` returns."""

ACCOUNTANT = "accountant"
"""The key of the accountant's history in the state."""


def refuse_version(name: str, saved: Mapping[str, Any]) -> None:
    """Refuse a state of another version, in which a cost may have another name."""
    if (found := saved.get("version")) != STATE_VERSION:
        remedy = "read it with the release of dprime that saved it"
        wanted = f"a monitor's state of version {STATE_VERSION}"
        raise validate.invalid_input(name, f"of version {found}", wanted, remedy)


def refuse_other(saved: dict[str, Any], own: dict[str, Any]) -> None:
    """Refuse a checkpoint of another training."""
    if "ledger" not in saved or "version" not in saved:
        remedy = "give what the monitor's state_dict() returned"
        raise validate.invalid_input("state", "another one", "a monitor's", remedy)
    refuse_version("version", saved)
    if saved["adjacency"] == "add-remove" and own["adjacency"] == "zero-out":
        saved = {**saved, "adjacency": "zero-out"}  # the same steps, of which less is claimed
    for name in ("sampling", "sample_rate", "adjacency", "public"):
        if saved.get(name) != own[name] and (name != "public" or own[name]):
            remedy = "load it into the training it was saved from"
            raise validate.invalid_value(
                f"the checkpoint's {name}", saved.get(name), str(own[name]), remedy
            )
    if saved["other_mechanisms"] != own["other_mechanisms"]:
        remedy = "attach with the same other_mechanisms, because their cost goes on counting"
        described, wanted = (
            ", ".join(str(each["name"]) for each in state["other_mechanisms"]) or "none"
            for state in (saved, own)
        )
        wanted = "as in the training that goes on: " + wanted
        raise validate.invalid_input("the checkpoint's other_mechanisms", described, wanted, remedy)
    names, ours = ([name for name, _ in state["watchers"]] for state in (saved, own))
    if names != ours:
        remedy = "attach the same watchers in the same order"
        wanted = ", ".join(ours) or "none"
        raise validate.invalid_input(
            "the checkpoint's watchers", ", ".join(names) or "none", wanted, remedy
        )


def whole_state(monitor: Monitor) -> dict[str, Any]:
    """The monitor's state and the accountant's: plain values, and the watchers' tensors.

    Frameworks save and resume by themselves, and a training that goes on without the accountant's
    history has the ε of its latest part alone. The history is all that the accountant knows, and
    every kind of accountant reads it alike; the rest of its `state_dict` cannot be loaded safely in
    every release of Opacus.
    """
    history = monitor.training.privacy_engine.accountant.history
    recorded = [[float(noise), float(rate), int(steps)] for noise, rate, steps in history]
    return monitor.state_dict() | {ACCOUNTANT: recorded}


def restore(monitor: Monitor, state: dict[str, Any]) -> None:
    """Let both go on from what was saved; a state without the accountant's leaves that as it is."""
    monitor.load_state_dict(state)
    if ACCOUNTANT in state:
        recorded = [tuple(entry) for entry in state[ACCOUNTANT]]
        monitor.training.privacy_engine.accountant.history = recorded
