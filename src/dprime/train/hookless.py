"""A copy of a model that shares its weights and has nobody's hooks."""

from __future__ import annotations

from typing import Any

from torch import nn

HOOKS = tuple(name for name in vars(nn.Module()) if "hooks" in name)
"""Where a module keeps its hooks."""


def without_hooks(module: nn.Module) -> nn.Module:
    """The same module with the same weights and buffers, but without anybody's hooks.

    Layers that it keeps in lists or dictionaries are copied too. What worked in place does not.
    """
    return _copied(module, {})


def _copied(module: nn.Module, known: dict[int, nn.Module]) -> nn.Module:
    if id(module) in known:
        return known[id(module)]
    bare = known[id(module)] = module.__class__.__new__(module.__class__)
    state = bare.__dict__
    state.update((name, _with_copies(value, known)) for name, value in vars(module).items())
    state.update((name, type(state[name])()) for name in HOOKS if name in state)
    state["_parameters"], state["_buffers"] = dict(module._parameters), dict(module._buffers)
    if state.get("inplace") is True:
        state["inplace"] = False
    return bare


def _with_copies(value: Any, known: dict[int, nn.Module]) -> Any:
    """A list or dictionary of layers becomes one of their copies; the rest stays as it is."""
    if isinstance(value, nn.Module):
        return _copied(value, known)
    if isinstance(value, list | tuple) and any(isinstance(one, nn.Module) for one in value):
        copies = [_with_copies(one, known) for one in value]
        return copies if isinstance(value, list) else tuple(copies)
    if isinstance(value, dict) and any(isinstance(one, nn.Module) for one in value.values()):
        return {key: _with_copies(one, known) for key, one in value.items()}
    return value
