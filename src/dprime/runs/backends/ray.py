"""Blocks on a Ray cluster: one machine or many, with or without GPUs.

Every task is submitted once: what is lost comes back to the driver, which alone decides.
"""

from __future__ import annotations

import functools
import os
import socket
import sys
import time
from collections import deque
from contextlib import suppress
from importlib import import_module
from typing import Any

import dprime
from dprime import text, validate
from dprime.runs.backends.base import Backend, End, Outcome, Outcomes, Task, Work, play_within

LOOK_AGAIN = 2.0  # seconds after which the nodes are counted anew: they come and go
REACH = 3.0  # seconds that a cluster has to answer
SHARE = 0.5 / (1 << 30)  # of a node's memory that all its workers take, in GB a byte


class Ray(Backend):
    """A Ray cluster.

    The `address` is "auto" for the cluster that this machine is part of, "host:port", or "ray://…";
    None starts one here for the time of a run. On the `device` "cpu" a worker is a core, on "cuda"
    a GPU, on "auto" a GPU where there are some. The `time_limit` is in seconds.
    """

    def __init__(
        self, address: str | None = None, time_limit: float | None = None, device: str = "cpu"
    ) -> None:
        self.address = address
        super().__init__(time_limit)
        self.device = validate.one_of("device", device, ("cpu", "cuda", "auto"))
        library()
        if address is not None:  # so that nothing is begun where nobody is
            self._connect()

    def outcomes(self, work: Work, waiting: deque[Task]) -> Outcomes:
        ray = library()
        started = self.address is None and not ray.is_initialized()
        self._connect()
        running: dict[Any, tuple[Task, float]] = {}  # and since when
        try:
            gpus = self.device == "auto" and ray.cluster_resources().get("GPU", 0) >= 1
            on_gpu = self.device == "cuda" or gpus
            player = ray.remote(num_cpus=1, num_gpus=int(on_gpu), max_retries=0, max_calls=0)(_play)
            options = [ray.put(work)], on_gpu, dprime.__version__, self.time_limit
            while waiting or running:
                workers = int(ray.cluster_resources().get("GPU" if on_gpu else "CPU", 0))
                while waiting and len(running) < max(workers, 1):  # nodes may be on their way
                    task = waiting.popleft()
                    running[player.remote(task, *options)] = task, time.monotonic()
                for reference in ray.wait(list(running), timeout=LOOK_AGAIN)[0]:
                    yield self._outcome(reference, *running.pop(reference))
        finally:
            for reference in running:
                with suppress(Exception):  # it may have ended meanwhile, or its node with it
                    ray.cancel(reference, force=True)
            if started:
                ray.shutdown()

    def _connect(self) -> None:
        """Join the cluster, or start one; a process can be part of one only."""
        ray, paths = library(), {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        options: dict[str, Any] = {} if self.address else {"include_dashboard": False}
        options |= {"log_to_driver": False, "logging_level": "ERROR"}
        options["runtime_env"] = {"env_vars": paths}
        host, _, port = (self.address or "").removeprefix("ray://").rpartition(":")
        try:
            if host and port.isdecimal():  # check the port first: Ray retries for minutes
                socket.create_connection((host, int(port)), REACH).close()
            now = ray.get_runtime_context().gcs_address if ray.is_initialized() else ""
            if not now or self.address not in (None, "auto", now):
                ray.init(address=self.address or "local", **options)
        except (ConnectionError, RuntimeError, OSError, TimeoutError) as error:
            reason = " ".join(str(error).split())[:200]
            requirement = f"that of a running Ray cluster ({reason})"
            remedy = "start Ray with ray start --head, give its address, or leave the address out"
            raise validate.invalid_value("address", self.address, requirement, remedy) from None

    def _outcome(self, reference: Any, task: Task, since: float) -> Outcome:
        ray = library()
        try:
            outcome: Outcome = ray.get(reference)
        except ray.exceptions.OutOfMemoryError:
            return Outcome(task, End.MEMORY, None, "its node ran out of memory")
        except ray.exceptions.RayTaskError as error:  # not of the block: those are outcomes
            reason = f"{type(error.cause).__name__}: {' '.join(str(error.cause).split())[:200]}"
            return Outcome(task, End.UNFIT, None, f"A worker cannot play blocks: {reason}")
        except ray.exceptions.RayError as error:
            gone = f"its worker is gone ({type(error).__name__})"
            return self.gone(task, gone, time.monotonic() - since)
        return outcome


def library() -> Any:
    """Ray itself, or the line that installs it."""
    try:
        return import_module("ray")
    except ImportError:
        found, remedy = "ray, which is not installed", text.install("ray")
        raise validate.invalid_input("backend", found, "there", remedy) from None


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
