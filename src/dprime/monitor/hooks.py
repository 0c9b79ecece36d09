"""The hooks that a monitor puts on the objects of a training, and takes off again."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Self

from torch import nn
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

MARK = "dprime_monitor"
"""The attribute of an object that is being watched: has `detach`, which takes the monitor off."""


class _Mark:
    """Stands for the monitor on what it watches; stays behind where that is copied or saved."""

    def __init__(self, detach: Callable[[], None]) -> None:
        self.detach = detach

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any]]:
        return _Mark, (_deaf,)


class _Listener(partial[None]):
    """A hook that stays behind where its module is copied or saved as a whole."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any]]:
        return _itself, (_deaf,)


def _deaf(*_: object) -> None:
    """A listener without a monitor, which ignores every call."""


class _Wrapped(partial[Any]):
    """A method of one object that does more for a while; a copy of the object has its own."""

    before: Any
    _owner: Any
    _name: str

    def __new__(cls, owner: Any, name: str, around: Callable[..., Any]) -> Self:
        self = super().__new__(cls, around, getattr(owner, name))
        self._owner, self._name = owner, name
        self.before = vars(owner).get(name)
        return self

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        if self.before is not None:
            return _itself, (self.before,)
        return getattr, (self._owner, self._name)  # of the copy, which has its class already


def _itself(method: Any) -> Any:
    return method


_AROUND: dict[tuple[type, str], list[tuple[weakref.ref[Any], Callable[..., Any]]]] = {}
"""The functions that are called in place of a class's method, with the monitors they serve."""

_ORIGINAL: dict[tuple[type, str], Callable[..., Any]] = {}


def _around_all(key: tuple[type, str]) -> Callable[..., Any]:
    """The method that calls all of them, each around the one before."""
    original = _ORIGINAL[key]

    @wraps(original)
    def method(instance: Any, *arguments: Any, **named: Any) -> Any:
        call = original.__get__(instance)
        for weak, around in list(_AROUND[key]):
            owner = weak()
            if owner is not None:
                call = partial(around, owner, call, instance)
        return call(*arguments, **named)

    return method


def _weak(method: Any) -> tuple[weakref.ref[Any], Callable[..., Any]]:
    """The object and the function of a method; a `WeakMethod` takes longer to call."""
    return weakref.ref(method.__self__), method.__func__


def _of_step(method: Callable[[Optimizer], None]) -> Callable[..., None]:
    """A hook for optimizers; PyTorch keeps it for ever, so it must not keep the training."""
    weak, seen = _weak(method)

    def hook(optimizer: Optimizer, _: tuple[Any, ...], __: dict[str, Any]) -> None:
        owner = weak()
        if owner is not None:
            seen(owner, optimizer)

    return hook


def let_hooks_run(optimizer: Optimizer) -> None:
    """Make the step of an optimizer call its hooks, which PyTorch does in `Optimizer.__init__`.

    Some optimizers that wrap another one, such as timm's Lookahead, leave that out.
    """
    ready = hasattr(optimizer, "_optimizer_step_pre_hooks")
    if ready and not getattr(type(optimizer).step, "hooked", False):
        optimizer._patch_step_function()


class Hooks:
    """All hooks of one monitor, which are taken off together."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def mark(self, owner: Any, detach: Callable[[], None]) -> None:
        setattr(owner, MARK, _Mark(detach))
        self._undo.append(lambda: delattr(owner, MARK))

    def wrap(self, owner: Any, name: str, around: Callable[..., Any]) -> None:
        """Call `around(original, *arguments)` in place of a method of one object."""
        wrapped = _Wrapped(owner, name, around)

        def restore() -> None:
            if vars(owner).get(name) is wrapped:  # else someone has replaced it since
                before = wrapped.before
                setattr(owner, name, before) if before else delattr(owner, name)

        setattr(owner, name, wrapped)
        self._undo.append(restore)

    def before_call(
        self,
        module: nn.Module,
        seen: Callable[..., None],
        *,
        named: bool = False,
        first: bool = False,
    ) -> None:
        """Call `seen(module, inputs)` before the module is; with `named`, also the named ones.

        With `first` it is called before the hooks that the module has now.
        """
        listener = _Listener(seen)
        handle = module.register_forward_pre_hook(listener, with_kwargs=named, prepend=first)
        self._undo.append(handle.remove)

    def after_call(self, module: nn.Module, seen: Callable[..., None]) -> None:
        """Call `seen(module, inputs, output)` after the module was called."""
        self._undo.append(module.register_forward_hook(_Listener(seen)).remove)

    def around_any_step(
        self, stepping: Callable[[Optimizer], None], stepped: Callable[[Optimizer], None]
    ) -> None:
        """Call a method before any optimizer of PyTorch changes weights, and another one after."""
        self._undo.append(register_optimizer_step_pre_hook(_of_step(stepping)).remove)
        self._undo.append(register_optimizer_step_post_hook(_of_step(stepped)).remove)

    def wrap_all(self, owner: type, name: str, around: Callable[..., Any]) -> None:
        """Call `around(original, instance, *arguments)` in place of a method of every instance."""
        key, method = (owner, name), _weak(around)
        if not _AROUND.get(key):
            _AROUND[key] = []
            _ORIGINAL[key] = getattr(owner, name)
            setattr(owner, name, _around_all(key))
        _AROUND[key].append(method)

        def restore() -> None:
            _AROUND[key].remove(method)
            if not _AROUND[key]:
                setattr(owner, name, _ORIGINAL.pop(key))

        self._undo.append(restore)

    def later(self, undo: Callable[[], None]) -> None:
        self._undo.append(undo)

    def remove(self) -> None:
        while self._undo:
            self._undo.pop()()
