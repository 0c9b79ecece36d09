"""How a run is repeated: its settings as a file, and the commands."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from dprime.audit.record import AuditRecord
from dprime.show.sentences import say

FILE = "audit.toml"


def settings_text(record: AuditRecord) -> str:
    """What to write into a file: TOML that `dprime audit` reads, or JSON for a run of Python."""
    settings = record.public_settings
    return json.dumps(settings, indent=2) if record.config.in_python else as_toml(settings)


def as_toml(values: Mapping[str, Any]) -> str:
    """Plain values and tables of them as TOML; what is None is left out, as it has no word there.

    >>> print(as_toml({"trials": 6, "record": None, "claim": {"epsilon": 4.0}}), end="")
    trials = 6
    <BLANKLINE>
    [claim]
    epsilon = 4.0
    """
    tables = {name: value for name, value in values.items() if isinstance(value, Mapping)}
    lines = _pairs({name: value for name, value in values.items() if name not in tables})
    for name, table in tables.items():
        lines += ["", f"[{name}]", *_pairs(table)] if table else []
    return "\n".join(lines) + "\n"


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {_value(value)}" for name, value in values.items() if value is not None]


def _value(value: object) -> str:
    """JSON's numbers, texts and truths are TOML's too."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(_pairs(value))}}}"
    if isinstance(value, list):
        return f"[{', '.join(_value(each) for each in value)}]"
    written = json.dumps(value, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in written)


def commands(record: AuditRecord) -> list[str]:
    """The commands that repeat the run; none for a run of Python."""
    if record.config.in_python:
        return []
    folder = " --data-dir FOLDER" if record.config.data_dir else ""
    seed = f" --seed-from {shlex.quote(record.name)}"
    return [f"dprime audit {FILE}{folder}{seed} --run again.run", "dprime report again.run"]


def how(record: AuditRecord) -> list[str]:
    """What to do, in words."""
    own = record.attacked["training"] is None
    seed = say("repeat.own_seed" if own else "repeat.seed", name=record.name)
    if record.config.in_python:
        return [say("repeat.python"), say("repeat.python_seed", seed=seed)]
    return [say("repeat.file", file=FILE, seed=seed), say("repeat.check", name=record.name)]
