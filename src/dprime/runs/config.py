"""A run's configuration: JSON values, and whether two of them are the same."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from typing import Any

import dprime
from dprime import validate

SOLVED = 1e-9  # closer numbers, relatively, are the same: a machine solved for them
LONGEST_SHOWN = 40  # characters of a setting that a sentence shows


def versions() -> dict[str, str]:
    """The versions of dprime, Python and the libraries that a result may depend on."""
    found = {"dprime": dprime.__version__, "python": platform.python_version()}
    for library in ("numpy", "scipy", "torch"):
        with suppress(metadata.PackageNotFoundError):
            found[library] = metadata.version(library)
    return found


def json_text(name: str, value: Mapping[str, Any]) -> str:
    """The JSON text of plain values; others are refused."""
    try:
        return json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError) as error:
        remedy = "use finite numbers, texts, lists and mappings, and None for what has no value"
        found = f"not ({error})"
        raise validate.invalid_input(name, found, "made of JSON values", remedy) from None


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, str] | None:
    """What differs between two configurations, as they were and as they are; None if nothing does.

    >>> differences({"trials": 5, "seed": 1, "a": {"b": 0}}, {"trials": 6, "seed": 2, "a": {}})
    ('trials 5, another seed and a b 0', 'trials 6, another seed and no a b')
    """
    old, new = _flat(before), _flat(now)
    apart = [name for name in {**new, **old} if not _same(old.get(name), new.get(name))][:3]
    return (_listed(old, apart), _listed(new, apart)) if apart else None


def _flat(value: object, name: str = "") -> dict[str, Any]:
    if isinstance(value, list):
        value = dict(enumerate(value))
    if not isinstance(value, Mapping):
        return {name: value}
    parts = (_flat(inner, f"{name} {each}".strip()) for each, inner in value.items())
    return {key: found for part in parts for key, found in part.items()}


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=SOLVED)
    return one == other


def _listed(values: Mapping[str, Any], names: list[str]) -> str:
    """Settings as a sentence shows them; a seed is never shown."""
    shown = []
    for name in names:
        words = f"{name} {values.get(name)}"
        if "seed" in name or len(words) > LONGEST_SHOWN:
            words = f"another {name}"
        shown.append(f"no {name}" if values.get(name) is None else words)
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
