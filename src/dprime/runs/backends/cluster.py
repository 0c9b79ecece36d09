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
from dataclasses import dataclass
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

INSTALL = text.install("ray")

LOOK_AGAIN = 2.0
"""Seconds after which the nodes are counted anew: they come and go."""

REACH = 3.0
"""Seconds that a cluster has to answer."""

SHARE = 0.5
"""Of a node's memory, for all its workers together."""


class Ray(Backend):
    """A Ray cluster.

    Args:
        address: "auto" for the cluster that this machine is part of, "host:port", or "ray://…";
            None starts one on this machine for the time of the run.
        time_limit: seconds for a block, from when a worker begins with it.
        device: "cpu" takes a core for each worker, "cuda" a GPU, "auto" both: every GPU, and the
            cores that are left.
    """

    name = "ray"

    def __init__(
        self, address: str | None = None, time_limit: float | None = None, device: str = "cpu"
    ) -> None:
        self.address, self.time_limit = address, checked_limit(time_limit)
        validate.one_of("device", device, ("cpu", "cuda", "auto"))
        self.device = device
        library()

    @contextmanager
    def pool(self, work: Work) -> Iterator[WorkerPool]:
        """Connected for the time of the run; a connection that was there stays."""
        ray = library()
        if self.address is not None:
            _refuse_unreachable(self.address)
        before = ray.is_initialized()
        if before:
            _refuse_other(ray, self.address)
        else:
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
        raise validate.misfit("backend", "ray, which is not installed", "there", INSTALL) from None


def _connect(ray: Any, address: str | None) -> None:
    options: dict[str, Any] = {
        "log_to_driver": False, "logging_level": "ERROR",
        "runtime_env": {"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}},
    }  # fmt: skip
    if address is None:
        options["include_dashboard"] = False
    try:
        ray.init(address=address or "local", **options)
    except (ConnectionError, RuntimeError, OSError, TimeoutError) as error:
        raise _unreachable(address or "local", " ".join(str(error).split())[:200]) from None


def _refuse_other(ray: Any, address: str | None) -> None:
    """A process can be part of one cluster only."""
    now = ray.get_runtime_context().gcs_address
    if address not in (None, "auto", now):
        remedy = "call ray.shutdown() first, or leave the address out"
        wanted = f"that of the cluster which this process is connected to, {now}"
        raise NoWorkersError(str(validate.refusal("address", address, wanted, remedy)))


def _refuse_unreachable(address: str) -> None:
    """Check the port first: Ray retries for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():
        return  # "auto", or a name that Ray knows
    try:
        socket.create_connection((host, int(port)), REACH).close()
    except OSError as error:
        raise _unreachable(address, error.strerror or str(error)) from None


def _unreachable(address: str, reason: str) -> validate.InputError:
    remedy = "start Ray with ray start --head, give its address, or leave the address out"
    wanted = f"that of a running Ray cluster ({reason})"
    return NoWorkersError(str(validate.refusal("address", address, wanted, remedy)))


@dataclass(frozen=True)
class _Submitted:
    """A task that was handed out, whether it takes a GPU, and when that was."""

    task: Task
    on_gpu: bool
    at: float


class _Cluster(WorkerPool):
    def __init__(self, ray: Any, work: Work, device: str, time_limit: float | None) -> None:
        self._ray, self._device, self._time_limit = ray, device, time_limit
        self._work = ray.put(work)
        self._submitted: dict[Any, _Submitted] = {}
        self._counted, self._places = -LOOK_AGAIN, (0, 0)

    def idle(self) -> int:
        return sum(self._left())

    def running(self) -> int:
        return len(self._submitted)

    def submit(self, task: Task) -> None:
        on_gpu = self._left()[1] > 0
        options = {"num_cpus": 1, "num_gpus": int(on_gpu), "max_retries": 0}
        reference = self._ray.remote(**options)(_play).remote(
            [self._work], task, dprime.__version__, on_gpu, self._time_limit
        )
        self._submitted[reference] = _Submitted(task, on_gpu, time.monotonic())

    def completed(self) -> Iterator[Outcome]:
        if not self._submitted:
            return
        self._ray.wait(list(self._submitted), num_returns=1, timeout=PATIENCE)
        waiting = list(self._submitted)
        ready, _ = self._ray.wait(waiting, num_returns=len(waiting), timeout=0)
        for reference in ready:
            yield self._outcome(reference, self._submitted.pop(reference))

    def _outcome(self, reference: Any, submitted: _Submitted) -> Outcome:
        """What came back, or why nothing did; after the time limit it is why a worker is gone."""
        errors, task = self._ray.exceptions, submitted.task
        try:
            outcome: Outcome = self._ray.get(reference)
        except errors.OutOfMemoryError:
            return Outcome(task, End.MEMORY, None, "its node ran out of memory")
        except errors.RayTaskError as error:  # not of the block: those come back as outcomes
            reason = " ".join(str(error.cause).split())[:200]
            sentence = f"A worker cannot play blocks: {type(error.cause).__name__}: {reason}"
            return Outcome(task, End.UNFIT, None, sentence)
        except errors.RayError as error:
            took = time.monotonic() - submitted.at
            if self._time_limit is not None and took > self._time_limit:
                return late(task, self._time_limit, took)
            gone = f"its worker is gone ({type(error).__name__})"
            return Outcome(task, End.LOST, None, gone, took)
        return outcome

    def _left(self) -> tuple[int, int]:
        """Cores and GPUs for which there is no task yet; at least one task is always under way."""
        cores, gpus = self._all()
        on_gpu = sum(each.on_gpu for each in self._submitted.values())
        left = max(0, cores - (len(self._submitted) - on_gpu)), max(0, gpus - on_gpu)
        if not self._submitted and left == (0, 0):  # nodes may be on their way
            return (0, 1) if self._device == "cuda" else (1, 0)
        return left

    def _all(self) -> tuple[int, int]:
        """Cores and GPUs of the cluster that may be used, as of a moment ago."""
        if time.monotonic() - self._counted > LOOK_AGAIN:
            found = self._ray.cluster_resources()
            cores, gpus = int(found.get("CPU", 0)), int(found.get("GPU", 0))
            if self._device == "cpu":
                gpus = 0
            self._places = (0 if self._device == "cuda" else max(0, cores - gpus), gpus)
            self._counted = time.monotonic()
        return self._places

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
    with _alarm(time_limit):
        return play(_known[key], task, _name())


@contextmanager
def _alarm(seconds: float | None) -> Iterator[None]:
    """End this process after a while, whatever it does: the watch needs no turn in Python."""
    if seconds is None:
        yield
        return
    with open(os.devnull, "w") as nowhere:
        faulthandler.dump_traceback_later(seconds, exit=True, file=nowhere)
        try:
            yield
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
