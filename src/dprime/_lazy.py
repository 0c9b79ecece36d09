"""Names of a package that are loaded, with all that they need, when they are first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from dprime import text

LIBRARIES = {"torch": ("PyTorch", "train"), "opacus": ("Opacus", "opacus")}
"""What optional libraries are called, and the extra that installs them."""


def load(module: str, name: str) -> Any:
    """A name of a module that is above the caller, or is seldom needed."""
    return getattr(import_module(f"dprime.{module}"), name)


def lazy(
    package: str,
    places: Mapping[str, str],
    *,
    modules: Sequence[str] = (),
    library: str | None = None,
    needing: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package, whose names have places: their modules."""
    needing = needing or {}
    every = {**needing, **places}

    def get(name: str) -> Any:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in every:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if name in needing and library is not None and find_spec(library) is None:
            title, extra = LIBRARIES[library]
            raise ImportError(f"{package}.{name} needs {title}: {text.install(extra)}")
        return getattr(import_module(f"{package}.{every[name]}"), name)

    def names() -> list[str]:
        own = sys.modules[package]
        return sorted({"__doc__", "__version__"} & {*vars(own)} | {*own.__all__, *modules})

    return get, names
