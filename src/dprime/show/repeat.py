"""How a run is repeated: its settings as a file, and the commands."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from dprime.show.facts import Facts

UNTOLD = ("data_dir", "seed")
"""Settings that a report does not carry: a place on somebody's machine, and a secret."""

FILE = "audit.toml"


def public_settings(facts: Facts) -> dict[str, Any]:
    """The settings without the seed, and without what only means something on one machine."""
    return {name: value for name, value in facts.settings.items() if name not in UNTOLD}


def settings_text(facts: Facts) -> str:
    """What to write into a file: TOML that `dprime audit` reads, or JSON for a run of Python."""
    settings = public_settings(facts)
    return json.dumps(settings, indent=2) if facts.in_python else as_toml(settings)


def as_toml(values: Mapping[str, Any]) -> str:
    """Plain values and tables of them as TOML; what is None is left out, as it has no word there.

    >>> print(as_toml({"trials": 6, "record": None, "claim": {"epsilon": 4.0}}), end="")
    trials = 6
    <BLANKLINE>
    [claim]
    epsilon = 4.0
    """
    plain = {name: value for name, value in values.items() if not isinstance(value, Mapping)}
    tables = {name: value for name, value in values.items() if isinstance(value, Mapping) and value}
    lines = _pairs(plain)
    for name, table in tables.items():
        lines += ["", f"[{name}]", *_pairs(table)]
    return "\n".join(lines) + "\n"


def _pairs(values: Mapping[str, Any]) -> list[str]:
    # JSON's numbers, texts, truths and lists are TOML's too
    return [
        f"{name} = {json.dumps(value, ensure_ascii=False)}"
        for name, value in values.items()
        if value is not None
    ]


def commands(facts: Facts) -> list[str]:
    """The commands that repeat the run; none for a run of Python."""
    if facts.in_python:
        return []
    folder = " --data-dir FOLDER" if facts.settings.get("data_dir") else ""
    seed = f" --seed-from {shlex.quote(facts.name)}"
    return [f"dprime audit {FILE}{folder}{seed} --out again.run", "dprime report again.run"]


def how(facts: Facts) -> list[str]:
    """What to do, in words."""
    seed = f"The seed, which {facts.name} keeps, gives every random number of the run."
    if facts.attacked["training"] is None:
        seed = (
            f"{seed[:-1]}, if the training function draws its own from the seed that it is given."
        )
    if facts.in_python:
        return [
            "The run was begun in Python, with objects that no file can name: call "
            "dprime.audit.audit again with the same objects. These settings were kept of them.",
            f"{seed} Run.open(…).seed reads it.",
        ]
    return [
        f"Write these settings into {FILE} and give the commands below. {seed} With the versions "
        "below the numbers come out the same.",
        f"To check the answer only, dprime resume {facts.name} computes it again from the trials "
        "in the run's file.",
    ]
