"""Blocks on a Ray cluster: one machine or many, with or without GPUs.

Ray starts the workers, sends them the work once, and tells when one of them or a node is gone.
Every task is given once: what is lost comes back to the driver, which alone decides.
"""

from __future__ import annotations

import functools
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import dprime
from dprime import text, validate
from dprime.runs.backends import worker
from dprime.runs.backends.base import (
    Backend,
    WorkerPool,
    End,
    NoWorkersError,
    Outcome,
    Placeable,
    Task,
    Work,
)

INSTALL = text.install("ray")

PATIENCE = 0.5
"""Seconds to wait before looking at the clock again."""

LOOK_AGAIN = 2.0
"""Seconds after which the nodes are counted anew: they come and go."""

REACH = 3.0
"""Seconds that a cluster has to answer."""

SHARE = 0.5
"""Of a node's memory, for all its workers together."""

Device = Literal["cpu", "cuda", "auto"]


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
        self,
        address: str | None = None,
        time_limit: float | None = None,
        device: Device = "cpu",
    ) -> None:
        self.address = address
        self.time_limit = (
            None if time_limit is None else validate.positive("time_limit", time_limit, example=600)
        )
        self.device: Device = validate.one_of("device", device, ("cpu", "cuda", "auto"))  # type: ignore[assignment]
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
    """Knock first: Ray itself tries for minutes."""
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


@dataclass
class _Given:
    """A task that was handed out.

    Attributes:
        task: the block.
        number: of the handing out; a task may be handed out again.
        on_gpu: whether it takes a GPU.
        at: when it was handed out.
        begun: when it was seen that a worker had begun with it.
    """

    task: Task
    number: int
    on_gpu: bool
    at: float
    begun: float | None = None


def _numbers() -> Any:
    """A queue into which workers put the numbers of the tasks that they begin with."""
    return import_module("ray.util.queue").Queue(actor_options={"num_cpus": 0})


class _Cluster(WorkerPool):
    def __init__(self, ray: Any, work: Work, device: Device, time_limit: float | None) -> None:
        self._ray, self._device, self._time_limit = ray, device, time_limit
        self._work = ray.put(work)
        self._given: dict[Any, _Given] = {}
        self._count = 0
        self._begun = None if time_limit is None else _numbers()
        self._counted, self._places = -LOOK_AGAIN, (0, 0)

    def idle(self) -> int:
        cores, gpus = self._left()
        return cores + gpus

    def busy(self) -> int:
        return len(self._given)

    def submit(self, task: Task) -> None:
        self._count += 1
        given = _Given(task, self._count, self._left()[1] > 0, time.monotonic())
        resources = {"num_cpus": 1, "num_gpus": int(given.on_gpu), "max_retries": 0}
        reference = self._ray.remote(**resources)(_play).remote(
            [self._work], task, dprime.__version__, given.on_gpu, self._begun, given.number
        )
        self._given[reference] = given

    def completed(self) -> Iterator[Outcome]:
        if not self._given:
            return
        self._ray.wait(list(self._given), num_returns=1, timeout=PATIENCE)
        ready, waiting = self._ray.wait(list(self._given), num_returns=len(self._given), timeout=0)
        for reference in ready:
            given = self._given.pop(reference)
            yield self._outcome(reference, given.task, given.at)
        if self._time_limit is None:
            return
        self._look_who_began()
        for reference in waiting:
            given = self._given[reference]
            took = 0.0 if given.begun is None else time.monotonic() - given.begun
            if took > self._time_limit:
                del self._given[reference]
                self._cancel(reference)
                error = f"it took longer than {self._time_limit:g} s"
                yield Outcome(given.task, End.LATE, None, error, took)

    def _look_who_began(self) -> None:
        """Where nobody can say, because the node that knew is gone, all of them have."""
        try:
            numbers = set(self._begun.get_nowait_batch(self._begun.qsize()))  # type: ignore[union-attr]
        except self._ray.exceptions.RayError:
            numbers = {given.number for given in self._given.values()}
        for given in self._given.values():
            if given.begun is None and given.number in numbers:
                given.begun = time.monotonic()

    def _outcome(self, reference: Any, task: Task, since: float) -> Outcome:
        """What came back, or why nothing did."""
        errors = self._ray.exceptions
        try:
            outcome: Outcome = self._ray.get(reference)
        except errors.OutOfMemoryError:
            return Outcome(task, End.MEMORY, None, "its node ran out of memory")
        except errors.RayTaskError as error:  # not of the block: those come back as outcomes
            reason = " ".join(str(error.cause).split())[:200]
            sentence = f"a worker cannot play blocks ({type(error.cause).__name__}: {reason})"
            return Outcome(task, End.UNFIT, None, sentence)
        except errors.RayError as error:
            gone = f"its worker is gone ({type(error).__name__})"
            return Outcome(task, End.LOST, None, gone, time.monotonic() - since)
        return outcome

    def _left(self) -> tuple[int, int]:
        """Cores and GPUs for which there is no task yet; at least one task is always under way."""
        cores, gpus = self._all()
        on_gpu = sum(given.on_gpu for given in self._given.values())
        left = max(0, cores - (len(self._given) - on_gpu)), max(0, gpus - on_gpu)
        if not self._given and left == (0, 0):  # nodes may be on their way
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

    def _cancel(self, reference: Any) -> None:
        with suppress(Exception):  # it may have ended meanwhile, or its node with it
            self._ray.cancel(reference, force=True)

    def end(self) -> None:
        for reference in self._given:
            self._cancel(reference)
        self._given.clear()
        if self._begun is not None:
            with suppress(Exception):  # its node may be gone
                self._begun.shutdown(force=True)


_known: dict[tuple[str, bool], Work] = {}
"""In a worker: the work that it has unpacked, and whether for a GPU, so that this is done once."""


def _play(
    sent: list[Any], task: Task, version: str, on_gpu: bool, begun: Any, number: int
) -> Outcome:
    """In a worker: play a block."""
    if version != dprime.__version__:
        error = f"a worker has dprime {dprime.__version__}, and the driver has {version}"
        return Outcome(task, End.UNFIT, None, error, worker=_name())
    ray = library()
    key = (sent[0].hex(), on_gpu)
    if key not in _known:
        _known.clear()
        _known[key] = _placed(ray.get(sent[0]), on_gpu)
    if begun is not None:
        with suppress(ray.exceptions.RayError):  # the node that is told may be gone
            begun.put(number)
    return worker.play(_known[key], task, _name())


def _placed(work: Work, on_gpu: bool) -> Work:
    """On this worker's device, in its part of the memory."""
    if not on_gpu:
        import_module("torch").set_num_threads(1)
    return work.placed(*_place(on_gpu)) if isinstance(work, Placeable) else work


def _place(on_gpu: bool) -> tuple[str, float]:
    """The device, and how many GB of it: a share of the GPU, or of the machine for each core."""
    if on_gpu:
        free = import_module("torch").cuda.mem_get_info()[0]
        return "cuda", free * SHARE / (1 << 30)
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return "cpu", whole * SHARE / max(1, os.cpu_count() or 1) / (1 << 30)


@functools.cache
def _name() -> str:
    """Machine, node and process, as people call a worker."""
    node = library().get_runtime_context().get_node_id()[:6]
    return f"{socket.gethostname()} {node} {os.getpid()}"
