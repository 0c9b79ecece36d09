"""Blocks on a Ray cluster: one machine or many, with or without GPUs.

Every task is submitted once: what is lost comes back to the driver, which alone decides.
"""

from __future__ import annotations

import functools
import os
import secrets
import socket
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib import import_module
from typing import Any

import dprime
from dprime import text, validate
from dprime.runs.backends.base import Backend, End, Outcome, Outcomes, Task, Work, play_within

LOOK_AGAIN = 2.0  # seconds after which the nodes are counted anew: they come and go
REACH = 3.0  # seconds that a cluster has to answer
SILENCE = 15.0  # seconds that its head may be away; after a minute Ray itself ends the process
LOOPBACK = "127.0.0.1"
OLDEST = (2, 52)  # the first release that asks for a token
SHARE = 0.5 / (1 << 30)  # of a node's memory that all its workers take, in GB a byte


class Ray(Backend):
    """A Ray cluster.

    The `address` is "auto" for the cluster that this machine is part of, "host:port", or "ray://…";
    None starts one here for the time of a run, which listens on the loopback address alone and asks
    for a token that is drawn anew. On the `device` "cpu" a worker is a core, on "cuda" a GPU, on
    "auto" a GPU where there are some. The `time_limit` is in seconds.
    """

    def __init__(
        self, address: str | None = None, time_limit: float | None = None, device: str = "cpu"
    ) -> None:
        self.address = address
        super().__init__(time_limit)
        self.device = validate.one_of("device", device, ("cpu", "cuda", "auto"))
        library()
        if address is not None:  # fail now, before a run is begun
            self._connect()

    def outcomes(self, work: Work, waiting: deque[Task]) -> Outcomes:
        ray = library()
        started = self.address is None and not ray.is_initialized()
        running: dict[Any, tuple[Task, float]] = {}  # and since when
        task = waiting[0]
        with _private_cluster() if started else nullcontext():
            try:
                self._connect()
                yield from self._played(work, waiting, running)
            except (ray.exceptions.RayError, OSError) as error:  # of the cluster, not of a task
                yield Outcome(task, End.UNFIT, None, f"Ray failed: {_line(error)}")
            finally:
                for reference in running:
                    with suppress(Exception):  # it may have ended meanwhile, or its node with it
                        ray.cancel(reference, force=True)

    def _played(
        self, work: Work, waiting: deque[Task], running: dict[Any, tuple[Task, float]]
    ) -> Outcomes:
        """Play the tasks as long as the cluster is there."""
        ray, head = library(), _head()
        gpus = self.device == "auto" and ray.cluster_resources().get("GPU", 0) >= 1
        on_gpu = self.device == "cuda" or gpus
        player = ray.remote(num_cpus=1, num_gpus=int(on_gpu), max_retries=0, max_calls=0)(_play)
        options = [ray.put(work)], on_gpu, dprime.__version__, self.time_limit
        while waiting or running:
            _reach(head, SILENCE)
            workers = int(ray.cluster_resources().get("GPU" if on_gpu else "CPU", 0))
            while waiting and len(running) < max(workers, 1):  # nodes may be on their way
                task = waiting.popleft()
                running[player.remote(task, *options)] = task, time.monotonic()
            for reference in ray.wait(list(running), timeout=LOOK_AGAIN)[0]:
                yield self._outcome(reference, *running.pop(reference))

    def _connect(self) -> None:
        """Join the cluster, or start one; a process can be part of one only."""
        ray, now = library(), ""
        paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        options: dict[str, Any] = {} if self.address else {"include_dashboard": False}
        options |= {"log_to_driver": False, "logging_level": "ERROR"}
        options["runtime_env"] = {"env_vars": paths}
        host, _, port = (self.address or "").removeprefix("ray://").rpartition(":")
        try:
            if host and port.isdecimal():  # check the port first: Ray retries for minutes
                _reach(f"{host}:{port}", 0.0)
            if ray.is_initialized():
                now = _head()
            if not now or self.address not in (None, "auto", now):
                ray.init(address=self.address or "local", **options)
        except Exception as error:  # Ray raises errors of all classes, Exception itself included
            if self.address is None:
                raise ConnectionError(f"no cluster starts here ({_line(error)})") from None
            requirement = f"that of a running Ray cluster ({_line(error)})"
            remedy = "start Ray with ray start --head, give its address, or leave the address out"
            raise validate.invalid_value("address", self.address, requirement, remedy) from None
        if not now and self.address is None:
            _check_private()

    def _outcome(self, reference: Any, task: Task, since: float) -> Outcome:
        ray = library()
        try:
            outcome: Outcome = ray.get(reference)
        except ray.exceptions.OutOfMemoryError:
            return Outcome(task, End.MEMORY, None, "its node ran out of memory")
        except ray.exceptions.RayTaskError as error:  # not of the block: those are outcomes
            reason = f"{type(error.cause).__name__}: {_line(error.cause)}"
            return Outcome(task, End.UNFIT, None, f"A worker cannot play blocks: {reason}")
        except ray.exceptions.LocalRayletDiedError:
            raise  # this machine is no part of the cluster any more
        except ray.exceptions.RayError as error:
            gone = f"its worker is gone ({type(error).__name__})"
            return self.gone(task, gone, time.monotonic() - since)
        return outcome


def library() -> Any:
    """Ray itself, or the line that installs it."""
    try:
        ray = import_module("ray")
    except ImportError:
        found, remedy = "ray, which is not installed", text.install("ray")
        raise validate.invalid_input("backend", found, "there", remedy) from None
    if tuple(map(int, ray.__version__.split(".")[:2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        remedy = text.install("ray")
        raise validate.invalid_input("Ray", ray.__version__, f"{oldest} or newer", remedy)
    return ray


@contextmanager
def _private_cluster() -> Iterator[None]:
    """What is started meanwhile listens on the loopback address, asks for a token, and ends.

    Ray takes the loopback address only where it knows of no other machines, and reads the mode and
    the token from the environment once. Where another Ray decides otherwise, nothing is played.
    """
    ray, core = library(), import_module("ray._raylet")
    constants: Any = import_module("ray._private.ray_constants")
    own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    before, machines = dict(os.environ), constants.ENABLE_RAY_CLUSTER

    def read_anew() -> None:
        core.Config.initialize("")
        core.AuthenticationTokenLoader.instance().reset_cache()

    try:
        os.environ.update(own)
        constants.ENABLE_RAY_CLUSTER = False
        read_anew()
        yield
    finally:
        ray.shutdown()
        constants.ENABLE_RAY_CLUSTER = machines
        for name in own:
            os.environ.pop(name)
        os.environ.update({name: before[name] for name in own if name in before})
        read_anew()


def _check_private() -> None:
    """Refuse a cluster that others could reach or command."""
    core = import_module("ray._raylet")
    token = core.get_authentication_mode() == core.AuthenticationMode.TOKEN
    if not token or not _head().startswith(f"{LOOPBACK}:"):
        wanted = f"on {LOOPBACK} alone, and ask for a token"
        remedy = 'use an older Ray, or give backend="processes"'
        raise validate.InputError.of("Ray", f"listen {wanted}", f"it is at {_head()}", remedy)


def _head() -> str:
    """Where the head of the cluster listens, as host:port; unknown where Ray connects as client."""
    return str(getattr(library().get_runtime_context(), "gcs_address", ""))


def _reach(head: str, patience: float) -> None:
    """Raise a ConnectionError if the head cannot be reached within these seconds."""
    host, _, port = head.rpartition(":")
    end = time.monotonic() + patience
    while host:
        try:
            socket.create_connection((host.strip("[]"), int(port)), REACH).close()
            break
        except OSError as error:
            if time.monotonic() > end:
                raise ConnectionError(f"{head} does not answer ({error.strerror})") from None
            time.sleep(0.5)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200].rstrip(".")


def _play(task: Task, sent: list[Any], on_gpu: bool, version: str, limit: float) -> Outcome:
    worker = f"{socket.gethostname()} {os.getpid()}"
    if version != dprime.__version__:
        versions = f"{dprime.__version__} and {version}"
        error = f"Worker and driver have different versions of dprime, {versions}"
        return Outcome(task, End.UNFIT, None, error, worker=worker)
    return play_within(limit, _placed(sent[0], on_gpu), task, worker)


@functools.lru_cache(1)
def _placed(sent: Any, on_gpu: bool) -> Any:
    """The work that was sent, once in each worker: on its device, in its share of the memory."""
    work, torch = library().get(sent), import_module("torch")
    if not on_gpu:
        torch.set_num_threads(1)
    if not hasattr(work, "with_compute"):
        return work
    place = "cuda" if on_gpu else "cpu"
    if on_gpu:
        memory = torch.cuda.mem_get_info()[0]
    else:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (os.cpu_count() or 1)
    return work.with_compute(lambda compute: compute.placed(place, memory * SHARE))
