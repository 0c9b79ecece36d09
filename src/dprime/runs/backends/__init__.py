"""Where blocks are played: in this process, in others, or on a Ray cluster."""

from __future__ import annotations

from dprime import validate
from dprime.runs.backends.base import Backend, End, Here, Outcome, Task, Work
from dprime.runs.backends.processes import Processes
from dprime.runs.backends.ray import Ray

__all__ = ["Backend", "End", "Here", "Outcome", "Processes", "Ray", "Task", "Work", "backend_named"]

BACKENDS = {"here": (), "processes": ("workers", "time_limit"), "ray": ("address", "time_limit")}
"""Their names, with the options of each."""


def backend_named(
    name: str = "here",
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
    options = BACKENDS[validate.one_of("backend", name, tuple(BACKENDS))]
    for option, value in (("workers", workers), ("address", address), ("time_limit", time_limit)):
        if value is not None and option not in options:
            owners = [each for each, its in BACKENDS.items() if option in its]
            remedy = f"give the backend {' or '.join(owners)}"
            raise validate.invalid_value(option, value, f"left out for {name}", remedy)
    if name == "processes":
        return Processes(workers, time_limit)
    return Ray(address, time_limit, device) if name == "ray" else Here()
