"""Blocks on a Ray cluster: one machine or many, with or without GPUs.

Ray starts the workers, sends them the work once, and tells when one of them or a node is gone.
Every task is submitted once: what is lost comes back to the driver, which alone decides. The clock
of a time limit is in the worker, which ends itself, so that it counts from when the block begins.
"""

from __future__ import annotations

import faulthandler
import functools
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

import dprime
from dprime import text, validate
from dprime.runs.backends.base import (
    PATIENCE,
    Backend,
    End,
    NoWorkersError,
    Outcome,
    SupportsDevice,
    Task,
    Work,
    WorkerPool,
    checked_limit,
    late,
    play,
)

LOOK_AGAIN = 2.0
"""Seconds after which the nodes are counted anew: they come and go."""

REACH = 3.0
"""Seconds that a cluster has to answer."""

SHARE = 0.5
"""The share of a node's memory that all its workers take together."""


class Ray(Backend):
    """A Ray cluster.

    Args:
        address: "auto" for the cluster that this machine is part of, "host:port", or "ray://…";
            None starts one on this machine for the time of the run.
        time_limit: seconds for a block, from when a worker begins with it.
        device: "cpu" takes a core for each worker, "cuda" a GPU, "auto" both: every GPU, and the
            cores that are left.
    """

    def __init__(
        self, address: str | None = None, time_limit: float | None = None, device: str = "cpu"
    ) -> None:
        self.address, self.time_limit = address, checked_limit(time_limit)
        self.device = validate.one_of("device", device, ("cpu", "cuda", "auto"))
        library()

    @contextmanager
    def pool(self, work: Work) -> Iterator[WorkerPool]:
        """Connected for the time of the run; a connection that was there stays."""
        ray = library()
        before = ray.is_initialized()
        _connect(ray, self.address)
        try:
            pool = _Cluster(ray, work, self.device, self.time_limit)
            try:
                yield pool
            finally:
                pool.end()
        finally:
            if not before:
                ray.shutdown()


def library() -> Any:
    """Ray itself, or the line that installs it."""
    try:
        return import_module("ray")
    except ImportError:
        remedy = text.install("ray")
        raise validate.invalid_input(
            "backend", "ray, which is not installed", "there", remedy
        ) from None


def _connect(ray: Any, address: str | None) -> None:
    """Join the cluster, or start one; a process can be part of one only."""
    place = (address or "").removeprefix("ray://")
    host, _, port = place.rpartition(":")
    if host and port.isdecimal():  # check the port first: Ray retries for minutes
        try:
            socket.create_connection((host, int(port)), REACH).close()
        except OSError as error:
            raise _unreachable(address, error.strerror or str(error)) from None
    if ray.is_initialized():
        now = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", now):
            requirement = f"be that of the cluster which this process is connected to, {now}"
            remedy = "call ray.shutdown() first, or leave the address out"
            raise NoWorkersError.of("address", requirement, f"it is {address!r}", remedy)
        return
    options: dict[str, Any] = {} if address else {"include_dashboard": False}
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        ray.init(
            address=address or "local", log_to_driver=False, logging_level="ERROR",
            runtime_env={"env_vars": paths}, **options,
        )  # fmt: skip
    except (ConnectionError, RuntimeError, OSError, TimeoutError) as error:
        raise _unreachable(address, " ".join(str(error).split())[:200]) from None


def _unreachable(address: str | None, reason: str) -> validate.InputError:
    return NoWorkersError.of(
        "address", f"be that of a running Ray cluster ({reason})", f"it is {address or 'local'!r}",
        "start Ray with ray start --head, give its address, or leave the address out",
    )  # fmt: skip


class _Cluster(WorkerPool):
    def __init__(self, ray: Any, work: Work, device: str, time_limit: float | None) -> None:
        self._ray, self._device, self._time_limit = ray, device, time_limit
        self._work = ray.put(work)
        self._submitted: dict[Any, tuple[Task, bool, float]] = {}  # …, on a GPU, and when
        self._counted, self._places = -LOOK_AGAIN, (0, 0)

    def idle(self) -> int:
        return sum(self._left())

    def submit(self, task: Task) -> None:
        on_gpu = self._left()[1] > 0
        options = {"num_cpus": 1, "num_gpus": int(on_gpu), "max_retries": 0}
        reference = self._ray.remote(**options)(_play).remote(
            [self._work], task, dprime.__version__, on_gpu, self._time_limit
        )
        self._submitted[reference] = task, on_gpu, time.monotonic()

    def completed(self) -> Iterator[Outcome]:
        self._ray.wait(list(self._submitted), num_returns=1, timeout=PATIENCE)
        waiting = list(self._submitted)
        ready, _ = self._ray.wait(waiting, num_returns=len(waiting), timeout=0)
        for reference in ready:
            task, _, since = self._submitted.pop(reference)
            yield self._outcome(reference, task, since)

    def _outcome(self, reference: Any, task: Task, since: float) -> Outcome:
        """What came back, or why nothing did; after the time limit it is why a worker is gone."""
        errors = self._ray.exceptions
        try:
            outcome: Outcome = self._ray.get(reference)
        except errors.OutOfMemoryError:
            return Outcome(task, End.MEMORY, None, "its node ran out of memory")
        except errors.RayTaskError as error:  # not of the block: those come back as outcomes
            reason = " ".join(str(error.cause).split())[:200]
            sentence = f"A worker cannot play blocks: {type(error.cause).__name__}: {reason}"
            return Outcome(task, End.UNFIT, None, sentence)
        except errors.RayError as error:
            took = time.monotonic() - since
            if self._time_limit is not None and took > self._time_limit:
                return late(task, self._time_limit, took)
            gone = f"its worker is gone ({type(error).__name__})"
            return Outcome(task, End.LOST, None, gone, took)
        return outcome

    def _left(self) -> tuple[int, int]:
        """Cores and GPUs for which there is no task yet; at least one task is always under way."""
        if time.monotonic() - self._counted > LOOK_AGAIN:
            found = self._ray.cluster_resources()
            gpus = 0 if self._device == "cpu" else int(found.get("GPU", 0))
            cores = 0 if self._device == "cuda" else max(0, int(found.get("CPU", 0)) - gpus)
            self._places, self._counted = (cores, gpus), time.monotonic()
        on_gpu = sum(lent for _, lent, _ in self._submitted.values())
        used = len(self._submitted) - on_gpu, on_gpu
        cores, gpus = (max(0, all_ - taken) for all_, taken in zip(self._places, used, strict=True))
        if not self._submitted and cores == gpus == 0:  # nodes may be on their way
            return (0, 1) if self._device == "cuda" else (1, 0)
        return cores, gpus

    def end(self) -> None:
        for reference in self._submitted:
            with suppress(Exception):  # it may have ended meanwhile, or its node with it
                self._ray.cancel(reference, force=True)
        self._submitted.clear()


_known: dict[tuple[str, bool], Work] = {}
"""In a worker: the work that it has unpacked, and whether for a GPU, so that this is done once."""


def _play(
    sent: list[Any], task: Task, version: str, on_gpu: bool, time_limit: float | None
) -> Outcome:
    """In a worker: play a block."""
    if version != dprime.__version__:
        versions = f"{dprime.__version__} and {version}"
        error = f"Worker and driver have different versions of dprime, {versions}"
        return Outcome(task, End.UNFIT, None, error, worker=_name())
    key = (sent[0].hex(), on_gpu)
    if key not in _known:
        _known.clear()
        _known[key] = _placed(library().get(sent[0]), on_gpu)
    if time_limit is None:
        return play(_known[key], task, _name())
    with open(
        os.devnull, "w"
    ) as nowhere:  # the watch ends this process; it needs no turn in Python
        faulthandler.dump_traceback_later(time_limit, exit=True, file=nowhere)
        try:
            return play(_known[key], task, _name())
        finally:
            faulthandler.cancel_dump_traceback_later()


def _placed(work: Work, on_gpu: bool) -> Work:
    """On this worker's device, in its part of the memory."""
    if not on_gpu:
        import_module("torch").set_num_threads(1)
    return work.on_device(*_place(on_gpu)) if isinstance(work, SupportsDevice) else work


def _place(on_gpu: bool) -> tuple[str, float]:
    """The device, and how many GB of it: a share of the GPU, or of the machine for each core."""
    if on_gpu:
        free = import_module("torch").cuda.mem_get_info()[0]
        return "cuda", free * SHARE / (1 << 30)
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return "cpu", whole * SHARE / max(1, os.cpu_count() or 1) / (1 << 30)


@functools.cache
def _name() -> str:
    """The worker's name: machine, node and process."""
    node = library().get_runtime_context().get_node_id()[:6]
    return f"{socket.gethostname()} {node} {os.getpid()}"
