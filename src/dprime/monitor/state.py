"""Whether a monitor's saved state belongs to the training that goes on."""

from __future__ import annotations

from typing import Any

from dprime import validate

STATE_VERSION = 1
"""The version of what `Monitor.state_dict` returns."""


def refuse_other(saved: dict[str, Any], own: dict[str, Any]) -> None:
    """Refuse a checkpoint of another training."""
    if "ledger" not in saved or "version" not in saved:
        remedy = "give what the monitor's state_dict() returned"
        raise validate.invalid_input("state", "another one", "a monitor's", remedy)
    if saved["version"] != STATE_VERSION:
        remedy = "load it with the release of dprime that saved it"
        raise validate.invalid_value("version", saved["version"], str(STATE_VERSION), remedy)
    if saved["adjacency"] == "add-remove" and own["adjacency"] == "zero-out":
        saved = {**saved, "adjacency": "zero-out"}  # the same steps, of which less is claimed
    for name in ("sampling", "sample_rate", "adjacency", "public"):
        if saved.get(name) != own[name] and (name != "public" or own[name]):
            remedy = "load it into the training it was saved from"
            raise validate.invalid_value(
                f"the checkpoint's {name}", saved.get(name), str(own[name]), remedy
            )
    if saved.get("besides", []) != own["besides"]:
        remedy = "attach with the same mechanisms in besides, because their cost goes on counting"
        described, wanted = (
            ", ".join(str(each["name"]) for each in state.get("besides", [])) or "none"
            for state in (saved, own)
        )
        wanted = "as in the training that goes on: " + wanted
        raise validate.invalid_input("the checkpoint's besides", described, wanted, remedy)
    names, ours = ([name for name, _ in state["watchers"]] for state in (saved, own))
    if names != ours:
        remedy = "attach the same watchers in the same order"
        wanted = ", ".join(ours) or "none"
        raise validate.invalid_input(
            "the checkpoint's watchers", ", ".join(names) or "none", wanted, remedy
        )
