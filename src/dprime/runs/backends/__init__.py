"""Where blocks of trials are played: in this process, in others, or on a Ray cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dprime import validate
from dprime.runs.backends.base import Backend, WorkerPool, End, Outcome, Task, Work
from dprime.runs.backends.here import Here
from dprime.runs.backends.processes import Processes

if TYPE_CHECKING:
    from dprime.runs.backends.cluster import Ray

__all__ = [
    "BACKENDS", "Backend", "WorkerPool", "End", "Here", "Outcome", "Processes", "Ray", "Task", "Work",
    "backend_named",
]  # fmt: skip

BACKENDS = ("here", "processes", "ray")


def backend_named(
    name: str = "here",
    *,
    workers: int | None = None,
    address: str | None = None,
    time_limit: float | None = None,
    device: str = "cpu",
) -> Backend:
    """The backend of a name, with the options that it has.

    Args:
        name: "here", "processes" or "ray".
        workers: of "processes".
        address: of "ray".
        time_limit: seconds for a block, of both.
        device: what the work trains on, of "ray".

    >>> backend_named("processes", workers=2).workers
    2
    """
    chosen = validate.one_of("backend", name, BACKENDS)
    given = {"workers": workers, "address": address, "time_limit": time_limit}
    allowed = {"here": (), "processes": ("workers", "time_limit"), "ray": ("address", "time_limit")}
    for option, value in given.items():
        if value is not None and option not in allowed[chosen]:
            owners = [each for each in BACKENDS if option in allowed[each]]
            remedy = f"give the backend {' or '.join(owners)}"
            raise validate.refusal(option, value, f"left out for {chosen}", remedy)
    if chosen == "here":
        return Here()
    if chosen == "processes":
        return Processes(workers, time_limit)
    from dprime.runs.backends.cluster import Ray  # noqa: PLC0415  it looks for Ray

    return Ray(address, time_limit, device)  # type: ignore[arg-type]


def __getattr__(name: str) -> Any:
    if name == "Ray":
        from dprime.runs.backends.cluster import Ray  # noqa: PLC0415

        return Ray
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
