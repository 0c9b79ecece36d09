"""A monitor and Opacus' accountant in one state, for frameworks that save and resume by themselves.

The accountant's history is what `get_epsilon` is made of. Nothing else saves it there, and a
training that goes on without it has an ε of its latest part alone.
"""

from __future__ import annotations

from typing import Any

from dprime.monitor.monitor import Monitor

ACCOUNTANT = "accountant"
"""The key of the accountant's history in the state."""


def whole_state(monitor: Monitor) -> dict[str, Any]:
    """The monitor's state and the accountant's: plain values, and the watchers' tensors.

    The history is all that the accountant knows, and every kind of accountant reads it alike; the
    rest of its `state_dict` cannot be loaded safely in every release of Opacus.
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
