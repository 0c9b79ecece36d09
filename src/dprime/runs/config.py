"""A run's configuration: JSON values, and whether two of them are the same."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import metadata
from typing import Any

import dprime
from dprime import validate
from dprime.runs import run_file
from dprime.seeds import check_seed, fresh_seed

KINDS = {
    "audit": "audit", "inference": "membership inference", "frontier": "frontier",
    "models": "shadow models",
}  # fmt: skip
"""What runs do, by their kind."""

SOLVED = 1e-9
"""Numbers that are closer than this, relatively, are the same: a machine solved for them."""

LONGEST_SHOWN = 40
"""Characters of a setting that a sentence shows."""


def about(
    kind: str, config: object, blocks: int, request: Mapping[str, Any] | None
) -> dict[str, str]:
    """The texts that a new run holds."""
    if not isinstance(config, Mapping):
        remedy = "give for example {'adversary': 'gradient', 'seed': 1}"
        raise validate.refusal("config", config, "a mapping of JSON values", remedy)
    text = to_json("config", config)
    seed = config.get("seed", ...)
    if seed is not None:
        seed = fresh_seed() if seed is ... else check_seed(seed)
    return {
        "kind": validate.one_of("kind", kind, tuple(KINDS)),
        "config": text,
        "versions": json.dumps(versions()),
        "seed": "" if seed is None else str(seed),
        "created": run_file.now(),
        "blocks": str(blocks),
        **({} if request is None else {"request": to_json("request", request)}),
    }


def versions() -> dict[str, str]:
    """The versions of dprime, Python and the libraries that a result may depend on."""
    found = {"dprime": dprime.__version__, "python": platform.python_version()}
    for library in ("numpy", "scipy", "torch"):
        with suppress(metadata.PackageNotFoundError):
            found[library] = metadata.version(library)
    return found


def to_json(name: str, value: Mapping[str, Any]) -> str:
    """The JSON text of plain values; others are refused."""
    try:
        return json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError) as error:
        remedy = "use finite numbers, texts, lists and mappings, and None for what has no value"
        raise validate.misfit(name, f"not ({error})", "made of JSON values", remedy) from None


def differences(before: object, now: object) -> tuple[str, str] | None:
    """What differs between two configurations, as they were and as they are; None if nothing does.

    >>> differences({"trials": 5, "seed": 1, "a": {"b": 0}}, {"trials": 6, "seed": 2, "a": {}})
    ('trials 5, another seed and a b 0', 'trials 6, another seed and no a b')
    """
    apart = list(_apart("", before, now))
    if not apart:
        return None
    sides = ([_shown(name, pair[side]) for name, *pair in apart[:3]] for side in (0, 1))
    first, second = (" and ".join(filter(None, [", ".join(s[:-1]), s[-1]])) for s in sides)
    return first, second


def _apart(name: str, before: object, now: object) -> Iterator[tuple[str, object, object]]:
    """The names whose values differ, with both values."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for each in dict.fromkeys([*now, *before]):
            yield from _apart(f"{name} {each}".strip(), before.get(each), now.get(each))
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        found = (_apart(name, *pair) for pair in zip(before, now, strict=True))
        if any(next(each, None) is not None for each in found):
            yield name, before, now
    elif isinstance(before, float) and isinstance(now, float):
        if not math.isclose(before, now, rel_tol=SOLVED):
            yield name, before, now
    elif before != now:
        yield name, before, now


def _shown(name: str, value: object) -> str:
    """A setting as a sentence shows it; a seed is never shown."""
    if value is None:
        return f"no {name}"
    words = f"{name} {value}"
    hidden = "seed" in name or len(words) > LONGEST_SHOWN
    return f"another {name}" if hidden else words
