"""How a run is repeated: its settings as a file, and the commands."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from dprime.audit.record import AuditRecord

FILE = "audit.toml"


def settings_text(facts: AuditRecord) -> str:
    """What to write into a file: TOML that `dprime audit` reads, or JSON for a run of Python."""
    settings = facts.public_settings
    return json.dumps(settings, indent=2) if facts.config.in_python else as_toml(settings)


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
    return [f"{name} = {_value(value)}" for name, value in values.items() if value is not None]


def _value(value: object) -> str:
    """JSON's numbers, texts and truths are TOML's too."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(_pairs(value))}}}"
    if isinstance(value, list):
        return f"[{', '.join(_value(each) for each in value)}]"
    return json.dumps(value, ensure_ascii=False)


def commands(facts: AuditRecord) -> list[str]:
    """The commands that repeat the run; none for a run of Python."""
    if facts.config.in_python:
        return []
    folder = " --data-dir FOLDER" if facts.config.data_dir else ""
    seed = f" --seed-from {shlex.quote(facts.name)}"
    return [f"dprime audit {FILE}{folder}{seed} --run again.run", "dprime report again.run"]


def how(facts: AuditRecord) -> list[str]:
    """What to do, in words."""
    seed = f"The seed, which {facts.name} keeps, gives every random number of the run."
    if facts.attacked["training"] is None:
        seed = (
            f"{seed[:-1]}, if the training function draws its own from the seed that it is given."
        )
    if facts.config.in_python:
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
