"""What a monitor puts on the objects of a training, and takes off again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

MARK = "dprime_monitor"
"""The attribute that says that an object is being watched."""


class Hooks:
    """Everything that was put on, to be taken off at once."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def mark(self, owner: Any) -> None:
        """Say that an object is being watched."""
        setattr(owner, MARK, True)
        self._undo.append(lambda: delattr(owner, MARK))

    def wrap(self, owner: Any, name: str, around: Callable[..., Any]) -> None:
        """Call `around(original, *arguments)` in place of a method of one object."""
        before = vars(owner).get(name)
        original = getattr(owner, name)

        def wrapped(*arguments: Any, **named: Any) -> Any:
            return around(original, *arguments, **named)

        def restore() -> None:
            if vars(owner).get(name) is wrapped:  # else someone has replaced it since
                setattr(owner, name, before) if before else delattr(owner, name)

        setattr(owner, name, wrapped)
        self._undo.append(restore)

    def before_call(self, module: nn.Module, seen: Callable[..., None]) -> None:
        """Call `seen(module, inputs)` before the module is."""
        self._undo.append(module.register_forward_pre_hook(seen).remove)

    def later(self, undo: Callable[[], None]) -> None:
        """Something else to be undone."""
        self._undo.append(undo)

    def remove(self) -> None:
        """Take everything off, the latest first."""
        while self._undo:
            self._undo.pop()()
