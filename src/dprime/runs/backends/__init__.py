"""Where blocks are played: in this process, in others, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable

from dprime import validate
from dprime.runs.backends.base import Backend, End, Local, Outcome, Task, Work
from dprime.runs.backends.processes import Processes
from dprime.runs.backends.ray import Ray

__all__ = ["Backend", "End", "Local", "Outcome", "Processes", "Ray", "Task", "Work"]
__all__ += ["backend_named"]

BACKENDS: dict[str, tuple[Callable[..., Backend], tuple[str, ...]]] = {
    "local": (Local, ()),
    "processes": (Processes, ("workers", "time_limit")),
    "ray": (Ray, ("address", "time_limit", "device")),
}
"""By name: what makes a backend, and its options."""


def backend_named(
    name: str = "local",
    *,
    workers: int | None = None,
    address: str | None = None,
    time_limit: float | None = None,
    device: str = "cpu",
) -> Backend:
    """The backend of a name, with the options that it has; the device is for Ray.

    >>> backend_named("processes", workers=2).workers
    2
    """
    made, options = BACKENDS[validate.one_of("backend", name, tuple(BACKENDS))]
    given = {"workers": workers, "address": address, "time_limit": time_limit, "device": device}
    for option, value in given.items():
        if option not in options and option != "device" and value is not None:
            owners = [each for each, (_, its) in BACKENDS.items() if option in its]
            remedy = f"give the backend {' or '.join(owners)}"
            raise validate.invalid_value(option, value, f"left out for {name}", remedy)
    return made(**{option: given[option] for option in options})
