"""Where the page can start from: settings that were published, and files that hold one.

A file is read as data: nothing in it is executed, imported or opened.
"""

from __future__ import annotations

import contextlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dprime import validate
from dprime.audit.config import TRAINING, usual_adjacency
from dprime.guarantees import EpsilonDelta
from dprime.interop import from_opacus
from dprime.mechanisms import ADJACENCIES, DPSGD, Mechanism
from dprime.request import MECHANISM, READ_DELTA

REMEDY = (
    "give an Opacus accountant's history, an audit's configuration, or what dprime risk --json "
    "prints"
)

Texts = dict[str, str]


@dataclass(frozen=True)
class Preset:
    """A published setting: texts of the page, and the source that states them.

    `published` is what the source says of its privacy, `derived` what it leaves to be computed.
    """

    title: str
    setting: Texts
    source: str
    published: str
    derived: str


PRESETS = tuple(
    Preset(**each)
    for each in tomllib.loads(Path(__file__).with_name("presets.toml").read_text("utf-8"))["preset"]
)


def read_file(contents: bytes) -> Texts:
    """The setting that a file holds, as texts of the page.

    >>> read_file(b"[[1.1, 0.004, 14000]]")["steps"]
    '14000'
    """
    found = _parsed(contents)
    history = found if isinstance(found, list) else found.get("history")
    if isinstance(history, list):
        return _texts_of(from_opacus(history))
    for name in ("mechanism", "claim", "training"):
        if isinstance(part := found.get(name), Mapping) and (setting := _setting_in(found, part)):
            return setting
    raise validate.invalid_input("file", "without any", "a setting", REMEDY)


def _setting_in(found: Mapping[str, Any], part: Mapping[str, Any]) -> Texts:
    """The setting of a table: a mechanism as JSON has it, or its plain numbers; or none."""
    part = part.get("mechanism", part)
    setting: Texts = {}
    if "name" in part:
        setting = _texts_of(Mechanism.from_dict(part))
    elif part.get("noise_multiplier") is not None:
        trained = {**TRAINING, **part}  # what an audit's configuration leaves out
        setting = _texts_of(DPSGD(**{each: trained[each] for each in MECHANISM}))
    elif "epsilon" in part:
        setting = _texts_of(EpsilonDelta(part["epsilon"], part.get("delta", READ_DELTA)))
    if setting and ("adjacency" in found or "name" not in part):
        named = found.get("adjacency") or usual_adjacency(found)  # plain numbers are an audit's
        setting["adjacency"] = validate.one_of("adjacency", named, ADJACENCIES)
    return setting


def _texts_of(mechanism: Mechanism) -> Texts:
    """A mechanism that the page has sliders for, as texts."""
    names: tuple[str, ...] = ()
    if isinstance(mechanism, DPSGD) and mechanism.sampling == "poisson":
        names = MECHANISM
    elif isinstance(mechanism, EpsilonDelta) and mechanism.steps == 1 and mechanism.delta > 0:
        names = ("epsilon", "delta")
    numbers = {name: getattr(mechanism, name) for name in names}
    if not names or None in numbers.values():
        wanted = "that of one training with Poisson batches, or ε and δ"
        remedy = "describe others in Python, or on the command line"
        raise validate.invalid_input("file", type(mechanism).__name__, wanted, remedy)
    texts = {name: json.dumps(value) for name, value in numbers.items()}
    return texts | {"adjacency": mechanism.default_adjacency}


def _parsed(contents: bytes) -> Any:
    """What the file says, as JSON or else as TOML."""
    for read in (json.loads, tomllib.loads):
        with contextlib.suppress(ValueError, RecursionError):  # of the encoding, too
            found = read(contents.decode("utf-8"))
            if isinstance(found, list | dict):
                return found
    raise validate.invalid_input("file", "not", "JSON or TOML", REMEDY)
