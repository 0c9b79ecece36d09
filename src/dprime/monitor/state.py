"""Whether a monitor's saved state belongs to the training that goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dprime import validate

STATE_VERSION = 2
"""The version of what `Monitor.state_dict` returns."""


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
