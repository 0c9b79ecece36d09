"""What names, attributes and imports of a script stand for."""

from __future__ import annotations

import ast
import os
from collections import ChainMap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dprime import bounded
from dprime.check import library
from dprime.check.script import Loop, Occurrence, Place, Value
from dprime.check.source import LONGEST_SCRIPT, Source, read_source

INSTALLED = ("torch", "torchvision", "opacus", "numpy", "sklearn", "pandas", "transformers")
"""Libraries: a folder of this name beside the script is not read."""


class Frame:
    """The names of a module, a function or a class body."""

    def __init__(self, source: Source, parent: Frame | None = None, owner: Value | None = None):
        self.source, self.parent, self.owner = source, parent, owner
        self.is_class = False
        self.outer: set[str] = set()
        self.returned: list[Value] = []
        self.yielded: list[Value] = []

    def at(self, node: ast.expr | ast.stmt | ast.Lambda) -> Place:
        return Place(self.source, node.lineno)


class Names:
    """Values of names and attributes, which branches may save and restore, and of local modules."""

    block: Callable[[Sequence[ast.stmt], Frame], bool]  # reads statements

    def __init__(self, source: Source) -> None:
        self.source = source
        self.events: list[Occurrence] = []
        self.libraries: set[str] = set()
        self.loops: tuple[Loop, ...] = ()
        self.tests: tuple[ast.expr, ...] = ()
        self.path: tuple[tuple[int, int], ...] = ()
        self.entry = 0
        self.env: ChainMap[tuple[Any, str], Value] = ChainMap()
        self._unset: dict[tuple[Any, str], Value] = {}
        self._modules: dict[Path, Frame] = {}

    def note(
        self, kind: str, name: str, node: ast.AST, place: Place, subject: Value, **given: Value
    ) -> Occurrence:
        around = self.loops, self.tests, self.path, self.entry, len(self.events)
        event = Occurrence(kind, name, node, place, subject, dict(given.items()), Value(), *around)
        self.events.append(event)
        return event

    # Names.

    def name(self, name: str, frame: Frame) -> Value:
        """What a name stands for; names that nothing in the script defines are imports."""
        if name == "__name__":
            main = "__main__" if frame.source is self.source else "imported"
            return Value(name="__name__", constant=main)
        key = (self.holder(name, frame), name)
        return self.env.get(key) or self._unset.setdefault(key, Value("import", name))

    def holder(self, name: str, frame: Frame) -> Frame:
        """The frame that has a name, or else the module's."""
        while frame.parent is not None and (name in frame.outer or (frame, name) not in self.env):
            frame = frame.parent
            while frame.is_class and frame.parent is not None:
                frame = frame.parent
        return frame

    def set(self, base: Value, name: str, value: Value, node: ast.AST, place: Place) -> None:
        """`base.name = value`, or the same by setattr."""
        self.note("set", name, node, place, base, value=value)
        for each in base.each:
            self.env[each, name] = value
            if each.role in ("model", "data", "object") and value is not each:
                each.sources.append(value)

    def attribute(self, base: Value, name: str, place: Place) -> Value:
        found = self.member(base, name)
        if found is None:
            made = library.attribute(base, name, place)
            return self._unset.setdefault((base, name), made)
        return found

    def member(self, base: Value, name: str) -> Value | None:
        """What the script itself put there: an attribute, a method, a name of a local module."""
        if (base, name) in self.env:
            return self.env[base, name]
        if base.role == "import":
            module = self.module(base.name, base.place)
            return self.env.get((module, name)) if module else None
        cls = base if base.role == "class" else base.frame
        beyond = base.role == "super"
        for each in classes(cls)[beyond:] if isinstance(cls, Value) else ():
            found = self.env.get((each.frame, name))
            if found is not None and found.role == "function" and base.role != "class":
                owner = base.of if beyond else base
                return Value(
                    "function", name, found.place, node=found.node, frame=found.frame, of=owner
                )
            if found is not None:
                return found
        return None

    # Imports.

    def imported(self, node: ast.Import | ast.ImportFrom, frame: Frame) -> None:
        """`import a.b as c`, `from a import b as c`."""
        place = frame.at(node)
        for alias in node.names:
            if isinstance(node, ast.Import):
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                self.libraries.add(alias.name)
                self.env[frame, alias.asname or whole] = Value("import", whole, place)
                continue
            name = "." * node.level + (node.module or "")
            module = self.module(name, place)
            if alias.name == "*":
                names = [each for holder, each in self.env if holder is module and module]
                self.env |= {(frame, each): self.env[module, each] for each in names}
                continue
            dotted = f"{name}.{alias.name}" if node.module else name + alias.name
            self.libraries.add(dotted)
            found = self.env.get((module, alias.name)) if module else None
            self.env[frame, alias.asname or alias.name] = found or Value("import", dotted, place)

    def module(self, name: str, place: Place | None) -> Frame | None:
        """The names of another file of the same folder or package, where there is one."""
        parts = name.lstrip(".").split(".")
        if place is None or parts[0] in INSTALLED or not all(map(str.isidentifier, parts)):
            return None
        folder = Path(place.source.path).absolute().parent
        level = len(name) - len(name.lstrip("."))
        upward = [folder, *folder.parents]
        for start in upward[level - 1 : level] if level else upward[:3]:
            stem = start.joinpath(*parts)
            for path in (stem.with_suffix(".py"), stem / "__init__.py"):
                if os.path.isfile(path) and path != Path(self.source.path).absolute():
                    return self._modules.get(path) or self._read(path)
        return None

    def _read(self, path: Path) -> Frame:
        try:
            content = bounded.read_bytes(path, LONGEST_SCRIPT, "").decode("utf-8-sig")
            source = read_source(path, content, path.name)
            body = source.tree.body
        except (OSError, ValueError):
            source, body = Source(str(path), ""), []
        frame = self._modules[path] = Frame(source)
        outside = self.loops, self.tests, self.path
        self.loops, self.tests, self.path = (), (), ()
        self.block(body, frame)
        self.loops, self.tests, self.path = outside
        return frame


def classes(cls: Value) -> list[Value]:
    """A class of the script and its base classes."""
    found = [cls]
    for each in found:
        found += [base for base in each.sources if base.role == "class" and base not in found]
    return found
